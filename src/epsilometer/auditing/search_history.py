"""What a search over inputs remembers of its trials, and what a result keeps of that."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from epsilometer.errors import MechanismError
from epsilometer.inputs import Pair
from epsilometer.inputs.storing import pair_digest, pair_to_dict

# Trials that a result keeps; more would make it large, and nobody looks at them.
_MOST_TRIALS = 2000
# Pairs up to this size (as JSON text) stand in the history as they are, larger ones as a digest.
_MOST_TEXT = 500


@dataclass(slots=True)
class Trial:
    """One pair that was tried.

    Attributes:
        number: of the trial, from 0.
        pair: its inputs.
        draws: per side that looked at it.
        predicted: the bound to expect; None if there is no prediction.
        certified: the bound that was certified; None if the pair was not promising enough.
        failed: what the mechanism complained about; empty if it did not.
        error: the complaint itself.
    """

    number: int
    pair: Pair
    draws: int
    predicted: float | None = None
    certified: float | None = None
    failed: str = ""
    error: MechanismError | None = field(default=None, repr=False)


def history_of(trials: list[Trial]) -> list[dict[str, Any]]:
    """The trials as plain data, each with the best prediction so far."""
    best: float | None = None
    entries = []
    for trial in trials[:_MOST_TRIALS]:
        if trial.predicted is not None and (best is None or trial.predicted > best):
            best = trial.predicted
        entry: dict[str, Any] = {
            "trial": trial.number + 1,
            "pair": stored_pair(trial.pair),
            "draws": trial.draws,
            "predicted": trial.predicted,
            "best": best,
            "certified": trial.certified,
        }
        entries.append({**entry, "failed": trial.failed} if trial.failed else entry)
    return entries


def stored_pair(pair: Pair) -> dict[str, Any] | str:
    """A small pair as it is stored, a large one as its digest."""
    stored = pair_to_dict(pair)
    return stored if len(json.dumps(stored)) <= _MOST_TEXT else pair_digest(pair)
