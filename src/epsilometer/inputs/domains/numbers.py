"""What a domain is: datasets, and which of them are neighbours; single values of any type, alone or as records."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import (
    MISSING,
    NOT_A_NUMBER,
    Coordinate,
    Neighbours,
    Point,
    Special,
    Value,
    check_interval,
    check_positive,
    check_relation,
    check_whole,
    check_whole_interval,
    distinct,
    level_of,
    whole_within,
    within,
)
from epsilometer.inputs.pairs import Pair


class Domain(Protocol):
    """The datasets that a mechanism may be given. The first of its relations is the default."""

    @property
    def relations(self) -> tuple[str, ...]:
        """By name: which datasets may be neighbours."""

    def neighbours(self, relation: str) -> Neighbours:
        """The pairs of neighbours by that relation; an InputError if there are none."""


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

    @property
    def specials(self) -> list[Special]:
        """Bounds and what lies just and far beyond them, and the numbers that behave like no other."""
        low, high = float(self.low), float(self.high)
        width = high - low
        return distinct(
            (
                *((0.0, "zero"), (1.0, "one"), (low, "the lower bound"), (high, "the upper bound")),
                *((low + width / 2.0, "the middle"), NOT_A_NUMBER, (math.inf, "infinity")),
                *((high + width, "above the upper bound"), (low - width, "below the lower bound")),
                *((high + 1e3 * width, "far above the upper bound"), (low - 1e3 * width, "far below the lower bound")),
                *((-math.inf, "minus infinity"), (-0.0, "minus zero"), (5e-324, "a subnormal number")),
                *((1.7e308, "a huge number"), (-1.7e308, "a huge negative number"), (2.0**53 + 2.0, "beyond 2^53")),
                *((math.nextafter(high, math.inf), "just above the upper bound"), MISSING),
                (math.nextafter(low, -math.inf), "just below the lower bound"),
                (math.nextafter(high, -math.inf), "just below the upper bound"),
                (math.nextafter(low, math.inf), "just above the lower bound"),
            )
        )

    def contains(self, record: Any) -> bool:
        """A number between the bounds."""
        return _is_number(record) and bool(self.low <= record <= self.high)

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

    @property
    def specials(self) -> list[Special]:
        """Bounds, their neighbours, and the numbers at which types of the machine end."""
        low, high = self.low, self.high
        limits = ((1 << bits) - 1 for bits in (7, 8, 15, 16, 31, 32, 63, 64))
        return distinct(
            (
                *((0, "zero"), (1, "one"), (low, "the lower bound"), (high, "the upper bound"), (-1, "minus one")),
                *(MISSING, NOT_A_NUMBER, ((low + high) // 2, "the middle")),
                *((high + 1, "just above the upper bound"), (low - 1, "just below the lower bound")),
                *((high - 1, "just below the upper bound"), (low + 1, "just above the lower bound")),
                *((high + 1000 * (high - low), "far above the upper bound"), (2**53 + 1, "beyond 2^53")),
                *((low - 1000 * (high - low), "far below the lower bound"), (-(2**53) - 1, "beyond -2^53")),
                *(
                    (value, f"a limit of the machine's integers ({value})")
                    for value in (*limits, 2**31, 2**63, -(2**31) - 1)
                ),
            )
        )

    def contains(self, record: Any) -> bool:
        """A whole number between the bounds."""
        return _is_number(record) and isinstance(record, int | np.integer) and bool(self.low <= record <= self.high)

    def neighbours(self, relation: str) -> Neighbours:
        """Two whole numbers."""
        check_relation(relation, self.relations, "a whole number")
        width = self.high - self.low if self.sensitivity is None else self.sensitivity
        return _TwoNumbers(self.low, self.high, width, is_whole=True)


@dataclass(frozen=True, slots=True)
class Category(Value):
    """One of some values without order: names, say. As datasets, any two of them are neighbours.

    Attributes:
        values: the different values.
    """

    values: Sequence[Any]

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

    @property
    def specials(self) -> list[Special]:
        """Every value, and such as were never seen."""
        unseen: list[Any] = [None]
        if any(isinstance(each, str) for each in self.values):
            unseen = ["unseen", "", str(self.values[0]) + " ", str(self.values[0]).swapcase(), None]
        elif all(_is_number(each) for each in self.values):
            unseen = [max(self.values) + 1, min(self.values) - 1, math.nan, None]
        return distinct(
            [(each, f"the category {each!r:.40}") for each in self.values]
            + [(each, f"an unseen category ({each!r:.40})") for each in unseen if not self.contains(each)]
        )

    def contains(self, record: Any) -> bool:
        """One of the values, of the same type."""
        return any(type(each) is type(record) and each == record for each in self.values)

    def neighbours(self, relation: str) -> Neighbours:
        """Two values."""
        if self.is_fixed:
            raise InputError(f"values={self.values!r:.100}: a domain of one value has no neighbours; give at least two")
        return super(Category, self).neighbours(relation)


@dataclass(frozen=True, slots=True)
class Boolean(Category):
    """True or False."""

    values: Sequence[Any] = (False, True)

    @property
    def specials(self) -> list[Special]:
        """Both, and a missing value."""
        return distinct([(False, "False"), (True, "True"), MISSING])


@dataclass(frozen=True, slots=True)
class Text(Value):
    """Strings of at most `most` characters.

    Attributes:
        most: the most characters.
        letters: those that typical strings are made of.
    """

    most: int = 8
    letters: str = "abcdefgh"

    def __post_init__(self) -> None:
        check_whole("most", self.most, 1, ": the empty text alone has no neighbours")
        if not isinstance(self.letters, str) or len(self.letters) < 2:
            raise InputError(f"letters={self.letters!r:.100} must be a text of at least two characters")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """How long it is, and which letters it has."""
        return Coordinate(self.most + 1), Coordinate()

    def record(self, point: Point) -> str:
        """The text that a point stands for."""
        digits, base = int(point[1] * 2.0**53), len(self.letters)
        return "".join(
            self.letters[digits // base**place % base] for place in range(whole_within(point[0], 0, self.most))
        )

    def other(self, point: Point, record: Any) -> str:
        """Another text; if need be, a letter."""
        text = self.record(point)
        return text if text != record else next(each for each in self.letters if each != record)

    @property
    def specials(self) -> list[Special]:
        """Short, long and strange texts."""
        first = self.letters[0]
        return distinct(
            (
                *(("", "an empty text"), (first, "one letter"), (first * self.most, "a full text"), MISSING),
                *((first * (self.most + 1), "a text one character too long"), (first * 10_000, "a very long text")),
                *(
                    (" ", "a blank"),
                    ("\u00e9\U0001f600"[: self.most], "a text beyond ASCII"),
                    ("\0", "a NUL character"),
                ),
            )
        )

    def contains(self, record: Any) -> bool:
        """A text that is not too long."""
        return isinstance(record, str) and len(record) <= self.most


@dataclass(frozen=True, slots=True)
class Date(Value):
    """Days between two dates.

    Attributes:
        low: the first day.
        high: the last day.
    """

    low: datetime.date = datetime.date(2000, 1, 1)
    high: datetime.date = datetime.date(2029, 12, 31)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            given = getattr(self, name)
            try:
                day = datetime.date.fromisoformat(given) if isinstance(given, str) else given
                object.__setattr__(self, name, datetime.date(day.year, day.month, day.day))
            except (AttributeError, ValueError) as error:
                raise InputError(f"{name}={given!r:.100} must be a date, like '2024-02-29'") from error
        if not self.low < self.high:
            raise InputError(f"low={self.low} must be before high={self.high}: a single day has no neighbours")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which day."""
        return (Coordinate((self.high - self.low).days + 1),)

    def record(self, point: Point) -> datetime.date:
        """The day that a point stands for."""
        return self.low + datetime.timedelta(days=whole_within(point[0], 0, (self.high - self.low).days))

    def other(self, point: Point, record: Any) -> datetime.date:
        """Another day; if need be, an end."""
        day = self.record(point)
        return day if day != record else self.high if record == self.low else self.low

    @property
    def specials(self) -> list[Special]:
        """The ends, what lies beyond them, and the ends of all time."""
        beyond = ((self.low, -1, "before the first day"), (self.high, 1, "after the last day"))
        days: list[tuple[Any, str]] = [(self.low, "the first day"), (self.high, "the last day")]
        days += [(day + datetime.timedelta(step), note) for day, step, note in beyond if _has_day(day, step)]
        days += [(datetime.date(2024, 2, 29), "a leap day"), (datetime.date(1970, 1, 1), "the first day of Unix")]
        days += [(datetime.date.min, "the first of all days"), (datetime.date.max, "the last of all days")]
        return distinct([*days, MISSING])

    def contains(self, record: Any) -> bool:
        """A day between the ends."""
        return type(record) is datetime.date and self.low <= record <= self.high


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _has_day(day: datetime.date, step: int) -> bool:
    return day != (datetime.date.max if step > 0 else datetime.date.min)


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


def _farther_end(value: float, low: float, high: float) -> float:
    return high if high - value >= value - low else low
