"""Datasets of records: one of them is replaced, or one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from epsilometer.errors import InputError
from epsilometer.inputs.checking import check_interval, check_positive, check_whole, check_whole_interval
from epsilometer.inputs.coordinates import Coordinate, level_of
from epsilometer.inputs.domains.answers import ShiftedAnswers
from epsilometer.inputs.domains.base import Neighbours, Point, Record
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.pairs import Pair
from epsilometer.inputs.relations import check_relation

_NO_RECORD = ": a dataset without records has no neighbours"


@dataclass(frozen=True, slots=True)
class Vector:
    """Lists of so many numbers of an interval, a number per record.

    Neighbours: one number replaced by any other ("replace"), one left out on the right ("add-remove"), or all numbers
    moved by at most `sensitivity`, each ("linf") or in all ("l1").

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
    """Datasets of so many records that are neighbours by "replace" or "add-remove"."""
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
        """The right dataset has one record that the left one has not."""
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
