"""Learns from training draws how to cut the outputs into cells."""

from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.outputs import Block, BlockPartition, Group, Labels, Line, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import Atoms, LabelAtoms, NumberAtoms, next_float
from epsilometer.outputs.partition import hash_signatures

# A value seen this often in the training draws is an atom, not an accident.
REPEATS = 5
# Atoms of one column, and groups of one shape, beyond which the rarest go to "everything else".
_MOST_ATOMS = 4096
# Look for repeated values among this many draws of each side before paying for a full sort.
_FIRST_LOOK = 16_384
# Quantiles and repeats are learned from at most this many draws of each side: more would not move them.
_MOST_ROWS = 250_000
# A bin with fewer training draws than this shows chance rather than the distribution.
_PER_BIN = 40


def learn_line(left: Array, right: Array, most_bins: int = 512) -> Line:
    """Cuts numbers: each repeated value is a cell of its own, the rest goes into bins of equal mass.

    Args:
        left: shape (n,), training values of one side.
        right: shape (m,), of the other.
        most_bins: never more bins than this.
    """
    pooled = _pool(left, right)
    pooled = pooled[~np.isnan(pooled)]
    atoms = _repeated(left, right, pooled)
    rest = pooled[~np.isin(pooled, atoms)] if len(atoms) else pooled
    rest = rest[np.isfinite(rest)]
    edges = np.concatenate([_bin_edges(rest, len(pooled), most_bins), atoms, next_float(atoms)])
    return Line(np.unique(edges[~np.isnan(edges)]))


def learn_atoms(left: Column, right: Column) -> Atoms | None:
    """The values of a column that repeat; None when none does."""
    if isinstance(left, Labels) and isinstance(right, Labels):
        return _label_atoms(left, right)
    if not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        return None  # one shape has one kind of column, so this does not happen
    if left.values.dtype == np.bool_:
        return NumberAtoms(np.array([0.0, 1.0]))
    pooled = _pool(left.values, right.values)
    atoms = _repeated(left.values, right.values, pooled[~np.isnan(pooled)])
    if np.isnan(pooled).any():
        atoms = np.append(atoms, np.nan)
    return NumberAtoms(atoms) if len(atoms) else None


def learn_groups(left: Block, right: Block) -> tuple[BlockPartition, list[tuple[int, Integers, Integers]]]:
    """The frequent signatures of a shape.

    Returns:
        The partition with a bare group per signature, and for each group that varies in some column: its number and
        its rows in the left and in the right block.
    """
    atoms = tuple(learn_atoms(a, b) for a, b in zip(left.columns, right.columns, strict=True))
    bare = BlockPartition(left.shape, atoms, ())
    # Half as wide as they come: with ten thousand columns they are most of what is in memory.
    codes = np.concatenate([bare.codes(left), bare.codes(right)], axis=1, dtype=np.int32, casting="unsafe")
    hashes = hash_signatures(codes)
    _, where, group_of, count = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    frequent = np.flatnonzero(count >= REPEATS)
    frequent = np.sort(frequent[np.argsort(-count[frequent], kind="stable")[:_MOST_ATOMS]])
    groups = tuple(Group(tuple(int(code) for code in codes[:, where[number]])) for number in frequent)
    varying = []
    for place, (number, group) in enumerate(zip(frequent, groups, strict=True)):
        if left.columns and -1 in group.signature:
            rows = np.flatnonzero(group_of == number)
            varying.append((place, rows[rows < left.size], rows[rows >= left.size] - left.size))
    return BlockPartition(left.shape, atoms, groups), varying


def blocks_of_both(left: Outputs, right: Outputs) -> list[tuple[Block, Block]]:
    """Every shape seen on either side, with an empty block where a side lacks it."""
    lefts = {block.shape: block for block in left.blocks if block.size}
    rights = {block.shape: block for block in right.blocks if block.size}
    return [
        (lefts.get(shape) or _empty_like(rights[shape]), rights.get(shape) or _empty_like(lefts[shape]))
        for shape in {**lefts, **rights}
    ]


def _empty_like(block: Block) -> Block:
    nothing = np.empty(0, dtype=np.int64)
    return Block(block.shape, nothing, tuple(column.take(nothing) for column in block.columns), 0)


def _pool(left: Array, right: Array) -> Floats:
    return np.concatenate([np.asarray(side[:_MOST_ROWS], dtype=np.float64) for side in (left, right)])


def _repeated(left: Array, right: Array, pooled: Floats) -> Floats:
    """The values that repeat often enough, ascending; infinities that were seen always count as atoms."""
    look = np.sort(np.concatenate([np.asarray(side[:_FIRST_LOOK], dtype=np.float64) for side in (left, right)]))
    infinite = [end for end in (-np.inf, np.inf) if np.any(look == end)]
    if not np.any(look[1:] == look[:-1]):
        return np.array(infinite)
    values, count = np.unique(pooled, return_counts=True)
    repeated = np.flatnonzero(count >= REPEATS)
    repeated = repeated[np.argsort(-count[repeated], kind="stable")[:_MOST_ATOMS]]
    return np.union1d(values[repeated], infinite)


def _bin_edges(rest: Floats, total: int, most_bins: int) -> Floats:
    """Quantiles of the values that do not repeat: about 4·n^(1/3) bins for n draws per side, fewer when less varies."""
    if not len(rest):
        return np.empty(0)
    wanted = int(np.clip(4.0 * (total / 2) ** (1 / 3), 32, most_bins))
    n_bins = min(wanted, len(rest) // _PER_BIN)
    if n_bins < 2:
        return np.empty(0)
    ordered = np.sort(rest)
    return ordered[np.linspace(0, len(ordered), n_bins + 1).astype(np.int64)[1:-1]]


def _label_atoms(left: Labels, right: Labels) -> LabelAtoms | None:
    count: dict[str, int] = {}
    for side in (left, right):
        totals: Sequence[int] = np.bincount(side.codes, minlength=len(side.labels)).tolist()
        for label, total in zip(side.labels, totals, strict=True):
            count[label] = count.get(label, 0) + total
    frequent = sorted((label for label, total in count.items() if total >= REPEATS), key=lambda label: -count[label])
    return LabelAtoms(tuple(frequent[:_MOST_ATOMS])) if frequent else None
