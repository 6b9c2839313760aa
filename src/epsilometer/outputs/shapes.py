"""Shapes: the structure of an output as text, without its values.

The shape of `{"count": 3, "rates": [0.5, 0.25]}` is `{count: int, rates: list(2 × float)}`. The
first half of this module writes shapes; the second half reads them back into leaves, so that an
event can be described in the words of whoever made the output (`rates[1]`).
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

import numpy as np

# The shape of an output next to features of it that a user's function computed is
# `featured{features: …, output: …}`.
FEATURED = "featured"
# The shape of outputs whose texts were read, or of which columns were left out, begins with this;
# a JSON list follows: the shape before, the numbers of the texts' templates, these templates in
# words, and the leaves, each with its path and kind (see `text_reading`).
READ = "read"
# Words that a shape uses itself: a user's class of that name is written in quotes.
RESERVED = {
    FEATURED,
    "None",
    "bool",
    "int",
    "bigint",
    "hugeint",
    "float",
    "longdouble",
    "complex",
    "Decimal",
    "Fraction",
    "str",
    "bytes",
    "list",
    "tuple",
    "set",
    "frozenset",
    "array",
    "object",
    "date",
    "datetime",
    "time",
    "timedelta",
    "datetime64",
    "timedelta64",
}

# --- writing shapes


def name_text(name: str) -> str:
    """Returns an identifier as it is, and any other name as a quoted ASCII literal."""
    return name if name.isidentifier() and name not in RESERVED else ascii(name)


def key_text(key: str) -> str:
    """Returns a record's key as a shape writes it; no word is reserved, as a colon follows."""
    return key if key.isidentifier() else ascii(key)


def runs_text(children: Iterable[str]) -> str:
    """Returns shapes in a row, with equal neighbours counted: `2 × bool, float`."""
    texts = []
    for shape, run in groupby(children):
        count = len(list(run))
        texts.append(shape if count == 1 else f"{count} × {shape}")
    return ", ".join(texts)


def sequence_text(name: str, children: Iterable[str]) -> str:
    """Returns the shape of a sequence: `list(3 × float)`."""
    return f"{name}({runs_text(children)})"


def record_text(name: str, keys: Sequence[str], children: Sequence[str]) -> str:
    """Returns the shape of a record: `{count: int}`, or `Point{x: float}` for a dataclass.

    Args:
        name: of the class; empty for a dict.
        keys: the fields' names as texts, see `key_text`.
        children: the shapes of the fields.
    """
    fields = ", ".join(f"{key}: {child}" for key, child in zip(keys, children, strict=True))
    return f"{name}{{{fields}}}"


def array_text(dimensions: Sequence[int], children: Sequence[str], empty: str = "object") -> str:
    """Returns the shape of an array: `array(2 × 3 × float)`, or `array(3: 2 × int, bigint)`.

    Args:
        dimensions: of one output, at least one.
        children: the shapes of the cells in C order, as many as the product of the dimensions.
            Cells of several shapes follow a colon.
        empty: the shape that a cell would have, for an array without cells.
    """
    sizes = " × ".join(map(str, dimensions))
    cell_shapes = set(children) or {empty}
    if len(cell_shapes) == 1:
        return f"array({sizes} × {cell_shapes.pop()})"
    return f"array({sizes}: {runs_text(children)})"


# --- numbers that one column cannot hold

# A double holds every digit to the base 2^53, so this is the base of the digits below.
EXACT = 1 << 53
_ROUNDED = frozenset({"hugeint", "longdouble", "longdouble beyond float", "Decimal", "Fraction"})


def is_long_number(shape: str) -> bool:
    """Returns whether a number takes two columns.

    The first holds it rounded to a float, the second distinguishes numbers that round alike.
    """
    if shape in _ROUNDED or has_digit(shape):
        return True
    return shape.partition(" ")[0] in ("Timestamp", "Timedelta")


def has_digit(shape: str) -> bool:
    """Returns whether the second column is the lowest digit to the base 2^53."""
    return shape == "bigint" or shape.startswith(("long datetime", "long timedelta"))


def whole_number(rounded: float, digit: int) -> int:
    """Returns the integer of the shape `bigint` that two columns hold: rounded, lowest digit."""
    near = int(rounded)
    half = EXACT // 2
    return near + (digit - near + half) % EXACT - half


