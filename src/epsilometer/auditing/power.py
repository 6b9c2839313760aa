"""What an audit could have found: the other half of "not refuted".

The audit is rehearsed, learning included, on synthetic leaks of known size in outputs like its own
(`epsilometer.auditing.synthetic_leaks`), to find the smallest leak that it refutes with 90 % power.
That takes as long as some dozens of audits, so it is done only on request.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.auditing.synthetic_leaks import (
    DrawRows,
    EventLeak,
    OutputPool,
    Rng,
    ShiftedNoiseLeak,
    SyntheticLeak,
)
from epsilometer.auditing.thresholds import (
    FIRST_REHEARSALS,
    STEP,
    Thresholds,
    hardest_to_find,
)
from epsilometer.bounds.two_counts import epsilon_test
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Outputs

# True values that are tried, by their excess over the claim.
_RUNGS = 50
_EXCESSES = [1e-3 * STEP**rung for rung in range(_RUNGS)]
# Larger audits are rehearsed with so many draws per side, if outputs have one column.
_MOST_DRAWS = 10_000
# The same if outputs have several columns, from which learning takes longer.
_MOST_VECTORS = 5_000
# The detectable excess over the claim falls with the square root of the draws, or a little slower
# where more draws make finer events.
_RATE = 0.4
# The stream of rehearsals must not be one of the audit's own.
_STREAM = 0x9E4EA25A
_PAIR = Pair("left", "right")


def refutes_claim(proposal: Proposal, left: Any, right: Any, task: Task) -> bool:
    """Whether the bound from these tallies is above the claim.

    For ε, working out the bound takes ten times as long as deciding whether it is above the claim.
    """
    claim = task.claim
    failure = task.failure_probability
    if (
        not isinstance(claim, PureDP | ApproxDP)
        or claim.parameter != "epsilon"
        or type(proposal) is not EventProposal
    ):
        return proposal.certify(left, right, _PAIR, failure).lower_bound > claim.value
    above, below = proposal.candidate.oriented(left, right)
    if above.hits <= above.trials * claim.delta:
        return False
    test = epsilon_test(above, below, failure, claim.delta)
    return test.rejects(claim.epsilon, claim.delta)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Finds the smallest leak that an audit refutes.

    The audit learns on some draws and certifies on fresh ones.

    Attributes:
        task: what the audit was to certify.
        method: the method of the audit.
        n_train: draws that it learns from, (left, right).
        rows: some of its outputs, as many of the left as of the right.
        event: the event that distinguished its sides best.
        seed: the seed of the rehearsals.
    """

    task: Task
    method: Method
    n_train: tuple[int, int]
    rows: Outputs
    event: Callable[[Outputs], np.ndarray] | None
    seed: int

    def detectable(self) -> float | None:
        """The true value that the audit would have refuted, nine times in ten.

        It is infinite when not even the largest leak is refuted, and None when no leak can be made
        of these outputs.
        """
        try:
            return self._detectable()
        except Exception:  # an extra remark must never cost a finished verdict
            return None

    def _detectable(self) -> float | None:
        pool = OutputPool(self.rows)
        plain_leaks = pool.synthetic_leaks()
        special_leaks = pool.tempered_leaks()
        if self.event is not None:  # the leak through the audit's own event
            inside = self.event(self.rows)
            if 0 < inside.sum() < len(inside):
                special_leaks.append(EventLeak(inside))
        if not plain_leaks and not special_leaks:
            return None
        are_vectors = max((len(block.columns) for block in self.rows), default=1) > 1
        n_left = self.n_train[0] + self.task.n_fresh[0]
        n_right = self.n_train[1] + self.task.n_fresh[1]
        most_draws = _MOST_VECTORS if are_vectors else _MOST_DRAWS
        fraction = min(1.0, most_draws / max(n_left, n_right))
        audit = self.shrunk(fraction) if fraction < 1.0 else self
        numbered = enumerate([*plain_leaks, *special_leaks])
        kinds = [LeakLadder(audit, pool, leak, number).thresholds() for number, leak in numbered]
        plain = kinds[: len(plain_leaks)]
        # What a smaller audit misses, this one may find.
        out_of_reach = math.inf if fraction == 1.0 else None
        if any(not kind.sizes or _first_look(kind).is_out_of_reach for kind in plain):
            return out_of_reach
        has_numbers = any(isinstance(leak, ShiftedNoiseLeak) for leak in plain_leaks)
        possible = [kind for kind in kinds[len(plain) :] if kind.sizes]
        special = [kind for kind in possible if not _first_look(kind).is_out_of_reach]
        # Among numbers, an event may be a slice that chance cut out of a larger one. If it cannot
        # even be found again, it says nothing about leaks.
        if len(special) < len(possible) and not has_numbers:
            return None
        if not plain and not special:
            return None
        excess = hardest_to_find([*plain, *special]).nine_in_ten()
        if math.isinf(excess):
            return out_of_reach
        return self.task.claim.value + excess * float(fraction**_RATE)

    def shrunk(self, fraction: float) -> "Rehearsal":
        """The same audit with a fraction of its draws."""
        n_train = (int(fraction * self.n_train[0]), int(fraction * self.n_train[1]))
        n_fresh = (int(fraction * self.task.n_fresh[0]), int(fraction * self.task.n_fresh[1]))
        return replace(self, task=replace(self.task, n_fresh=n_fresh), n_train=n_train)

    def refutes(self, pair: DrawRows, draw: Callable[[Integers, Rng], Outputs], rng: Rng) -> bool:
        """Runs the audit on two distributions of rows, and returns whether it refutes the claim.

        Args:
            pair: draws rows for either side.
            draw: draws outputs like those in the given rows.
            rng: the source of all randomness.
        """
        train = [draw(pair(side, n, rng), rng) for side, n in enumerate(self.n_train)]
        fresh = [draw(pair(side, n, rng), rng) for side, n in enumerate(self.task.n_fresh)]
        # Every rehearsal is an audit with random numbers of its own.
        task = replace(self.task, stream=Stream(int(rng.integers(2**63))))
        proposal = self.method.propose(train[0], train[1], task)
        left = proposal.tally(fresh[0], 0)
        right = proposal.tally(fresh[1], 1)
        return refutes_claim(proposal, left, right, task)


