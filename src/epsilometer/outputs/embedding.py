"""Outputs of one shape as points: numbers in units of their spread, names as corners.

Any fixed embedding gives a valid kernel, so a bad one costs power, never soundness. NaN and names unseen in training
have their own corners; infinities end at the same distance as very large numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.lines import CodedColumn

# More spreads than this from the middle, all numbers are one point: a kernel cannot distinguish them anyway.
FARTHEST = 12.0


@dataclass(frozen=True, slots=True)
class NumberAxis:
    """A column of numbers as one coordinate, and a second one that is nonzero for NaN.

    Attributes:
        column: position of the column.
        middle: the number that becomes 0.
        spread: the distance that becomes 1; positive.
    """

    column: int
    middle: float
    spread: float

    # The number, and whether it is NaN.
    dimensions: ClassVar[int] = 2

    def points(self, columns: Sequence[Column]) -> Floats:
        """Shape (n, 2)."""
        column = columns[self.column]
        assert isinstance(column, Numbers)  # axes of numbers are only made for numbers
        values = np.asarray(column.values, dtype=np.float64)
        missing = np.isnan(values)
        with np.errstate(over="ignore", invalid="ignore"):
            placed = np.clip((values - self.middle) / self.spread, -FARTHEST, FARTHEST)
        return np.stack([np.where(np.isnan(placed), 0.0, placed), np.where(missing, FARTHEST, 0.0)], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"column": self.column, "middle": self.middle, "spread": self.spread}


@dataclass(frozen=True, slots=True)
class NameAxis(CodedColumn):
    """A column of names as corners, all equally far from each other; names without a code share one."""

    @property
    def dimensions(self) -> int:
        """One for each name, one for all others."""
        return self.n_codes

    def points(self, columns: Sequence[Column]) -> Floats:
        """Shape (n, names + 1)."""
        return np.eye(self.n_codes)[self.index(columns)]


@dataclass(frozen=True, slots=True)
class Embedding:
    """Outputs of one shape as points of a space."""

    axes: tuple[NumberAxis | NameAxis, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return tuple(axis.column for axis in self.axes)

    @property
    def dimensions(self) -> int:
        """Coordinates of a point."""
        return sum(axis.dimensions for axis in self.axes)

    def points(self, columns: Sequence[Column]) -> Floats:
        """Shape (n, dimensions)."""
        return np.concatenate([axis.points(columns) for axis in self.axes], axis=1)

    def to_list(self) -> list[dict[str, Any]]:
        """Plain data; `from_list` is the inverse."""
        return [axis.to_dict() for axis in self.axes]

    @classmethod
    def from_list(cls, data: Sequence[dict[str, Any]], dimensions: int) -> Self:
        """The inverse of `to_list`, for a stored score of that many coordinates."""
        read = cls(tuple(_axis_from_dict(axis) for axis in data))
        if dimensions != read.dimensions:
            raise ValueError(f"a score of {dimensions} coordinates reads points of {read.dimensions}")
        return read


def _axis_from_dict(data: dict[str, Any]) -> NumberAxis | NameAxis:
    if "spread" not in data:
        coded = CodedColumn.from_dict(data)
        return NameAxis(coded.column, coded.cells)
    axis = NumberAxis(int(data["column"]), float(data["middle"]), float(data["spread"]))
    if not (np.isfinite(axis.middle) and 0.0 < axis.spread < np.inf):
        raise ValueError("an axis needs a finite middle and a positive spread")
    return axis
