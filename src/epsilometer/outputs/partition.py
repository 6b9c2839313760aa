"""All possible outputs cut into finitely many cells, from which events are made.

Outputs are split first by shape (`float`, `tuple(bool, float)`, ...). Then the values that repeat
(the atoms), column by column, form the *signature* of an output. What is left varies continuously
and is cut on a line: the one continuous column, or a score of several. Discrete, continuous and
mixed distributions are the same thing here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Integers
from epsilometer.errors import InputError
from epsilometer.outputs.atoms import (
    NO_ATOM,
    Atoms,
    LabelAtoms,
    atoms_from_dict,
    atoms_to_dict,
)
from epsilometer.outputs.columns import Block, Numbers, Outputs
from epsilometer.outputs.lines import Line
from epsilometer.outputs.scores import Score, score_from_dict
from epsilometer.outputs.shapes import FEATURED, READ
from epsilometer.outputs.text_reading import (
    NUMBER_KINDS,
    TEXT_KINDS,
    TextReading,
    reading_from_dict,
)

# Multiplier of the polynomial hash of signatures (an odd 64-bit constant; any would do). Two
# signatures with one hash would share a cell: harmless, as an event stays a fixed set of outputs.
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# With at most this many combinations of atoms, a signature's group is looked up in a table, which
# stays in the cache.
_MAX_COMBINATIONS = 1 << 16
# The group of an output whose signature is unknown.
_NO_GROUP = -1
_ALL_ROWS = slice(None)


@dataclass(frozen=True, slots=True)
class Group:
    """The outputs of one shape with one signature.

    Attributes:
        signature: the code of the atom in each column, −1 where the value varies.
        line: cuts what varies; None when nothing does, or too few draws were made to cut it.
        column: which column the line cuts, when there is no score.
        score: reduces several varying columns to the number that the line cuts.
    """

    signature: tuple[int, ...]
    line: Line | None = None
    column: int = 0
    score: Score | None = None

    @property
    def n_cells(self) -> int:
        """The number of cells: those of the line, or a single one."""
        return self.line.n_cells if self.line else 1

    def numbers(self, block: Block, rows: Integers | slice = _ALL_ROWS) -> NDArray[np.generic]:
        """Returns the numbers that the line cuts, for the given rows of the block."""
        if self.score:
            return self.score.evaluate([column.take(rows) for column in block.columns])
        column = block.columns[self.column]
        assert isinstance(column, Numbers)
        return column.values[rows]


@dataclass(frozen=True, slots=True)
class BlockPartition:
    """The cells of one shape: those of its groups in turn, and a last one for everything else.

    Attributes:
        shape: of the outputs.
        atoms: per column, the values that repeat; None for a column without any.
        groups: the known signatures.
        n_cells: the number of cells.
        is_single_line: whether every output of this shape lies on one line: nothing repeats, and
            there is one group.
    """

    shape: str
    atoms: tuple[Atoms | None, ...]
    groups: tuple[Group, ...]
    n_cells: int = field(init=False, repr=False, compare=False)
    is_single_line: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        has_one_line = len(self.groups) == 1 and self.groups[0].line is not None
        n_cells = sum(group.n_cells for group in self.groups) + 1
        object.__setattr__(self, "is_single_line", has_one_line and not any(self.atoms))
        object.__setattr__(self, "n_cells", n_cells)

    def index(self, block: Block) -> Integers:
        """Returns the cell of each row, shape (block.size,)."""
        if self.is_single_line:
            group = self.groups[0]
            assert group.line is not None
            return group.line.index(group.numbers(block))
        group_of_row = self._group_of_rows(block)
        first_cells = np.cumsum([0] + [group.n_cells for group in self.groups])[:-1]
        # The last entry, which the number −1 of unknown signatures picks, is the last cell.
        first_cells = np.append(first_cells, self.n_cells - 1)
        cells = first_cells[group_of_row]
        for number, group in enumerate(self.groups):
            if group.line:
                rows = np.flatnonzero(group_of_row == number)
                cells[rows] += group.line.index(group.numbers(block, rows))
        return cells

    def _group_of_rows(self, block: Block) -> Integers:
        """Returns the number of each row's group, −1 for none; shape (block.size,)."""
        if not self.groups:
            return np.full(block.size, _NO_GROUP, dtype=np.int64)
        codes = self.codes(block)
        signatures = np.array([group.signature for group in self.groups], dtype=np.int64).T
        # Codes per column, including that of values which are no atoms.
        n_codes = [len(atoms) + 1 if atoms else 1 for atoms in self.atoms] or [2]
        n_combinations = math.prod(n_codes)
        if n_combinations <= _MAX_COMBINATIONS:
            table = np.full(n_combinations, _NO_GROUP, dtype=np.int64)
            table[_number_signatures(signatures, n_codes)] = np.arange(len(self.groups))
            return table[_number_signatures(codes, n_codes)]
        hashes = hash_signatures(codes)
        known_hashes = hash_signatures(signatures)
        order = np.argsort(known_hashes, kind="stable")
        sorted_hashes = known_hashes[order]
        place = np.minimum(np.searchsorted(sorted_hashes, hashes), len(sorted_hashes) - 1)
        return np.where(sorted_hashes[place] == hashes, order[place], _NO_GROUP)

    def codes(self, block: Block) -> NDArray[np.int32]:
        """Returns the atom of each value, −1 for none; shape (columns, rows).

        A shape without columns gets one row of zeros.
        """
        if not block.columns:
            return np.zeros((1, block.size), dtype=np.int32)
        # Half as wide as integers usually are: with ten thousand columns, the codes take most of
        # the memory.
        codes = np.full((len(block.columns), block.size), NO_ATOM, dtype=np.int32)
        for row, atoms, column in zip(codes, self.atoms, block.columns, strict=True):
            if atoms:
                row[:] = atoms.codes(column)
        return codes


