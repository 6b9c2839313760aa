"""Method `events`, the default: one certified event.

Reference: ordering outputs by their likelihood ratio goes back to Neyman and Pearson, sampling and
splitting to StatDP and DP-Sniper. The certificate is our own (`epsilometer.bounds.ratio`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epsilometer.bounds import Counts, certificate_p_value, certified_value, refuted_line
from epsilometer.bounds.ratio import RefutedLine
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP, TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.events.choosing import (
    Choice,
    cell_adjacency,
    choose_event,
    choose_from_small_support,
)
from epsilometer.methods.events.learning import (
    LearnedPartition,
    learn_by_values,
    learn_simpler,
    small_support_cells,
)
from epsilometer.methods.events.prediction import predict
from epsilometer.methods.events.scores import LearnedScore, learn_scores
from epsilometer.methods.events.tails import choose_tail
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness

__all__ = [
    "CandidatePartition",
    "EventProposal",
    "EventsMethod",
    "candidate_partitions",
]

# What an event is made of: cells, or one end of a score.
CandidatePartition = LearnedPartition | LearnedScore


@dataclass(frozen=True, slots=True)
class EventProposal(CandidateProposal):
    """An event to be counted on fresh draws."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the exact bound from the counts of the fresh draws."""
        claim = self.task.claim
        above, below = self.candidate.oriented(left, right)
        bound = 0.0
        details: dict[str, Any] = {}
        if isinstance(claim, PureDP | ApproxDP):
            bound = certified_value(claim, above, below, failure_probability)
            if claim.delta > 0.0 and not isinstance(claim, ApproxDeltaDP):
                details = dict(BINOMIAL_VARIANCE)
        else:
            expected = (self.candidate.p, self.candidate.q)
            line = refuted_line(claim, above, below, failure_probability, expected)
            if line:
                bound = line.proves(claim)
                details = line_as_data(line, claim)
        witness = Witness.of(
            pair, self.event, self.candidate.flipped, left, right, failure_probability
        )
        return Finding(
            method="events",
            lower_bound=bound,
            guarantee="exact",
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=claim,
            details=details,
        )

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """The exact p-value of the claim."""
        above, below = self.candidate.oriented(left, right)
        expected = (self.candidate.p, self.candidate.q)
        return certificate_p_value(self.task.claim, above, below, failure_probability, expected)


# Tells `epsilometer.checker` how the test orders counts: results of earlier versions used the
# variance of rare events.
BINOMIAL_VARIANCE = {"variance": "binomial"}


def line_as_data(line: RefutedLine, claim: Claim) -> dict[str, Any]:
    """The details of a finding that `epsilometer.checker` needs besides the counts."""
    data: dict[str, Any] = {
        "line": [line.slope, line.shift],
        "fixed": line.fixed,
        "complement": line.complement,
    }
    if line.fixed == "shift" and line.shift > 0.0:
        data |= BINOMIAL_VARIANCE
    # A file holds the curve only at some points, so these ones are stored as well.
    if isinstance(claim, TradeOffDP) and callable(claim.curve):
        data["curve_near"] = claim.points_at(line.corners()[1])
    return data


class EventsMethod(Method):
    """Learns which outputs distinguish the two inputs, and counts them on fresh draws."""

    name = "events"
    summary = (
        "one event, chosen on training draws, certified on fresh ones; "
        "any kind of output, every notion"
    )
    guarantee = "exact"
    is_quick = True

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal:
        """Proposes the event with the best predicted bound over all candidate partitions."""
        return self.propose_from(candidate_partitions(left, right), task)

    def propose_from(self, partitions: Sequence[CandidatePartition], task: Task) -> EventProposal:
        """Proposes the best event over the given partitions.

        Args:
            partitions: at least one of them is a `LearnedPartition`.
            task: what is to be certified.
        """
        candidates = _choose_all(partitions, task)
        # A single candidate has no selection bias to correct. Cells compete only with scores.
        has_competition = any(isinstance(partition, LearnedScore) for partition in partitions)
        bias_weight = float(has_competition)

        def rank(candidate: _ChosenEvent) -> tuple[bool, float]:
            # The empty event certifies 0, which would beat an event with a negative prediction.
            choice = candidate.choice
            is_not_empty = bool(choice.chosen.any())
            return is_not_empty, choice.predicted - bias_weight * choice.selection_bias

        best = max(candidates, key=rank)
        if best.event.simplified().n_parts > _MOST_SIMPLE_PARTS:
            by_values = next(
                partition for partition in partitions if isinstance(partition, LearnedPartition)
            )
            simpler = _simpler_event(best, candidates, by_values.left, by_values.right, task)
            best = simpler or best
        candidate = Candidate(
            event=best.event.simplified(),
            flipped=best.choice.flipped,
            p=best.choice.p,
            q=best.choice.q,
            predicted=best.choice.predicted,
        )
        return EventProposal(candidate, task)


