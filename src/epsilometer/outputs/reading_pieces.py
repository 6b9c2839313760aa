"""Building blocks: how values at one place of the tree are split by shape and put together again.

Reading goes down the tree for all outputs at once. At every place it has a list of values and returns one block per
shape, whose rows are positions among these values. So Python code runs once per shape, not per value.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Booleans, Integers
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs, concatenate

# A leaf becomes a column. More than this is a data set or a model, from which no event can be learned.
MAX_LEAVES = 10_000
# Deeper trees are mistakes; a list that contains itself ends here.
MAX_DEPTH = 50
# Group numbers of several positions are packed into one int64 as long as they fit.
MAX_CODE = 2**62


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree values are read, for error texts and bounds.

    Attributes:
        outputs: shape (k,), the positions of the outputs that the k values belong to.
        depth: how many containers are around them.
    """

    outputs: Integers
    depth: int = 0

    def pick(self, rows: Integers) -> "Place":
        """The place of some of the values."""
        return Place(self.outputs[rows], self.depth)

    def inside(self) -> "Place":
        """The place of the parts of the values."""
        if self.depth >= MAX_DEPTH:
            deep = f"nested deeper than {MAX_DEPTH} levels (or contains itself)"
            raise MechanismError(f"output {self.outputs[0]} is {deep}; return fewer levels")
        return Place(self.outputs, self.depth + 1)

    def check_leaves(self, leaves: int, row: int = 0) -> None:
        """Raise if the value at `row` has too many leaves."""
        if leaves > MAX_LEAVES:
            many = f"at least {leaves} values, more than the {MAX_LEAVES} allowed"
            raise MechanismError(
                f"output {self.outputs[row]} holds {many}; return a summary or fewer values"
            )


def leaf(shape: str, *columns: Column, size: int | None = None) -> list[Block]:
    """Values without parts, all of one shape; their number is given where they need no column."""
    return [Block(shape, None, columns, len(columns[0]) if size is None else size)]


Reader = Callable[[Any, Sequence[Any], "Place"], list[Block]]


def by_group(
    values: Sequence[Any], key: Callable[[Any], Hashable], place: Place, read: Reader
) -> list[Block]:
    """Read values group by group.

    Args:
        values: at least one.
        key: what the values of a group have in common; called twice per value.
        place: of the values.
        read: gets the key, the values and the place of one group.
    """
    groups = list(set(map(key, values)))
    if len(groups) == 1:
        return read(groups[0], values, place)
    numbers = {group: number for number, group in enumerate(groups)}
    codes = np.fromiter(map(numbers.__getitem__, map(key, values)), np.int64, len(values))
    blocks: list[Block] = []
    for rows in split(codes, len(groups)):
        chosen = [values[row] for row in rows.tolist()]
        blocks += [
            block.within(rows) for block in read(groups[codes[rows[0]]], chosen, place.pick(rows))
        ]
    return merge(blocks, len(values))


def split(codes: Integers, bound: int) -> list[Integers]:
    """The rows of every code that occurs, in the order of first appearance.

    Args:
        codes: shape (n,), n > 0, each in 0..bound-1.
        bound: small bounds are sorted by radix, several times as fast.
    """
    narrow = codes.astype(np.uint16) if bound <= 2**16 else codes
    order = np.argsort(narrow, kind="stable")
    return sorted(
        np.split(order, np.flatnonzero(np.diff(narrow[order])) + 1), key=lambda rows: int(rows[0])
    )


