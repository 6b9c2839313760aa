"""Pairs of neighbouring datasets of records or of numbers; optional values, values that were seen, rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import epsilometer.inputs.coordinates as cube
from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Coordinate, Point, Record, Special, Value
from epsilometer.inputs.domains.numbers import Category
from epsilometer.inputs.pairs import Pair


@dataclass(frozen=True, slots=True)
class RecordPairs:
    """Two datasets of `least` to `most` records that are neighbours by a relation.

    Attributes:
        record: what a record may be.
        least: the fewest records of the left dataset.
        most: the most.
        relation: which of the two are neighbours.
        wrap: makes of a list of records what a mechanism is given.
        user: the column that names the user, for the relation "user".
    """

    record: Record
    least: int
    most: int
    relation: str
    wrap: Callable[[list[Any]], Any]
    user: str | None = None

    def __post_init__(self) -> None:
        if self.record.is_fixed and self.relation in ("replace", "substitute-column"):
            only = "there is only one possible record, so no dataset has a neighbour"
            raise InputError(f"relation={self.relation!r}: {only}")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """How many records, the records, what replaces one of them, in which column, and which."""
        size = (Coordinate(self.most - self.least + 1),) if self.least < self.most else ()
        replaced = self.relation in ("replace", "substitute-column")
        return (
            *size,
            *self.record.coordinates * (self.most + replaced),
            *((Coordinate(),) if self.relation == "substitute-column" else ()),
            *((Coordinate(self.most, ordered=False),) if self.most > 1 else ()),
        )

    def pair(self, point: Point) -> Pair:
        """The right dataset lacks something of the left one, or has something else in its place."""
        count, width = self.most, len(self.record.coordinates)
        if self.least < self.most:
            count, point = cube.whole_within(point[0], self.least, self.most), point[1:]
        left = [self.record.record(point[width * place : width * (place + 1)]) for place in range(count)]
        place = cube.level_of(point[-1], count) if self.most > 1 else 0
        rest = point[self.most * width : (self.most + 1) * width]
        u = point[(self.most + 1) * width] if self.relation == "substitute-column" else 0.0
        return Pair(self.wrap(left), self.wrap(changed(self.record, left, self.relation, place, rest, u, self.user)))


def changed(
    record: Record, left: list[Any], relation: str, place: int, point: Point, u: float, user: Any = None
) -> list[Any]:
    """The neighbour of a list of records at one of its places.

    Args:
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
    """A record with another value in a column."""
    return value if name is None else {**record, name: value}


