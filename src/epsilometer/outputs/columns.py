"""Outputs as columns: what every mechanism's answers become when they are read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers

# The shape of an output beside features of it, which a user's function computed: `featured{features: …, output: …}`.
FEATURED = "featured"
# Words that a shape uses itself: a user's class of that name is written in quotes.
RESERVED = {
    FEATURED,
    *("None", "bool", "int", "bigint", "hugeint", "float", "longdouble", "complex", "Decimal", "str", "bytes"),
    *("list", "tuple", "set", "frozenset", "array", "object"),
    *("date", "datetime", "time", "timedelta", "datetime64", "timedelta64", "Fraction"),
}


def name_text(name: str) -> str:
    """A class or key: as it is if it is an identifier, else as a quoted ASCII literal (which can be read back)."""
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
    """`{count: int, name: str}`, or `Point{x: float, y: float}` for a dataclass; `keys` are texts already."""
    pairs = ", ".join(f"{key}: {child}" for key, child in zip(keys, children, strict=True))
    return f"{name}{{{pairs}}}"


def array_text(dimensions: Sequence[int], children: Sequence[str], empty: str = "object") -> str:
    """`array(2 × 3 × float)`; cells of several kinds follow a colon: `array(3: 2 × int, bigint)`.

    Args:
        dimensions: of one output, at least one.
        children: the shapes of the cells in C order, as many as the product of the dimensions.
        empty: the shape that a cell would have, for an array without cells.
    """
    sizes, kinds = " × ".join(map(str, dimensions)), set(children) or {empty}
    return f"array({sizes} × {kinds.pop()})" if len(kinds) == 1 else f"array({sizes}: {runs_text(children)})"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts inside an output: where it is, in the words of whoever made the output, and its kind."""

    path: str
    kind: str
    # How many columns hold it: none for a missing value, two for a number that one cannot hold.
    n_columns: int = field(init=False)

    def __post_init__(self) -> None:
        n_columns = 0 if self.is_missing else 2 if self.kind == "complex" or is_long_number(self.kind) else 1
        object.__setattr__(self, "n_columns", n_columns)

    @property
    def is_missing(self) -> bool:
        """Whether it stands for no value."""
        return self.kind in ("None", "NA", "object") or self.kind.startswith("NaT")


# Sequences of several parts; any other name before parentheses is a class around one value.
_SEQUENCES = ("list", "tuple", "set", "frozenset")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME, _KEY = re.compile(rf"{_QUOTED}|[^'\"(){{}},]*"), re.compile(rf"{_QUOTED}|\w+|\[(?:{_QUOTED}|[^\]'\"])*'?\]")
_DIMENSIONS, _TIMES = re.compile(r"\d+(?: × \d+)*(?=: | × )"), re.compile(r"(\d+) × ")


@lru_cache(maxsize=64)
def leaves_of(shape: str) -> tuple[Leaf, ...]:
    """The leaves of a shape in the order of its columns; a shape that cannot be read is one leaf."""
    try:
        leaves, end = _parse(shape, 0, "output")
    except (ValueError, AttributeError, IndexError, RecursionError):
        end = -1
    return tuple(leaves) if end == len(shape) else (Leaf("output", shape),)


def _parse(text: str, start: int, path: str) -> tuple[list[Leaf], int]:
    """The leaves of the shape that begins at `start`, and where it ends."""
    name = _NAME.match(text, start).group()  # type: ignore[union-attr]  # matches at least nothing
    end = start + len(name)
    follows = text[end : end + 1]
    if follows == "{":
        return _parse_fields(text, end + 1, path)
    if follows != "(":
        return [Leaf(path, name)], end
    if name == "array":
        return _parse_array(text, end + 1, path)
    if name in _SEQUENCES:
        return _parse_run(text, end + 1, f"{path} member " + "{}" if "set" in name else path + "[{}]")
    leaves, end = _parse(text, end + 1, path)
    while text[end] == ",":  # a complex number of long parts
        more, end = _parse(text, end + 2, f"imaginary part of {path}")
        leaves += more
    return leaves, end + 1


def _parse_run(text: str, start: int, step: str, names: Sequence[str] | None = None) -> tuple[list[Leaf], int]:
    """Parts in a row, like `2 × bool, float`, up to a closing parenthesis."""
    leaves: list[Leaf] = []
    place = 0
    while text[start] != ")":
        times = _TIMES.match(text, start)
        first = start = times.end() if times else start
        for _ in range(int(times.group(1)) if times else 1):
            inside, start = _parse(text, first, step.format(names[place] if names else place))
            leaves, place = leaves + inside, place + 1
        start += 2 if text[start] == "," else 0
    return leaves, start + 1


