"""All ordered pairs of mid-points of an interval of inputs, from common or from fresh samples.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy", Algorithm 2.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from typing import NamedTuple

import numpy as np

from epsilometer.engine import Phase, Sampler
from epsilometer.inputs import Pair
from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.formulas import (
    CellCounts,
    Cells,
    divergence_of_gaps,
    log_gaps,
)


def middle_points(interval: tuple[float, float], k: int) -> list[float]:
    """Returns the mid-points of k equal parts of an interval."""
    low, high = interval
    return [low + (number + 0.5) * (high - low) / k for number in range(k)]


class GreatestDivergence(NamedTuple):
    """The largest estimate over all ordered pairs of inputs.

    Attributes:
        value: the estimate.
        left: the number of the left input.
        right: the number of the right input.
    """

    value: float
    left: int
    right: int


def greatest_divergence(counts: Sequence[CellCounts], order: float | None) -> GreatestDivergence:
    """Finds the largest estimate over all ordered pairs of inputs.

    Args:
        counts: of each input, k of them.
        order: of the Rényi divergence; None for pure ε.
    """
    frequencies = np.array([side.counts / side.total for side in counts])
    if order is None:
        log_frequencies = np.log(frequencies)
        # The largest difference of two rows in one column: the extremes of that column.
        ranges = log_frequencies.max(axis=0) - log_frequencies.min(axis=0)
        cell = int(np.argmax(ranges))
        return GreatestDivergence(
            value=float(ranges[cell]),
            left=int(np.argmax(log_frequencies[:, cell])),
            right=int(np.argmin(log_frequencies[:, cell])),
        )
    best = GreatestDivergence(value=-np.inf, left=0, right=0)
    for left, row in enumerate(frequencies):
        # The divergence from every input at once, shape (k,).
        values = divergence_of_gaps(log_gaps(row, frequencies, order), order)
        values[left] = -np.inf
        right = int(np.argmax(values))
        # Ties go to the later pair, as tuples are ordered.
        best = max(best, GreatestDivergence(float(values[right]), left, right))
    return best


# --- one sample per mid-point, or two per pair ------------------------------------------------


@dataclass(frozen=True, slots=True)
class MidpointCounts:
    """One sample of each mid-point: all pairs are compared on the same counts.

    Attributes:
        sides: counts of the k mid-points.
    """

    sides: tuple[CellCounts, ...]

    def _filled(self) -> list[int]:
        """Returns the numbers of the mid-points without an empty cell."""
        return [number for number, side in enumerate(self.sides) if not side.n_empty]

    @property
    def n_failed(self) -> int:
        """Ordered pairs of which one input has an empty cell."""
        return _n_ordered_pairs(len(self.sides)) - _n_ordered_pairs(len(self._filled()))

    def greatest(self, order: float | None) -> GreatestDivergence | None:
        """Returns the largest estimate of the pairs that have one; None if none has.

        Args:
            order: of the Rényi divergence; None for pure ε.
        """
        filled = self._filled()
        if len(filled) < 2:
            return None
        greatest = greatest_divergence([self.sides[number] for number in filled], order)
        return GreatestDivergence(
            greatest.value, left=filled[greatest.left], right=filled[greatest.right]
        )


class PairCounts(NamedTuple):
    """Samples of one ordered pair of mid-points.

    Attributes:
        left_number: of the left mid-point.
        right_number: of the right mid-point.
        left: counts of the left one.
        right: counts of the right one.
    """

    left_number: int
    right_number: int
    left: CellCounts
    right: CellCounts


@dataclass(frozen=True, slots=True)
class FreshPairs:
    """Two fresh samples for each ordered pair: Algorithm 1, invoked k(k − 1) times.

    Attributes:
        pairs: the counts of each.
    """

    pairs: tuple[PairCounts, ...]

    @property
    def sides(self) -> tuple[CellCounts, ...]:
        """All counts."""
        return tuple(side for pair in self.pairs for side in (pair.left, pair.right))

    def _filled(self) -> list[PairCounts]:
        """Returns the pairs without an empty cell: the invocations that succeed."""
        return [pair for pair in self.pairs if not (pair.left.n_empty or pair.right.n_empty)]

    @property
    def n_failed(self) -> int:
        """Invocations that fail on an empty cell."""
        return len(self.pairs) - len(self._filled())

    def greatest(self, order: float | None) -> GreatestDivergence | None:
        """Returns the largest estimate of the invocations that succeed; None if none does.

        Args:
            order: of the Rényi divergence; None for pure ε.
        """
        estimates = [
            GreatestDivergence(
                value=formulas.divergence(pair.left, pair.right, order),
                left=pair.left_number,
                right=pair.right_number,
            )
            for pair in self._filled()
        ]
        return max(estimates, default=None)


def _n_ordered_pairs(k: int) -> int:
    return k * (k - 1)


def count_midpoints(
    sampler: Sampler, cells: Cells, inputs: Sequence[float], samples: int
) -> MidpointCounts:
    """Draws n samples of each mid-point.

    Args:
        sampler: draws.
        cells: of the outputs.
        inputs: the k mid-points.
        samples: n.
    """
    counts: list[CellCounts] = []
    for number, x in enumerate(inputs):
        chunks = sampler.chunks(Phase.CERTIFY, number, Pair(x, x), 0, samples, reduce=cells.count)
        counts.append(reduce(operator.add, (chunk.value for chunk in chunks)))
    return MidpointCounts(tuple(counts))


def count_pairs(
    sampler: Sampler, cells: Cells, inputs: Sequence[float], samples: int
) -> FreshPairs:
    """Draws n fresh samples of both inputs of each ordered pair.

    Args:
        sampler: draws; each pair has a stream of its own.
        cells: of the outputs.
        inputs: the k mid-points.
        samples: n.
    """
    counted: list[PairCounts] = []
    for number, (left, right) in enumerate(permutations(range(len(inputs)), 2)):
        pair = Pair(inputs[left], inputs[right])
        sides = sampler.fold(Phase.CERTIFY, number, pair, samples, (cells.count, cells.count))
        counted.append(PairCounts(left, right, sides[0].total, sides[1].total))
    return FreshPairs(tuple(counted))
