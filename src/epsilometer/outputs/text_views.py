"""Views: what one field of a text contributes to the columns, a number or a label per text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.outputs.reading_numbers import label_from_data, label_to_data
from epsilometer.outputs.text_formats import MAX_CHARACTERS, FieldValue
from epsilometer.outputs.text_values import (
    clock_of,
    compact_day_of,
    day_of,
    moment_of,
    number_of,
)

# Characters of a code that get columns of their own.
MAX_WIDTH = 64
# The label of a text that lacks the field.
MISSING = "(missing)"
# The label of a text whose field is a number, in a column of what is no number.
_A_NUMBER = "(a number)"


@dataclass(frozen=True, slots=True)
class TextView:
    """How a field becomes a column.

    Attributes:
        key: of the field.
        kind: one of `NUMBER_VIEWS` or `LABEL_VIEWS`.
        leaf_kind: how its values are written: `int`, `float`, `bool`, `date`, `datetime`, `time` or
            `str`.
        name: of the column, in words.
        start: the first character of a part.
        stop: the end of a part.
    """

    key: str
    kind: str
    leaf_kind: str
    name: str
    start: int = 0
    stop: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers; otherwise it holds labels."""
        return self.kind in NUMBER_VIEWS

    def number(self, field: FieldValue | None) -> float:
        """Returns the number of a field, NaN if it has none."""
        if field is None:
            return np.nan
        number = NUMBER_VIEWS[self.kind](self, field)
        return np.nan if number is None else number

    def label(self, field: FieldValue | None) -> str:
        """Returns the label of a field."""
        return MISSING if field is None else LABEL_VIEWS[self.kind](self, str(field))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `view_from_dict` is the inverse."""
        data: dict[str, Any] = {
            "key": label_to_data(self.key),
            "kind": self.kind,
            "as": self.leaf_kind,
            "name": self.name,
        }
        if self.stop:
            data["part"] = [self.start, self.stop]
        return data


def _number(view: TextView, field: FieldValue) -> float | None:
    return number_of(field) if isinstance(field, str) else float(field)


def _number_of_part(view: TextView, field: FieldValue) -> float | None:
    part = str(field)[view.start : view.stop]
    return number_of(part) if part.isdecimal() else None


def _byte(view: TextView, field: FieldValue) -> float | None:
    part = str(field)[view.start : view.start + 1]
    return float(ord(part)) if part else None


# Characters at either end of a text in which words and numbers are looked for.
_END = 2048
_NUMBER_INSIDE = re.compile(r"(?:(?<![^\W_])[+\-−])?+\d++(?:\.\d++)?+(?:[eE][+\-−]?\d++)?+")
_WORD = re.compile(r"[^\W_]++")


def _first_number(view: TextView, field: FieldValue) -> float | None:
    match = _NUMBER_INSIDE.search(str(field)[:_END])
    return number_of(match.group()) if match else None


def _last_number(view: TextView, field: FieldValue) -> float | None:
    numbers = _NUMBER_INSIDE.findall(str(field)[-_END:])
    return number_of(numbers[-1]) if numbers else None


def _n_words(view: TextView, field: FieldValue) -> float:
    return float(len(_WORD.findall(str(field)[:MAX_CHARACTERS])))


def _first_word(view: TextView, field: str) -> str:
    match = _WORD.search(field[:_END])
    return match.group() if match else ""


def _last_word(view: TextView, field: str) -> str:
    words = _WORD.findall(field[-_END:])
    return words[-1] if words else ""


# What makes a number of a field, by the kind of the view.
NUMBER_VIEWS: dict[str, Callable[[TextView, FieldValue], float | None]] = {
    "number": _number,
    "date": lambda view, field: day_of(str(field)),
    "compact date": lambda view, field: compact_day_of(str(field)),
    "datetime": lambda view, field: moment_of(str(field)),
    "time": lambda view, field: clock_of(str(field)),
    "length": lambda view, field: float(len(str(field))),
    "number part": _number_of_part,
    "byte": _byte,
    "first number": _first_number,
    "last number": _last_number,
    "words": _n_words,
}
# What makes a label of a field, by the kind of the view.
LABEL_VIEWS: dict[str, Callable[[TextView, str], str]] = {
    "label": lambda view, field: field,
    "no number": lambda view, field: field if number_of(field) is None else _A_NUMBER,
    "part": lambda view, field: field[view.start : view.stop],
    "last": lambda view, field: field[-1:],
    "first word": _first_word,
    "last word": _last_word,
}
_LEAF_KINDS = frozenset({"int", "float", "bool", "date", "datetime", "time", "str"})
_MAX_NAME_LENGTH = 400


def view_from_dict(data: dict[str, Any]) -> TextView:
    """Inverse of `View.to_dict`; refuses data that no view could have written."""
    kind = data["kind"]
    leaf_kind = data["as"]
    name = data["name"]
    if kind not in NUMBER_VIEWS and kind not in LABEL_VIEWS:
        raise ValueError(f"a view of texts of the unknown kind {kind!r:.40}")
    if leaf_kind not in _LEAF_KINDS or (leaf_kind == "str") != (kind in LABEL_VIEWS):
        raise ValueError(f"a view of texts with values of the unknown kind {leaf_kind!r:.40}")
    if not isinstance(name, str) or not name.isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise ValueError(f"a view of texts with the name {name!r:.40}")
    start, stop = data.get("part", (0, 0))
    if type(start) is not int or type(stop) is not int or not 0 <= start <= stop <= MAX_WIDTH:
        raise ValueError("a view of texts with a part that does not exist")
    return TextView(label_from_data(data["key"]), kind, leaf_kind, name, start, stop)
