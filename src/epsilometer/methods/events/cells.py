"""Learns from training draws how to cut the outputs into cells."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.outputs import Block, BlockPartition, Group, Labels, Line, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import Atoms, LabelAtoms, NumberAtoms, crowded, next_float
from epsilometer.outputs.partition import hash_signatures
from epsilometer.outputs.scores import Term

# A value seen this often in the training draws is an atom, not an accident.
REPEATS = 5
# Atoms of one column, and groups of one shape, beyond which the rarest go to "everything else".
_MOST_ATOMS = 4096
# Look for repeated values among this many draws of each side before paying for a full sort.
_FIRST_LOOK = 16_384
# Quantiles and repeats are learned from at most this many draws of each side: more would not move
# them.
MOST_ROWS = 1 << 18
# A bin with fewer training draws than this shows chance rather than the distribution.
_PER_BIN = 40


def learn_line(
    left: Array, right: Array, most_bins: int = 512, ordered: Floats | None = None
) -> Line:
    """Cuts numbers: each repeated value is a cell of its own, the rest goes into bins of equal mass.

    Args:
        left: shape (n,), training values of one side.
        right: shape (m,), of the other.
        most_bins: never more bins than this.
        ordered: some of both, where they are sorted already.
    """
    atoms, pooled = _repeated(left, right)
    ordered = np.sort(pooled) if ordered is None else ordered
    rest = ordered[~np.isin(ordered, atoms)] if len(atoms) else ordered
    rest = rest[np.isfinite(rest)]
    # About 4·n^(1/3) bins for n draws per side, fewer when less varies.
    wanted = int(np.clip(4.0 * (np.count_nonzero(~np.isnan(pooled)) / 2) ** (1 / 3), 32, most_bins))
    ranks = np.linspace(0, len(rest), max(min(wanted, len(rest) // _PER_BIN), 1) + 1).astype(
        np.int64
    )[1:-1]
    return Line(np.unique(np.concatenate([rest[ranks], atoms, next_float(atoms)])))


def learn_atoms(left: Column, right: Column) -> Atoms | None:
    """The values of a column that repeat; None when none does."""
    if isinstance(left, Labels) and isinstance(right, Labels):
        count: Counter[str] = Counter()
        for side in (left, right):
            totals = np.bincount(side.codes, minlength=len(side.labels)).tolist()
            count.update(dict(zip(side.labels, totals, strict=True)))
        frequent = [label for label, total in count.most_common() if total >= REPEATS]
        return LabelAtoms(tuple(frequent[:_MOST_ATOMS])) if frequent else None
    if not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        return None  # one shape has one kind of column, so this does not happen
    if left.values.dtype == np.bool_:
        return NumberAtoms(np.array([0.0, 1.0]))
    atoms, pooled = _repeated(left.values, right.values)
    if np.isnan(pooled).any():
        atoms = np.append(atoms, np.nan)
    return NumberAtoms(atoms) if len(atoms) else None


def learn_groups(
    left: Block, right: Block
) -> tuple[BlockPartition, list[tuple[int, Integers, Integers]]]:
    """The frequent signatures of a shape.

    Returns:
        The partition with a bare group per signature, and for each group that varies in some
        column: its number and its rows in the left and in the right block.
    """
    # nothing can repeat; there may be thousands of such shapes
    if left.size + right.size < REPEATS:
        return BlockPartition(left.shape, (None,) * len(left.columns), ()), []
    atoms = tuple(learn_atoms(a, b) for a, b in zip(left.columns, right.columns, strict=True))
    bare = BlockPartition(left.shape, atoms, ())
    if left.columns and not any(atoms):  # nothing repeats
        whole = Group((-1,) * len(atoms))
        return BlockPartition(left.shape, atoms, (whole,)), [
            (0, np.arange(left.size), np.arange(right.size))
        ]
    codes = np.concatenate([bare.codes(left), bare.codes(right)], axis=1)
    hashes = hash_signatures(codes)
    _, where, group_of, count = np.unique(
        hashes, return_index=True, return_inverse=True, return_counts=True
    )
    frequent = np.flatnonzero(count >= REPEATS)
    frequent = np.sort(frequent[np.argsort(-count[frequent], kind="stable")[:_MOST_ATOMS]])
    groups = tuple(
        Group(tuple(int(code) for code in codes[:, where[number]])) for number in frequent
    )
    varying = []
    for place, (number, group) in enumerate(zip(frequent, groups, strict=True)):
        if left.columns and -1 in group.signature:
            rows = np.flatnonzero(group_of == number)
            varying.append((place, rows[rows < left.size], rows[rows >= left.size] - left.size))
    return BlockPartition(left.shape, atoms, groups), varying


def blocks_of_both(left: Outputs, right: Outputs) -> list[tuple[Block, Block]]:
    """Every shape seen on either side, with an empty block where a side lacks it."""
    lefts, rights = (
        {block.shape: block for block in side.blocks if block.size} for side in (left, right)
    )
    every = {**lefts, **rights}.items()
    return [
        (lefts.get(shape) or _empty_like(one), rights.get(shape) or _empty_like(one))
        for shape, one in every
    ]


def _empty_like(block: Block) -> Block:
    nothing = np.empty(0, dtype=np.int64)
    return Block(block.shape, nothing, tuple(column.take(nothing) for column in block.columns), 0)


def _repeated(left: Array, right: Array) -> tuple[Floats, Floats]:
    """The values that repeat often enough, ascending, and all values; infinities that were seen always are atoms."""
    pooled = np.concatenate(
        [np.asarray(side[:MOST_ROWS], dtype=np.float64) for side in (left, right)]
    )
    look = np.concatenate(
        [np.asarray(side[:_FIRST_LOOK], dtype=np.float64) for side in (left, right)]
    )
    infinite = [end for end in (-np.inf, np.inf) if np.any(look == end)]
    look = np.sort(crowded(look, 2))
    if not np.any(look[1:] == look[:-1]):
        return np.array(infinite), pooled
    values, count = np.unique(pooled[~np.isnan(pooled)], return_counts=True)
    repeated = np.flatnonzero(count >= REPEATS)
    repeated = repeated[np.argsort(-count[repeated], kind="stable")[:_MOST_ATOMS]]
    return np.union1d(values[repeated], infinite), pooled


# --- columns of a score
# ----------------------------------------------------------------------------------------------

# Draws per side that place the cells of a column: more would not move them.
_EDGE_ROWS = 20_000
# A value is a cell of its own if this share of the draws take it (and at least five of them); of
# more such values than the second number, only those that would fill a bin.
_SINGLE_SHARE = 0.002
_MOST_SINGLE = 24
# What is rare and far off may be the leak: the share of draws in the outermost bins, and the fewest
# of them.
_FAR_SHARE = 0.01
_FAR_DRAWS = 20
# Nothing lies in a gap this wide, as a share of the spread of all but a fifth: a cell across it
# would mix two clusters (rappor_longitudinal at 1e4 draws: .86 of the oracle with such cells, .93
# without).
_GAP = 0.125

Cells = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ColumnCells:
    """One column in the cells that training draws fill: single values first, then intervals in order.

    Attributes:
        term: the column and all of its cells, without weights.
        used: shape (k,), the cells with draws.
        atoms: the single values among them, by something that is equal for equal values.
    """

    term: Term
    used: Integers
    atoms: tuple[object, ...]

    @property
    def size(self) -> int:
        """Its weights."""
        return len(self.used)

    @property
    def known(self) -> Atoms:
        """The single values as atoms; their codes are the first places among `used`."""
        names = [name for name in self.atoms if name is not None]  # None is any other label
        if isinstance(self.term.cells, LabelAtoms):
            return LabelAtoms(tuple(map(str, names)))
        return NumberAtoms(
            np.array([np.nan if name == "NaN" else name for name in names], dtype=np.float64)
        )

    def index(self, columns: Sequence[Column]) -> Cells:
        """The position of each row's cell among `used`."""
        place = np.zeros(len(self.term.weights), dtype=np.int32)
        place[self.used] = np.arange(self.size)
        return place[self.term.index(columns)]

    def weighted(self, weights: Floats) -> Term:
        """The term; a cell that no draw filled has no weight."""
        every = np.zeros(len(self.term.weights))
        every[self.used] = weights
        return replace(self.term, weights=every)