def _parse_array(text: str, start: int, path: str) -> tuple[list[Leaf], int]:
    sizes = _DIMENSIONS.match(text, start).group()  # type: ignore[union-attr]  # caught by the caller
    names = [", ".join(map(str, place)) for place in np.ndindex(*map(int, sizes.split(" × ")))]
    start += len(sizes)
    if text[start] == ":":
        return _parse_run(text, start + 2, path + "[{}]", names)
    leaves: list[Leaf] = []
    end = _parse(text, start + 3, path)[1]
    for name in names:
        leaves += _parse(text, start + 3, f"{path}[{name}]")[0]
    return leaves, end + 1


def _parse_fields(text: str, start: int, path: str) -> tuple[list[Leaf], int]:
    leaves: list[Leaf] = []
    while text[start] != "}":
        key = _KEY.match(text, start).group()  # type: ignore[union-attr]  # caught by the caller
        if key.isidentifier():
            step = key if path == "output" else f"{path}.{key}"
        else:
            step = path + (key if key.startswith("[") else f"[{key}]")
        inside, start = _parse(text, start + len(key) + 2, step)
        leaves += inside
        start += 2 if text[start] == "," else 0
    return leaves, start + 1


def n_of_features(shape: str) -> int:
    """How many of the columns, the first ones, are features; 0 where there are none, or inside of something else."""
    before = f"{FEATURED}{{features: "
    leaves = _parse(shape, len(before), "features")[0] if shape.startswith(before) else []
    return sum(leaf.n_columns for leaf in leaves)


# A double holds every digit to the base 2^53.
EXACT = 1 << 53
_ROUNDED = frozenset({"hugeint", "longdouble", "longdouble beyond float", "Decimal", "Fraction"})


def is_long_number(shape: str) -> bool:
    """Whether the first column is the number, rounded to a float, and the second distinguishes what rounds alike."""
    return shape in _ROUNDED or has_digit(shape) or shape.partition(" ")[0] in ("Timestamp", "Timedelta")


def has_digit(shape: str) -> bool:
    """Whether the second column is the lowest digit to the base 2^53, of a whole number or a time."""
    return shape == "bigint" or shape.startswith(("long datetime", "long timedelta"))