# --- reading shapes


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts inside an output.

    Attributes:
        path: where it is, as the maker of the output would write it: `rates[1]`.
        kind: its shape, such as `float`.
        n_columns: how many columns hold it: none for a missing value, two for a complex number
            or one that a single column cannot hold.
    """

    path: str
    kind: str
    n_columns: int = field(init=False)

    def __post_init__(self) -> None:
        if self.is_missing:
            n_columns = 0
        elif self.kind == "complex" or is_long_number(self.kind):
            n_columns = 2
        else:
            n_columns = 1
        object.__setattr__(self, "n_columns", n_columns)

    @property
    def is_missing(self) -> bool:
        """Whether it stands for no value."""
        return self.kind in ("None", "NA", "object") or self.kind.startswith("NaT")


# Sequences of several parts; any other name before parentheses is a class around one value.
_SEQUENCES = ("list", "tuple", "set", "frozenset")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = re.compile(rf"{_QUOTED}|[^'\"(){{}},]*")
_KEY = re.compile(rf"{_QUOTED}|\w+|\[(?:{_QUOTED}|[^\]'\"])*'?\]")
_DIMENSIONS = re.compile(r"\d+(?: × \d+)*(?=: | × )")
_TIMES = re.compile(r"(\d+) × ")

# The leaves of a part of a shape, and the position in the text after that part.
_Parsed = tuple[list[Leaf], int]


@lru_cache(maxsize=64)
def leaves_of(shape: str) -> tuple[Leaf, ...]:
    """Returns the leaves of a shape in the order of its columns.

    A shape that cannot be parsed counts as a single leaf.
    """
    if shape.startswith(f"{READ}["):
        return _leaves_after_reading(shape)
    try:
        leaves, end = _parse(shape, 0, "output")
    except (ValueError, IndexError, RecursionError):
        end = -1
    if end != len(shape):
        return (Leaf("output", shape),)
    return tuple(leaves)


def _leaves_after_reading(shape: str) -> tuple[Leaf, ...]:
    """Returns the leaves that the shape of outputs with read texts lists."""
    try:
        _, _, _, leaves = json.loads(shape[len(READ) :])
        return tuple(Leaf(str(path), str(kind)) for path, kind in leaves)
    except (ValueError, TypeError, RecursionError):
        return (Leaf("output", shape),)


def shape_words(shape: str) -> str:
    """Returns a shape as people read it."""
    if not shape.startswith(f"{READ}["):
        return shape
    try:
        before, _, template, _ = json.loads(shape[len(READ) :])
    except (ValueError, RecursionError):
        return shape
    return f"{before} like `{template}`" if template else str(before)


def n_of_features(shape: str) -> int:
    """Returns how many columns, the first ones, are features of the output.

    It is 0 for outputs without features, and where only a part of the output has features.
    """
    prefix = f"{FEATURED}{{features: "
    if not shape.startswith(prefix):
        return 0
    leaves, _ = _parse(shape, len(prefix), "features")
    return sum(leaf.n_columns for leaf in leaves)


def _parse(text: str, start: int, path: str) -> _Parsed:
    """Parses the shape that begins at `start`."""
    name = _matched(_NAME, text, start)
    end = start + len(name)
    follows = text[end : end + 1]
    if follows == "{":
        return _parse_fields(text, end + 1, path)
    if follows != "(":
        return [Leaf(path, name)], end
    if name == "array":
        return _parse_array(text, end + 1, path)
    if name in _SEQUENCES:
        # A set has members, but no positions.
        if "set" in name:
            return _parse_run(text, end + 1, before=f"{path} member ", after="")
        return _parse_run(text, end + 1, before=f"{path}[", after="]")
    leaves, end = _parse(text, end + 1, path)
    while text[end] == ",":  # a complex number of long parts
        imaginary, end = _parse(text, end + 2, f"imaginary part of {path}")
        leaves += imaginary
    return leaves, end + 1


def _matched(pattern: re.Pattern[str], text: str, start: int) -> str:
    """Returns what a pattern matches at `start`, or raises a ValueError."""
    match = pattern.match(text, start)
    if match is None:
        raise ValueError(f"the shape {text!r:.80} cannot be parsed at {start}")
    return match.group()


def _parse_run(
    text: str, start: int, before: str, after: str, names: Sequence[str] | None = None
) -> _Parsed:
    """Parses parts in a row, like `2 × bool, float`, up to a closing parenthesis.

    Args:
        text: the whole shape.
        start: where the first part begins.
        before: the path of a part up to its name.
        after: the rest of that path.
        names: the names of the parts; None if they are numbered.
    """
    leaves: list[Leaf] = []
    position = 0
    while text[start] != ")":
        times = _TIMES.match(text, start)
        count = 1
        if times:
            count = int(times.group(1))
            start = times.end()
        part_start = start
        for _ in range(count):
            name = names[position] if names else str(position)
            part_leaves, start = _parse(text, part_start, before + name + after)
            leaves += part_leaves
            position += 1
        if text[start] == ",":
            start += len(", ")
    return leaves, start + 1


def _parse_array(text: str, start: int, path: str) -> _Parsed:
    """Parses what follows `array(`."""
    sizes = _matched(_DIMENSIONS, text, start)
    dimensions = [int(size) for size in sizes.split(" × ")]
    names = [", ".join(map(str, index)) for index in np.ndindex(*dimensions)]
    start += len(sizes)
    if text[start] == ":":
        return _parse_run(text, start + len(": "), before=f"{path}[", after="]", names=names)
    cell_start = start + len(" × ")
    _, end = _parse(text, cell_start, path)
    leaves: list[Leaf] = []
    for name in names:
        cell_leaves, _ = _parse(text, cell_start, f"{path}[{name}]")
        leaves += cell_leaves
    return leaves, end + 1


def _parse_fields(text: str, start: int, path: str) -> _Parsed:
    """Parses what follows the opening brace of a record."""
    leaves: list[Leaf] = []
    while text[start] != "}":
        key = _matched(_KEY, text, start)
        if key.isidentifier():
            step = key if path == "output" else f"{path}.{key}"
        elif key.startswith("["):
            step = path + key
        else:
            step = f"{path}[{key}]"
        field_leaves, start = _parse(text, start + len(key) + len(": "), step)
        leaves += field_leaves
        if text[start] == ",":
            start += len(", ")
    return leaves, start + 1
