"""A score: one number for an output of many columns, evaluated from plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.atoms import LabelAtoms, atoms_from_dict, atoms_to_dict
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import Line


@dataclass(frozen=True, slots=True)
class Term:
    """One column's part of an additive score: a weight per cell of the column.

    Attributes:
        column: position of the column in its block.
        cells: a line for numbers, atoms for names.
        weights: shape (cells,); for names the last weight is that of any other name.
    """

    column: int
    cells: Line | LabelAtoms
    weights: NDArray[np.float64]

    def index(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The cell of each row, shape (n,)."""
        column = columns[self.column]
        if isinstance(self.cells, Line):
            return self.cells.index(column.values)  # type: ignore[union-attr]  # lines are only made for Numbers
        codes = self.cells.codes(column)
        return np.where(codes < 0, len(self.cells.labels), codes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = {"column": self.column, "weights": [float(weight) for weight in self.weights]}
        if isinstance(self.cells, Line):
            return data | {"edges": self.cells.to_list()}
        return data | atoms_to_dict(self.cells)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Term:
        """The inverse of `to_dict`."""
        cells = Line.from_list(data["edges"]) if "edges" in data else atoms_from_dict(data)
        weights = np.array(data["weights"], dtype=np.float64)
        size = cells.n_cells if isinstance(cells, Line) else len(cells) + 1
        if not isinstance(cells, Line | LabelAtoms) or weights.shape != (size,):
            raise ValueError("a term of a score must have one weight per cell")
        return cls(int(data["column"]), cells, weights)


@dataclass(frozen=True, slots=True)
class AdditiveScore:
    """The sum of a weight per column: an additive model of the log-ratio of the two laws."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return tuple(term.column for term in self.terms)

    def evaluate(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """The score of each row, shape (n,)."""
        total: NDArray[np.float64] = self.terms[0].weights[self.terms[0].index(columns)]
        for term in self.terms[1:]:
            total += term.weights[term.index(columns)]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AdditiveScore:
        """The inverse of `to_dict`."""
        terms = tuple(Term.from_dict(term) for term in data["terms"])
        if not terms:
            raise ValueError("a score must have a term")
        return cls(terms)
