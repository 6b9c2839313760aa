"""The text of a shape: an output's tree without its values.

A text names one tree only, so two outputs share a block exactly when their trees are the same, and the text alone
tells how many columns there are and of which kind. `2 × float` stands for `float, float`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

# Words that a shape uses itself: a user's class of that name is written in quotes.
RESERVED = frozenset(
    {
        *("None", "bool", "int", "bigint", "hugeint", "float", "longdouble", "complex", "Decimal", "str", "bytes"),
        *("list", "tuple", "set", "frozenset", "array", "object"),
        *("date", "datetime", "time", "timedelta", "datetime64", "timedelta64"),
    }
)


def name_text(name: str) -> str:
    """A class or key as it is if it is an identifier, else as a quoted ASCII literal (which can be read back)."""
    return name if name.isidentifier() and name not in RESERVED else ascii(name)


def key_text(key: str) -> str:
    """A key of a record; a colon follows it, so that no word is reserved."""
    return key if key.isidentifier() else ascii(key)


def runs_text(children: Iterable[str]) -> str:
    """Shapes in a row, equal neighbours counted: `2 × bool, float`."""
    runs = ((shape, sum(1 for _ in same)) for shape, same in groupby(children))
    return ", ".join(shape if count == 1 else f"{count} × {shape}" for shape, count in runs)


def sequence_text(name: str, children: Iterable[str]) -> str:
    """`list(3 × float)`."""
    return f"{name}({runs_text(children)})"


def record_text(name: str, keys: Sequence[str], children: Sequence[str]) -> str:
    """`{count: int, name: str}`, or `Point{x: float, y: float}` for a dataclass."""
    pairs = ", ".join(f"{key_text(key)}: {child}" for key, child in zip(keys, children, strict=True))
    return f"{name}{{{pairs}}}"


def array_text(dimensions: Sequence[int], children: Sequence[str], empty: str = "object") -> str:
    """`array(2 × 3 × float)`; cells of several kinds follow a colon: `array(3: 2 × int, bigint)`.

    Args:
        dimensions: of one output, at least one.
        children: the shapes of the cells in C order, as many as the product of the dimensions.
        empty: the shape that a cell would have, for an array without cells.
    """
    sizes = " × ".join(map(str, dimensions))
    kinds = set(children) or {empty}
    return f"array({sizes} × {kinds.pop()})" if len(kinds) == 1 else f"array({sizes}: {runs_text(children)})"
