"""What a domain is: datasets, and which of them are neighbours, told by points of a unit cube."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from epsilometer.inputs.coordinates import Coordinate
from epsilometer.inputs.pairs import Pair

Point = Sequence[float]


class Neighbours(Protocol):
    """All pairs of neighbouring datasets of a domain."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    def pair(self, point: Point) -> Pair:
        """The pair that a point of the unit cube stands for; its two datasets are never the same."""


class Domain(Protocol):
    """The datasets that a mechanism may be given. The first of its relations is the one that it has by default."""

    relations: ClassVar[tuple[str, ...]]

    def neighbours(self, relation: str) -> Neighbours:
        """The pairs of neighbours by that relation; an InputError if there are none."""


class Record(Protocol):
    """What one record of a dataset may be."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one such record, so that it cannot be replaced."""

    def record(self, point: Point) -> Any:
        """The record that a point stands for."""

    def other(self, point: Point, record: Any) -> Any:
        """The record that a point stands for, or another one if that is the given one."""
