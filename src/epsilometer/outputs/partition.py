"""All possible outputs cut into finitely many cells, and events made of such cells.

Outputs are split first by shape (`float`, `tuple(bool, float)`, ...); then the values that repeat, column by column,
form the *signature* of an output; what is left varies continuously and is cut on a line: the one continuous column, or
a score of several. Discrete, continuous and mixed distributions are the same thing here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Integers
from epsilometer.errors import InputError
from epsilometer.outputs.columns import FEATURED, Block, Numbers, Outputs
from epsilometer.outputs.lines import Atoms, Line, atoms_from_dict, atoms_to_dict
from epsilometer.outputs.scores import Score, score_from_dict

# Multiplier of the polynomial hash of signatures (an odd 64-bit constant; any would do). Two signatures with one
# hash would share a cell: harmless, because an event stays a fixed set of outputs.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# With at most this many combinations of atoms, a signature's group is looked up in a table, which stays in the cache.
_MOST_COMBINATIONS = 1 << 16
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Group:
    """The outputs of one shape with one signature.

    Attributes:
        signature: the code of its atom per column, −1 where the value varies.
        line: cuts what varies; None when nothing does, or too little was seen to cut it.
        column: which column the line cuts, when there is no score.
        score: reduces several varying columns to the number that the line cuts.
    """

    signature: tuple[int, ...]
    line: Line | None = None
    column: int = 0
    score: Score | None = None

    @property
    def n_cells(self) -> int:
        """One, or the cells of the line."""
        return len(self.line.edges) + 2 if self.line else 1

    def numbers(self, block: Block, rows: Integers | slice = _ALL) -> NDArray[np.generic]:
        """What the line cuts, for the given rows of the block."""
        if self.score:
            return self.score.evaluate([column.take(rows) for column in block.columns])
        column = block.columns[self.column]
        assert isinstance(column, Numbers)
        return column.values[rows]


@dataclass(frozen=True, slots=True)
class BlockPartition:
    """The cells of one shape: those of its groups one after the other, and a last one for everything else."""

    shape: str
    atoms: tuple[Atoms | None, ...]
    groups: tuple[Group, ...]
    n_cells: int = field(init=False, repr=False, compare=False)
    # Whether every output of this shape lies on one line: nothing repeats, one group.
    is_single_line: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_single = len(self.groups) == 1 and self.groups[0].line is not None and not any(self.atoms)
        object.__setattr__(self, "is_single_line", is_single)
        object.__setattr__(self, "n_cells", sum(group.n_cells for group in self.groups) + 1)

    def index(self, block: Block) -> Integers:
        """The cell of each row, shape (block.size,)."""
        if self.is_single_line:
            group = self.groups[0]
            assert group.line is not None
            return group.line.index(group.numbers(block))
        which = self._group_of(block)
        # One more entry: group −1 (no known signature) takes the last cell.
        cells = np.append(np.cumsum([0] + [group.n_cells for group in self.groups])[:-1], self.n_cells - 1)[which]
        for number, group in enumerate(self.groups):
            if group.line:
                rows = np.flatnonzero(which == number)
                cells[rows] += group.line.index(group.numbers(block, rows))
        return cells

    def _group_of(self, block: Block) -> Integers:
        """The group of each row, −1 for none."""
        if not self.groups:
            return np.full(block.size, -1, dtype=np.int64)
        codes, signatures = self.codes(block), np.array([group.signature for group in self.groups], dtype=np.int64).T
        sizes = [len(atoms) + 1 if atoms else 1 for atoms in self.atoms] or [2]
        if math.prod(sizes) <= _MOST_COMBINATIONS:
            table = np.full(math.prod(sizes), -1, dtype=np.int64)
            table[_combined(signatures, sizes)] = np.arange(len(self.groups))
            return table[_combined(codes, sizes)]
        hashes, known = hash_signatures(codes), hash_signatures(signatures)
        order = np.argsort(known, kind="stable")
        place = np.minimum(np.searchsorted(known[order], hashes), len(known) - 1)
        return np.where(known[order][place] == hashes, order[place], -1)

    def codes(self, block: Block) -> NDArray[np.int32]:
        """Shape (columns, rows): the atom of each value, −1 for none. One row of zeros for a shape without columns."""
        if not block.columns:
            return np.zeros((1, block.size), dtype=np.int32)
        # Half as wide as numbers usually are: with ten thousand columns they are most of what is in memory.
        codes = np.full((len(block.columns), block.size), -1, dtype=np.int32)
        for row, atoms, column in zip(codes, self.atoms, block.columns, strict=True):
            if atoms:
                row[:] = atoms.codes(column)
        return codes


def _combined(codes: NDArray[np.signedinteger], sizes: Sequence[int]) -> Integers:
    """One number per signature, all of them different; `codes` has shape (columns, signatures), −1 is a code."""
    total = np.zeros(codes.shape[1], dtype=np.int64)
    for row, size in zip(codes, sizes, strict=True):
        total = total * size + (row + 1 if size > 1 else 0)
    return total


def hash_signatures(codes: NDArray[np.signedinteger]) -> NDArray[np.uint64]:
    """One number per signature; `codes` has shape (columns, signatures)."""
    total = np.zeros(codes.shape[1], dtype=np.uint64)
    for row in codes:
        total = total * _MULTIPLIER + (row + 2).astype(np.uint64)
    return total


@dataclass(frozen=True, slots=True)
class Partition:
    """The cells of all outputs: those of each known shape in turn, and a last one for unknown shapes."""

    blocks: tuple[BlockPartition, ...]

    @property
    def n_cells(self) -> int:
        """Those of all known shapes, and one for other shapes."""
        return sum(block.n_cells for block in self.blocks) + 1

    def index(self, outputs: Outputs) -> Integers:
        """The cell of each output, shape (n,)."""
        cells = np.full(len(outputs), self.n_cells - 1, dtype=np.int64)
        for first, partition, block in self.matches(outputs):
            inside = first + partition.index(block)
            if block.rows is None:
                return inside
            cells[block.rows] = inside
        return cells

    def count(self, outputs: Outputs) -> Integers:
        """How many outputs fall into each cell, shape (n_cells,)."""
        counts = np.zeros(self.n_cells, dtype=np.int64)
        for first, partition, block in self.matches(outputs):
            line, n_cells = partition.groups[0].line if partition.is_single_line else None, partition.n_cells
            cells = line.index(partition.groups[0].numbers(block)) if line else partition.index(block)
            counts[first : first + n_cells] = np.bincount(cells, minlength=n_cells)
        counts[-1] = outputs.size - counts.sum()
        return counts

    def matches(self, outputs: Outputs) -> list[tuple[int, BlockPartition, Block]]:
        """The known shapes among the outputs: their first cell, their part of the partition, and the outputs."""
        first, found, present = 0, [], {block.shape: block for block in outputs.blocks}
        for partition in self.blocks:
            block = present.get(partition.shape)
            # A stored event may have been tampered with, so that its shape has other columns.
            if block is not None and len(block.columns) == len(partition.atoms):
                found.append((first, partition, block))
            first += partition.n_cells
        if not found and outputs.size and is_featured(self.blocks) and not is_featured(outputs.blocks):
            how = "draw them from the mechanism that has them, as in event.contains(mechanism.sample(dataset, n, rng))"
            raise InputError(f"the event also looks at features of the outputs, which these outputs lack; {how}")
        return found


def split(cells: Array, parts: Sequence[Group | BlockPartition]) -> list[Array]:
    """Something about each cell, shape (cells,), part by part, and that of the last cell, which is in none of them."""
    return np.split(cells, np.cumsum([part.n_cells for part in parts]))


def is_featured(blocks: Iterable[Block | BlockPartition]) -> bool:
    """Whether there are features beside the outputs."""
    return any(f"{FEATURED}{{" in block.shape for block in blocks)


def partition_to_dict(partition: Partition) -> list[dict[str, Any]]:
    """Plain data; `partition_from_dict` is the inverse."""
    stored = []
    for block in partition.blocks:
        groups = []
        for group in block.groups:
            data: dict[str, Any] = {"signature": list(group.signature)}
            if group.line:
                data |= {"edges": group.line.to_list(), "column": group.column}
            groups.append(data | ({"score": group.score.to_dict()} if group.score else {}))
        atoms = [atoms_to_dict(each) if each else None for each in block.atoms]
        stored.append({"shape": block.shape, "atoms": atoms, "groups": groups})
    return stored


def partition_from_dict(data: list[dict[str, Any]]) -> Partition:
    """The inverse of `partition_to_dict`."""
    blocks = []
    for block in data:
        atoms = tuple(atoms_from_dict(each) if each else None for each in block["atoms"])
        groups = tuple(_group_from_dict(group, atoms) for group in block["groups"])
        blocks.append(BlockPartition(str(block["shape"]), atoms, groups))
    return Partition(tuple(blocks))


def _group_from_dict(data: dict[str, Any], all_atoms: tuple[Atoms | None, ...]) -> Group:
    """A stored group must fit its columns: damaged or forged data is refused here, not when it is used."""
    line = Line.from_list(data["edges"]) if "edges" in data else None
    score = score_from_dict(data["score"]) if "score" in data else None
    group = Group(tuple(int(code) for code in data["signature"]), line, int(data.get("column", 0)), score)
    columns = len(all_atoms)
    if len(group.signature) != max(columns, 1) or not 0 <= group.column < max(columns, 1):
        raise ValueError(f"a signature {group.signature!r:.80} does not fit {columns} columns")
    if not columns and group.signature != (0,):
        raise ValueError(f"a signature {group.signature!r:.80} for outputs without values")
    for code, atoms in zip(group.signature, all_atoms, strict=False):
        if not -1 <= code < (len(atoms) if atoms else 0):
            raise ValueError(f"a signature {group.signature!r:.80} names an atom that does not exist")
    if group.score and any(not 0 <= column < columns for column in group.score.columns):
        raise ValueError("a score uses a column that does not exist")
    return group
