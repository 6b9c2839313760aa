"""How rare an output that only one input gives may be and still be seen.

Such an output refutes a claim if it is learned from the training draws and then comes often enough
among the fresh ones. Both are rehearsed: outputs of the kinds that real bugs have
(`epsilometer.auditing.planted_outputs`) are planted into outputs like those of the audit, one kind
at a time. The other outputs leak as much as those of the audit seem to, because a method that is
free to choose may prefer what they show to what is rare.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.planted_outputs import Planting, plantings
from epsilometer.auditing.rehearsals import STEP, refutes_claim
from epsilometer.auditing.synthetic_leaks import OutputPool, Rng
from epsilometer.auditing.thresholds import Thresholds, hardest_to_find
from epsilometer.claims import ApproxDP, Claim
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.methods import Method, Task
from epsilometer.outputs import Outputs, concatenate

# The stream of these rehearsals must be neither one of the audit's own nor that of spread leaks.
_STREAM = 0x7A3E5EED
# Larger audits are rehearsed with so many draws per side, if outputs have one column.
_MOST_DRAWS = 4_000
# The same if outputs have several columns, from which learning takes longer.
_MOST_VECTORS = 2_500
# The δ of a smaller audit is larger, but a claim with more than this says too little.
_MOST_DELTA = 0.5
# Probabilities that are tried are above δ by these: from this many expected fresh draws on.
_FEWEST_EXPECTED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RareOutputs:
    """Finds the least probability of an output of one input alone that an audit sees.

    Attributes:
        task: what the audit was to certify.
        method: the method of the audit.
        n_train: draws that it learns from, (left, right).
        rows: some of its outputs, as many of the left as of the right.
        observed_value: what the audit's own outputs seem to leak, in the claim's parameter.
        seed: of the rehearsals.
    """

    task: Task
    method: Method
    n_train: tuple[int, int]
    rows: Outputs
    observed_value: float
    seed: int

    def detectable_mass(self) -> float | None:
        """The probability from which on such an output is seen with 90 % power.

        It is infinite when not even a certain output would be seen, and None when no such output
        can be made of these.
        """
        try:
            return self._detectable_mass()
        except Exception:  # an extra remark must never cost a finished verdict
            return None

    def _detectable_mass(self) -> float | None:
        are_vectors = max((len(block.columns) for block in self.rows), default=1) > 1
        most_draws = _MOST_VECTORS if are_vectors else _MOST_DRAWS
        n_draws = max(sum(sizes) for sizes in zip(self.n_train, self.task.n_fresh, strict=True))
        fraction = min(1.0, most_draws / n_draws)
        audit = self.shrunk(fraction) if fraction < 1.0 else self
        pool = OutputPool(self.rows)
        usual = audit.usual_rows(pool)
        probabilities = audit.probabilities()
        kinds = [
            Thresholds(RareLeak(audit, pool, usual, planting, probabilities).refutes, probabilities)
            for planting in plantings(self.rows).values()
        ]
        if not kinds:
            return None
        mass = hardest_to_find(kinds).nine_in_ten()
        if math.isinf(mass):
            # What a smaller audit misses, this one may find.
            return math.inf if fraction == 1.0 else None
        return min(mass * fraction, 1.0)

    def probabilities(self) -> list[float]:
        """The probabilities that are tried, ascending; the last one is 1."""
        least = _FEWEST_EXPECTED / max(self.task.n_fresh)
        delta = _delta_of(self.task.claim)
        n_steps = math.ceil(math.log(1.0 / least) / math.log(STEP))
        ascending = [delta + least * STEP**step for step in range(n_steps)]
        return [*(value for value in ascending if value < 1.0), 1.0]

    def usual_rows(self, pool: OutputPool) -> Floats:
        """Probabilities of the rows of usual outputs, which leak as much as the audit's seem to.

        Shape (2, rows).
        """
        claim = self.task.claim
        value = min(self.observed_value, claim.value)
        leaks = pool.synthetic_leaks()
        probabilities = None
        if leaks and value > 0.0:
            try:
                # Numbers, if there are any: noise is what most mechanisms spend their claim on.
                probabilities = leaks[-1].row_probabilities(claim.with_value(value))
            except InputError:  # no claim of this notion has such a value
                probabilities = None
        n_rows = len(pool.outputs)
        return np.full((2, n_rows), 1.0 / n_rows) if probabilities is None else probabilities

    def shrunk(self, fraction: float) -> "RareOutputs":
        """An audit with a fraction of the draws, in which as many rare outputs mean the same."""
        left, right = self.task.n_fresh
        claim = self.task.claim
        if isinstance(claim, ApproxDP) and claim.parameter == "epsilon":
            claim = replace(claim, delta=min(claim.delta / fraction, _MOST_DELTA))
        task = replace(
            self.task, claim=claim, n_fresh=(int(fraction * left), int(fraction * right))
        )
        n_train = (int(fraction * self.n_train[0]), int(fraction * self.n_train[1]))
        return replace(self, task=task, n_train=n_train)


def _delta_of(claim: Claim) -> float:
    """The probability of an output of one input alone that the claim allows."""
    return claim.delta if isinstance(claim, ApproxDP) else 0.0


class RareLeak:
    """One kind of outputs that only one input gives, planted into usual ones.

    The inputs take turns in giving them.
    """

    def __init__(
        self,
        audit: RareOutputs,
        pool: OutputPool,
        usual: Floats,
        planting: Planting,
        probabilities: Sequence[float],
    ) -> None:
        self.audit = audit
        self.pool = pool
        self.usual = usual
        self.planting = planting
        self.probabilities = probabilities
        self.draw_rows = pool.output_sampler()
        self.main = max(pool.outputs.blocks, key=lambda block: block.size).places()

    def refutes(self, number: int, place: int) -> bool:
        """Whether the rehearsal of a number refutes the claim at one of the probabilities.

        Its random numbers are the same for every kind of output.
        """
        rng = np.random.default_rng([self.audit.seed, _STREAM, number])
        task = replace(self.audit.task, stream=Stream(int(rng.integers(2**63))))
        probability = self.probabilities[place]
        leaking_side = number % 2
        (left, right), (fresh_left, fresh_right) = (
            [
                self._drawn(side, n, probability if side == leaking_side else 0.0, rng)
                for side, n in enumerate(sizes)
            ]
            for sizes in (self.audit.n_train, task.n_fresh)
        )
        proposal = self.audit.method.propose(left, right, task)
        return refutes_claim(
            proposal, proposal.tally(fresh_left, 0), proposal.tally(fresh_right, 1), task
        )

    def _drawn(self, side: int, n: int, probability: float, rng: Rng) -> Outputs:
        """Draws n outputs, of which some are planted ones.

        A larger probability takes the same random numbers, and plants more of the same outputs.
        """
        usual = self.draw_rows(self.pool.drawn_rows(self.usual[side], n, rng), rng)
        is_planted = rng.random(n) < probability
        rows = self.main[rng.integers(len(self.main), size=n)]
        to_plant = self.draw_rows(rows, rng)
        if not is_planted.any():
            return usual
        planted = self.planting(to_plant.take(np.flatnonzero(is_planted)))
        others = usual.take(np.flatnonzero(~is_planted))
        # In the order in which they were drawn.
        places = np.concatenate([np.flatnonzero(is_planted), np.flatnonzero(~is_planted)])
        return concatenate([planted, others]).take(np.argsort(places))