@dataclass(frozen=True, slots=True)
class ShiftedAnswers:
    """Two lists of numbers, of which the right one is moved.

    Attributes:
        count: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: the most that one moves, or all together.
        whole: whether numbers are whole.
        in_all: whether the sensitivity is that of the sum of all moves.
        wrap: makes of a list of numbers what a mechanism is given.
    """

    count: int
    low: float
    high: float
    sensitivity: float
    whole: bool
    in_all: bool
    wrap: Callable[[list[Any]], Any]

    def __post_init__(self) -> None:
        if self.whole:
            cube.check_whole_interval(self.low, self.high)
            if self.sensitivity < 1.0:
                raise InputError(f"sensitivity={self.sensitivity!r}: whole numbers have no neighbour less than 1 away")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The numbers, and how each moves."""
        levels = int(self.high) - int(self.low) + 1 if self.whole else None
        return (Coordinate(levels),) * self.count + (Coordinate(signed=True),) * self.count

    def pair(self, point: Point) -> Pair:
        """The right numbers stay within the domain, too."""
        low, high, kind = self.low, self.high, int if self.whole else float
        number: Callable[..., float] = cube.whole_within if self.whole else cube.within
        left = np.array([number(u, kind(low), kind(high)) for u in point[: self.count]], dtype=np.float64)
        right = np.clip(left + self._moves(np.array([cube.signed_step(u) for u in point[self.count :]])), low, high)
        if np.array_equal(left, right):
            right, first = left.copy(), min(self.sensitivity, high - low)
            step = float(np.floor(first)) if self.whole else first
            right[0] += step if high - left[0] >= step else -min(step, left[0] - low)
        return Pair(*(self.wrap([kind(each) for each in side]) for side in (left, right)))

    def _moves(self, steps: Floats) -> Floats:
        """How far each number moves: −1 to 1 times the sensitivity, and no more than it in total where `in_all`."""
        total = float(np.abs(steps).sum())
        if self.in_all and total > 0.0:
            steps = steps / total  # all of it: smaller moves reveal less
        moves = steps * self.sensitivity
        if not self.whole:
            return moves
        whole = np.trunc(moves)
        if not whole.any() and total > 0.0:  # all too small: the largest gets a full step
            place = int(np.argmax(np.abs(moves)))
            whole[place] = np.copysign(np.trunc(self.sensitivity), moves[place])
        return whole


# A tenth of the values of an optional domain are missing.
_MISSING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Optional(Value):
    """The values of another domain, or None.

    Attributes:
        domain: of the values that are there.
    """

    domain: Any

    def __post_init__(self) -> None:
        cube.check_value(self.domain, "domain")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Whether there is a value, and which."""
        return (Coordinate(), *self.domain.coordinates)

    def record(self, point: Point) -> Any:
        """The value that a point stands for."""
        return None if point[0] < _MISSING_SHARE else self.domain.record(point[1:])

    def other(self, point: Point, record: Any) -> Any:
        """Another value; if need be, None or a value."""
        value = self.record(point)
        if value is None or record is None:
            return self.domain.record(point[1:]) if value is record else value
        return value if value != record else None

    @property
    def specials(self) -> list[Special]:
        """A missing value, and those of the domain."""
        return cube.distinct([*self.domain.specials, cube.MISSING])

    def contains(self, record: Any) -> bool:
        """None, or a value of the domain."""
        return record is None or bool(self.domain.contains(record))


@dataclass(frozen=True, slots=True)
class Seen(Category):
    """Values that were seen; any other may be as good."""

    def __post_init__(self) -> None:
        """Whoever has seen them knows that they differ."""

    def other(self, point: Point, record: Any) -> Any:
        """Another value; if need be, the next one."""
        number = cube.level_of(point[0], len(self.values))
        return self.values[(number + (repr(self.values[number]) == repr(record))) % len(self.values)]

    @property
    def specials(self) -> list[Special]:
        """The strangest of them: no numbers, empty ones, then the simplest and the largest."""
        strange = [each for each in self.values if each != each or each in (None, "", 0, math.inf, -math.inf)]
        others = sorted(self.values, key=lambda each: (len(repr(each)), repr(each)))
        return cube.distinct((each, f"the value {each!r:.40}") for each in [*strange, *others[:20], *others[-10:]])

    def contains(self, record: Any) -> bool:
        """A strategy says what it makes, not what it would."""
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
        return tuple(coordinate for domain in self.columns.values() for coordinate in domain.coordinates)

    @property
    def is_fixed(self) -> bool:
        """Whether every column has only one value."""
        return all(domain.is_fixed for domain in self.columns.values())

    def record(self, point: Point) -> dict[Any, Any]:
        """The row that a point stands for."""
        return {name: self.columns[name].record(part) for name, part in self._parts(point)}

    def other(self, point: Point, record: Any) -> dict[Any, Any]:
        """Another row; if need be the first column that can change does."""
        row = self.record(point)
        if row == record:
            name, part = next(found for found in self._parts(point) if not self.columns[found[0]].is_fixed)
            row[name] = self.columns[name].other(part, record[name])
        return row

    @property
    def specials(self) -> list[Special]:
        """None of its own: every column has some."""
        return []

    def contains(self, record: Any) -> bool:
        """Whether every value belongs to its column."""
        return all(domain.contains(record[name]) for name, domain in self.columns.items())

    def _parts(self, point: Point) -> list[tuple[Any, Point]]:
        ends = [0, *accumulate(len(domain.coordinates) for domain in self.columns.values())]
        return [(name, point[start:end]) for name, (start, end) in zip(self.columns, pairwise(ends), strict=True)]