def _number_signatures(codes: NDArray[np.signedinteger], n_codes: Sequence[int]) -> Integers:
    """Returns a number per signature, different for different ones, shape (signatures,).

    Args:
        codes: shape (columns, signatures), −1 is a code.
        n_codes: the number of codes of each column.
    """
    total = np.zeros(codes.shape[1], dtype=np.int64)
    for row, n in zip(codes, n_codes, strict=True):
        total = total * n + (row + 1 if n > 1 else 0)
    return total


def hash_signatures(codes: NDArray[np.signedinteger]) -> NDArray[np.uint64]:
    """Returns a hash per signature, shape (signatures,); `codes` is (columns, signatures)."""
    total = np.zeros(codes.shape[1], dtype=np.uint64)
    for row in codes:
        total = total * _HASH_MULTIPLIER + (row + 2).astype(np.uint64)
    return total


@dataclass(frozen=True, slots=True)
class Partition:
    """The cells of all outputs: those of each known shape in turn, and one for unknown shapes.

    Attributes:
        blocks: the cells of each known shape.
        reading: how outputs are read before they are looked up: texts become columns, identifiers
            are left out. None if they are looked up as they are.
    """

    blocks: tuple[BlockPartition, ...]
    reading: TextReading | None = None

    @property
    def n_cells(self) -> int:
        """The number of cells: those of all known shapes, and one for other shapes."""
        return sum(block.n_cells for block in self.blocks) + 1

    def index(self, outputs: Outputs) -> Integers:
        """Returns the cell of each output, shape (n,)."""
        cells = np.full(len(outputs), self.n_cells - 1, dtype=np.int64)
        for first_cell, partition, block in self.matches(outputs):
            block_cells = first_cell + partition.index(block)
            if block.rows is None:
                return block_cells
            cells[block.rows] = block_cells
        return cells

    def count(self, outputs: Outputs) -> Integers:
        """Returns how many outputs fall into each cell, shape (n_cells,)."""
        counts = np.zeros(self.n_cells, dtype=np.int64)
        for first_cell, partition, block in self.matches(outputs):
            n_cells = partition.n_cells
            cells = partition.index(block)
            counts[first_cell : first_cell + n_cells] = np.bincount(cells, minlength=n_cells)
        counts[-1] = outputs.size - counts.sum()
        return counts

    def matches(self, outputs: Outputs) -> list[tuple[int, BlockPartition, Block]]:
        """Returns the known shapes among the outputs.

        Returns:
            Of each shape its first cell, its part of the partition, and its outputs.
        """
        if self.reading is not None:
            outputs = self.reading.read(outputs)
        block_of_shape = {block.shape: block for block in outputs.blocks}
        matching = []
        first_cell = 0
        for partition in self.blocks:
            block = block_of_shape.get(partition.shape)
            # A stored event may have been tampered with, so that its shape has other columns.
            if block is not None and len(block.columns) == len(partition.atoms):
                matching.append((first_cell, partition, block))
            first_cell += partition.n_cells
        needs_features = is_featured(self.blocks) and not is_featured(outputs.blocks)
        if not matching and outputs.size and needs_features:
            raise InputError(
                "the event also looks at features of the outputs, which these outputs lack; draw "
                "them from the mechanism that has them, as in "
                "event.contains(mechanism.sample(dataset, n, rng))"
            )
        return matching