@dataclass(frozen=True, slots=True)
class ProductCells:
    """Two columns together: each cell of `other` within each of `key`."""

    key: ColumnCells
    other: ColumnCells

    @property
    def size(self) -> int:
        """Its weights."""
        return self.key.size * self.other.size

    def index(self, columns: Sequence[Column]) -> Cells:
        """The position of each row's cell, those of the first cell of `key` first."""
        return np.asarray(
            self.key.index(columns) * np.int32(self.other.size) + self.other.index(columns)
        )


def _cut(term: Term, left: Block, right: Block) -> ColumnCells:
    counts = sum(
        np.bincount(term.index(side.columns), minlength=len(term.weights)) for side in (left, right)
    )
    seen = np.flatnonzero(counts)
    if isinstance(term.cells, LabelAtoms):
        return ColumnCells(term, seen, tuple((*term.cells.labels, None)[cell] for cell in seen))
    edges = term.cells.edges
    single = np.zeros(len(term.weights), dtype=np.bool_)
    single[1 : len(edges)] = next_float(edges[:-1]) == edges[1:]
    single[-1] = True  # NaN
    atoms = seen[single[seen]]
    names = tuple("NaN" if cell == len(single) - 1 else float(edges[cell - 1]) for cell in atoms)
    return ColumnCells(term, np.concatenate([atoms, seen[~single[seen]]]), names)


