"""Outputs as columns: what every mechanism's answers become when they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.one_line import MAX_REPR_CHARACTERS, cut

__all__ = [
    "Block",
    "Column",
    "Labels",
    "Numbers",
    "Outputs",
    "concatenate",
    "concatenate_columns",
    "uniform",
]


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers.

    Attributes:
        values: shape (n,), dtype float64, int64 or bool. NaN and ±inf are ordinary values.
            Integers lie between −2^53 and 2^53, so that every reader may treat them as floats
            (see `reading_numbers`).
        widths: shape (n,), uint8, how many bytes each float had when it was returned; None if all
            had eight. Values are equal whatever their width; only the floating-point view reads it.
    """

    values: Floats | Integers | Booleans
    widths: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Integers | slice) -> "Numbers":
        """Returns the given rows."""
        return Numbers(self.values[rows], None if self.widths is None else self.widths[rows])

    def copied(self) -> "Numbers":
        """Returns a copy of the values; the widths are shared, as nobody else can change them."""
        return Numbers(self.values.copy(), self.widths)


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of texts: strings, bytes, enum members, the exact digits of very long numbers.

    Attributes:
        codes: shape (n,), int32, positions in `labels`.
        labels: the distinct texts, in order of first appearance unless the column was cut
            afterwards.
    """

    codes: NDArray[np.int32]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Integers | slice) -> "Labels":
        """Returns the given rows.

        Rows picked one by one have their labels in order of first appearance; a slice keeps all.
        """
        codes = self.codes[rows]
        if isinstance(rows, slice):
            return Labels(codes, self.labels)
        first_row = np.full(len(self.labels), len(codes))
        # Written from the last row to the first, so that the first appearance is what remains.
        first_row[codes[::-1]] = np.arange(len(codes))[::-1]
        order = np.argsort(first_row, kind="stable")
        new_code = np.empty(len(order), dtype=np.int32)
        new_code[order] = np.arange(len(order), dtype=np.int32)
        return Labels(new_code[codes], tuple(self.labels[code] for code in order.tolist()))

    def copied(self) -> "Labels":
        """Returns a copy of the codes; the labels cannot change."""
        return Labels(self.codes.copy(), self.labels)


Column = Numbers | Labels


@dataclass(frozen=True, slots=True)
class Block:
    """All outputs of one shape.

    Attributes:
        shape: the structure of the outputs without their values, as text (see `shapes`).
        rows: shape (k,), increasing positions among all outputs; None when the block holds all of
            them in order.
        columns: one per leaf, each of length k (none for the shape `None`).
        size: k.
        leaves: while outputs are read, how many values without parts one of them holds (an empty
            list counts as one).
    """

    shape: str
    rows: Integers | None
    columns: tuple[Column, ...]
    size: int
    leaves: int = field(default=1, repr=False, compare=False)

    def places(self) -> Integers:
        """Returns the positions of the outputs among all, shape (k,), increasing."""
        return np.arange(self.size) if self.rows is None else self.rows

    def within(self, rows: Integers) -> "Block":
        """Returns the same block among more outputs, of which `rows` are those it was read from."""
        return replace(self, rows=rows if self.rows is None else rows[self.rows])


def first_row(block: Block) -> int:
    """Returns the position of the block's first output; blocks are kept in this order."""
    return 0 if block.rows is None else int(block.rows[0])


