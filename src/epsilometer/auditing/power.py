"""What an audit could have found: the other half of "not refuted".

The audit is rehearsed, learning included, on leaks of known size planted into outputs like its own
(`epsilometer.auditing.planting`), to find the smallest leak that it refutes with 90 % power. That takes about as long
as a hundred audits, so it is done only on request.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.auditing.planting import DrawRows, EventPlant, LinePlant, Plant, Rng, Soil
from epsilometer.bounds.ratio import epsilon_test
from epsilometer.claims import ApproxDP, Claim, PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Outputs
from epsilometer.result import AuditResult, Verdict, changed

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

# Draws n outputs of side 0 or 1.
Draw = Callable[[int, int, Rng], Outputs]


@dataclass(frozen=True, slots=True)
class FixedTrial:
    """Learns on some draws and proves on fresh ones.

    Attributes:
        method: learns.
        task: what is to be proved.
        n_train: draws that it learns from, (left, right).
    """

    method: Method
    task: Task
    n_train: tuple[int, int]

    @property
    def draws(self) -> int:
        """Draws per side; of the larger side, if they differ."""
        return max(map(sum, zip(self.n_train, self.task.n_fresh, strict=True)))

    def shrunk(self, share: float) -> FixedTrial:
        """The same audit with a share of its draws."""
        fewer = [(int(share * left), int(share * right)) for left, right in (self.n_train, self.task.n_fresh)]
        return FixedTrial(self.method, replace(self.task, n_fresh=fewer[1]), fewer[0])

    def refutes(self, claim: Claim, draw: Draw, rng: Rng) -> bool:
        """Runs it."""
        train = [draw(side, n, rng) for side, n in enumerate(self.n_train)]
        fresh = [draw(side, n, rng) for side, n in enumerate(self.task.n_fresh)]
        proposal = self.method.propose(train[0], train[1], self.task)
        left, right = (proposal.tally(outputs, side) for side, outputs in enumerate(fresh))
        return refutes_claim(proposal, left, right, self.task)


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
    """Finds the smallest leak that an audit refutes with 90 % power.

    Attributes:
        claim: the audit's own claim.
        trial: the audit.
        soil: outputs like its own.
        event: the event that distinguished its sides best.
        seed: of the rehearsals.
    """

    claim: Claim
    trial: FixedTrial
    soil: Soil
    event: Callable[[Outputs], np.ndarray] | None
    seed: int

    def detectable(self) -> float | None:
        """The value; infinite when the largest leak is not refuted either, None when nothing can be planted."""
        try:
            return self._detectable()
        except Exception:  # an extra remark must never cost a finished verdict
            return None

    def _detectable(self) -> float | None:
        plain, special = self.soil.plants(), [*self.soil.sharpened(), *self._own_plants()]
        if not plain and not special:
            return None
        are_vectors = max((len(block.columns) for block in self.soil.outputs), default=1) > 1
        share = min(1.0, (_MOST_VECTORS if are_vectors else _MOST_DRAWS) / self.trial.draws)
        trial = self.trial.shrunk(share) if share < 1.0 else self.trial
        rung = 0
        for number, plant in enumerate(plain):
            rung = PlantedLadder(self, trial, plant, number).least(rung)
        if rung == _RUNGS:
            return math.inf if share == 1.0 else None  # what a smaller audit misses, this one may find
        for number, plant in enumerate(special):
            ladder = PlantedLadder(self, trial, plant, len(plain) + number)
            further = ladder.least(rung) if ladder.is_possible else rung
            if further < _RUNGS:
                rung = further
            elif not any(isinstance(each, LinePlant) for each in plain):
                return None
            # Among numbers, an event may be a slice that chance cut out of a larger one. If it cannot even be found
            # again, it says nothing about leaks.
        return self.claim.value + _EXCESSES[rung] * float(share**_RATE)

    def _own_plants(self) -> list[Plant]:
        """The leak through the audit's own event."""
        if self.event is None:
            return []
        inside = self.event(self.soil.outputs)
        return [EventPlant(inside)] if 0 < inside.sum() < len(inside) else []


class PlantedLadder:
    """One planted leak at the true values that are tried, each rehearsed as often as needed."""

    def __init__(self, rehearsal: Rehearsal, trial: FixedTrial, plant: Plant, number: int) -> None:
        self.rehearsal, self.trial, self.plant, self.number = rehearsal, trial, plant, number
        self.draw = rehearsal.soil.ready()
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
        end = _first(lambda rung: self._pair(rung) is None, low, _RUNGS)
        low = _first(lambda rung: self._passes(rung, _FEW), min(low + 1, end), end)
        while low < end and not self._passes(low, _MANY):
            low += 1
        return low if low < end else _RUNGS

    def _passes(self, rung: int, runs: int) -> bool:
        known = self.known.setdefault(rung, [])
        while len(known) < runs and all(known):
            known.append(self._refutes(rung, len(known)))
        return all(known[:runs])

    def _refutes(self, rung: int, run: int) -> bool:
        pair, rehearsal = self._pair(rung), self.rehearsal
        if pair is None:
            return False
        # The same numbers on every rung: then the power grows with the leak, as it should.
        rng = np.random.default_rng([rehearsal.seed, _STREAM, self.number, run])

        def draw(side: int, n: int, rng: Rng) -> Outputs:
            return self.draw(pair(side, n, rng), rng)

        return self.trial.refutes(rehearsal.claim, draw, rng)

    def _pair(self, rung: int) -> DrawRows | None:
        if rung not in self.pairs:
            claim = self.rehearsal.claim
            try:
                self.pairs[rung] = self.plant.pair(claim.with_value(claim.value + _EXCESSES[rung]))
            except InputError:  # no claim can have so large a value, such as δ ≥ 1
                self.pairs[rung] = None
        return self.pairs[rung]


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number from low to high − 1 for which a monotone condition holds; high if there is none."""
    return bisect.bisect_left(range(high), True, low, high, key=holds)


def with_power(
    result: AuditResult, method: Method, task: Task, training: tuple[Outputs, Outputs], seed: int
) -> AuditResult:
    """The result; if it refuted nothing, it can say on request what its audit could have found."""
    if result.verdict is not Verdict.NOT_REFUTED:
        return result
    event = result.witness.event.contains if result.witness else None
    trial = FixedTrial(method, task, (len(training[0]), len(training[1])))
    rehearsal = Rehearsal(result.claim, trial, Soil.of(*training), event, seed)
    return changed(result, detectable=rehearsal.detectable)
