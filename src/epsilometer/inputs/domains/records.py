"""Lists of numbers, answers of queries on neighbouring datasets, pairs of datasets of records, optional values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import (
    MISSING,
    Coordinate,
    Neighbours,
    Point,
    Record,
    Special,
    Value,
    check_interval,
    check_positive,
    check_relation,
    check_value,
    check_whole,
    check_whole_interval,
    distinct,
    level_of,
    signed_step,
    whole_within,
    within,
)
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.pairs import Pair

_NO_RECORD = ": a dataset without records has no neighbours"


@dataclass(frozen=True, slots=True)
class Vector:
    """Lists of `size` numbers of an interval, one per record.

    Neighbours: one number replaced by any other ("replace"), one left out on the right ("add-remove"), or all numbers
    moved by at most `sensitivity`, each ("linf") or in total ("l1").

    Attributes:
        size: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: for "l1" and "linf".
        whole: whether the numbers are whole.
    """

    size: int
    low: float = 0.0
    high: float = 1.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("replace", "add-remove", "l1", "linf")

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1, _NO_RECORD)
        check_interval(self.low, self.high)
        check_positive("sensitivity", self.sensitivity)
        self._number()

    def neighbours(self, relation: str) -> Neighbours:
        """Two lists of numbers."""
        check_relation(relation, self.relations, "a vector")
        if relation in ("l1", "linf"):
            return ShiftedAnswers(self.size, self.low, self.high, self.sensitivity, self.whole, in_all=relation == "l1")
        return RecordPairs(self._number(), self.size, self.size, relation)

    def _number(self) -> Record:
        if self.whole:
            return Integer(*check_whole_interval(self.low, self.high))
        return Number(self.low, self.high)


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
    wrap: Callable[[list[Any]], Any] = list
    user: str | None = None

    def __post_init__(self) -> None:
        if self.record.is_fixed and self.relation in ("replace", "substitute-column"):
            text = f"relation={self.relation!r}: there is only one possible record, so no dataset has a neighbour"
            raise InputError(text)

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
            count, point = whole_within(point[0], self.least, self.most), point[1:]
        left = [self.record.record(point[width * place : width * (place + 1)]) for place in range(count)]
        place = level_of(point[-1], count) if self.most > 1 else 0
        rest = point[self.most * width : (self.most + 1) * width]
        u = point[(self.most + 1) * width] if self.relation == "substitute-column" else 0.0
        right = changed(self.record, left, self.relation, place, rest, u, self.user)
        return Pair(self.wrap(left), self.wrap(right))


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
        name = differing[level_of(u, len(differing))]
        other = {**left[place], name: other[name]}
    return [*left[:place], other, *left[place + 1 :]]


@dataclass(frozen=True, slots=True)
class Queries:
    """Lists of the answers to `count` queries, such as counts.

    Neighbours: every answer moves by at most `sensitivity` ("linf", as with counting queries that one person may all
    change), or the total of all moves is at most that ("l1", as with a histogram).

    Attributes:
        count: how many queries.
        low: the smallest answer.
        high: the largest answer.
        sensitivity: how far answers move.
        whole: whether answers are whole numbers.
    """

    count: int
    low: float = 0.0
    high: float = 10.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("linf", "l1")

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, ": no queries have no answers")
        check_interval(self.low, self.high)
        check_positive("sensitivity", self.sensitivity)

    def neighbours(self, relation: str) -> Neighbours:
        """Two lists of answers."""
        check_relation(relation, self.relations, "answers of queries")
        return ShiftedAnswers(self.count, self.low, self.high, self.sensitivity, self.whole, in_all=relation == "l1")


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
    wrap: Callable[[list[Any]], Any] = list

    def __post_init__(self) -> None:
        if self.whole:
            check_whole_interval(self.low, self.high)
            if self.sensitivity < 1.0:
                raise InputError(f"sensitivity={self.sensitivity!r}: whole numbers have no neighbour less than 1 away")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The numbers, and how each moves."""
        levels = int(self.high) - int(self.low) + 1 if self.whole else None
        return (Coordinate(levels),) * self.count + (Coordinate(signed=True),) * self.count

    def pair(self, point: Point) -> Pair:
        """The right numbers stay within the domain, too."""
        left = self._numbers(point[: self.count])
        moves = self._moves(np.array([signed_step(u) for u in point[self.count :]]))
        right = np.clip(left + moves, self.low, self.high)
        if np.array_equal(left, right):
            right = left.copy()
            first = min(self.sensitivity, self.high - self.low)
            step = float(np.floor(first)) if self.whole else first
            right[0] += step if self.high - left[0] >= step else -min(step, left[0] - self.low)
        return Pair(self.wrap(self._plain(left)), self.wrap(self._plain(right)))

    def _numbers(self, point: Point) -> Floats:
        if self.whole:
            return np.array([float(whole_within(u, int(self.low), int(self.high))) for u in point])
        return np.array([within(u, float(self.low), float(self.high)) for u in point])

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

    def _plain(self, numbers: Floats) -> list[float]:
        return [int(each) for each in numbers] if self.whole else numbers.tolist()


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
        check_value(self.domain, "domain")

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
        return distinct([*self.domain.specials, MISSING])

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
        number = level_of(point[0], len(self.values))
        same = repr(self.values[number]) == repr(record)
        return self.values[(number + same) % len(self.values)]

    @property
    def specials(self) -> list[Special]:
        """The strangest of them: no numbers, empty ones, then the simplest and the largest."""
        strange = [each for each in self.values if each != each or each in (None, "", 0, math.inf, -math.inf)]
        others = sorted(self.values, key=lambda each: (len(repr(each)), repr(each)))
        some = [*strange, *others[:20], *others[-10:]]
        return distinct((each, f"the value {each!r:.40}") for each in some)

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
        parts, start = [], 0
        for name, domain in self.columns.items():
            end = start + len(domain.coordinates)
            parts.append((name, point[start:end]))
            start = end
        return parts
