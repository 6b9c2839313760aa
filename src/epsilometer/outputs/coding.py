"""A column as whole numbers: the cell of each value on a line, or its place among known names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.atoms import LabelAtoms, atoms_from_dict, atoms_to_dict
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.lines import Line


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """How one column of a block is coded.

    Attributes:
        column: position of the column in its block.
        cells: a line for numbers, atoms for names (their order is the order of the codes).
    """

    column: int
    cells: Line | LabelAtoms

    @property
    def n_codes(self) -> int:
        """Cells of the line; or the names, and one code more for any other name."""
        return self.cells.n_cells if isinstance(self.cells, Line) else len(self.cells) + 1

    def codes(self, columns: Sequence[Column]) -> NDArray[np.int32]:
        """The code of each row, shape (n,)."""
        column = columns[self.column]
        if isinstance(self.cells, Line):
            assert isinstance(column, Numbers)  # lines are only made for numbers
            return self.cells.index(column.values).astype(np.int32)
        codes = self.cells.codes(column)
        return np.where(codes < 0, len(self.cells), codes).astype(np.int32)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        data: dict[str, Any] = {"column": self.column}
        return data | ({"edges": self.cells.to_list()} if isinstance(self.cells, Line) else atoms_to_dict(self.cells))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CodedColumn:
        """The inverse of `to_dict`."""
        cells = Line.from_list(data["edges"]) if "edges" in data else atoms_from_dict(data)
        if not isinstance(cells, Line | LabelAtoms):
            raise ValueError("a column is coded by a line or by names")
        return cls(int(data["column"]), cells)
