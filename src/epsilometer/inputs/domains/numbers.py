"""What a domain is, and the domains of single values, alone or as records."""

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
from epsilometer.inputs.copying import are_equal, equal_fields
from epsilometer.inputs.pairs import Pair
from epsilometer.one_line import one_line

# The numbers at which the machine's integers of 8 to 64 bits end, with and without a sign.
_MACHINE_LIMITS = (
    2**7 - 1,
    2**8 - 1,
    2**15 - 1,
    2**16 - 1,
    2**31 - 1,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
    2**31,
    2**63,
    -(2**31) - 1,
)


class Domain(Protocol):
    """The datasets that a mechanism may be given, and which of them are neighbours."""

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations by which datasets are neighbours; the first is the default."""

    def neighbours(self, relation: str) -> Neighbours:
        """Returns the pairs of neighbours by a relation, or raises an InputError if none exist."""


class Interval(Value):
    """Numbers of an interval; as datasets, neighbours are at most `sensitivity` apart."""

    __slots__ = ()
    relations: ClassVar[tuple[str, ...]] = ("replace", "l1", "linf")

    def other(self: Any, point: Point, record: Any) -> Any:
        """Returns another number; if need be, the far end."""
        value = self.record(point)
        if value != record:
            return value
        return type(value)(_farther_end(record, self.low, self.high))

    def neighbours(self: Any, relation: str) -> Neighbours:
        """Returns all pairs of two numbers that are close enough."""
        is_whole = isinstance(self, Integer)
        cube.check_relation(relation, self.relations, "a whole number" if is_whole else "a number")
        return _TwoNumbers(self, is_whole)


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
        """Returns the number that a point stands for."""
        return cube.within(point[0], float(self.low), float(self.high))

    @property
    def specials(self) -> list[Special]:
        """Bounds, what lies just and far beyond them, and numbers that behave like no other."""
        low = float(self.low)
        high = float(self.high)
        width = high - low
        return cube.distinct(
            [
                Special(0.0, "zero"),
                Special(1.0, "one"),
                Special(low, "the lower bound"),
                Special(high, "the upper bound"),
                Special(low + width / 2.0, "the middle"),
                cube.NOT_A_NUMBER,
                Special(math.inf, "infinity"),
                Special(high + width, "above the upper bound"),
                Special(low - width, "below the lower bound"),
                Special(high + 1e3 * width, "far above the upper bound"),
                Special(low - 1e3 * width, "far below the lower bound"),
                Special(-math.inf, "minus infinity"),
                Special(-0.0, "minus zero"),
                Special(5e-324, "a subnormal number"),
                Special(1.7e308, "a huge number"),
                Special(-1.7e308, "a huge negative number"),
                Special(2.0**53 + 2.0, "beyond 2^53"),
                Special(math.nextafter(high, math.inf), "just above the upper bound"),
                cube.MISSING,
                Special(math.nextafter(low, -math.inf), "just below the lower bound"),
                Special(math.nextafter(high, -math.inf), "just below the upper bound"),
                Special(math.nextafter(low, math.inf), "just above the lower bound"),
            ]
        )

    def contains(self, record: Any) -> bool:
        """Returns whether it is a number between the bounds."""
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
        low, high = cube.check_whole_interval(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.sensitivity is not None:
            check_whole("sensitivity", self.sensitivity, 1, ": otherwise no number has a neighbour")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The number."""
        return (Coordinate(self.high - self.low + 1),)

    def record(self, point: Point) -> int:
        """Returns the number that a point stands for."""
        return cube.whole_within(point[0], self.low, self.high)

    @property
    def specials(self) -> list[Special]:
        """Bounds, their neighbours, and the numbers at which types of the machine end."""
        low = self.low
        high = self.high
        width = high - low
        specials = [
            Special(0, "zero"),
            Special(1, "one"),
            Special(low, "the lower bound"),
            Special(high, "the upper bound"),
            Special(-1, "minus one"),
            cube.MISSING,
            cube.NOT_A_NUMBER,
            Special((low + high) // 2, "the middle"),
            Special(high + 1, "just above the upper bound"),
            Special(low - 1, "just below the lower bound"),
            Special(high - 1, "just below the upper bound"),
            Special(low + 1, "just above the lower bound"),
            Special(high + 1000 * width, "far above the upper bound"),
            Special(2**53 + 1, "beyond 2^53"),
            Special(low - 1000 * width, "far below the lower bound"),
            Special(-(2**53) - 1, "beyond -2^53"),
        ]
        note = "a limit of the machine's integers"
        specials += [Special(limit, f"{note} ({limit})") for limit in _MACHINE_LIMITS]
        return cube.distinct(specials)

    def contains(self, record: Any) -> bool:
        """Returns whether it is an integer between the bounds."""
        is_integer = _is_number(record) and isinstance(record, int | np.integer)
        return is_integer and bool(self.low <= record <= self.high)


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
        for number, value in enumerate(self.values):
            if any(are_equal(value, earlier) for earlier in self.values[:number]):
                raise InputError(f"values={self.values!r:.100} names a value twice")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(values={one_line(self.values)})"

    __eq__ = equal_fields

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which value."""
        return (Coordinate(len(self.values), ordered=False),)

    def record(self, point: Point) -> Any:
        """Returns the value that a point stands for."""
        return self.values[cube.level_of(point[0], len(self.values))]

    def other(self, point: Point, record: Any) -> Any:
        """Returns another value; if need be, the next one."""
        number = cube.level_of(point[0], len(self.values))
        if are_equal(self.values[number], record):
            number = (number + 1) % len(self.values)
        return self.values[number]

    @property
    def specials(self) -> list[Special]:
        """Every value, and some that were never seen."""
        unseen: list[Any] = [None]
        if any(isinstance(value, str) for value in self.values):
            first = str(self.values[0])
            unseen = ["unseen", "", first + " ", first.swapcase(), None]
        elif all(_is_number(value) for value in self.values):
            unseen = [max(self.values) + 1, min(self.values) - 1, math.nan, None]
        candidates = [(value, f"the category {value!r:.40}") for value in self.values]
        new_values = [value for value in unseen if not self.contains(value)]
        candidates += [(value, f"an unseen category ({value!r:.40})") for value in new_values]
        return cube.distinct(candidates)

    def contains(self, record: Any) -> bool:
        """Returns whether it is one of the values, of the same type."""
        return any(
            type(value) is type(record) and are_equal(value, record) for value in self.values
        )

    def neighbours(self, relation: str) -> Neighbours:
        """Returns all pairs of two values."""
        if self.is_fixed:
            raise InputError(
                f"values={self.values!r:.100}: a domain of one value has no neighbours; give at "
                "least two"
            )
        return super(Category, self).neighbours(relation)


@dataclass(frozen=True, slots=True, repr=False)
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
            raise InputError(
                f"letters={self.letters!r:.100} must be a text of at least two characters"
            )

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """How long it is, and which letters it has."""
        return Coordinate(self.most + 1), Coordinate()

    def record(self, point: Point) -> str:
        """Returns the text that a point stands for."""
        length = cube.whole_within(point[0], 0, self.most)
        base = len(self.letters)
        # The letters are the digits of one large integer.
        integer = int(point[1] * 2.0**53)
        return "".join(self.letters[integer // base**place % base] for place in range(length))

    def other(self, point: Point, record: Any) -> str:
        """Returns another text; if need be, a letter."""
        text = self.record(point)
        if text != record:
            return text
        return next(letter for letter in self.letters if letter != record)

    @property
    def specials(self) -> list[Special]:
        """Short, long and strange texts."""
        letter = self.letters[0]
        beyond_ascii = "\u00e9\U0001f600"[: self.most]
        return cube.distinct(
            [
                Special("", "an empty text"),
                Special(letter, "one letter"),
                Special(letter * self.most, "a full text"),
                cube.MISSING,
                Special(letter * (self.most + 1), "a text one character too long"),
                Special(letter * 10_000, "a very long text"),
                Special(" ", "a blank"),
                Special(beyond_ascii, "a text beyond ASCII"),
                Special("\0", "a NUL character"),
            ]
        )

    def contains(self, record: Any) -> bool:
        """Returns whether it is a text that is not too long."""
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
                raise InputError(
                    f"{name}={given!r:.100} must be a date, like '2024-02-29'"
                ) from error
        if not self.low < self.high:
            raise InputError(
                f"low={self.low} must be before high={self.high}: a single day has no neighbours"
            )

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which day."""
        return (Coordinate((self.high - self.low).days + 1),)

    def record(self, point: Point) -> datetime.date:
        """Returns the day that a point stands for."""
        n_days = (self.high - self.low).days
        return self.low + datetime.timedelta(days=cube.whole_within(point[0], 0, n_days))

    def other(self, point: Point, record: Any) -> datetime.date:
        """Returns another day; if need be, an end."""
        day = self.record(point)
        if day != record:
            return day
        return self.high if record == self.low else self.low

    @property
    def specials(self) -> list[Special]:
        """The ends, what lies beyond them, and the ends of all time."""
        one_day = datetime.timedelta(days=1)
        specials = [Special(self.low, "the first day"), Special(self.high, "the last day")]
        if self.low > datetime.date.min:
            specials.append(Special(self.low - one_day, "before the first day"))
        if self.high < datetime.date.max:
            specials.append(Special(self.high + one_day, "after the last day"))
        specials += [
            Special(datetime.date(2024, 2, 29), "a leap day"),
            Special(datetime.date(1970, 1, 1), "the first day of Unix"),
            Special(datetime.date.min, "the first of all days"),
            Special(datetime.date.max, "the last of all days"),
            cube.MISSING,
        ]
        return cube.distinct(specials)

    def contains(self, record: Any) -> bool:
        """Returns whether it is a day between the ends."""
        return type(record) is datetime.date and self.low <= record <= self.high


# A point of the cube is kept this far from its ends, where the normal quantile is infinite.
_CUBE_MARGIN = 2.0**-53
# How far the norm of a vector may be from the radius, relative to it, for the rounding of floats.
_NORM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Sphere(Value):
    """Vectors of one norm: canaries, which differ as much as clipped vectors can.

    A uniform point of the cube stands for a uniform direction, so that `finders.Random` draws
    canaries uniformly on the sphere. `Records(Sphere(64), size=3)` with the relation "add-remove"
    leaves one of them out on the right.

    Attributes:
        dimension: how many numbers a vector has.
        radius: their Euclidean norm.
    """

    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_whole("dimension", self.dimension, 1)
        check_positive("radius", self.radius)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One per axis."""
        return (Coordinate(has_ends=False),) * self.dimension

    def record(self, point: Point) -> tuple[float, ...]:
        """Returns the vector that a point stands for."""
        from scipy.special import ndtri  # loads slowly, and only spheres need it

        inside = np.clip(np.asarray(point), _CUBE_MARGIN, 1.0 - _CUBE_MARGIN)
        direction = np.asarray(ndtri(inside), dtype=np.float64)
        norm = float(np.linalg.norm(direction))
        if norm == 0.0:
            # The middle of the cube has no direction; the first axis is as good as any.
            return self._along_first_axis(self.radius)
        return tuple((direction * (self.radius / norm)).tolist())

    def other(self, point: Point, record: Any) -> tuple[float, ...]:
        """Returns another vector; if need be, the opposite one."""
        vector = self.record(point)
        if vector != record:
            return vector
        return tuple(-number for number in vector)

    @property
    def specials(self) -> list[Special]:
        """Ends of axes and of diagonals, vectors off the sphere, and numbers like no other."""
        even = float(self.radius) / math.sqrt(self.dimension)
        return cube.distinct(
            [
                Special(self._along_first_axis(self.radius), "along one axis"),
                Special(self._along_first_axis(-self.radius), "against one axis"),
                Special((even,) * self.dimension, "along the diagonal"),
                Special((0.0,) * self.dimension, "the zero vector"),
                Special(self._along_first_axis(1e3 * self.radius), "far outside the sphere"),
                Special(self._along_first_axis(math.nan), "a vector with NaN"),
                Special(self._along_first_axis(math.inf), "a vector with infinity"),
                cube.MISSING,
            ]
        )

    def contains(self, record: Any) -> bool:
        """Returns whether it is a vector of this norm."""
        if not isinstance(record, list | tuple | np.ndarray) or len(record) != self.dimension:
            return False
        if not all(_is_number(number) for number in record):
            return False
        return math.isclose(math.hypot(*record), self.radius, rel_tol=_NORM_TOLERANCE)

    def _along_first_axis(self, length: float) -> tuple[float, ...]:
        return (float(length), *[0.0] * (self.dimension - 1))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


@dataclass(frozen=True, slots=True)
class _TwoNumbers:
    """Pairs of two numbers of an interval that are at most its sensitivity apart.

    Attributes:
        domain: a `Number` or an `Integer`.
        is_whole: whether the numbers are integers.
    """

    domain: Any
    is_whole: bool

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Those of one number, and where its neighbour lies."""
        return (*self.domain.coordinates, Coordinate())

    def pair(self, point: Point) -> Pair:
        """Returns a number and one between the farthest neighbours below and above it."""
        left = self.domain.record(point)
        reach = self.domain.sensitivity
        if reach is None:
            reach = self.domain.high - self.domain.low
        low = max(self.domain.low, left - reach)
        high = min(self.domain.high, left + reach)
        right: float
        if self.is_whole:
            low = int(low)
            high = int(high)
            right = cube.whole_within(point[1], low, high)
        else:
            low = float(low)
            high = float(high)
            right = cube.within(point[1], low, high)
        if right == left:
            right = _farther_end(left, low, high)
        return Pair(left, right)


def _farther_end(value: float, low: float, high: float) -> float:
    """Returns the end of an interval that is farther from a value."""
    return high if high - value >= value - low else low
