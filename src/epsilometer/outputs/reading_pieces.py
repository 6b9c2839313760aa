"""Building blocks of reading: values at one place of the tree, split by shape and rejoined.

Reading goes down the tree of all outputs at once. At every place it has a list of values and
returns one block per shape, whose rows are positions among these values. So Python code runs once
per shape, not once per value.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Booleans, Integers
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import (
    Block,
    Column,
    Labels,
    Numbers,
    Outputs,
    concatenate,
    first_row,
)

# Every leaf becomes a column. An output with more leaves than this is a data set or a model, from
# which no event can be learned.
MAX_LEAVES = 10_000
# Deeper trees are mistakes; a list that contains itself is stopped here.
MAX_DEPTH = 50
# The block numbers of several parts are packed into one int64 as long as they stay below this.
MAX_CODE = 2**62
# Codes below this are sorted as 16-bit integers, by radix.
_MAX_RADIX_CODES = 2**16


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree values are read, for error messages and limits.

    Attributes:
        outputs: shape (k,), the positions of the outputs that the k values belong to.
        depth: how many containers are around them.
    """

    outputs: Integers
    depth: int = 0

    def pick(self, rows: Integers) -> "Place":
        """Returns the place of some of the values."""
        return Place(self.outputs[rows], self.depth)

    def inside(self) -> "Place":
        """Returns the place of the parts of the values."""
        if self.depth >= MAX_DEPTH:
            raise MechanismError(
                f"output {self.outputs[0]} is nested deeper than {MAX_DEPTH} levels (or contains "
                "itself); return fewer levels"
            )
        return Place(self.outputs, self.depth + 1)

    def check_leaves(self, leaves: int, row: int = 0) -> None:
        """Raises if the value at `row` has too many leaves."""
        if leaves > MAX_LEAVES:
            raise MechanismError(
                f"output {self.outputs[row]} holds at least {leaves} values, more than the "
                f"{MAX_LEAVES} allowed; return a summary or fewer values"
            )


def leaf(shape: str, *columns: Column, size: int | None = None) -> list[Block]:
    """Returns the only block of values without parts that all have one shape.

    Args:
        shape: of the values.
        columns: that hold them.
        size: how many values there are; needed only where they have no column.
    """
    if size is None:
        size = len(columns[0])
    return [Block(shape, None, columns, size)]


# --- splitting values, and merging blocks of one shape

# Reads the values of a group: gets the group's key, the values and their place.
Reader = Callable[[Any, Sequence[Any], "Place"], list[Block]]


def by_group(
    values: Sequence[Any], key: Callable[[Any], Hashable], place: Place, read: Reader
) -> list[Block]:
    """Reads values group by group.

    Args:
        values: at least one.
        key: what the values of a group have in common; called twice per value.
        place: of the values.
        read: reads one group.
    """
    keys = list(set(map(key, values)))
    if len(keys) == 1:
        return read(keys[0], values, place)
    number_of_key = {group_key: number for number, group_key in enumerate(keys)}
    codes = np.fromiter(
        map(number_of_key.__getitem__, map(key, values)), dtype=np.int64, count=len(values)
    )
    blocks: list[Block] = []
    for rows in split(codes, len(keys)):
        group_key = keys[codes[rows[0]]]
        group_values = [values[row] for row in rows.tolist()]
        group_blocks = read(group_key, group_values, place.pick(rows))
        blocks += [block.within(rows) for block in group_blocks]
    return merge(blocks, len(values))


def split(codes: Integers, bound: int) -> list[Integers]:
    """Returns the rows of every code that occurs, in the order of first appearance.

    Args:
        codes: shape (n,), n > 0, each in 0..bound-1.
        bound: small bounds are sorted by radix, several times as fast.
    """
    narrow = codes.astype(np.uint16) if bound <= _MAX_RADIX_CODES else codes
    order = np.argsort(narrow, kind="stable")
    starts = np.flatnonzero(np.diff(narrow[order])) + 1
    return sorted(np.split(order, starts), key=lambda rows: int(rows[0]))


def by_case(
    values: Array, cases: Sequence[tuple[Booleans, Callable[[Array], list[Block]]]]
) -> list[Block]:
    """Reads an array whose values fall into cases.

    Args:
        values: shape (n,), n > 0.
        cases: of each case which values belong to it, shape (n,), and what reads them. Every value
            belongs to exactly one case.
    """
    blocks: list[Block] = []
    for belongs, read in cases:
        rows = np.flatnonzero(belongs)
        if len(rows) == len(values):
            return read(values)
        if len(rows):
            blocks += [block.within(rows) for block in read(values[rows])]
    return merge(blocks, len(values))


def merge(blocks: list[Block], size: int) -> list[Block]:
    """Returns one block per shape, in the order of first appearance.

    Values of one shape may have been read separately, such as 1.5 and np.float32(1.5).

    Args:
        blocks: together all values, each once.
        size: the number of values.
    """
    blocks_by_shape: dict[str, list[Block]] = {}
    for block in blocks:
        blocks_by_shape.setdefault(block.shape, []).append(block)
    merged = []
    for same_shape in blocks_by_shape.values():
        is_alone = len(same_shape) == 1
        merged.append(same_shape[0] if is_alone else _interleave(same_shape, size))
    return sorted(merged, key=first_row)


def _interleave(blocks: list[Block], size: int) -> Block:
    """Joins blocks of one shape into one, with its values in the order of their rows."""
    rows = np.concatenate([block.places() for block in blocks])
    order = np.argsort(rows)
    batches = [Outputs((replace(block, rows=None),), block.size) for block in blocks]
    (joined,) = concatenate(batches).take(order)
    has_all = len(rows) == size
    return replace(joined, rows=None if has_all else rows[order], leaves=blocks[0].leaves)