def split(cells: Array, parts: Sequence[Group | BlockPartition]) -> list[Array]:
    """Splits an array with one entry per cell, shape (cells,), into those of each part.

    The last item of the list holds the entry of the last cell, which belongs to none of the parts.
    """
    return np.split(cells, np.cumsum([part.n_cells for part in parts]))


def is_featured(blocks: Iterable[Block | BlockPartition]) -> bool:
    """Returns whether some of the outputs come with features."""
    return any(f"{FEATURED}{{" in block.shape for block in blocks)


def partition_to_dict(partition: Partition) -> list[dict[str, Any]]:
    """Returns plain data; `partition_from_dict` is the inverse."""
    return [_block_to_dict(block) for block in partition.blocks]


def _block_to_dict(block: BlockPartition) -> dict[str, Any]:
    return {
        "shape": block.shape,
        "atoms": [atoms_to_dict(atoms) if atoms else None for atoms in block.atoms],
        "groups": [_group_to_dict(group) for group in block.groups],
    }


def _group_to_dict(group: Group) -> dict[str, Any]:
    data: dict[str, Any] = {"signature": list(group.signature)}
    if group.line:
        data["edges"] = group.line.to_list()
        data["column"] = group.column
    if group.score:
        data["score"] = group.score.to_dict()
    return data


def partition_from_dict(
    data: list[dict[str, Any]], reading: list[dict[str, Any]] | None = None
) -> Partition:
    """Inverse of `partition_to_dict`.

    Args:
        data: the cells.
        reading: how outputs are read before they are looked up, as plain data.
    """
    blocks = []
    for block in data:
        atoms = tuple(atoms_from_dict(stored) if stored else None for stored in block["atoms"])
        groups = tuple(_group_from_dict(group, atoms) for group in block["groups"])
        blocks.append(BlockPartition(str(block["shape"]), atoms, groups))
    partition = Partition(tuple(blocks), None if reading is None else reading_from_dict(reading))
    for block_partition in blocks:
        _check_read_shape(block_partition, partition.reading)
    return partition


def _check_read_shape(block: BlockPartition, reading: TextReading | None) -> None:
    """Refuses cells of read texts that do not fit their reading."""
    if not block.shape.startswith(f"{READ}["):
        return
    kinds = None if reading is None else reading.kinds_of(block.shape)
    if kinds is None or len(kinds) != len(block.atoms):
        raise ValueError("an event looks at texts in a way that its reading does not know")
    for atoms, kind in zip(block.atoms, kinds, strict=True):
        is_wrong = kind in (NUMBER_KINDS if isinstance(atoms, LabelAtoms) else TEXT_KINDS)
        if atoms and is_wrong:
            raise ValueError("an event looks for labels among numbers, or for numbers among labels")
    for group in block.groups:
        cut = [group.column] if group.line and not group.score else []
        cut += [
            term.column
            for term in getattr(group.score, "terms", ())
            if isinstance(term.cells, Line) and term.mix is None
        ]
        if any(kinds[column] in TEXT_KINDS for column in cut):
            raise ValueError("an event cuts a column of texts like numbers")


def _group_from_dict(data: dict[str, Any], atoms_by_column: tuple[Atoms | None, ...]) -> Group:
    """Restores a group, and refuses one that does not fit its columns.

    Damaged or forged data is to be noticed here, not when it is used.
    """
    group = Group(
        signature=tuple(int(code) for code in data["signature"]),
        line=Line.from_list(data["edges"]) if "edges" in data else None,
        column=int(data.get("column", 0)),
        score=score_from_dict(data["score"]) if "score" in data else None,
    )
    n_columns = len(atoms_by_column)
    # A shape without columns has signatures of one code.
    length = max(n_columns, 1)
    if len(group.signature) != length or not 0 <= group.column < length:
        raise ValueError(f"a signature {group.signature!r:.80} does not fit {n_columns} columns")
    if not n_columns and group.signature != (0,):
        raise ValueError(f"a signature {group.signature!r:.80} for outputs without values")
    for code, atoms in zip(group.signature, atoms_by_column, strict=False):
        n_atoms = len(atoms) if atoms else 0
        if not NO_ATOM <= code < n_atoms:
            raise ValueError(
                f"a signature {group.signature!r:.80} names an atom that does not exist"
            )
    if group.score and any(not 0 <= column < n_columns for column in group.score.columns):
        raise ValueError("a score uses a column that does not exist")
    return group