def whole_number(rounded: float, digit: int) -> int:
    """The number of the shape `bigint` that these two columns stand for."""
    near = int(rounded)
    return near + (digit - near + EXACT // 2) % EXACT - EXACT // 2


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers.

    Attributes:
        values: shape (n,), dtype float64, int64 or bool. NaN and ±inf are ordinary values. Whole numbers lie between
            −2^53 and 2^53, so that every reader may treat them as floats (see `reading_numbers`).
        widths: shape (n,), uint8, how many bytes each float had when it was returned; None if all had eight. Values
            are equal whatever their width; only the floating-point view looks at it.
    """

    values: Floats | Integers | Booleans
    widths: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Integers | slice) -> "Numbers":
        """The given rows."""
        return Numbers(self.values[rows], None if self.widths is None else self.widths[rows])

    def copied(self) -> "Numbers":
        """A copy of the values; no one else holds the widths."""
        return Numbers(self.values.copy(), self.widths)


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names: strings, bytes, enum members, the exact text of very long numbers.

    Attributes:
        codes: shape (n,), int32, positions in `labels`.
        labels: the distinct texts, in order of first appearance unless the column was cut afterwards.
    """

    codes: NDArray[np.int32]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Integers | slice) -> "Labels":
        """The given rows. Rows picked one by one have their labels in order of first appearance."""
        codes = self.codes[rows]
        if isinstance(rows, slice):
            return Labels(codes, self.labels)
        first = np.full(len(self.labels), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last write wins, which is the first appearance
        order = np.argsort(first, kind="stable")
        recode = np.empty(len(order), dtype=np.int32)
        recode[order] = np.arange(len(order), dtype=np.int32)
        return Labels(recode[codes], tuple(self.labels[code] for code in order.tolist()))

    def copied(self) -> "Labels":
        """A copy of the codes."""
        return Labels(self.codes.copy(), self.labels)


Column = Numbers | Labels


@dataclass(frozen=True, slots=True)
class Block:
    """All outputs of one shape.

    Attributes:
        shape: the outputs' tree without its values, as text.
        rows: shape (k,), increasing positions among all outputs; None when the block holds all of them in order.
        columns: one per leaf, each of length k (none for the shape `None`).
        size: k.
        leaves: while outputs are read, how many values without parts one of them holds (an empty list counts as one).
    """

    shape: str
    rows: Integers | None
    columns: tuple[Column, ...]
    size: int
    leaves: int = field(default=1, repr=False, compare=False)

    def places(self) -> Integers:
        """The positions of the outputs, shape (k,), increasing."""
        return np.arange(self.size) if self.rows is None else self.rows

    def within(self, rows: Integers) -> "Block":
        """The same block among more outputs, whose `rows` held these."""
        return replace(self, rows=rows if self.rows is None else rows[self.rows])


@dataclass(frozen=True, slots=True)
class Outputs:
    """n outputs of a mechanism, in the order in which they were drawn.

    Blocks, too, come in the order of their first outputs: whoever looks only at the first blocks of shuffled outputs
    must not learn what came early before the shuffle.
    """

    blocks: tuple[Block, ...]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __add__(self, other: "Outputs") -> "Outputs":
        """These outputs followed by the others."""
        return concatenate([self, other])

    def copied(self) -> "Outputs":
        """A copy that does not change when the mechanism reuses its arrays."""
        copies = []
        for block in self.blocks:
            columns = tuple([column.copied() for column in block.columns])
            copies.append(Block(block.shape, block.rows, columns, block.size))
        return Outputs(tuple(copies), self.size)

    def take(self, rows: Integers | slice) -> "Outputs":
        """The outputs at the given positions, in that order."""
        size = len(range(*rows.indices(self.size))) if isinstance(rows, slice) else len(rows)
        if len(self.blocks) == 1 and self.blocks[0].rows is None:
            block = self.blocks[0]
            columns = tuple(column.take(rows) for column in block.columns)
            return Outputs((Block(block.shape, None, columns, size),) if size else (), size)
        wanted = np.arange(self.size)[rows] if isinstance(rows, slice) else np.asarray(rows, dtype=np.int64)
        taken = [block for block in (_take_block(block, wanted, self.size) for block in self.blocks) if block.size]
        taken.sort(key=lambda block: 0 if block.rows is None else int(block.rows[0]))
        return Outputs(tuple(taken), len(wanted))


def _take_block(block: Block, wanted: Integers, total: int) -> Block:
    place = np.full(total, -1, dtype=np.int64)
    place[block.places()] = np.arange(block.size)
    inside = place[wanted]
    rows = np.flatnonzero(inside >= 0)
    columns = tuple(column.take(inside[rows]) for column in block.columns)
    return Block(block.shape, None if len(rows) == len(wanted) else rows, columns, len(rows))


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Several batches of outputs as one, in order."""
    parts = [part for part in parts if part.size]
    if len(parts) <= 1:
        return parts[0] if parts else Outputs((), 0)
    by_shape: dict[str, list[tuple[int, Block]]] = {}
    total = 0
    for part in parts:
        for block in part.blocks:
            if block.size:
                by_shape.setdefault(block.shape, []).append((total, block))
        total += part.size
    joined = []
    for shape, pieces in by_shape.items():
        size = sum(block.size for _, block in pieces)
        rows = None if size == total else np.concatenate([start + block.places() for start, block in pieces])
        columns = tuple(_join(same) for same in zip(*(block.columns for _, block in pieces), strict=True))
        joined.append(Block(shape, rows, columns, size))
    return Outputs(tuple(joined), total)


def _join(columns: Sequence[Column]) -> Column:
    """One column from several that follow each other."""
    if len(columns) == 1:  # as rare shapes have: there may be thousands of these
        return columns[0]
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if len(numbers) == len(columns):
        widths = None
        if any(each.widths is not None for each in numbers):
            widths = np.concatenate([uniform(8, len(each)) if each.widths is None else each.widths for each in numbers])
        return Numbers(np.concatenate([each.values for each in numbers]), widths)
    table: dict[str, int] = {}
    codes = []
    for column in columns:
        if isinstance(column, Numbers):
            raise TypeError("one shape has a column of numbers in one batch and of labels in another")
        recode = np.array([table.setdefault(label, len(table)) for label in column.labels], dtype=np.int32)
        codes.append(recode[column.codes] if len(recode) else column.codes)
    return Labels(np.concatenate(codes), tuple(table))


def uniform(width: int, size: int) -> NDArray[np.uint8]:
    """The widths of `size` floats that all have one; takes no memory."""
    return np.broadcast_to(np.uint8(width), size)
