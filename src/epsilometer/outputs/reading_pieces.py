"""Building blocks: how values at one place of the tree are split by shape and put together again.

Reading goes down the tree for all outputs at once. At every place it has a list of values and returns *pieces*:
one block per shape, with the number of leaves in that shape. So Python code runs once per shape, not per value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Integers
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs, concatenate

# A leaf becomes a column. More than this is a data set or a model, from which no event can be learned.
MAX_LEAVES = 10_000
# Deeper trees are mistakes; a list that contains itself ends here.
MAX_DEPTH = 50
# Group numbers of several positions are packed into one int64 as long as they fit.
MAX_CODE = 2**62


@dataclass(frozen=True, slots=True)
class Piece:
    """All values of one shape at one place.

    Attributes:
        block: its rows are positions among the values at that place.
        leaves: how many values without parts one value holds (an empty list counts as one).
    """

    block: Block
    leaves: int

    @property
    def shape(self) -> str:
        """The shape of all values of the piece."""
        return self.block.shape

    def rows(self) -> Integers:
        """The positions of the values, shape (k,), increasing."""
        return np.arange(self.block.size) if self.block.rows is None else self.block.rows

    def within(self, rows: Integers) -> Piece:
        """The same piece for a longer list, whose `rows` held its values."""
        block = self.block
        place = rows if block.rows is None else rows[block.rows]
        return Piece(Block(block.shape, place, block.columns, block.size), self.leaves)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree values are read, for error texts and bounds.

    Attributes:
        outputs: shape (k,), the positions of the outputs that the k values belong to.
        depth: how many containers are around them.
    """

    outputs: Integers
    depth: int = 0

    def pick(self, rows: Integers) -> Place:
        """The place of some of the values."""
        return Place(self.outputs[rows], self.depth)

    def inside(self) -> Place:
        """The place of the parts of the values."""
        if self.depth >= MAX_DEPTH:
            raise MechanismError(
                f"output {self.outputs[0]} is nested deeper than {MAX_DEPTH} levels (or contains itself); "
                "return fewer levels"
            )
        return Place(self.outputs, self.depth + 1)

    def check_leaves(self, leaves: int, row: int = 0) -> None:
        """Raise if the value at `row` has too many leaves."""
        if leaves > MAX_LEAVES:
            raise MechanismError(
                f"output {self.outputs[row]} holds at least {leaves} values, more than the {MAX_LEAVES} allowed; "
                "return a summary or fewer values"
            )


def whole(shape: str, columns: tuple[Column, ...], size: int, leaves: int = 1) -> Piece:
    """A piece that holds all `size` values of its place."""
    return Piece(Block(shape, None, columns, size), leaves)


def by_group(
    values: Sequence[Any],
    key: Callable[[Any], Hashable],
    place: Place,
    read: Callable[[Any, Sequence[Any], Place], list[Piece]],
) -> list[Piece]:
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
    pieces: list[Piece] = []
    for rows in split(codes, len(groups)):
        chosen = [values[row] for row in rows.tolist()]
        pieces += [piece.within(rows) for piece in read(groups[codes[rows[0]]], chosen, place.pick(rows))]
    return merge(pieces, len(values))


def split(codes: Integers, bound: int) -> list[Integers]:
    """The rows of every code that occurs, in the order of first appearance.

    Args:
        codes: shape (n,), n > 0, each in 0..bound-1.
        bound: small bounds are sorted by radix, several times as fast.
    """
    narrow = codes.astype(np.uint16) if bound <= 2**16 else codes
    order = np.argsort(narrow, kind="stable")
    ends = np.flatnonzero(np.diff(narrow[order])) + 1
    return sorted(np.split(order, ends), key=lambda rows: int(rows[0]))


def by_case(
    values: NDArray[Any], cases: Sequence[tuple[Booleans, Callable[[NDArray[Any]], list[Piece]]]]
) -> list[Piece]:
    """Read an array whose values fall into cases.

    Args:
        values: shape (n,), n > 0.
        cases: which values belong to a case, shape (n,), and what reads them; together all values, each once.
    """
    pieces: list[Piece] = []
    for belongs, read in cases:
        rows = np.flatnonzero(belongs)
        if len(rows) == len(values):
            return read(values)
        if len(rows):
            pieces += [piece.within(rows) for piece in read(values[rows])]
    return merge(pieces, len(values))


def merge(pieces: list[Piece], size: int) -> list[Piece]:
    """One piece per shape, in the order of first appearance: 1.5 and np.float32(1.5) are read separately."""
    same: dict[str, list[Piece]] = {}
    for piece in pieces:
        same.setdefault(piece.shape, []).append(piece)
    merged = [parts[0] if len(parts) == 1 else _join(parts, size) for parts in same.values()]
    return sorted(merged, key=lambda piece: 0 if piece.block.rows is None else int(piece.block.rows[0]))


