"""Trials of a search: pairs that were explored, and their history in the result."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

from epsilometer.errors import MechanismError
from epsilometer.inputs.pairs import Pair, pair_digest, pair_to_dict

# Trials that a result keeps; more would make it large, and nobody looks at them.
_MOST_TRIALS = 2000
# Characters of JSON up to which a pair stands in the history as it is; larger ones as a digest.
_MOST_TEXT = 500
# The score of an infinite prediction (an event that always happened on one side): to a finder it is
# just a very good one.
_LARGEST_SCORE = 1e6


@dataclass(slots=True)
class Trial:
    """One pair that was explored.

    Attributes:
        number: of the trial, from 0.
        pair: its inputs.
        draws: draws per side that explored it.
        predicted: the bound to expect; None if there is no prediction.
        score: what it says against the claim about the pair, for comparisons; None if there is no
            prediction.
        claimed: what is claimed about this pair, where that depends on the pair.
        certified: the bound that was certified; None if the pair was not promising enough.
        failed: what the mechanism complained about; empty if it did not.
        error: the complaint itself.
        is_late: whether the time for trials was over while it ran.
    """

    number: int
    pair: Pair
    draws: int
    predicted: float | None = None
    score: float | None = None
    claimed: float | None = None
    certified: float | None = None
    failed: str = ""
    error: MechanismError | None = field(default=None, repr=False)
    is_late: bool = False

    @property
    def promise(self) -> float:
        """The score, for comparisons: a trial without one is the least promising."""
        return -math.inf if self.score is None else self.score

    def fail(self, error: MechanismError) -> None:
        """Records that the mechanism failed on this pair."""
        self.failed = str(error)
        self.error = error


def trial_history(trials: list[Trial]) -> list[dict[str, Any]]:
    """Returns the trials as plain data, each with the best prediction so far."""
    best: float | None = None
    best_promise = -math.inf
    entries = []
    for trial in trials[:_MOST_TRIALS]:
        if trial.predicted is not None and (best is None or trial.promise > best_promise):
            best = trial.predicted
            best_promise = trial.promise
        entry: dict[str, Any] = {
            "trial": trial.number + 1,
            "pair": stored_pair(trial.pair),
            "draws": trial.draws,
            "predicted": trial.predicted,
            "best": best,
            "certified": trial.certified,
        }
        if trial.claimed is not None:
            entry["claimed"] = trial.claimed
        if trial.failed:
            entry["failed"] = trial.failed
        entries.append(entry)
    return entries


def stored_pair(pair: Pair) -> dict[str, Any] | str:
    """Returns a small pair as it is stored, a large one as its digest."""
    stored = pair_to_dict(pair)
    return stored if len(json.dumps(stored)) <= _MOST_TEXT else pair_digest(pair)


def as_score(predicted: float) -> float | None:
    """Returns a prediction as a score for finders; None where nothing was predicted."""
    if math.isnan(predicted) or predicted == -math.inf:
        return None
    return min(float(predicted), _LARGEST_SCORE)
