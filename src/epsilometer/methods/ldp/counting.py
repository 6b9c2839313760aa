"""Counting outputs in cells of equal width, and the estimates that the counts give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.outputs import Numbers, Outputs

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many outputs fell into each cell, and how many into none; counts of chunks are added with +.

    Attributes:
        counts: shape (m,).
        outside: outputs that are no number of the domain.
    """

    counts: IntArray
    outside: int

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(self.counts + other.counts, self.outside + other.outside)

    @property
    def total(self) -> int:
        """Outputs inside the domain."""
        return int(self.counts.sum())

    @property
    def n_empty(self) -> int:
        """Cells without an output."""
        return int(np.count_nonzero(self.counts == 0))


@dataclass(frozen=True, slots=True)
class Cells:
    """The domain [a, b] in m cells of equal width, each with its left end; the last one has b, too."""

    domain: tuple[float, float]
    number: int

    def count(self, outputs: Outputs) -> CellCounts:
        """The counts of a batch of outputs."""
        counts = np.zeros(self.number, dtype=np.int64)
        inside = 0
        for block in outputs:
            if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
                found = self._count_numbers(np.asarray(block.columns[0].values, dtype=np.float64))
                counts += found
                inside += int(found.sum())
        return CellCounts(counts, len(outputs) - inside)

    def _count_numbers(self, values: NDArray[np.float64]) -> IntArray:
        low, high = self.domain
        inside = (values >= low) & (values <= high)  # NaN is neither
        if not inside.all():
            values = values[inside]
        places = ((values - low) * (self.number / (high - low))).astype(np.int64)
        np.minimum(places, self.number - 1, out=places)
        return np.bincount(places, minlength=self.number).astype(np.int64, copy=False)


def check_filled(cells: Cells, *sides: CellCounts) -> None:
    """An InputError with the remedy if a cell is empty: where the paper's algorithms give up."""
    empty = sum(side.n_empty for side in sides)
    if empty:
        n = f"{cells.number:,} cells on each of {len(sides)} inputs, about {sides[0].total:,} samples each"
        raise InputError(
            f"{empty:,} cells are empty ({n}): no ratio can be estimated there; take more samples (n=), or wider cells "
            "by a larger precision="
        )


def check_inside(cells: Cells, *sides: CellCounts) -> None:
    """An InputError that counts the outputs outside the domain, if there are any."""
    outside = sum(side.outside for side in sides)
    if outside:
        total = outside + sum(side.total for side in sides)
        low, high = cells.domain
        raise InputError(
            f"{outside:,} of {total:,} outputs are no numbers of domain=({low:g}, {high:g}), where all of them must "
            "lie; correct domain=, or use the method events, which takes any output"
        )


def log_ratios(above: CellCounts, below: CellCounts) -> NDArray[np.float64]:
    """ln of the ratio of frequencies, shape (m,); every count must be above 0."""
    ratios: NDArray[np.float64] = np.log(above.counts / above.total) - np.log(below.counts / below.total)
    return ratios


def divergence(above: CellCounts, below: CellCounts, order: float | None) -> float:
    """The estimate of ε* (order None: the largest log ratio) or of the Rényi divergence, of `above` from `below`.

    Reference: line 15 of Algorithm 1, and the returned value below (7), for samples of any sizes.
    """
    ratios = log_ratios(above, below)
    if order is None:
        return float(ratios.max())
    logs = order * ratios + np.log(below.counts / below.total)
    return float(np.logaddexp.reduce(logs)) / (order - 1.0)
