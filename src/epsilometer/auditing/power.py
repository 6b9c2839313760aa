"""What an audit could have found: the other half of "not refuted".

The audit is rehearsed, learning included, on synthetic leaks of known size in outputs like its own
(`epsilometer.auditing.synthetic_leaks`), to find the smallest leak that it refutes with 90 % power.
That takes as long as some dozens of audits, so it is done only on request.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.rehearsals import (
    STEP,
    EventProbabilities,
    Kind,
    RehearsedAudit,
    first_looks,
    size_of_hardest,
)
from epsilometer.auditing.synthetic_leaks import (
    EventLeak,
    OutputPool,
    Rng,
    ShiftedNoiseLeak,
    SyntheticLeak,
    without_repetitions,
)
from epsilometer.claims import Claim
from epsilometer.errors import InputError
from epsilometer.methods import Method, Task
from epsilometer.outputs import Event, Outputs

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
        special_leaks = without_repetitions([*plain_leaks, *special_leaks])[len(plain_leaks) :]
        if not plain_leaks and not special_leaks:
            return None
        are_vectors = max((len(block.columns) for block in self.rows), default=1) > 1
        n_left = self.n_train[0] + self.task.n_fresh[0]
        n_right = self.n_train[1] + self.task.n_fresh[1]
        most_draws = _MOST_VECTORS if are_vectors else _MOST_DRAWS
        fraction = min(1.0, most_draws / max(n_left, n_right))
        audit = self.shrunk(fraction) if fraction < 1.0 else self
        rehearsed = RehearsedAudit(audit.task, audit.method, audit.n_train)
        kinds = [
            Kind(rehearsed, SpreadLeak(pool, leak, self.task.claim), [self.seed, _STREAM, number])
            for number, leak in enumerate([*plain_leaks, *special_leaks])
        ]
        plain = kinds[: len(plain_leaks)]
        # What a smaller audit misses, this one may find.
        out_of_reach = math.inf if fraction == 1.0 else None
        if any(not kind.leak.sizes for kind in plain):
            return out_of_reach
        looks = first_looks([kind for kind in kinds if kind.leak.sizes])
        if any(look.is_out_of_reach for look in looks[: len(plain)]):
            return out_of_reach
        within_reach = [look for look in looks if not look.is_out_of_reach]
        has_numbers = any(isinstance(leak, ShiftedNoiseLeak) for leak in plain_leaks)
        # Among numbers, an event may be a slice that chance cut out of a larger one. If it cannot
        # even be found again, it says nothing about leaks.
        if len(within_reach) < len(looks) and not has_numbers:
            return None
        if not within_reach:
            return None
        excess = size_of_hardest(within_reach)
        if math.isinf(excess):
            return out_of_reach
        return self.task.claim.value + excess * float(fraction**_RATE)

    def shrunk(self, fraction: float) -> "Rehearsal":
        """The same audit with a fraction of its draws."""
        n_train = (int(fraction * self.n_train[0]), int(fraction * self.n_train[1]))
        n_fresh = (int(fraction * self.task.n_fresh[0]), int(fraction * self.task.n_fresh[1]))
        return replace(self, task=replace(self.task, n_fresh=n_fresh), n_train=n_train)


class SpreadLeak:
    """One synthetic leak at the true values that are tried.

    Attributes:
        sizes: the excesses over the claim that it can have; none if it cannot have any.
    """

    def __init__(self, pool: OutputPool, leak: SyntheticLeak, claim: Claim) -> None:
        self.pool = pool
        self.leak = leak
        self.claim = claim
        self.draw_rows = pool.output_sampler()
        self.known: dict[int, Floats | None] = {}
        n_possible = bisect_left(
            range(_RUNGS), True, key=lambda rung: self.row_probabilities(rung) is None
        )
        self.sizes = _EXCESSES[:n_possible]

    def row_probabilities(self, rung: int) -> Floats | None:
        """Of all stored rows on both sides, shape (2, rows); None where it cannot be as large."""
        if rung not in self.known:
            try:
                claim = self.claim.with_value(self.claim.value + _EXCESSES[rung])
                self.known[rung] = self.leak.row_probabilities(claim)
            except InputError:  # no claim can have so large a value, such as δ ≥ 1
                self.known[rung] = None
        return self.known[rung]

    def _possible(self, place: int) -> Floats:
        probabilities = self.row_probabilities(place)
        assert probabilities is not None
        return probabilities

    def draw(self, place: int, side: int, n: int, rng: Rng) -> Outputs:
        """Draws n outputs of one side."""
        rows = self.pool.drawn_rows(self._possible(place)[side], n, rng)
        return self.draw_rows(rows, rng)

    def probabilities_of(self, event: Event, rng: Rng) -> EventProbabilities:
        """The probabilities of an event on both sides, at every size."""
        inside = self.pool.membership(event, rng)

        def at(place: int) -> tuple[float, float]:
            left, right = np.clip(self._possible(place) @ inside, 0.0, 1.0).tolist()
            return left, right

        return at
