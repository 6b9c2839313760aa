"""Parts of numbers: the weekday and hour of a time, the last digit or a remainder of an integer.

A leak may sit in a part alone: a buggy noise that keeps the parity, a count that is rounded on one
side only, the weekday of a date. No interval of the numbers shows it. Such a part becomes a column
of its own beside its number. Which parts do is learned from training draws (see `part_learning`)
and stored with the event as plain data.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Floats
from epsilometer.outputs.columns import Block, Column, Numbers
from epsilometer.outputs.shapes import EXACT, FEATURED, READ, Leaf, leaves_of

# Most parts of one shape.
MAX_PARTS = 8
# Remainders by larger numbers have too many values to be learned from some thousand draws.
MAX_MODULUS = 10
_DAYS_PER_WEEK = 7
_HOURS_PER_DAY = 24
_DIGITS = 10
# 1 January 1970 was a Thursday; weeks begin on Monday.
_FIRST_WEEKDAY = 3
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()
# Ticks per day, by the unit of a time of numpy.
_TICKS_PER_DAY = {
    "D": 1.0,
    "h": 24.0,
    "m": 1440.0,
    "s": 86_400.0,
    "ms": 86_400e3,
    "us": 86_400e6,
    "ns": 86_400e9,
}


class PartKind(StrEnum):
    """What a part says about its number."""

    WEEKDAY = "weekday"
    HOUR = "hour"
    LAST_DIGIT = "last digit"
    REMAINDER = "remainder"


@dataclass(frozen=True, slots=True)
class NumberPart:
    """A part of the numbers of one column.

    Attributes:
        column: of the numbers.
        kind: what it says about them.
        modulus: how many values it takes.
    """

    column: int
    kind: PartKind
    modulus: int

    def values(self, numbers: Array, leaf_kind: str) -> Floats:
        """Returns the part of each number, shape (n,); NaN where a number has none.

        Args:
            numbers: shape (n,).
            leaf_kind: of the numbers.
        """
        if self.kind is PartKind.WEEKDAY:
            return np.mod(_days(numbers, leaf_kind) + _FIRST_WEEKDAY, _DAYS_PER_WEEK)
        if self.kind is PartKind.HOUR:
            return np.mod(_hours(numbers, leaf_kind), _HOURS_PER_DAY)
        integers = whole_numbers(numbers)
        if self.kind is PartKind.LAST_DIGIT:
            return np.mod(np.abs(integers), _DIGITS)
        return np.mod(integers, self.modulus)

    def leaf(self, leaf: Leaf) -> Leaf:
        """Returns the part as a leaf of its own, named in words."""
        if self.kind is PartKind.WEEKDAY:
            return Leaf(f"the weekday of {leaf.path}", "weekday")
        if self.kind is PartKind.REMAINDER:
            if self.modulus == 2:
                return Leaf(f"the parity of {leaf.path}", "parity")
            name = f"the remainder of {leaf.path} modulo {self.modulus}"
            return Leaf(name, f"modulo {self.modulus}")
        if self.kind is PartKind.HOUR:
            return Leaf(f"the hour of {leaf.path}", "hour")
        return Leaf(f"the last digit of {leaf.path}", "modulo 10")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `shape_parts_from_dict` is the inverse."""
        return {"column": self.column, "kind": self.kind.value, "modulus": self.modulus}


