"""What a domain is: datasets, and which of them are neighbours; single values of any type, alone or as records."""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

import epsilometer.inputs.coordinates as cube
from epsilometer.claims.base import check_positive, check_whole
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Coordinate, Neighbours, Point, Special, Value
from epsilometer.inputs.pairs import Pair


class Domain(Protocol):
    """The datasets that a mechanism may be given. The first of its relations is the default."""

    @property
    def relations(self) -> tuple[str, ...]:
        """By name: which datasets may be neighbours."""

    def neighbours(self, relation: str) -> Neighbours:
        """The pairs of neighbours by that relation; an InputError if there are none."""


class Interval(Value):
    """What numbers of an interval share: as datasets, neighbours are at most `sensitivity` apart."""

    __slots__ = ()
    relations: ClassVar[tuple[str, ...]] = ("replace", "l1", "linf")

    def other(self: Any, point: Point, record: Any) -> Any:
        """Another number; if need be, the far end."""
        value = self.record(point)
        return value if value != record else type(value)(_farther_end(record, self.low, self.high))

    def neighbours(self: Any, relation: str) -> Neighbours:
        """Two numbers."""
        whole = isinstance(self, Integer)
        cube.check_relation(relation, self.relations, "a whole number" if whole else "a number")
        return _TwoNumbers(self, int if whole else float)