def candidate_partitions(left: Outputs, right: Outputs) -> list[CandidatePartition]:
    """All partitions and scores of the outputs whose events are compared.

    Args:
        left: training outputs.
        right: training outputs.
    """
    has_several_columns = any(
        len(block.columns) > 1 for side in (left, right) for block in side.blocks
    )
    by_values = None
    if has_several_columns:
        by_values = learn_by_values(left, right)
        support = small_support_cells(by_values)
        if support is not None:
            return [replace(by_values, small_support=support)]
    scores = learn_scores(left, right)
    if by_values is None:
        # Numbers that were sorted for a score need not be sorted again.
        ordered = scores[0].ordered if scores and scores[0].is_line else None
        by_values = learn_by_values(left, right, ordered)
    return [by_values, *scores]


class _ChosenEvent(NamedTuple):
    """The best event of one candidate partition."""

    partition: CandidatePartition
    event: Event
    choice: Choice


def _choose_all(partitions: Sequence[CandidatePartition], task: Task) -> list[_ChosenEvent]:
    """The best event of each partition; scores that do not vary have none."""
    chosen = []
    for partition in partitions:
        if isinstance(partition, LearnedScore):
            tail = choose_tail(partition, task)
            if tail is not None:
                event, choice = tail
                chosen.append(_ChosenEvent(partition, event, choice))
            continue
        counts = partition.halves()
        if partition.small_support is not None:
            choice = choose_from_small_support(counts, partition.small_support, task)
        else:
            choice = choose_event(counts, cell_adjacency(partition.partition), task)
        event = Event(partition.partition, choice.chosen)
        chosen.append(_ChosenEvent(partition, event, choice))
    return chosen


# Intervals or values, at most, of an event that is easy to understand; a score is not.
_MOST_SIMPLE_PARTS = 3
# A simpler event is preferred if it is predicted to certify at least this fraction of the best one.
_MIN_FRACTION_FOR_SIMPLER_EVENT = 0.95
# Penalty on cells in this comparison, in standard errors of the training draws, against selection
# bias: there are many simple events (with 1 standard error, NumericalSVT at 1e6 draws fell from 0.7
# to 0.3 of the oracle, SVT3 from 0.8 to 0.4).
_SELECTION_PENALTY = 2.0


def _simpler_event(
    best: _ChosenEvent,
    candidates: Sequence[_ChosenEvent],
    left: Outputs,
    right: Outputs,
    task: Task,
) -> _ChosenEvent | None:
    """The best event that is easy to understand and nearly as good; None if there is none.

    Args:
        best: the event that is hard to understand.
        candidates: the other ones.
        left: training outputs, for learning simpler partitions.
        right: training outputs.
        task: what is to be certified.
    """
    simpler_partitions = learn_simpler(best.event.partition, left, right)
    all_candidates = [*candidates, *_choose_all(simpler_partitions, task)]
    simple = [
        candidate
        for candidate in all_candidates
        if 0 < candidate.event.simplified().n_parts <= _MOST_SIMPLE_PARTS
    ]
    if not simple:
        return None
    best_simple = max(simple, key=lambda candidate: _penalised_bound(candidate, task))
    required = _MIN_FRACTION_FOR_SIMPLER_EVENT * _penalised_bound(best, task)
    is_good_enough = _penalised_bound(best_simple, task) >= required > 0.0
    return best_simple if is_good_enough else None


def _penalised_bound(candidate: _ChosenEvent, task: Task) -> float:
    """The bound to expect less what may be selection bias.

    The prediction of a score contains its penalty. Cells are predicted anew with one penalty for
    all, because they were chosen among many.
    """
    choice = candidate.choice
    unbiased = choice.predicted - choice.selection_bias
    if isinstance(candidate.partition, LearnedScore):
        return unbiased
    n_train = (max(len(candidate.partition.left), 1), max(len(candidate.partition.right), 1))
    n_fresh = task.n_fresh
    if choice.flipped:
        n_train = n_train[::-1]
        n_fresh = n_fresh[::-1]
    prediction = predict(
        task,
        p=np.array([choice.p]),
        q=np.array([choice.q]),
        n_train=n_train,
        n_fresh=n_fresh,
        penalty=_SELECTION_PENALTY,
    )
    bound = float(prediction.bound[0])
    return min(bound, unbiased) if choice.selection_bias else bound
