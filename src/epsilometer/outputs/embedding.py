"""Outputs of one shape as points in space: scaled numbers, and labels as corners.

Any fixed embedding gives a valid kernel, so a bad one costs power, never soundness. NaN and labels
unseen in training have corners of their own; infinities lie where very large numbers do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.lines import CodedColumn

# The largest coordinate, in units of an axis: a kernel cannot distinguish farther numbers anyway.
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

    # The scaled number, and whether it is NaN.
    dimensions: ClassVar[int] = 2

    def points(self, columns: Sequence[Column]) -> Floats:
        """Returns the coordinates of each row, shape (n, 2)."""
        column = columns[self.column]
        assert isinstance(column, Numbers)  # axes of numbers are only made for numbers
        values = np.asarray(column.values, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.clip((values - self.middle) / self.spread, -FARTHEST, FARTHEST)
        position = np.where(np.isnan(scaled), 0.0, scaled)
        missing = np.where(np.isnan(values), FARTHEST, 0.0)
        return np.stack([position, missing], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {"column": self.column, "middle": self.middle, "spread": self.spread}


@dataclass(frozen=True, slots=True)
class NameAxis(CodedColumn):
    """A column of labels as corners, all equally far from each other.

    Labels without a code share one corner.
    """

    @property
    def dimensions(self) -> int:
        """The number of coordinates: one per label and one for all other labels."""
        return self.n_codes

    def points(self, columns: Sequence[Column]) -> Floats:
        """Returns the coordinates of each row, shape (n, labels + 1)."""
        return np.eye(self.n_codes)[self.index(columns)]


@dataclass(frozen=True, slots=True)
class Embedding:
    """Turns outputs of one shape into points of a space.

    Attributes:
        axes: which columns make which coordinates.
    """

    axes: tuple[NumberAxis | NameAxis, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return tuple(axis.column for axis in self.axes)

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a point."""
        return sum(axis.dimensions for axis in self.axes)

    def points(self, columns: Sequence[Column]) -> Floats:
        """Returns the point of each row, shape (n, dimensions)."""
        return np.concatenate([axis.points(columns) for axis in self.axes], axis=1)

    def to_list(self) -> list[dict[str, Any]]:
        """Returns plain data; `from_list` is the inverse."""
        return [axis.to_dict() for axis in self.axes]

    @classmethod
    def from_list(cls, data: Sequence[dict[str, Any]], dimensions: int) -> Self:
        """Inverse of `to_list`.

        Args:
            data: the stored axes.
            dimensions: how many coordinates the score that is stored with them reads.
        """
        embedding = cls(tuple(_axis_from_dict(axis) for axis in data))
        if dimensions != embedding.dimensions:
            raise ValueError(
                f"a score of {dimensions} coordinates reads points of {embedding.dimensions}"
            )
        return embedding


def _axis_from_dict(data: dict[str, Any]) -> NumberAxis | NameAxis:
    if "spread" not in data:
        coded = CodedColumn.from_dict(data)
        return NameAxis(coded.column, coded.cells)
    axis = NumberAxis(
        column=int(data["column"]),
        middle=float(data["middle"]),
        spread=float(data["spread"]),
    )
    if not (np.isfinite(axis.middle) and 0.0 < axis.spread < np.inf):
        raise ValueError("an axis needs a finite middle and a positive spread")
    return axis