@dataclass(frozen=True, slots=True)
class Number(Interval):
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

    def __post_init__(self) -> None:
        cube.check_interval(self.low, self.high)
        if self.sensitivity is not None:
            check_positive("sensitivity", self.sensitivity)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The number."""
        return (Coordinate(),)

    def record(self, point: Point) -> float:
        """The number that a point stands for."""
        return cube.within(point[0], float(self.low), float(self.high))

    @property
    def specials(self) -> list[Special]:
        """Bounds and what lies just and far beyond them, and the numbers that behave like no other."""
        low, high = float(self.low), float(self.high)
        width = high - low
        found: tuple[tuple[Any, str], ...] = (
            *((0.0, "zero"), (1.0, "one"), (low, "the lower bound"), (high, "the upper bound")),
            *((low + width / 2.0, "the middle"), cube.NOT_A_NUMBER, (math.inf, "infinity")),
            *((high + width, "above the upper bound"), (low - width, "below the lower bound")),
            *((high + 1e3 * width, "far above the upper bound"), (low - 1e3 * width, "far below the lower bound")),
            *((-math.inf, "minus infinity"), (-0.0, "minus zero"), (5e-324, "a subnormal number")),
            *((1.7e308, "a huge number"), (-1.7e308, "a huge negative number"), (2.0**53 + 2.0, "beyond 2^53")),
            *((math.nextafter(high, math.inf), "just above the upper bound"), cube.MISSING),
            (math.nextafter(low, -math.inf), "just below the lower bound"),
            (math.nextafter(high, -math.inf), "just below the upper bound"),
            (math.nextafter(low, math.inf), "just above the lower bound"),
        )
        return cube.distinct(found)

    def contains(self, record: Any) -> bool:
        """A number between the bounds."""
        return _is_number(record) and bool(self.low <= record <= self.high)


@dataclass(frozen=True, slots=True)
class Integer(Interval):
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

    def __post_init__(self) -> None:
        for name, value in zip(("low", "high"), cube.check_whole_interval(self.low, self.high), strict=True):
            object.__setattr__(self, name, value)
        if self.sensitivity is not None:
            check_whole("sensitivity", self.sensitivity, 1, ": otherwise no number has a neighbour")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The number."""
        return (Coordinate(self.high - self.low + 1),)

    def record(self, point: Point) -> int:
        """The number that a point stands for."""
        return cube.whole_within(point[0], self.low, self.high)

    @property
    def specials(self) -> list[Special]:
        """Bounds, their neighbours, and the numbers at which types of the machine end."""
        low, high = self.low, self.high
        limits = (*((1 << bits) - 1 for bits in (7, 8, 15, 16, 31, 32, 63, 64)), 2**31, 2**63, -(2**31) - 1)
        found: tuple[tuple[Any, str], ...] = (
            *((0, "zero"), (1, "one"), (low, "the lower bound"), (high, "the upper bound"), (-1, "minus one")),
            *(cube.MISSING, cube.NOT_A_NUMBER, ((low + high) // 2, "the middle")),
            *((high + 1, "just above the upper bound"), (low - 1, "just below the lower bound")),
            *((high - 1, "just below the upper bound"), (low + 1, "just above the lower bound")),
            *((high + 1000 * (high - low), "far above the upper bound"), (2**53 + 1, "beyond 2^53")),
            *((low - 1000 * (high - low), "far below the lower bound"), (-(2**53) - 1, "beyond -2^53")),
            *((value, f"a limit of the machine's integers ({value})") for value in limits),
        )
        return cube.distinct(found)

    def contains(self, record: Any) -> bool:
        """A whole number between the bounds."""
        return _is_number(record) and isinstance(record, int | np.integer) and bool(self.low <= record <= self.high)


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
        return self.values[cube.level_of(point[0], len(self.values))]

    def other(self, point: Point, record: Any) -> Any:
        """Another value; if need be, the next one."""
        number = cube.level_of(point[0], len(self.values))
        return self.values[(number + (self.values[number] == record)) % len(self.values)]

    @property
    def specials(self) -> list[Special]:
        """Every value, and some that were never seen."""
        unseen: list[Any] = [None]
        if any(isinstance(each, str) for each in self.values):
            unseen = ["unseen", "", str(self.values[0]) + " ", str(self.values[0]).swapcase(), None]
        elif all(_is_number(each) for each in self.values):
            unseen = [max(self.values) + 1, min(self.values) - 1, math.nan, None]
        known = [(each, f"the category {each!r:.40}") for each in self.values]
        others = [(each, f"an unseen category ({each!r:.40})") for each in unseen if not self.contains(each)]
        return cube.distinct([*known, *others])

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
        return cube.distinct([(False, "False"), (True, "True"), cube.MISSING])


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
        places = range(cube.whole_within(point[0], 0, self.most))
        return "".join(self.letters[digits // base**place % base] for place in places)

    def other(self, point: Point, record: Any) -> str:
        """Another text; if need be, a letter."""
        text = self.record(point)
        return text if text != record else next(each for each in self.letters if each != record)

    @property
    def specials(self) -> list[Special]:
        """Short, long and strange texts."""
        first, strange = self.letters[0], "\u00e9\U0001f600"[: self.most]
        found: tuple[tuple[Any, str], ...] = (
            *(("", "an empty text"), (first, "one letter"), (first * self.most, "a full text"), cube.MISSING),
            *((first * (self.most + 1), "a text one character too long"), (first * 10_000, "a very long text")),
            *((" ", "a blank"), (strange, "a text beyond ASCII"), ("\0", "a NUL character")),
        )
        return cube.distinct(found)

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
        return self.low + datetime.timedelta(days=cube.whole_within(point[0], 0, (self.high - self.low).days))

    def other(self, point: Point, record: Any) -> datetime.date:
        """Another day; if need be, an end."""
        day = self.record(point)
        return day if day != record else self.high if record == self.low else self.low

    @property
    def specials(self) -> list[Special]:
        """The ends, what lies beyond them, and the ends of all time."""
        day = datetime.timedelta(days=1)
        days: list[tuple[Any, str]] = [(self.low, "the first day"), (self.high, "the last day")]
        days += [(self.low - day, "before the first day")] if self.low > datetime.date.min else []
        days += [(self.high + day, "after the last day")] if self.high < datetime.date.max else []
        days += [(datetime.date(2024, 2, 29), "a leap day"), (datetime.date(1970, 1, 1), "the first day of Unix")]
        days += [(datetime.date.min, "the first of all days"), (datetime.date.max, "the last of all days")]
        return cube.distinct([*days, cube.MISSING])

    def contains(self, record: Any) -> bool:
        """A day between the ends."""
        return type(record) is datetime.date and self.low <= record <= self.high


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


@dataclass(frozen=True, slots=True)
class _TwoNumbers:
    domain: Any
    kind: type

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One number and where its neighbour lies."""
        return (*self.domain.coordinates, Coordinate())

    def pair(self, point: Point) -> Pair:
        """The neighbour lies between the farthest one below and the farthest one above."""
        left, low, high = self.domain.record(point), self.domain.low, self.domain.high
        width = high - low if self.domain.sensitivity is None else self.domain.sensitivity
        low, high = self.kind(max(low, left - width)), self.kind(min(high, left + width))
        right = cube.whole_within(point[1], low, high) if self.kind is int else cube.within(point[1], low, high)
        return Pair(left, right if right != left else _farther_end(left, low, high))


def _farther_end(value: float, low: float, high: float) -> float:
    return high if high - value >= value - low else low