def _first_look(kind: Thresholds) -> Thresholds:
    """The same kind of leak, with a few rehearsals."""
    kind.rehearse(FIRST_REHEARSALS, start=_RUNGS // 3)
    return kind


class LeakLadder:
    """One synthetic leak at the true values that are tried."""

    def __init__(
        self, audit: Rehearsal, pool: OutputPool, leak: SyntheticLeak, number: int
    ) -> None:
        self.audit = audit
        self.leak = leak
        self.number = number
        self.draw = pool.output_sampler()
        self.pairs: dict[int, DrawRows | None] = {}

    def thresholds(self) -> Thresholds:
        """The excesses that this leak can have, to be rehearsed; none if it cannot have any."""
        n_possible = bisect_left(range(_RUNGS), True, key=lambda rung: self.pair(rung) is None)
        return Thresholds(self._refutes, _EXCESSES[:n_possible])

    def _refutes(self, number: int, rung: int) -> bool:
        pair = self.pair(rung)
        rng = np.random.default_rng([self.audit.seed, _STREAM, self.number, number])
        return pair is not None and self.audit.refutes(pair, self.draw, rng)

    def pair(self, rung: int) -> DrawRows | None:
        """The leak at a rung; None where it cannot be as large."""
        if rung not in self.pairs:
            claim = self.audit.task.claim
            try:
                self.pairs[rung] = self.leak.pair(claim.with_value(claim.value + _EXCESSES[rung]))
            except InputError:  # no claim can have so large a value, such as δ ≥ 1
                self.pairs[rung] = None
        return self.pairs[rung]
