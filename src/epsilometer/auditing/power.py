"""What an audit could have found: the other half of "not refuted".

The audit is rehearsed, learning included, on leaks of known size planted into outputs like its own
(`epsilometer.auditing.planting`), to find the smallest leak that it refutes with 90 % power. That takes about as long
as a hundred audits, so it is done only on request.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.auditing.planting import DrawRows, EventPlant, LinePlant, Plant, Rng, Soil
from epsilometer.bounds.ratio import epsilon_test
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Outputs

# True values that are tried, by their excess over the claim: each a quarter larger than the one before.
_RUNGS = 50
_EXCESSES = [1e-3 * 1.25**rung for rung in range(_RUNGS)]
# A few rehearsals find roughly where the power is reached, many confirm it. All of them must refute: a value with a
# power of 85 % is confirmed with a probability of 4 %, one of 90 % with 12 %, one of 97 % with 54 %.
_FEW, _MANY = 5, 20
# Larger audits are rehearsed at these sizes: for outputs of one number, and of several.
_MOST_DRAWS, _MOST_VECTORS = 10_000, 5_000
# The detectable excess over the claim falls with the square root of the draws, or a little slower where more draws make
# finer events.
_RATE = 0.4
# The stream of rehearsals must not be one of the audit's own.
_STREAM = 0x9E4EA25A
_PAIR = Pair("left", "right")


def refutes_claim(proposal: Proposal, left: Any, right: Any, task: Task) -> bool:
    """Whether the bound from these tallies is above the claim.

    For ε, working out the bound takes ten times as long as deciding whether it is above the claim.
    """
    claim = task.claim
    if not isinstance(claim, PureDP | ApproxDP) or claim.parameter != "epsilon" or type(proposal) is not EventProposal:
        return proposal.certify(left, right, _PAIR, task.failure_probability).lower_bound > claim.value
    above, below = proposal.candidate.oriented(left, right)
    if above.hits <= above.trials * claim.delta:
        return False
    return epsilon_test(above, below, task.failure_probability, claim.delta).rejects(claim.epsilon, claim.delta)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Finds the smallest leak that an audit, which learns on some draws and proves on fresh ones, refutes.

    Attributes:
        task: what was to be proved.
        method: how.
        n_train: draws that it learns from, (left, right).
        rows: some of its outputs, as many of the left as of the right.
        event: the event that distinguished its sides best.
        seed: of the rehearsals.
    """

    task: Task
    method: Method
    n_train: tuple[int, int]
    rows: Outputs
    event: Callable[[Outputs], np.ndarray] | None
    seed: int

    def detectable(self) -> float | None:
        """The value; infinite when the largest leak is not refuted either, None when nothing can be planted."""
        try:
            return self._detectable()
        except Exception:  # an extra remark must never cost a finished verdict
            return None

    def _detectable(self) -> float | None:
        soil = Soil(self.rows)
        plain, special = soil.plants(), soil.sharpened()
        if self.event is not None:  # the leak through the audit's own event
            inside = self.event(self.rows)
            special += [EventPlant(inside)] if 0 < inside.sum() < len(inside) else []
        if not plain and not special:
            return None
        are_vectors = max((len(block.columns) for block in self.rows), default=1) > 1
        draws = max(map(sum, zip(self.n_train, self.task.n_fresh, strict=True)))  # of the larger side, if they differ
        share = min(1.0, (_MOST_VECTORS if are_vectors else _MOST_DRAWS) / draws)
        audit = self.shrunk(share) if share < 1.0 else self
        rung = 0
        for number, plant in enumerate(plain):
            rung = PlantedLadder(audit, soil, plant, number).least(rung)
        if rung == _RUNGS:
            return math.inf if share == 1.0 else None  # what a smaller audit misses, this one may find
        for number, plant in enumerate(special):
            ladder = PlantedLadder(audit, soil, plant, len(plain) + number)
            further = ladder.least(rung) if ladder.is_possible else rung
            if further < _RUNGS:
                rung = further
            elif not any(isinstance(each, LinePlant) for each in plain):
                return None
            # Among numbers, an event may be a slice that chance cut out of a larger one. If it cannot even be found
            # again, it says nothing about leaks.
        return self.task.claim.value + _EXCESSES[rung] * float(share**_RATE)

    def shrunk(self, share: float) -> "Rehearsal":
        """The same audit with a share of its draws."""
        fewer = [(int(share * left), int(share * right)) for left, right in (self.n_train, self.task.n_fresh)]
        return replace(self, task=replace(self.task, n_fresh=fewer[1]), n_train=fewer[0])

    def refutes(self, pair: DrawRows, draw: Callable[[Integers, Rng], Outputs], rng: Rng) -> bool:
        """Runs the audit on two distributions of rows, with outputs drawn like those in the rows."""
        train = [draw(pair(side, n, rng), rng) for side, n in enumerate(self.n_train)]
        fresh = [draw(pair(side, n, rng), rng) for side, n in enumerate(self.task.n_fresh)]
        proposal = self.method.propose(train[0], train[1], self.task)
        left, right = (proposal.tally(outputs, side) for side, outputs in enumerate(fresh))
        return refutes_claim(proposal, left, right, self.task)


class PlantedLadder:
    """One planted leak at the true values that are tried, each rehearsed as often as needed."""

    def __init__(self, audit: Rehearsal, soil: Soil, plant: Plant, number: int) -> None:
        self.audit, self.plant, self.number = audit, plant, number
        self.draw = soil.ready()
        self.known: dict[int, list[bool]] = {}
        self.pairs: dict[int, DrawRows | None] = {}

    @property
    def is_possible(self) -> bool:
        """Whether this leak can be as large as the claim at all."""
        return self._pair(0) is not None

    def least(self, low: int) -> int:
        """The lowest rung, from `low` on, that is refuted with enough power; past the last if none is."""
        if low < _RUNGS and self._passes(low, _MANY):
            return low
        end = bisect_left(range(_RUNGS), True, low, key=lambda rung: self._pair(rung) is None)
        low = bisect_left(range(end), True, min(low + 1, end), key=lambda rung: self._passes(rung, _FEW))
        while low < end and not self._passes(low, _MANY):
            low += 1
        return low if low < end else _RUNGS

    def _passes(self, rung: int, runs: int) -> bool:
        known = self.known.setdefault(rung, [])
        while len(known) < runs and all(known):
            pair = self._pair(rung)
            # The same numbers on every rung: then the power grows with the leak, as it should.
            rng = np.random.default_rng([self.audit.seed, _STREAM, self.number, len(known)])
            known.append(pair is not None and self.audit.refutes(pair, self.draw, rng))
        return all(known[:runs])

    def _pair(self, rung: int) -> DrawRows | None:
        if rung not in self.pairs:
            claim = self.audit.task.claim
            try:
                self.pairs[rung] = self.plant.pair(claim.with_value(claim.value + _EXCESSES[rung]))
            except InputError:  # no claim can have so large a value, such as δ ≥ 1
                self.pairs[rung] = None
        return self.pairs[rung]