def whole_numbers(numbers: Array) -> Floats:
    """Returns the integers among numbers; NaN for others and for those that a float rounds."""
    values = np.asarray(numbers, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        is_whole = (values == np.floor(values)) & (np.abs(values) <= EXACT)
    return np.where(is_whole, values, np.nan)


def _ticks_per_day(leaf_kind: str) -> float | None:
    """Returns how many units of its column a day has; None for what is no date or time."""
    plain = leaf_kind.removeprefix("long ")
    if plain == "date":
        return 1.0
    if plain.startswith("datetime64["):
        return _TICKS_PER_DAY.get(plain[len("datetime64[") : -1])
    return 86_400e6 if plain.startswith(("datetime", "Timestamp")) else None


def _days(numbers: Array, leaf_kind: str) -> Floats:
    """Returns the day of each date or time, since 1970."""
    if leaf_kind == "date":
        return _finite(numbers) - _FIRST_ORDINAL
    return _whole_units(numbers, leaf_kind, per_day=1)


def _hours(numbers: Array, leaf_kind: str) -> Floats:
    """Returns the hour of each time, since 1970."""
    return _whole_units(numbers, leaf_kind, per_day=_HOURS_PER_DAY)


def _whole_units(numbers: Array, leaf_kind: str, per_day: int) -> Floats:
    """Returns how many units have passed since 1970."""
    ticks = _ticks_per_day(leaf_kind)
    # Only times are asked for.
    assert ticks is not None
    return np.asarray(np.floor_divide(_finite(numbers), ticks / per_day))


def _finite(numbers: Array) -> Floats:
    values = np.asarray(numbers, dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def units_of(numbers: Array, kind: PartKind, leaf_kind: str) -> Floats:
    """Returns what a part is the remainder of: days, hours or integers, shape (n,)."""
    if kind is PartKind.WEEKDAY:
        return _days(numbers, leaf_kind)
    return _hours(numbers, leaf_kind) if kind is PartKind.HOUR else whole_numbers(numbers)


def possible_kinds(leaf_kind: str) -> tuple[PartKind, ...]:
    """Returns the kinds of parts that the numbers of a leaf may have."""
    ticks = _ticks_per_day(leaf_kind)
    if ticks is not None:
        has_hours = ticks >= _HOURS_PER_DAY
        return (PartKind.WEEKDAY, PartKind.HOUR) if has_hours else (PartKind.WEEKDAY,)
    if leaf_kind in ("int", "float"):
        return (PartKind.REMAINDER, PartKind.LAST_DIGIT)
    return ()


def moduli_of(kind: PartKind) -> Sequence[int]:
    """Returns how many values a part of this kind may take."""
    fixed = {
        PartKind.WEEKDAY: _DAYS_PER_WEEK,
        PartKind.HOUR: _HOURS_PER_DAY,
        PartKind.LAST_DIGIT: _DIGITS,
    }
    return (fixed[kind],) if kind in fixed else range(2, MAX_MODULUS + 1)


# --- shapes


def leaf_of_columns(shape: str) -> list[Leaf | None]:
    """Returns the leaf of each column of a shape; None for the second column of a leaf."""
    leaves: list[Leaf | None] = []
    for leaf in leaves_of(shape):
        leaves += [leaf, None][: leaf.n_columns]
    return leaves


@dataclass(frozen=True, slots=True)
class ShapeParts:
    """The parts of the numbers of one shape, which become its last columns.

    Attributes:
        shape: of the outputs, after their texts were read.
        parts: at least one.
        shape_with_parts: of the outputs with these columns.
    """

    shape: str
    parts: tuple[NumberPart, ...]
    shape_with_parts: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        leaves = leaf_of_columns(self.shape)
        new = []
        for part in self.parts:
            leaf = leaves[part.column]
            assert leaf is not None
            new.append(part.leaf(leaf))
        before, templates, words, old = _read_shape(self.shape)
        data = [before, templates, words, [*old, *([leaf.path, leaf.kind] for leaf in new)]]
        object.__setattr__(self, "shape_with_parts", READ + json.dumps(data, ensure_ascii=False))

    def read(self, block: Block) -> Block:
        """Returns outputs of this shape with the parts of their numbers."""
        leaves = leaf_of_columns(self.shape)
        columns: list[Column] = list(block.columns)
        for part in self.parts:
            leaf = leaves[part.column]
            column = block.columns[part.column] if part.column < len(block.columns) else None
            if leaf is None or not isinstance(column, Numbers):
                return block
            columns.append(Numbers(part.values(column.values, leaf.kind)))
        return Block(self.shape_with_parts, block.rows, tuple(columns), block.size)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `shape_parts_from_dict` is the inverse."""
        return {"shape": self.shape, "parts": [part.to_dict() for part in self.parts]}


def _read_shape(shape: str) -> list[Any]:
    """Returns the data of the shape of read outputs (see `shapes.READ`), or what it would be."""
    if shape.startswith(f"{READ}["):
        return list(json.loads(shape[len(READ) :]))
    return [shape, [], "", [[leaf.path, leaf.kind] for leaf in leaves_of(shape)]]


def may_have_parts(shape: str, n_columns: int) -> bool:
    """Returns whether it is known what each column of a shape holds."""
    return f"{FEATURED}{{" not in shape and len(leaf_of_columns(shape)) == n_columns


def shape_parts_from_dict(data: dict[str, Any]) -> ShapeParts:
    """Inverse of `ShapeParts.to_dict`; refuses data that nobody could have learned."""
    shape = data["shape"]
    parts = data["parts"]
    if not isinstance(shape, str) or FEATURED in shape or not 0 < len(parts) <= MAX_PARTS:
        raise ValueError("parts of numbers of no shape, or too many of them")
    leaves = leaf_of_columns(shape)
    restored = []
    for stored in parts:
        part = NumberPart(stored["column"], PartKind(stored["kind"]), stored["modulus"])
        is_column = type(part.column) is int and 0 <= part.column < len(leaves)
        leaf = leaves[part.column] if is_column else None
        if leaf is None or part.kind not in possible_kinds(leaf.kind):
            raise ValueError("a part of numbers that are not there, or have no such part")
        if type(part.modulus) is not int or part.modulus not in moduli_of(part.kind):
            raise ValueError(f"a part of numbers that takes {part.modulus!r:.20} values")
        restored.append(part)
    return ShapeParts(shape, tuple(restored))
