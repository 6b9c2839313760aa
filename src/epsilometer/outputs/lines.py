"""One column cut into cells: the number line cut at edges, or labels told apart by their codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs.atoms import (
    NO_ATOM,
    LabelAtoms,
    atoms_from_dict,
    atoms_to_dict,
    numbers_from_plain,
    plain_numbers,
)
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.number_words import Interval
from epsilometer.outputs.placing import places

# Up to this many ends of intervals, comparing every value with each end is faster than finding its
# cell (measured: 0.3 ns per value and end against 5 ns per value).
_MAX_ENDS_TO_COMPARE = 16


@dataclass(frozen=True, slots=True)
class Line:
    """Cells [edge, next edge) on the number line, and one more for NaN.

    A single value v is the cell [v, next float after v), so atoms and bins live on one line.

    Attributes:
        edges: shape (k,), strictly increasing. Cell 0 lies below the first edge, cell k at or
            above the last, cell k + 1 holds NaN.
    """

    edges: Floats

    @property
    def n_cells(self) -> int:
        """The number of cells: k + 2 for k edges."""
        return len(self.edges) + 2

    def index(self, values: NDArray[np.generic]) -> Integers:
        """Returns the cell of each value, shape (n,)."""
        if values.dtype == np.bool_:  # there are only two, and looking them up is 5 times as fast
            cells_of_both = np.searchsorted(self.edges, (0.0, 1.0), side="right")
            return cells_of_both[values.view(np.uint8)]
        numbers = np.asarray(values, dtype=np.float64)
        cells = places(self.edges, numbers)
        cells[np.isnan(numbers)] = len(self.edges) + 1
        return cells

    def merged(self, chosen: Booleans) -> tuple["Line", Booleans]:
        """Returns the coarsest line that still separates chosen cells from others.

        Args:
            chosen: shape (n_cells,), which cells are chosen.

        Returns:
            The line, and which of its cells are chosen.
        """
        separates = self._separating_edges(chosen)
        return Line(self.edges[separates]), np.append(chosen[:-2][separates], chosen[-2:])

    def contains(self, values: NDArray[np.generic], chosen: Booleans) -> Booleans:
        """Returns whether each value falls into a chosen cell, shape (n,)."""
        ends = self.edges[self._separating_edges(chosen)]
        if len(ends) > _MAX_ENDS_TO_COMPARE:
            return chosen[self.index(values)]
        numbers = np.asarray(values, dtype=np.float64)
        # A value lies inside if an odd number of ends is at or below it: each end changes sides.
        inside = numbers >= ends[0] if len(ends) else np.zeros(len(numbers), dtype=np.bool_)
        for end in ends[1:]:
            inside ^= numbers >= end
        if chosen[0]:
            np.logical_not(inside, out=inside)
        # NaN is at or above no edge, so that it was taken for a value of the first cell.
        if chosen[-1] != chosen[0]:
            inside[np.isnan(numbers)] = chosen[-1]
        return inside

    @staticmethod
    def _separating_edges(chosen: Booleans) -> Booleans:
        """Returns for each edge whether exactly one of its two cells is chosen, shape (k,)."""
        return np.not_equal(chosen[:-2], chosen[1:-1])

    def intervals(self, chosen: Booleans) -> list[Interval]:
        """Returns the chosen cells, without that of NaN, as disjoint intervals [low, high)."""
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        # +1 where the chosen part begins, −1 where it ends.
        turns = np.diff(chosen[:-1].astype(np.int8), prepend=0, append=0)
        return list(zip(ends[turns > 0].tolist(), ends[turns < 0].tolist(), strict=True))

    def to_list(self) -> list[float | str]:
        """Returns the edges as plain data; `from_list` is the inverse."""
        return plain_numbers(self.edges)

    @classmethod
    def from_list(cls, edges: Sequence[float | str]) -> "Line":
        """Inverse of `to_list`."""
        line = cls(numbers_from_plain(edges))
        if not np.all(line.edges[1:] > line.edges[:-1]) or np.isnan(line.edges).any():
            raise ValueError("the edges of a line must increase")
        return line


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """How one column of a block becomes integer codes.

    Attributes:
        column: position of the column in its block.
        cells: a line for numbers, atoms for labels.
    """

    column: int
    cells: Line | LabelAtoms

    @property
    def n_codes(self) -> int:
        """The number of codes: the line's cells, or one per label and one for any other label."""
        if isinstance(self.cells, Line):
            return self.cells.n_cells
        return len(self.cells) + 1

    def index(self, columns: Sequence[Column]) -> Integers:
        """Returns the code of each row, shape (n,)."""
        if isinstance(self.cells, Line):
            return self.cells.index(self.numbers(columns))
        codes = self.cells.codes(columns[self.column])
        return np.where(codes == NO_ATOM, len(self.cells), codes)

    def numbers(self, columns: Sequence[Column]) -> NDArray[np.generic]:
        """Returns the numbers that the line cuts, shape (n,)."""
        column = columns[self.column]
        assert isinstance(column, Numbers)  # lines are only made for numbers
        return column.values

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        if isinstance(self.cells, Line):
            return {"column": self.column, "edges": self.cells.to_list()}
        return {"column": self.column, **atoms_to_dict(self.cells)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CodedColumn":
        """Inverse of `to_dict`."""
        cells = Line.from_list(data["edges"]) if "edges" in data else atoms_from_dict(data)
        if not isinstance(cells, Line | LabelAtoms):
            raise ValueError("a column is coded by a line or by names")
        return cls(int(data["column"]), cells)
