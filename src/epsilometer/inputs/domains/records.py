"""Pairs of neighbouring datasets of records or numbers; optional values, seen values, rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilometer.inputs.coordinates as cube
from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Coordinate, Point, Record, Special, Value
from epsilometer.inputs.domains.numbers import Category
from epsilometer.inputs.pairs import Pair
from epsilometer.one_line import fields_on_one_line


@dataclass(frozen=True, slots=True)
class RecordPairs:
    """Pairs of datasets of `least` to `most` records that are neighbours by a relation.

    Attributes:
        record: what a record may be.
        least: the fewest records of the left dataset.
        most: the most.
        relation: which of the two are neighbours.
        wrap: turns a list of records into what a mechanism is given.
        user: the column that names the user, for the relation "user".
    """

    record: Record
    least: int
    most: int
    relation: str
    wrap: Callable[[list[Any]], Any]
    user: str | int | None = None

    def __post_init__(self) -> None:
        if self.record.is_fixed and self._replaces:
            raise InputError(
                f"relation={self.relation!r}: there is only one possible record, so no dataset has "
                "a neighbour"
            )

    @property
    def _replaces(self) -> bool:
        """Whether a record, or one of its values, is replaced."""
        return self.relation in ("replace", "substitute-column")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """How many records, the records, what replaces one of them, in which column, and which."""
        coordinates: list[Coordinate] = []
        if self.least < self.most:
            coordinates.append(Coordinate(self.most - self.least + 1))
        coordinates += self.record.coordinates * self.most
        if self._replaces:
            coordinates += self.record.coordinates
        if self.relation == "substitute-column":
            coordinates.append(Coordinate())
        if self.most > 1:
            coordinates.append(Coordinate(self.most, ordered=False))
        return tuple(coordinates)

    def pair(self, point: Point) -> Pair:
        """Returns a dataset, and one that lacks something of it or has it replaced."""
        n_records = self.most
        if self.least < self.most:
            n_records = cube.whole_within(point[0], self.least, self.most)
            point = point[1:]
        width = len(self.record.coordinates)
        left = [
            self.record.record(point[width * number : width * (number + 1)])
            for number in range(n_records)
        ]
        after_records = self.most * width
        right = changed(
            self.record,
            left,
            relation=self.relation,
            place=cube.level_of(point[-1], n_records) if self.most > 1 else 0,
            point=point[after_records : after_records + width],
            u=point[after_records + width] if self.relation == "substitute-column" else 0.0,
            user=self.user,
        )
        return Pair(self.wrap(left), self.wrap(right))


def changed(
    record: Record,
    left: list[Any],
    relation: str,
    *,
    place: int,
    point: Point,
    u: float,
    user: Any = None,
) -> list[Any]:
    """Returns the neighbour of a list of records at one of its places.

    Args:
        record: what a record may be.
        left: the records.
        relation: which lists are neighbours.
        place: the position of the record that is removed or replaced.
        point: what a replaced record becomes.
        u: which of its columns changes, where only one does.
        user: the column that names the user.
    """
    if relation == "add-remove":
        return left[:place] + left[place + 1 :]
    if relation == "user":
        return [row for row in left if row[user] != left[place][user]]
    other = record.other(point, left[place])
    if relation == "substitute-column":
        differing = [name for name in other if repr(left[place][name]) != repr(other[name])]
        name = differing[cube.level_of(u, len(differing))]
        other = {**left[place], name: other[name]}
    return [*left[:place], other, *left[place + 1 :]]


def with_value(record: Any, name: Any, value: Any) -> Any:
    """Returns a record with another value in a column; `name` None stands for the whole record."""
    return value if name is None else {**record, name: value}


@dataclass(frozen=True, slots=True)
class ShiftedAnswers:
    """Pairs of lists of numbers, of which the right one is moved.

    Attributes:
        count: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: the most that one moves, or all together.
        whole: whether numbers are integers.
        in_all: whether the sensitivity is that of the sum of all moves.
        wrap: turns a list of numbers into what a mechanism is given.
    """

    count: int
    low: float
    high: float
    sensitivity: float
    whole: bool
    in_all: bool
    wrap: Callable[[list[Any]], Any]

    def __post_init__(self) -> None:
        if not self.whole:
            return
        cube.check_whole_interval(self.low, self.high)
        if self.sensitivity < 1.0:
            raise InputError(
                f"sensitivity={self.sensitivity!r}: whole numbers have no neighbour less than 1 "
                "away"
            )

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The numbers, and how each moves."""
        levels = int(self.high) - int(self.low) + 1 if self.whole else None
        return (Coordinate(levels),) * self.count + (Coordinate(signed=True),) * self.count

    def pair(self, point: Point) -> Pair:
        """Returns numbers, and the moved ones, which stay within the domain, too."""
        kind = int if self.whole else float
        between: Callable[..., float] = cube.whole_within if self.whole else cube.within
        numbers = [between(u, kind(self.low), kind(self.high)) for u in point[: self.count]]
        left = np.array(numbers, dtype=np.float64)
        steps = np.array([cube.signed_step(u) for u in point[self.count :]])
        right = np.clip(left + self._moves(steps), self.low, self.high)
        if np.array_equal(left, right):
            right = self._with_first_moved(left)
        return Pair(
            self.wrap([kind(number) for number in left]),
            self.wrap([kind(number) for number in right]),
        )

    def _with_first_moved(self, left: Floats) -> Floats:
        """Returns the numbers with the first one moved as far as it may, up if there is room."""
        step = min(self.sensitivity, self.high - self.low)
        if self.whole:
            step = float(np.floor(step))
        right = left.copy()
        has_room_above = self.high - left[0] >= step
        right[0] += step if has_room_above else -min(step, left[0] - self.low)
        return right

    def _moves(self, steps: Floats) -> Floats:
        """Returns how far each number moves.

        Args:
            steps: shape (count,), from −1 to 1, in units of the sensitivity; where `in_all`, their
                sizes are scaled so that they add up to 1.
        """
        total = float(np.abs(steps).sum())
        if self.in_all and total > 0.0:
            steps = steps / total  # all of it: smaller moves reveal less
        moves = steps * self.sensitivity
        if not self.whole:
            return moves
        whole_moves = np.trunc(moves)
        if not whole_moves.any() and total > 0.0:  # all too small: the largest gets a full step
            largest = int(np.argmax(np.abs(moves)))
            whole_moves[largest] = np.copysign(np.trunc(self.sensitivity), moves[largest])
        return whole_moves


