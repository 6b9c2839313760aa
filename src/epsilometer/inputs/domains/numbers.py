"""What a domain is: datasets, and which of them are neighbours; single numbers and names, alone or as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import (
    Coordinate,
    check_interval,
    check_positive,
    check_relation,
    check_whole,
    check_whole_interval,
    level_of,
    whole_within,
    within,
)
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
    """The datasets that a mechanism may be given. The first of its relations is the default."""

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
        """The record that a point stands for, or another one if that equals the given one."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an interval.

    As a dataset it has one relation, by three names: its neighbours are at most `sensitivity` away.

    Attributes:
        low: the smallest.
        high: the largest.
        sensitivity: how far apart two neighbours may be; None for anywhere in the interval.
    """

    low: float
    high: float
    sensitivity: float | None = None
    relations: ClassVar[tuple[str, ...]] = ("replace", "l1", "linf")
    is_fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_interval(self.low, self.high)
        if self.sensitivity is not None:
            check_positive("sensitivity", self.sensitivity)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The number."""
        return (Coordinate(),)

    def record(self, point: Point) -> float:
        """The number that a point stands for."""
        return within(point[0], float(self.low), float(self.high))

    def other(self, point: Point, record: Any) -> float:
        """Another number; if need be, the far end."""
        value = self.record(point)
        return value if value != record else _farther_end(record, float(self.low), float(self.high))

    def neighbours(self, relation: str) -> Neighbours:
        """Two numbers."""
        check_relation(relation, self.relations, "a number")
        width = self.high - self.low if self.sensitivity is None else self.sensitivity
        return _TwoNumbers(float(self.low), float(self.high), float(width), is_whole=False)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of an interval.

    As a dataset it has one relation, by three names: its neighbours are at most `sensitivity` away.

    Attributes:
        low: the smallest.
        high: the largest.
        sensitivity: how far apart two neighbours may be; None for anywhere in the interval.
    """

    low: int
    high: int
    sensitivity: int | None = None
    relations: ClassVar[tuple[str, ...]] = ("replace", "l1", "linf")
    is_fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        low, high = check_whole_interval(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.sensitivity is not None:
            check_whole("sensitivity", self.sensitivity, 1, ": otherwise no number has a neighbour")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The number."""
        return (Coordinate(self.high - self.low + 1),)

    def record(self, point: Point) -> int:
        """The number that a point stands for."""
        return whole_within(point[0], self.low, self.high)

    def other(self, point: Point, record: Any) -> int:
        """Another number; if need be, the far end."""
        value = self.record(point)
        return value if value != record else int(_farther_end(record, self.low, self.high))

    def neighbours(self, relation: str) -> Neighbours:
        """Two whole numbers."""
        check_relation(relation, self.relations, "a whole number")
        width = self.high - self.low if self.sensitivity is None else self.sensitivity
        return _TwoNumbers(self.low, self.high, width, is_whole=True)


@dataclass(frozen=True, slots=True)
class Category:
    """One of some values without order: names, say. As datasets, any two of them are neighbours.

    Attributes:
        values: the different values.
    """

    values: Sequence[Any]
    relations: ClassVar[tuple[str, ...]] = ("replace",)

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence) or not self.values:
            raise InputError(f"values={self.values!r:.100} must be a list of at least one value")
        if any(one == two for number, one in enumerate(self.values) for two in self.values[:number]):
            raise InputError(f"values={self.values!r:.100} names a value twice")

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which value."""
        return (Coordinate(len(self.values), ordered=False),)

    def record(self, point: Point) -> Any:
        """The value that a point stands for."""
        return self.values[level_of(point[0], len(self.values))]

    def other(self, point: Point, record: Any) -> Any:
        """Another value; if need be, the next one."""
        number = level_of(point[0], len(self.values))
        return self.values[(number + (self.values[number] == record)) % len(self.values)]

    def neighbours(self, relation: str) -> Neighbours:
        """Two values."""
        check_relation(relation, self.relations, "a category")
        if self.is_fixed:
            raise InputError(f"values={self.values!r:.100}: a domain of one value has no neighbours; give at least two")
        return _TwoCategories(self)


@dataclass(frozen=True, slots=True)
class _TwoNumbers:
    low: float
    high: float
    width: float
    is_whole: bool

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One number and where its neighbour lies."""
        levels = int(self.high - self.low) + 1 if self.is_whole else None
        return (Coordinate(levels), Coordinate())

    def pair(self, point: Point) -> Pair:
        """The neighbour lies between the farthest one below and the farthest one above."""
        left = self._number(point[0], self.low, self.high)
        low, high = max(self.low, left - self.width), min(self.high, left + self.width)
        right = self._number(point[1], low, high)
        return Pair(left, right if right != left else self._settled(_farther_end(left, low, high)))

    def _number(self, u: float, low: float, high: float) -> float:
        return whole_within(u, int(low), int(high)) if self.is_whole else within(u, low, high)

    def _settled(self, value: float) -> float:
        return int(value) if self.is_whole else value


@dataclass(frozen=True, slots=True)
class _TwoCategories:
    category: Category

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One value and another one."""
        return self.category.coordinates * 2

    def pair(self, point: Point) -> Pair:
        """Two different values."""
        left = self.category.record(point[:1])
        return Pair(left, self.category.other(point[1:], left))


def _farther_end(value: float, low: float, high: float) -> float:
    return high if high - value >= value - low else low