def cut_columns(
    left: Block, right: Block, terms: Sequence[tuple[int, Floats | None]]
) -> list[ColumnCells]:
    """Every column in cells, those that take one value only left out; columns of alike values share their edges."""
    head = slice(0, _EDGE_ROWS)
    blank: list[Term] = []
    numbers: dict[int, tuple[Floats, Floats]] = {}
    # Even numbers of bins, so that the median is an edge.
    bins = min(
        2 * int(np.clip(150 / len(terms), 4, 12)), 2 * max(2, min(left.size, right.size) // 400)
    )
    for number, mix in terms:
        a = left.columns[number]
        b = right.columns[number]
        if isinstance(a, Labels) or isinstance(b, Labels):
            labels = [label for side in (a, b) if isinstance(side, Labels) for label in side.labels]
            names = LabelAtoms(tuple(dict.fromkeys(labels))[: 4 * _MOST_SINGLE])
            blank.append(Term(number, names, np.empty(0)))
            continue
        mixed = Term(number, Line(np.empty(0)), np.empty(0), mix)
        values = np.concatenate(
            [np.asarray(mixed.numbers(side.columns), np.float64)[head] for side in (left, right)]
        )
        atoms, rest = _single_values(values, bins)
        numbers[len(blank)] = atoms, rest
        blank.append(Term(number, _line_with(atoms, _quantiles(rest, bins)), np.empty(0), mix))
    for place, edges in _shared_edges(
        [rest for _, rest in numbers.values()], list(numbers), bins
    ).items():
        blank[place] = replace(blank[place], cells=_line_with(numbers[place][0], edges))
    cuts = (_cut(replace(each, weights=np.zeros(each.n_codes)), left, right) for each in blank)
    return [cut for cut in cuts if cut.size > 1]


def _single_values(values: Floats, bins: int) -> tuple[Floats, Floats]:
    """The values that deserve a cell of their own, and the draws of all others."""
    values = values[~np.isnan(values)]
    look = np.sort(values[:8192])
    if not (look[1:] == look[:-1]).any():
        return np.empty(0), np.sort(values)
    each, count = np.unique(values, return_counts=True)
    keep = count >= max(5, _SINGLE_SHARE * len(values))
    if keep.sum() > _MOST_SINGLE:
        keep = count > len(values) / bins
    if count[keep].sum() <= 0.02 * len(values):
        keep[:] = False
    return each[keep], np.repeat(each[~keep], count[~keep])


def _quantiles(rest: Floats, bins: int) -> Floats:
    """The inner edges of bins of equal mass, from sorted values; ends, and what a gap sets apart, are separate bins."""
    finite = rest[np.isfinite(rest)]
    n = len(finite)
    if n < 10 * bins:
        bins = 2 * max(n // 20, 1)
    if n < bins:
        return np.empty(0)
    end = max(_FAR_DRAWS, int(_FAR_SHARE * n))
    far = (end, n - end) if n > 2 * end * bins else ()
    low = n // bins
    high = n - n // bins
    with np.errstate(over="ignore"):
        gaps = (
            np.flatnonzero(
                np.diff(finite[low:high]) > _GAP * (finite[9 * n // 10] - finite[n // 10])
            )
            + low
            + 1
        )
    return finite[
        np.unique(np.concatenate([(np.arange(1, bins) * n) // bins, far, gaps]).astype(np.int64))
    ]


def _line_with(atoms: Floats, edges: Floats) -> Line:
    return Line(np.unique(np.concatenate([edges, atoms, next_float(atoms)])))


def _shared_edges(rests: list[Floats], places: list[int], bins: int) -> dict[int, Floats]:
    """The same edges for all columns that vary, if none of them crowds into few of the common bins."""
    varying = [
        (place, rest) for place, rest in zip(places, rests, strict=True) if len(rest) >= 20 * bins
    ]
    if len(varying) < 3:
        return {}
    thin = max(1, len(varying) // 4)
    edges = np.unique(
        _quantiles(np.sort(np.concatenate([rest[::thin] for _, rest in varying])), bins)
    )
    for _, rest in varying:
        inside = np.diff(np.searchsorted(rest, edges), prepend=0, append=len(rest))
        if inside.max() > 4 / bins * len(rest):
            return {}
    return dict.fromkeys([place for place, _ in varying], edges)
