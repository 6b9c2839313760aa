"""Datasets of records, answers of queries on neighbouring datasets, and domains as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import (
    Coordinate,
    check_interval,
    check_positive,
    check_relation,
    check_whole,
    check_whole_interval,
    level_of,
    signed_step,
    whole_within,
    within,
)
from epsilometer.inputs.domains.numbers import Category, Domain, Integer, Neighbours, Number, Point, Record
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
        return records(self._number(), self.size, relation)

    def _number(self) -> Record:
        if self.whole:
            return Integer(*check_whole_interval(self.low, self.high))
        return Number(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Table:
    """Lists of rows, each a dict with a value for every column.

    Neighbours: one row replaced by any other ("replace"), or one left out on the right ("add-remove").

    Attributes:
        columns: the domain of each column: a `Number`, an `Integer` or a `Category`. A replaced row may have
            any values of them.
        rows: how many rows.
    """

    columns: Mapping[str, Number | Integer | Category]
    rows: int
    relations: ClassVar[tuple[str, ...]] = ("replace", "add-remove")

    def __post_init__(self) -> None:
        check_whole("rows", self.rows, 1, _NO_RECORD)
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InputError(f"columns={self.columns!r:.100} must name at least one column and its domain")
        for name, domain in self.columns.items():
            if not isinstance(domain, Number | Integer | Category):
                raise InputError(f"column {name!r}: {domain!r:.100} must be a Number, an Integer or a Category")

    def neighbours(self, relation: str) -> Neighbours:
        """Two lists of rows."""
        check_relation(relation, self.relations, "a table")
        return records(_Row(self.columns), self.rows, relation)


@dataclass(frozen=True, slots=True)
class _Row:
    """A record with named values."""

    columns: Mapping[str, Number | Integer | Category]

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One per column."""
        return tuple(coordinate for domain in self.columns.values() for coordinate in domain.coordinates)

    @property
    def is_fixed(self) -> bool:
        """Whether every column has only one value."""
        return all(domain.is_fixed for domain in self.columns.values())

    def record(self, point: Point) -> dict[str, Any]:
        """The row that a point stands for."""
        return {name: domain.record([u]) for (name, domain), u in zip(self.columns.items(), point, strict=True)}

    def other(self, point: Point, record: Any) -> dict[str, Any]:
        """Another row; if need be the first column that can change does."""
        row = self.record(point)
        if row == record:
            place, name = next(found for found in enumerate(self.columns) if not self.columns[found[1]].is_fixed)
            row[name] = self.columns[name].other([point[place]], record[name])
        return row


def records(record: Record, count: int, relation: str) -> Neighbours:
    """Datasets of `count` records that are neighbours by "replace" or "add-remove"."""
    if relation == "add-remove":
        return _OneMissing(record, count)
    if record.is_fixed:
        raise InputError("relation='replace': there is only one possible record, so no dataset has a neighbour")
    return _OneReplaced(record, count)


@dataclass(frozen=True, slots=True)
class _OneReplaced:
    record: Record
    count: int

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The records, what replaces one of them, and which."""
        return self.record.coordinates * (self.count + 1) + _which(self.count)

    def pair(self, point: Point) -> Pair:
        """The right dataset has one record that the left one lacks."""
        left = _records(self.record, self.count, point)
        width = len(self.record.coordinates)
        place = _place(self.count, point)
        right = list(left)
        right[place] = self.record.other(point[self.count * width : (self.count + 1) * width], left[place])
        return Pair(left, right)


@dataclass(frozen=True, slots=True)
class _OneMissing:
    record: Record
    count: int

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The records, and which is missing."""
        return self.record.coordinates * self.count + _which(self.count)

    def pair(self, point: Point) -> Pair:
        """The right dataset lacks one record."""
        left = _records(self.record, self.count, point)
        place = _place(self.count, point)
        return Pair(left, left[:place] + left[place + 1 :])


def _which(count: int) -> tuple[Coordinate, ...]:
    return (Coordinate(count, ordered=False),) if count > 1 else ()


def _place(count: int, point: Point) -> int:
    return level_of(point[-1], count) if count > 1 else 0


def _records(record: Record, count: int, point: Point) -> list[Any]:
    width = len(record.coordinates)
    return [record.record(point[width * place : width * (place + 1)]) for place in range(count)]


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
    """

    count: int
    low: float
    high: float
    sensitivity: float
    whole: bool
    in_all: bool

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
        return Pair(self._plain(left), self._plain(right))

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


_KINDS: dict[str, Any] = {
    "number": Number,
    "integer": Integer,
    "category": Category,
    "vector": Vector,
    "queries": Queries,
    "table": Table,
}
# What the parts of a text mean, in order.
_PARTS = {
    "number": ("low", "high", "sensitivity"),
    "integer": ("low", "high", "sensitivity"),
    "vector": ("size", "low", "high", "sensitivity"),
    "queries": ("count", "low", "high", "sensitivity"),
}


def read_domain(given: object) -> Domain:
    """The domain that a text or plain data describes."""
    if isinstance(given, str):
        return _from_data(_parse_json(given) if given.lstrip().startswith("{") else _parse_text(given))
    if isinstance(given, Mapping):
        return _from_data(given)
    raise InputError(f"domain={given!r:.100} must be a text like 'vector:4:0:1' or a table with a kind")


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"domain={text!r:.100} is not JSON: {error}") from error
    return data


def _parse_text(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind == "category":
        return {"kind": kind, "values": [_value(part) for part in rest.split(",")]}
    names, parts = _PARTS.get(kind, ()), rest.split(":") if rest else []
    if kind in _PARTS and len(parts) > len(names):
        raise InputError(f"domain={text!r} has too many parts: write {':'.join((kind, *map(str.upper, names)))}")
    return {"kind": kind, **{name: _number(part, text) for name, part in zip(names, parts, strict=False)}}


def _number(part: str, text: str) -> float | int:
    try:
        return int(part)
    except ValueError:
        pass
    try:
        return float(part)
    except ValueError:
        raise InputError(f"domain={text!r}: {part!r} is not a number") from None


def _value(part: str) -> Any:
    """A JSON value, or else the text itself."""
    try:
        return json.loads(part)
    except json.JSONDecodeError:
        return part


def _from_data(data: Mapping[str, Any]) -> Domain:
    settings = dict(data)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        close = get_close_matches(str(kind), _KINDS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
        raise InputError(f"domain: the kind {kind!r} is unknown; {hint}")
    if kind == "table" and isinstance(settings.get("columns"), Mapping):
        settings["columns"] = {name: read_domain(column) for name, column in settings["columns"].items()}
    try:
        domain: Domain = _KINDS[kind](**settings)
    except TypeError as error:  # an argument is missing, or unknown
        raise InputError(f"domain of kind {kind!r}: {str(error).partition('() ')[2] or error}") from error
    return domain