@dataclass(frozen=True, slots=True)
class Outputs:
    """n outputs of a mechanism, in the order in which they were drawn.

    Blocks, too, come in the order of their first outputs: code that uses only the first blocks of
    shuffled outputs must not learn which outputs came early before the shuffle.
    """

    blocks: tuple[Block, ...]
    size: int

    def __repr__(self) -> str:
        shapes = ", ".join(block.shape for block in self.blocks)
        return f"<Outputs: {self.size:,} of {cut(shapes, MAX_REPR_CHARACTERS)}>"

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __add__(self, other: "Outputs") -> "Outputs":
        """Returns these outputs followed by the others."""
        return concatenate([self, other])

    def numbers(self) -> Floats:
        """Returns outputs that are single numbers, shape (n,), in the order of the draws.

        Raises:
            InputError: if an output is anything else.
        """
        values = np.empty(self.size)
        for block in self.blocks:
            if block.shape not in ("bool", "int", "float"):
                raise InputError(f"an output of the shape {block.shape!r:.60} is no single number")
            (column,) = block.columns
            if not isinstance(column, Numbers):
                raise InputError("an output has more digits than a number of the machine can hold")
            values[block.places()] = column.values
        return values

    def copied(self) -> "Outputs":
        """Returns a copy that does not change when the mechanism reuses its arrays."""
        copies = []
        for block in self.blocks:
            columns = tuple([column.copied() for column in block.columns])
            copies.append(Block(block.shape, block.rows, columns, block.size))
        return Outputs(tuple(copies), self.size)

    def take(self, rows: Integers | slice) -> "Outputs":
        """Returns the outputs at the given positions, in that order."""
        if len(self.blocks) == 1 and self.blocks[0].rows is None:
            return self._take_from_only_block(rows)
        if isinstance(rows, slice):
            rows = np.arange(self.size)[rows]
        wanted = np.asarray(rows, dtype=np.int64)
        taken = []
        for block in self.blocks:
            part = _take_block(block, wanted, self.size)
            if part.size:
                taken.append(part)
        taken.sort(key=first_row)
        return Outputs(tuple(taken), len(wanted))

    def _take_from_only_block(self, rows: Integers | slice) -> "Outputs":
        """Returns the outputs at the given positions where all have one shape, the usual case."""
        size = len(range(*rows.indices(self.size))) if isinstance(rows, slice) else len(rows)
        if not size:
            return Outputs((), 0)
        block = self.blocks[0]
        columns = tuple(column.take(rows) for column in block.columns)
        return Outputs((Block(block.shape, None, columns, size),), size)


def _take_block(block: Block, wanted: Integers, n_outputs: int) -> Block:
    """Returns the outputs of one block that are at the wanted positions among all outputs."""
    row_in_block = np.full(n_outputs, -1, dtype=np.int64)
    row_in_block[block.places()] = np.arange(block.size)
    wanted_in_block = row_in_block[wanted]
    rows = np.flatnonzero(wanted_in_block >= 0)
    columns = tuple(column.take(wanted_in_block[rows]) for column in block.columns)
    has_all = len(rows) == len(wanted)
    return Block(block.shape, None if has_all else rows, columns, len(rows))


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Joins several batches of outputs into one, in order."""
    parts = [part for part in parts if part.size]
    if not parts:
        return Outputs((), 0)
    if len(parts) == 1:
        return parts[0]
    # For every shape, its blocks, and how many outputs lie before the batch of each.
    blocks_by_shape: dict[str, list[Block]] = {}
    offsets_by_shape: dict[str, list[int]] = {}
    total = 0
    for part in parts:
        for block in part.blocks:
            if block.size:
                blocks_by_shape.setdefault(block.shape, []).append(block)
                offsets_by_shape.setdefault(block.shape, []).append(total)
        total += part.size
    joined = []
    for shape, blocks in blocks_by_shape.items():
        size = sum(block.size for block in blocks)
        rows = None
        if size != total:
            offsets = offsets_by_shape[shape]
            places = [
                offset + block.places() for offset, block in zip(offsets, blocks, strict=True)
            ]
            rows = np.concatenate(places)
        columns_by_position = zip(*(block.columns for block in blocks), strict=True)
        columns = tuple(concatenate_columns(columns) for columns in columns_by_position)
        joined.append(Block(shape, rows, columns, size))
    return Outputs(tuple(joined), total)


def concatenate_columns(columns: Sequence[Column]) -> Column:
    """Joins columns that follow each other into one."""
    if len(columns) == 1:  # a shortcut for rare shapes, of which there may be thousands
        return columns[0]
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if len(numbers) == len(columns):
        return _join_numbers(numbers)
    code_of: dict[str, int] = {}
    codes = []
    for column in columns:
        if isinstance(column, Numbers):
            raise TypeError(
                "one shape has a column of numbers in one batch and of labels in another"
            )
        new_codes = [code_of.setdefault(label, len(code_of)) for label in column.labels]
        recode = np.array(new_codes, dtype=np.int32)
        codes.append(recode[column.codes] if len(recode) else column.codes)
    return Labels(np.concatenate(codes), tuple(code_of))


def _join_numbers(columns: Sequence[Numbers]) -> Numbers:
    values = np.concatenate([column.values for column in columns])
    if all(column.widths is None for column in columns):
        return Numbers(values)
    widths = [
        uniform(8, len(column)) if column.widths is None else column.widths for column in columns
    ]
    return Numbers(values, np.concatenate(widths))


def uniform(width: int, size: int) -> NDArray[np.uint8]:
    """Returns the widths of `size` floats of one width; the array takes no memory."""
    return np.broadcast_to(np.uint8(width), size)