# --- putting values together from their parts


def spread(block: Block, size: int, width: int, shape: str) -> Block:
    """Returns sequences from a block of all their parts, which all have one shape.

    Args:
        block: size · width values; each `width` consecutive ones are the parts of one sequence.
        size: the number of sequences.
        width: the number of parts of each.
        shape: of a sequence.
    """

    def by_position(values: Array) -> Array:
        # Shape (width, size). One copy now: every later pass over a column then reads contiguous
        # memory.
        return np.ascontiguousarray(values.reshape(size, width).T)

    # For each column of the block, the `width` columns that it becomes.
    tables: list[list[Column]] = []
    for column in block.columns:
        if isinstance(column, Labels):
            codes_by_position = by_position(column.codes)
            tables.append([Labels(codes, column.labels) for codes in codes_by_position])
        elif column.widths is None:
            tables.append([Numbers(values) for values in by_position(column.values)])
        else:
            both = zip(by_position(column.values), by_position(column.widths), strict=True)
            tables.append([Numbers(values, widths) for values, widths in both])
    columns = tuple(table[position] for position in range(width) for table in tables)
    return Block(
        shape=shape,
        rows=None,
        columns=columns,
        size=size,
        leaves=max(1, width * block.leaves),
    )


def product(
    positions: Iterable[list[Block]], text: Callable[[list[str]], str], place: Place
) -> list[Block]:
    """Returns values from their parts: one block per combination of shapes that occurs.

    Args:
        positions: for every part of the values, the blocks of that part. They are consumed one by
            one, so that values with too many leaves are noticed before all of them are read.
        text: the shape of a value from the shapes of its parts.
        place: of the values.
    """
    size = len(place.outputs)
    parts = list(_check_leaves_of_parts(positions, place))
    if all(len(blocks) == 1 for blocks in parts):
        only_blocks = [blocks[0] for blocks in parts]
        return [_combine(only_blocks, [None] * len(parts), text, rows=None, size=size)]
    located = [_locate(blocks, size) for blocks in parts]
    combined = []
    for rows in _rows_of_combinations(located, size):
        chosen = []
        rows_in_blocks = []
        for part in located:
            if part.block_of_row is None or part.row_in_block is None:
                chosen.append(part.blocks[0])
                rows_in_blocks.append(rows)
            else:
                chosen.append(part.blocks[part.block_of_row[rows[0]]])
                rows_in_blocks.append(part.row_in_block[rows])
        combined.append(_combine(chosen, rows_in_blocks, text, rows=rows, size=len(rows)))
    return combined


def _check_leaves_of_parts(positions: Iterable[list[Block]], place: Place) -> Iterator[list[Block]]:
    """Passes the blocks of each part on, and raises as soon as a value has too many leaves."""
    # Leaves so far: of parts that have one shape in all values, and of the others value by value.
    n_common = 0
    n_varying = np.zeros(len(place.outputs), dtype=np.int64)
    largest_row = 0
    for blocks in positions:
        if len(blocks) == 1:
            n_common += blocks[0].leaves
        else:
            for block in blocks:
                n_varying[block.places()] += block.leaves
            largest_row = int(np.argmax(n_varying))
        place.check_leaves(n_common + int(n_varying[largest_row]), largest_row)
        yield blocks


@dataclass(frozen=True, slots=True)
class _LocatedPart:
    """One part of all values, and where that part of each value lies.

    Attributes:
        blocks: of the part.
        block_of_row: shape (n,), the number of the block; None where one block holds all.
        row_in_block: shape (n,), the row in that block; None where one block holds all.
    """

    blocks: list[Block]
    block_of_row: Integers | None = None
    row_in_block: Integers | None = None


def _locate(blocks: list[Block], size: int) -> _LocatedPart:
    if len(blocks) == 1:
        return _LocatedPart(blocks)
    block_of_row = np.empty(size, dtype=np.int64)
    row_in_block = np.empty(size, dtype=np.int64)
    for number, block in enumerate(blocks):
        block_of_row[block.places()] = number
        row_in_block[block.places()] = np.arange(block.size)
    return _LocatedPart(blocks, block_of_row, row_in_block)


def _rows_of_combinations(parts: Sequence[_LocatedPart], size: int) -> list[Integers]:
    """Returns the rows of every combination of blocks that occurs."""
    codes = np.zeros(size, dtype=np.int64)
    bound = 1
    for part in parts:
        if part.block_of_row is None:
            continue
        n_blocks = len(part.blocks)
        if bound > MAX_CODE // n_blocks:
            # Renumber the combinations that occur; there are at most as many as rows.
            codes = np.unique(codes, return_inverse=True)[1]
            bound = size
        codes = codes * n_blocks + part.block_of_row
        bound *= n_blocks
    return split(codes, bound)


def _combine(
    parts: Sequence[Block],
    rows_in_parts: Sequence[Integers | None],
    text: Callable[[list[str]], str],
    *,
    rows: Integers | None,
    size: int,
) -> Block:
    """Returns the values of one combination of blocks.

    Args:
        parts: the block of each part.
        rows_in_parts: the rows of each block that belong to the values; None for all.
        text: the shape of a value from the shapes of its parts.
        rows: positions of the values; None for all.
        size: the number of values.
    """
    columns: list[Column] = []
    for block, wanted in zip(parts, rows_in_parts, strict=True):
        if wanted is None:
            columns += block.columns
        else:
            columns += [column.take(wanted) for column in block.columns]
    return Block(
        shape=text([block.shape for block in parts]),
        rows=rows,
        columns=tuple(columns),
        size=size,
        leaves=max(1, sum(block.leaves for block in parts)),
    )