# The fraction of the values of an optional domain that are missing.
_MISSING_FRACTION = 0.1
# The simplest values of a strategy's, by their length as text, and the longest, that are tried.
_N_SIMPLEST = 20
_N_LONGEST = 10


@dataclass(frozen=True, slots=True)
class Optional(Value):
    """The values of another domain, or None.

    Attributes:
        domain: of the values that are there.
    """

    domain: Any

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        cube.check_value(self.domain, "domain")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Whether there is a value, and which."""
        return (Coordinate(), *self.domain.coordinates)

    def record(self, point: Point) -> Any:
        """Returns the value that a point stands for."""
        return None if point[0] < _MISSING_FRACTION else self.domain.record(point[1:])

    def other(self, point: Point, record: Any) -> Any:
        """Returns another value; if need be, None or a value."""
        value = self.record(point)
        if value is None and record is None:
            return self.domain.record(point[1:])
        if value is None or record is None:
            return value
        return value if value != record else None

    @property
    def specials(self) -> list[Special]:
        """Those of the domain, and a missing value."""
        return cube.distinct([*self.domain.specials, cube.MISSING])

    def contains(self, record: Any) -> bool:
        """Returns whether it is None, or a value of the domain."""
        return record is None or bool(self.domain.contains(record))


@dataclass(frozen=True, slots=True, repr=False)
class ObservedCategory(Category):
    """Values that were generated; any other value may belong to the domain as well."""

    def __post_init__(self) -> None:
        """Checks nothing: whoever has generated the values knows that they differ."""

    def other(self, point: Point, record: Any) -> Any:
        """Returns another value; if need be, the next one."""
        number = cube.level_of(point[0], len(self.values))
        if repr(self.values[number]) == repr(record):
            number = (number + 1) % len(self.values)
        return self.values[number]

    @property
    def specials(self) -> list[Special]:
        """The strangest: NaN, empty and infinite ones, then the simplest and the longest."""
        strange = []
        for value in self.values:
            is_nan = value != value
            if is_nan or value in (None, "", 0, math.inf, -math.inf):
                strange.append(value)
        by_length = sorted(self.values, key=lambda value: (len(repr(value)), repr(value)))
        candidates = [*strange, *by_length[:_N_SIMPLEST], *by_length[-_N_LONGEST:]]
        return cube.distinct((value, f"the value {value!r:.40}") for value in candidates)

    def contains(self, record: Any) -> bool:
        """Returns True: a strategy shows what it has made, not what it would make."""
        return True


@dataclass(frozen=True, slots=True)
class Row:
    """A record with named values.

    Attributes:
        columns: the domain of each.
    """

    columns: Mapping[Any, Any]

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Those of all columns."""
        return tuple(
            coordinate for domain in self.columns.values() for coordinate in domain.coordinates
        )

    @property
    def is_fixed(self) -> bool:
        """Whether every column has only one value."""
        return all(domain.is_fixed for domain in self.columns.values())

    def record(self, point: Point) -> dict[Any, Any]:
        """Returns the row that a point stands for."""
        parts = self._split_point(point)
        return {name: domain.record(parts[name]) for name, domain in self.columns.items()}

    def other(self, point: Point, record: Any) -> dict[Any, Any]:
        """Returns another row; if need be, the first column that can change does."""
        row = self.record(point)
        if row == record:
            name = next(name for name, domain in self.columns.items() if not domain.is_fixed)
            part = self._split_point(point)[name]
            row[name] = self.columns[name].other(part, record[name])
        return row

    @property
    def specials(self) -> list[Special]:
        """None: every column has its own."""
        return []

    def contains(self, record: Any) -> bool:
        """Returns whether every value belongs to its column."""
        return all(domain.contains(record[name]) for name, domain in self.columns.items())

    def _split_point(self, point: Point) -> dict[Any, Point]:
        """Returns the part of a point that belongs to each column."""
        parts: dict[Any, Point] = {}
        start = 0
        for name, domain in self.columns.items():
            end = start + len(domain.coordinates)
            parts[name] = point[start:end]
            start = end
        return parts
