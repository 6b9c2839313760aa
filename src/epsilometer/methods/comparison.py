"""Compares the best tails of all scores, and takes the most readable one of the best.

Every score brings its best tail, with an estimate of its log-ratio from draws that did not fit the
score. All are forecast with one penalty for having been compared (`selection_penalty`). Among those
within 5 % of the best forecast the simplest event wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.methods.base import Candidate, Task
from epsilometer.methods.curves import Sliced, separation_evidence
from epsilometer.methods.scores import LearnedScore
from epsilometer.methods.tail import (
    Tail,
    best_tail,
    estimate_tails,
    slice_score,
)
from epsilometer.outputs import Event, Partition

# Statements about single columns in an event that is told in full.
MOST_CLAUSES = 3


@dataclass(frozen=True, slots=True)
class Options:
    """How the method `events` chooses its event.

    Attributes:
        readability: a simpler event is taken if it is predicted to certify at least this fraction
            of the best one; 1 always takes the best one.
    """

    readability: float = 0.95


@dataclass(frozen=True, slots=True)
class _Finalist:
    """The best tail of one score.

    Attributes:
        tail: chosen among the tails of its score.
        event: the same as a set of outputs.
        predicted: the bound to expect from the score, as the best of all candidates.
    """

    tail: Tail
    event: Event
    predicted: float

    @property
    def complexity(self) -> tuple[int, int]:
        """How hard the event is to read: one clause (by its ends), a few clauses, more."""
        # What is said once about all shapes counts once.
        n_repeats = len(self.event.partition.blocks) if self.event.is_same_in_all_shapes else 1
        clauses = n_clauses(self.event) // n_repeats
        if clauses <= 1:
            return 0, n_ends(self.event) // n_repeats
        return (1, 0) if clauses <= MOST_CLAUSES else (2, 0)


def best_event(scores: Sequence[LearnedScore], task: Task, options: Options) -> Candidate:
    """The event to certify: the most readable of those with the best forecasts.

    Args:
        scores: learned on training draws.
        task: what is to be certified.
        options: how readability is weighed.
    """
    n_scores = sum(score.n_rivals for score in scores)
    finalists = []
    for score, sliced in _with_evidence(scores):
        tails = estimate_tails(score, sliced)
        if not tails:
            continue
        # Among the tails of one score there is less to choose from than among all candidates.
        tail = best_tail(tails, task, score.n_tails)
        event = tail.event()
        if event.chosen.any() and tail.is_faithful:
            predicted = best_tail(tails, task, n_scores * score.n_tails).predicted
            finalists.append(_Finalist(tail=tail, event=event, predicted=predicted))
    if not finalists:
        return nothing()
    # Where no candidate is expected to prove anything, the one with the best chance is taken.
    best = max(
        finalists,
        key=lambda finalist: (
            round(max(finalist.predicted, 0.0), 9),
            round(finalist.tail.predicted, 9),
        ),
    )
    readable = [
        finalist
        for finalist in finalists
        if finalist.complexity < best.complexity
        and _is_fraction(finalist.predicted, best.predicted, options.readability)
        and _is_fraction(finalist.tail.predicted, best.tail.predicted, options.readability)
    ]
    chosen = min(
        readable,
        key=lambda finalist: (finalist.complexity, -finalist.predicted),
        default=best,
    )
    return Candidate(
        event=chosen.event,
        flipped=chosen.tail.flipped,
        p=chosen.tail.p,
        q=chosen.tail.q,
        predicted=chosen.predicted,
    )


def _is_fraction(forecast: float, best: float, fraction: float) -> bool:
    """Whether a forecast is this fraction of the best one; of one below 0 there is no fraction."""
    return forecast >= min(fraction * best, best)


def _with_evidence(scores: Sequence[LearnedScore]) -> list[tuple[LearnedScore, Sliced]]:
    """The scores along which the sides seem to differ, and the one with the best evidence anyway.

    The others could only be chosen by chance, and estimating their tails would take most of the
    time of a small audit.
    """
    scores = [score for score in scores if len(score.left) + len(score.right)]
    sliced = [slice_score(score) for score in scores]
    evidence = [separation_evidence(slices) for slices in sliced]
    best = max(evidence, default=0.0)
    return [
        (score, slices)
        for score, slices, log_evidence in zip(scores, sliced, evidence, strict=True)
        if log_evidence > 0.0 or log_evidence == best
    ]


def n_clauses(event: Event) -> int:
    """How many statements about one column tell the event; a score counts as many.

    Args:
        event: simplified, so that it has no groups outside of it.
    """
    n_fixed = sum(
        sum(code >= 0 for code in group.signature) - 1
        for block in event.partition.blocks
        if any(block.atoms)
        for group in block.groups
        if group.line is None
    )
    return event.n_parts + max(n_fixed, 0)


def n_ends(event: Event) -> int:
    """How many ends its intervals have: one for "at most 3", two for "between 1 and 3"."""
    return sum(
        len(group.line.edges)
        for block in event.partition.blocks
        for group in block.groups
        if group.line is not None
    )


def nothing() -> Candidate:
    """The empty event, which certifies 0: the outputs do not vary, or there are too few of them."""
    partition = Partition(())
    return Candidate(
        event=Event(partition, np.zeros(partition.n_cells, dtype=np.bool_)),
        flipped=False,
        p=0.0,
        q=0.0,
        predicted=0.0,
    )
