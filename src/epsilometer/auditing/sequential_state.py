"""Everything that a sequential audit must remember between batches."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.bounds import Counts
from epsilometer.engine import Fingerprints
from epsilometer.errors import InputError
from epsilometer.methods.base import Candidate
from epsilometer.methods.sequential import Chosen
from epsilometer.outputs import Event, Outputs
from epsilometer.storage.packing import pack_outputs, unpack_outputs

NOTHING = Outputs((), 0)
NOTHING_SEEN = Counts(0, 0)


@dataclass(slots=True)
class Stake:
    """An event that is bet on, with its counts since it was chosen."""

    chosen: Chosen
    left: Counts = NOTHING_SEEN
    right: Counts = NOTHING_SEEN

    def ordered(self, left: Counts, right: Counts) -> tuple[Counts, Counts]:
        """Counts under the larger distribution and the other."""
        return self.chosen.candidate.oriented(left, right)

    @property
    def worth(self) -> float:
        """How many draws the guess is worth."""
        return self.chosen.weight + self.left.trials

    def guess(self) -> tuple[float, float]:
        """The event's probabilities under the larger and the other distribution, from earlier draws."""
        above, below = self.ordered(self.left, self.right)
        weight = self.chosen.weight
        p, q = self.chosen.candidate.p, self.chosen.candidate.q
        return (weight * p + above.hits) / self.worth, (weight * q + below.hits) / self.worth

    def bet_to_dict(self, batch: int, place: int, share: float, left: Counts, right: Counts) -> dict[str, Any]:
        """A bet as plain data, before the counts of its batch are added to the stake.

        Args:
            batch: the number of the batch.
            place: of this stake among those of the batch.
            share: of the money that was bet on it.
            left: counts of the batch.
            right: likewise.
        """
        p, q = self.guess()
        return {
            "batch": batch,
            "stake": place,
            "share": share,
            "flipped": self.chosen.candidate.flipped,
            "p1": p,
            "q1": q,
            "left": [left.hits, left.trials],
            "right": [right.hits, right.trials],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        found = self.chosen.candidate
        return {
            "event": found.event.to_dict(),
            "chosen": [found.flipped, found.p, found.q, self.chosen.weight, self.chosen.rate],
            "counts": [self.left.hits, self.left.trials, self.right.hits, self.right.trials],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Stake:
        """The inverse of `to_dict`."""
        flipped, p, q, weight, rate = data["chosen"]
        found = Candidate(Event.from_dict(data["event"]), bool(flipped), float(p), float(q), float(rate))
        chosen = Chosen(found, float(weight), float(rate))
        counts = [int(count) for count in data["counts"]]
        return cls(chosen, Counts(counts[0], counts[1]), Counts(counts[2], counts[3]))


@dataclass(slots=True)
class State:
    """A sequential audit after some batches.

    Attributes:
        log_wealth: shape (values,), of the bet against each value.
        best: the same at its best so far.
        left: draws that may choose an event, in order.
        right: likewise.
        pair: number of the pair.
        stakes: the events that are bet on, the better first; empty before the pilot.
        choices: how often events were chosen so far.
        chosen_at: draws per side at the last choice.
        batch: batches that were counted.
        spent: draws per side, pilot included.
        evidence: draws per side that were bet on.
        curve: per batch: draws per side, log-wealth against the claim, bound.
        fingerprints: of chunks, left and right.
        batches: per batch and bet, what is needed to recompute the wealth; see `bet_to_dict`.
        stopped: why it ended: "refuted", "samples" or "seconds"; empty while it continues.
    """

    log_wealth: Floats
    best: Floats
    left: Outputs = NOTHING
    right: Outputs = NOTHING
    pair: int = 0
    stakes: list[Stake] = field(default_factory=list)
    choices: int = 0
    chosen_at: int = 0
    batch: int = 0
    spent: int = 0
    evidence: int = 0
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    fingerprints: tuple[Fingerprints, Fingerprints] = field(default_factory=lambda: (Fingerprints(), Fingerprints()))
    batches: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""

    @classmethod
    def empty(cls, n_values: int) -> State:
        """Before the pilot."""
        return cls(np.zeros(n_values), np.zeros(n_values))

    def begin(self, pair: int, chosen: list[Chosen], draws: tuple[Outputs, Outputs], spent: int) -> None:
        """After the pilot."""
        self.pair, self.spent = pair, spent
        self.left, self.right = draws
        self.chosen_at = len(self.left)
        self.change(chosen)

    def change(self, chosen: list[Chosen]) -> None:
        """Bets on other events from now on."""
        self.stakes = [Stake(each) for each in chosen]
        self.choices += 1

    def add(self, size: int, log_factor: Floats) -> None:
        """Adds a batch of `size` draws per side that was bet on."""
        self.spent += size
        self.evidence += size
        self.log_wealth = self.log_wealth + log_factor
        self.best = np.maximum(self.best, self.log_wealth)

    def to_dict(self) -> dict[str, Any]:
        """All but the arrays and the draws, as plain data."""
        return {
            "pair": self.pair,
            "stakes": [stake.to_dict() for stake in self.stakes],
            "choices": self.choices,
            "chosen_at": self.chosen_at,
            "batch": self.batch,
            "spent": self.spent,
            "evidence": self.evidence,
            "curve": [list(point) for point in self.curve],
            "fingerprints": [side.to_bytes().hex() for side in self.fingerprints],
            "batches": self.batches,
            "stopped": self.stopped,
        }

    def to_bytes(self) -> bytes:
        """Everything, as the bytes of an .npz file; `from_bytes` is the inverse."""
        arrays: dict[str, NDArray[Any]] = {"log_wealth": self.log_wealth, "best": self.best}
        tables = [pack_outputs(side, draws, arrays) for side, draws in (("left", self.left), ("right", self.right))]
        arrays["meta"] = np.frombuffer(json.dumps({"state": self.to_dict(), "tables": tables}).encode(), np.uint8)
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mixes up its keywords
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> State:
        """The inverse of `to_bytes`."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            meta = json.loads(arrays["meta"].tobytes())
            draws = [
                unpack_outputs(side, table, arrays)
                for side, table in zip(("left", "right"), meta["tables"], strict=True)
            ]
            return cls.from_dict(meta["state"], arrays["log_wealth"], arrays["best"], draws)
        except (KeyError, TypeError, ValueError, IndexError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"the state of the audit in its checkpoint cannot be read: {error!r}") from error

    @classmethod
    def from_dict(cls, data: dict[str, Any], log_wealth: Floats, best: Floats, draws: list[Outputs]) -> State:
        """The inverse of `to_dict`, with the arrays and the draws."""
        numbers = {name: int(data[name]) for name in ("pair", "choices", "chosen_at", "batch", "spent", "evidence")}
        return cls(
            log_wealth,
            best,
            draws[0],
            draws[1],
            stakes=[Stake.from_dict(stake) for stake in data["stakes"]],
            curve=[(int(n), float(wealth), float(bound)) for n, wealth, bound in data["curve"]],
            fingerprints=_fingerprints_from(data["fingerprints"]),
            batches=list(data["batches"]),
            stopped=str(data["stopped"]),
            **numbers,
        )


def _fingerprints_from(texts: list[str]) -> tuple[Fingerprints, Fingerprints]:
    left, right = (Fingerprints.from_bytes(bytes.fromhex(text)) for text in texts)
    return left, right
