"""How the outputs of a mechanism are counted, chosen on training draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.methods.events.learning import learn_partitions
from epsilometer.methods.events.ordering import lay_out
from epsilometer.methods.renyi.densities import GRID_POINTS, Densities, Grid, grid_over
from epsilometer.outputs import Block, Numbers, Outputs, Partition

Floats = NDArray[np.float64]

# Fresh draws reach a little beyond the training draws.
_MARGIN = 0.1
# The share of outputs that may not repeat where the rest does, before the law counts as mixed.
_STRAY = 0.02
# Numbers of which fewer than this share are distinct are not continuous.
_DISTINCT = 0.99
_LOOK = 20_000


@dataclass(frozen=True, slots=True)
class CellView:
    """Relative frequencies of the repeated outputs; all others are one cell.

    Attributes:
        partition: a cell for each repeated output.
    """

    partition: Partition

    def count(self, outputs: Outputs) -> Floats:
        """Shape (cells,)."""
        return self.partition.count(outputs).astype(np.float64)

    def densities(self, left: Floats, right: Floats, undersmoothing: float) -> Densities:
        """Relative frequencies."""
        sizes = int(left.sum()), int(right.sum())
        return Densities(left / sizes[0], right / sizes[1], 1.0, sizes)


@dataclass(frozen=True, slots=True)
class GridView:
    """Kernel densities of one or two numbers.

    Attributes:
        shape: of the outputs that have a place on the grid.
        grid: over the range of the training draws and a little more.
    """

    shape: str
    grid: Grid

    def count(self, outputs: Outputs) -> Floats:
        """Shape (grid points + 1,): the last counts outputs that are no (finite) numbers of this shape."""
        total = np.zeros(self.grid.points ** len(self.grid.box) + 1)
        total[-1] = len(outputs)
        for block in outputs:
            if block.shape == self.shape:
                values = _finite_rows(block)
                total[:-1] += self.grid.count(values).ravel()
                total[-1] -= len(values)
        return total

    def densities(self, left: Floats, right: Floats, undersmoothing: float) -> Densities:
        """Kernel estimates; what is off the grid counts only in the sizes, which makes the bound lower."""
        shape = (self.grid.points,) * len(self.grid.box)
        sizes = round(float(left.sum())), round(float(right.sum()))
        return self.grid.densities(left[:-1].reshape(shape), right[:-1].reshape(shape), undersmoothing, sizes)


def choose_view(left: Outputs, right: Outputs) -> CellView | GridView:
    """Counts for outputs that repeat, a grid for one or two numbers that do not; mixed laws are refused."""
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and _has_density(*pairs[0]):
        a, b = pairs[0]
        return GridView(a.shape, grid_over(_finite_rows(a), _finite_rows(b), _MARGIN))
    partition = learn_partitions(left, right)[0].partition
    counts = partition.count(left) + partition.count(right)
    bins = lay_out(partition).bins
    varying = sum(int(counts[line].sum()) for line in bins) + int(counts[-1])
    if varying > _STRAY * counts.sum():
        raise InputError(
            "the outputs are neither discrete nor one or two numbers with a density: floored densities cannot treat "
            "them; use method='auto', which can"
        )
    return CellView(partition)


def _has_density(left: Block, right: Block) -> bool:
    columns = left.columns
    if len(columns) not in GRID_POINTS or not all(
        _is_real(side, i) for side in (left, right) for i in range(len(columns))
    ):
        return False
    rows = np.concatenate([_finite_rows(left)[:_LOOK], _finite_rows(right)[:_LOOK]])
    return len(rows) > 1 and all(len(np.unique(column)) >= _DISTINCT * len(column) for column in rows.T)


def _is_real(block: Block, number: int) -> bool:
    column = block.columns[number]
    return isinstance(column, Numbers) and column.values.dtype.kind == "f"


def _finite_rows(block: Block) -> Floats:
    """Shape (k, columns), the rows without NaN and infinities."""
    rows = np.stack(
        [np.asarray(column.values, dtype=np.float64) for column in block.columns if isinstance(column, Numbers)], 1
    )
    return rows[np.isfinite(rows).all(axis=1)]