def by_case(
    values: Array, cases: Sequence[tuple[Booleans, Callable[[Array], list[Block]]]]
) -> list[Block]:
    """Read an array whose values fall into cases.

    Args:
        values: shape (n,), n > 0.
        cases: which values belong to a case, shape (n,), and what reads them; together all values, each once.
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
    """One block per shape, in the order of first appearance: 1.5 and np.float32(1.5) are read separately."""
    same: dict[str, list[Block]] = {}
    for block in blocks:
        same.setdefault(block.shape, []).append(block)
    merged = [parts[0] if len(parts) == 1 else _join(parts, size) for parts in same.values()]
    return sorted(merged, key=lambda block: 0 if block.rows is None else int(block.rows[0]))


def _join(parts: list[Block], size: int) -> Block:
    rows = np.concatenate([part.places() for part in parts])
    order = np.argsort(rows)
    (block,) = concatenate(
        [Outputs((replace(part, rows=None),), part.size) for part in parts]
    ).take(order)
    return replace(block, rows=None if len(rows) == size else rows[order], leaves=parts[0].leaves)


def spread(block: Block, size: int, width: int, shape: str) -> Block:
    """A block of size * width values as `size` values, each with `width` consecutive ones as its parts."""

    def turned(values: Array) -> Array:
        # One copy now: every later pass over a column then reads contiguous memory.
        return np.ascontiguousarray(values.reshape(size, width).T)

    tables: list[list[Column]] = []
    for column in block.columns:
        if isinstance(column, Labels):
            tables.append([Labels(codes, column.labels) for codes in turned(column.codes)])
        else:
            widths = [None] * width if column.widths is None else turned(column.widths)
            tables.append(
                [Numbers(*each) for each in zip(turned(column.values), widths, strict=True)]
            )
    columns = tuple(table[position] for position in range(width) for table in tables)
    return Block(shape, None, columns, size, max(1, width * block.leaves))


def product(
    positions: Iterable[list[Block]], text: Callable[[list[str]], str], place: Place
) -> list[Block]:
    """Values from their parts: one block per combination of shapes that occurs.

    Args:
        positions: for every part of the values, the blocks of that part. Consumed one by one, so that values with
            too many leaves are noticed before all of them are read.
        text: the shape of a value from the shapes of its parts.
        place: of the values.
    """
    size, parts = len(place.outputs), list(_counted(positions, place))
    if all(len(blocks) == 1 for blocks in parts):
        return [_combine([blocks[0] for blocks in parts], [None] * len(parts), text, None, size)]
    located, combined = [_locate(blocks, size) for blocks in parts], []
    for rows in _combinations(
        [(len(blocks), which) for blocks, (which, _) in zip(parts, located, strict=True)], size
    ):
        numbers = [0 if which is None else which[rows[0]] for which, _ in located]
        chosen = [blocks[number] for blocks, number in zip(parts, numbers, strict=True)]
        inner = [rows if inside is None else inside[rows] for _, inside in located]
        combined.append(_combine(chosen, inner, text, rows, len(rows)))
    return combined


def _counted(positions: Iterable[list[Block]], place: Place) -> Iterator[list[Block]]:
    certain, varying, worst = 0, np.zeros(len(place.outputs), dtype=np.int64), 0
    for blocks in positions:
        if len(blocks) == 1:
            certain += blocks[0].leaves
        else:
            for block in blocks:
                varying[block.places()] += block.leaves
            worst = int(np.argmax(varying))
        place.check_leaves(certain + int(varying[worst]), worst)
        yield blocks


def _locate(blocks: list[Block], size: int) -> tuple[Integers | None, Integers | None]:
    """For every row its block and its place in that block; None where one block holds all."""
    if len(blocks) == 1:
        return None, None
    which, inside = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for number, block in enumerate(blocks):
        which[block.places()] = number
        inside[block.places()] = np.arange(block.size)
    return which, inside


def _combinations(parts: list[tuple[int, Integers | None]], size: int) -> list[Integers]:
    """The rows of every combination of blocks; per part, how many blocks there are and which one holds each row."""
    codes, bound = np.zeros(size, dtype=np.int64), 1
    for count, which in parts:
        if which is None:
            continue
        if bound > MAX_CODE // count:
            codes, bound = np.unique(codes, return_inverse=True)[1], size
        codes, bound = codes * count + which, bound * count
    return split(codes, bound)


def _combine(
    chosen: list[Block],
    inner: Sequence[Integers | None],
    text: Callable[[list[str]], str],
    rows: Any,
    size: int,
) -> Block:
    columns: list[Column] = []
    for block, wanted in zip(chosen, inner, strict=True):
        columns += (
            block.columns if wanted is None else [column.take(wanted) for column in block.columns]
        )
    shape = text([block.shape for block in chosen])
    return Block(shape, rows, tuple(columns), size, max(1, sum(block.leaves for block in chosen)))