def _join(pieces: list[Piece], size: int) -> Piece:
    rows = np.concatenate([piece.rows() for piece in pieces])
    order = np.argsort(rows)
    parts = [Block(piece.shape, None, piece.block.columns, piece.block.size) for piece in pieces]
    (block,) = concatenate([Outputs((part,), part.size) for part in parts]).take(order)
    place = None if len(rows) == size else rows[order]
    return Piece(Block(block.shape, place, block.columns, block.size), pieces[0].leaves)


def spread(piece: Piece, size: int, width: int, shape: str) -> Piece:
    """A piece of size * width values as `size` values, each with `width` consecutive ones as its parts."""
    tables = [_transposed(column, size, width) for column in piece.block.columns]
    columns = tuple(table[position] for position in range(width) for table in tables)
    return whole(shape, columns, size, max(1, width * piece.leaves))


def _transposed(column: Column, size: int, width: int) -> list[Numbers] | list[Labels]:
    if isinstance(column, Numbers):
        values = _turned(column.values, size, width)
        widths = [None] * width if column.widths is None else _turned(column.widths, size, width)
        return [Numbers(each, sizes) for each, sizes in zip(values, widths, strict=True)]
    return [Labels(codes, column.labels) for codes in _turned(column.codes, size, width)]


def _turned(values: NDArray[Any], size: int, width: int) -> NDArray[Any]:
    # One copy now: every later pass over a column then reads contiguous memory.
    return np.ascontiguousarray(values.reshape(size, width).T)


def product(positions: Iterable[list[Piece]], text: Callable[[list[str]], str], place: Place) -> list[Piece]:
    """Values from their parts: one piece per combination of shapes that occurs.

    Args:
        positions: for every part of the values, the pieces of that part. Consumed one by one, so that values with
            too many leaves are noticed before all of them are read.
        text: the shape of a value from the shapes of its parts.
        place: of the values.
    """
    parts = list(_counted(positions, place))
    if all(len(pieces) == 1 for pieces in parts):
        return [_combine([pieces[0] for pieces in parts], [None] * len(parts), text, None, len(place.outputs))]
    located = [_locate(pieces, len(place.outputs)) for pieces in parts]
    combined = []
    for rows in _combinations(parts, located, len(place.outputs)):
        numbers = [0 if which is None else which[rows[0]] for which, _ in located]
        chosen = [pieces[number] for pieces, number in zip(parts, numbers, strict=True)]
        inner = [rows if inside is None else inside[rows] for _, inside in located]
        combined.append(_combine(chosen, inner, text, rows, len(rows)))
    return combined


def _counted(positions: Iterable[list[Piece]], place: Place) -> Iterator[list[Piece]]:
    certain, varying, worst = 0, np.zeros(len(place.outputs), dtype=np.int64), 0
    for pieces in positions:
        if len(pieces) == 1:
            certain += pieces[0].leaves
        else:
            for piece in pieces:
                varying[piece.rows()] += piece.leaves
            worst = int(np.argmax(varying))
        place.check_leaves(certain + int(varying[worst]), worst)
        yield pieces


def _locate(pieces: list[Piece], size: int) -> tuple[Integers | None, Integers | None]:
    """For every row its piece and its place in that piece; None where one piece holds all."""
    if len(pieces) == 1:
        return None, None
    which, inside = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for number, piece in enumerate(pieces):
        which[piece.rows()] = number
        inside[piece.rows()] = np.arange(piece.block.size)
    return which, inside


def _combinations(
    parts: list[list[Piece]], located: list[tuple[Integers | None, Integers | None]], size: int
) -> list[Integers]:
    codes, bound = np.zeros(size, dtype=np.int64), 1
    for pieces, (which, _) in zip(parts, located, strict=True):
        if which is None:
            continue
        if bound > MAX_CODE // len(pieces):
            codes = np.unique(codes, return_inverse=True)[1]
            bound = size
        codes, bound = codes * len(pieces) + which, bound * len(pieces)
    return split(codes, bound)


def _combine(
    chosen: list[Piece],
    inner: Sequence[Integers | None],
    text: Callable[[list[str]], str],
    rows: Integers | None,
    size: int,
) -> Piece:
    columns = tuple(
        column if wanted is None else column.take(wanted)
        for piece, wanted in zip(chosen, inner, strict=True)
        for column in piece.block.columns
    )
    shape = text([piece.shape for piece in chosen])
    return Piece(Block(shape, rows, columns, size), max(1, sum(piece.leaves for piece in chosen)))
