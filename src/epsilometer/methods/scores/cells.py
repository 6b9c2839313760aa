"""Learns from training draws how to divide the outputs into cells.

The first half of the module serves partitions by value: repeated values are cells of their own, the
rest of a number's range is cut into bins. The second half cuts single columns into cells for the
additive scores of `additive`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.outputs import Block, BlockPartition, Group, Labels, Line, Numbers, Outputs
from epsilometer.outputs.atoms import Atoms, LabelAtoms, NumberAtoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.partition import hash_signatures
from epsilometer.outputs.placing import maybe_repeated, next_float
from epsilometer.outputs.scores import Term

# A value that occurs this often in the training draws is a point mass, not a coincidence.
FEWEST_REPEATS = 5
# Most point masses of one column, and most groups of one shape; the rarest are "everything else".
_MOST_ATOMS = 4096
# Draws per side in which repeated values are looked for before all draws are sorted.
_SCREENING_ROWS = 16_384
# Draws per side from which quantiles and repeated values are learned: more would not move them.
MOST_ROWS = 1 << 18
# Fewest training draws per bin, of both sides together: fewer show chance, not the distribution.
_DRAWS_PER_BIN = 40
# A line has about this many times n^(1/3) bins for n draws per side.
_BINS_PER_CUBE_ROOT = 4.0
# Bins that a line has even for few draws, if they vary enough.
_FEWEST_BINS = 32


def learn_line(
    left: Array, right: Array, most_bins: int = 512, ordered: Floats | None = None
) -> Line:
    """Cuts numbers: each repeated value is a cell, the rest goes into bins of equal mass.

    Args:
        left: shape (n,), training values of one side.
        right: shape (m,), of the other.
        most_bins: never more bins than this.
        ordered: some values of both sides, if they are sorted already.
    """
    atoms, pooled = repeated_values(left, right)
    if ordered is None:
        ordered = np.sort(pooled)
    continuous = ordered[~np.isin(ordered, atoms)] if len(atoms) else ordered
    continuous = continuous[np.isfinite(continuous)]
    draws_per_side = np.count_nonzero(~np.isnan(pooled)) / 2
    wanted = _BINS_PER_CUBE_ROOT * draws_per_side ** (1 / 3)
    wanted_bins = int(np.clip(wanted, _FEWEST_BINS, most_bins))
    n_bins = max(min(wanted_bins, len(continuous) // _DRAWS_PER_BIN), 1)
    ranks = np.linspace(0, len(continuous), n_bins + 1).astype(np.int64)[1:-1]
    edges = np.concatenate([continuous[ranks], atoms, next_float(atoms)])
    return Line(np.unique(edges))


def learn_atoms(left: Column, right: Column) -> Atoms | None:
    """The repeated values of a column; None if no value repeats."""
    if isinstance(left, Labels) and isinstance(right, Labels):
        count: Counter[str] = Counter()
        for column in (left, right):
            totals = np.bincount(column.codes, minlength=len(column.labels)).tolist()
            count.update(dict(zip(column.labels, totals, strict=True)))
        frequent = [label for label, total in count.most_common() if total >= FEWEST_REPEATS]
        return LabelAtoms(tuple(frequent[:_MOST_ATOMS])) if frequent else None
    if not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        # Outputs of one shape have one type of column, so this does not happen.
        return None
    if left.values.dtype == np.bool_:
        return NumberAtoms(np.array([0.0, 1.0]))
    atoms, pooled = repeated_values(left.values, right.values)
    if np.isnan(pooled).any():
        atoms = np.append(atoms, np.nan)
    return NumberAtoms(atoms) if len(atoms) else None


class VaryingGroup(NamedTuple):
    """A group of outputs that still vary in some column.

    Attributes:
        number: of the group in its partition.
        left_rows: shape (k,), its rows in the left block.
        right_rows: shape (l,), its rows in the right block.
    """

    number: int
    left_rows: Integers
    right_rows: Integers


def learn_groups(left: Block, right: Block) -> tuple[BlockPartition, list[VaryingGroup]]:
    """Learns the frequent signatures of a shape.

    A signature says of each column which repeated value it takes, or that it takes none.

    Returns:
        The partition with an uncut group per frequent signature, and the groups that vary in some
        column.
    """
    n_columns = len(left.columns)
    # Nothing can repeat here; there may be thousands of such shapes.
    if left.size + right.size < FEWEST_REPEATS:
        return BlockPartition(left.shape, (None,) * n_columns, ()), []
    atoms = tuple(learn_atoms(a, b) for a, b in zip(left.columns, right.columns, strict=True))
    if left.columns and not any(atoms):
        # No value repeats: all outputs are one group.
        everything = Group((-1,) * len(atoms))
        varying = VaryingGroup(0, np.arange(left.size), np.arange(right.size))
        return BlockPartition(left.shape, atoms, (everything,)), [varying]
    ungrouped = BlockPartition(left.shape, atoms, ())
    codes = np.concatenate([ungrouped.codes(left), ungrouped.codes(right)], axis=1)
    hashes = hash_signatures(codes)
    _, first_row, group_of_row, count = np.unique(
        hashes, return_index=True, return_inverse=True, return_counts=True
    )
    frequent = np.flatnonzero(count >= FEWEST_REPEATS)
    by_frequency = np.argsort(-count[frequent], kind="stable")
    frequent = np.sort(frequent[by_frequency[:_MOST_ATOMS]])
    groups = []
    varying_groups = []
    for number, hash_number in enumerate(frequent):
        signature = tuple(int(code) for code in codes[:, first_row[hash_number]])
        groups.append(Group(signature))
        if left.columns and -1 in signature:
            rows = np.flatnonzero(group_of_row == hash_number)
            is_left = rows < left.size
            varying_groups.append(VaryingGroup(number, rows[is_left], rows[~is_left] - left.size))
    return BlockPartition(left.shape, atoms, tuple(groups)), varying_groups


def blocks_of_both(left: Outputs, right: Outputs) -> list[tuple[Block, Block]]:
    """The left and the right block of every shape; an empty one where a side lacks the shape."""
    left_blocks = {block.shape: block for block in left.blocks if block.size}
    right_blocks = {block.shape: block for block in right.blocks if block.size}
    any_blocks = {**left_blocks, **right_blocks}
    return [
        (
            left_blocks.get(shape) or _empty_like(block),
            right_blocks.get(shape) or _empty_like(block),
        )
        for shape, block in any_blocks.items()
    ]


def first_rows(block: Block, n_rows: int) -> Block:
    """The first outputs of a block, in the order in which they were drawn."""
    if block.size <= n_rows:
        return block
    rows = slice(0, n_rows)
    columns = tuple(column.take(rows) for column in block.columns)
    return Block(block.shape, block.places()[rows], columns, n_rows)


def _empty_like(block: Block) -> Block:
    no_rows = np.empty(0, dtype=np.int64)
    columns = tuple(column.take(no_rows) for column in block.columns)
    return Block(block.shape, no_rows, columns, 0)


def repeated_values(left: Array, right: Array) -> tuple[Floats, Floats]:
    """The values that repeat often enough, ascending, and the pooled values.

    Infinities count as repeated values wherever they occur.
    """
    pooled = _pooled(left, right, MOST_ROWS)
    screened = _pooled(left, right, _SCREENING_ROWS)
    infinite = [end for end in (-np.inf, np.inf) if np.any(screened == end)]
    screened = np.sort(maybe_repeated(screened, 2))
    if not np.any(screened[1:] == screened[:-1]):
        return np.array(infinite), pooled
    values, count = np.unique(pooled[~np.isnan(pooled)], return_counts=True)
    repeated = np.flatnonzero(count >= FEWEST_REPEATS)
    by_frequency = np.argsort(-count[repeated], kind="stable")
    repeated = repeated[by_frequency[:_MOST_ATOMS]]
    return np.union1d(values[repeated], infinite), pooled


def _pooled(left: Array, right: Array, n_rows: int) -> Floats:
    """The first values of both sides."""
    return np.concatenate(
        [
            np.asarray(left[:n_rows], dtype=np.float64),
            np.asarray(right[:n_rows], dtype=np.float64),
        ]
    )


# --- Cells of single columns, for additive scores ---

# Draws per side that place the cells of a column: more would not move them.
_EDGE_ROWS = 20_000
# Draws of both sides together in which repeated values of a column are looked for.
_SCREENING_VALUES = 8192
# A value is a cell of its own if this fraction of the draws take it.
_SINGLE_FRACTION = 0.002
# Of more such values than this, only those that would fill a bin are cells of their own.
_MOST_SINGLE = 24
# Single values that hold together at most this fraction of the draws are not worth cells.
_LEAST_SINGLE_FRACTION = 0.02
# Labels of one column that get a cell each.
_MOST_LABELS = 4 * _MOST_SINGLE
# Fraction of the draws in each of the two outermost bins: what is rare and far off may be the leak.
_OUTER_FRACTION = 0.01
# Fewest draws in each of these two bins.
_OUTER_DRAWS = 20
# A gap without draws that is wider than this fraction of the 10–90 % range is an edge: a cell
# across it would mix two clusters (rappor_longitudinal at 1e4 draws: 0.86 of the oracle with such
# cells, 0.93 without).
_GAP_FRACTION = 0.125
# Cells of all columns together that are aimed at, in pairs of bins.
_PAIRS_OF_BINS = 150
# Fewest pairs of bins per column, however many columns there are.
_FEWEST_PAIRS_PER_COLUMN = 4
# Most pairs of bins per column, however few columns there are.
_MOST_PAIRS_PER_COLUMN = 12
# Fewest draws per side for each pair of bins of a column.
_DRAWS_PER_PAIR = 400
# The same for a single column, whose weights are few: neighbours are alike, so that more bins find
# narrow leaks and cost nothing else.
_MOST_PAIRS_OF_SINGLE = 24
_DRAWS_PER_PAIR_OF_SINGLE = 120
# Columns with fewer continuous draws per bin than this do not take part in shared edges.
_DRAWS_PER_SHARED_BIN = 20
# Edges are shared only if no column has more than this many times its even share in one bin.
_MOST_CROWDING = 4

# The number of the cell of each row.
Cells = NDArray[np.int32]


class ColumnView(NamedTuple):
    """What a column of a score reads.

    Attributes:
        column: number of the output's column.
        mix: shape (columns,), coefficients of a linear combination of columns to read instead, or
            None for the column itself.
    """

    column: int
    mix: Floats | None


@dataclass(frozen=True, slots=True)
class ColumnCells:
    """One column with the cells that training draws fill: single values first, then intervals.

    Attributes:
        term: the column with all of its cells; its weights are not used.
        used: shape (k,), the cells that contain draws.
        atoms: identifies the single values among them: equal for equal values of two columns.
    """

    term: Term
    used: Integers
    atoms: tuple[object, ...]

    @property
    def size(self) -> int:
        """The number of its weights."""
        return len(self.used)

    @property
    def known(self) -> Atoms:
        """The single values as atoms; their codes are the first positions in `used`."""
        # None stands for all other labels.
        atoms = [atom for atom in self.atoms if atom is not None]
        if isinstance(self.term.cells, LabelAtoms):
            return LabelAtoms(tuple(map(str, atoms)))
        values = [np.nan if atom == "NaN" else atom for atom in atoms]
        return NumberAtoms(np.array(values, dtype=np.float64))

    def index(self, columns: Sequence[Column]) -> Cells:
        """The position in `used` of each row's cell."""
        position = np.zeros(len(self.term.weights), dtype=np.int32)
        position[self.used] = np.arange(self.size)
        return position[self.term.index(columns)]

    def weighted(self, weights: Floats, column: int | None = None) -> Term:
        """The term with these weights; a cell without draws has weight 0.

        Args:
            weights: shape (size,).
            column: which column it reads instead of its own.
        """
        all_weights = np.zeros(len(self.term.weights))
        all_weights[self.used] = weights
        place = self.term.column if column is None else column
        return replace(self.term, weights=all_weights, column=place)


@dataclass(frozen=True, slots=True)
class ProductCells:
    """An interaction of two columns: each cell of `other` within each cell of `key`."""

    key: ColumnCells
    other: ColumnCells

    @property
    def size(self) -> int:
        """The number of its weights."""
        return self.key.size * self.other.size

    def index(self, columns: Sequence[Column]) -> Cells:
        """The position of each row's cell; those of the first cell of `key` come first."""
        key_index = self.key.index(columns)
        other_index = self.other.index(columns)
        return np.asarray(key_index * np.int32(self.other.size) + other_index)


def cut_columns(
    left: Block,
    right: Block,
    views: Sequence[tuple[int, Floats | None] | ColumnView],
    n_columns: int | None = None,
) -> list[ColumnCells]:
    """Cuts columns into cells; columns with one value only are left out.

    Columns with similar values share their edges.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        views: what to cut.
        n_columns: how many columns share the cells; None takes that of the views.
    """
    n_bins = _bins_per_column(n_columns or len(views), min(left.size, right.size))
    terms: list[Term] = []
    # Of the columns of numbers, by their place in `terms`.
    single_values: dict[int, Floats] = {}
    continuous: dict[int, Floats] = {}
    for column, mix in views:
        left_column = left.columns[column]
        right_column = right.columns[column]
        if isinstance(left_column, Labels) or isinstance(right_column, Labels):
            repeated = learn_atoms(left_column, right_column)
            if isinstance(repeated, LabelAtoms):
                terms.append(Term(column, LabelAtoms(repeated.labels[:_MOST_LABELS]), np.empty(0)))
            continue
        uncut = Term(column, Line(np.empty(0)), np.empty(0), mix)
        values = np.concatenate(
            [
                np.asarray(uncut.numbers(left.columns), np.float64)[:_EDGE_ROWS],
                np.asarray(uncut.numbers(right.columns), np.float64)[:_EDGE_ROWS],
            ]
        )
        atoms, rest = _single_values(values, n_bins)
        single_values[len(terms)] = atoms
        continuous[len(terms)] = rest
        line = _line_with(atoms, _quantile_edges(rest, n_bins))
        terms.append(Term(column, line, np.empty(0), mix))
    for place, edges in _shared_edges(continuous, n_bins).items():
        line = _line_with(single_values[place], edges)
        terms[place] = replace(terms[place], cells=line)
    cuts = []
    for term in terms:
        cut = _used_cells(replace(term, weights=np.zeros(term.n_codes)), left, right)
        if cut.size > 1:
            cuts.append(cut)
    return cuts


def _bins_per_column(n_columns: int, n_draws: int) -> int:
    """An even number of bins, so that the median is an edge."""
    if n_columns == 1:
        by_draws = max(2, n_draws // _DRAWS_PER_PAIR_OF_SINGLE)
        return 2 * min(_MOST_PAIRS_OF_SINGLE, by_draws)
    pairs_by_columns = int(
        np.clip(_PAIRS_OF_BINS / n_columns, _FEWEST_PAIRS_PER_COLUMN, _MOST_PAIRS_PER_COLUMN)
    )
    pairs_by_draws = max(2, n_draws // _DRAWS_PER_PAIR)
    return min(2 * pairs_by_columns, 2 * pairs_by_draws)


def _used_cells(term: Term, left: Block, right: Block) -> ColumnCells:
    """The cells of a term that contain training draws, single values first."""
    n_cells = len(term.weights)
    left_counts = np.bincount(term.index(left.columns), minlength=n_cells)
    right_counts = np.bincount(term.index(right.columns), minlength=n_cells)
    filled = np.flatnonzero(left_counts + right_counts)
    if isinstance(term.cells, LabelAtoms):
        # The last cell is that of all other labels.
        labels = (*term.cells.labels, None)
        return ColumnCells(term, filled, tuple(labels[cell] for cell in filled))
    edges = term.cells.edges
    is_single = np.zeros(n_cells, dtype=np.bool_)
    is_single[1 : len(edges)] = next_float(edges[:-1]) == edges[1:]
    # The last cell is that of NaN.
    is_single[-1] = True
    single = filled[is_single[filled]]
    intervals = filled[~is_single[filled]]
    atoms = tuple("NaN" if cell == n_cells - 1 else float(edges[cell - 1]) for cell in single)
    return ColumnCells(term, np.concatenate([single, intervals]), atoms)


def _single_values(values: Floats, n_bins: int) -> tuple[Floats, Floats]:
    """The values that deserve a cell of their own, and the sorted draws of all others."""
    values = values[~np.isnan(values)]
    screened = np.sort(values[:_SCREENING_VALUES])
    if not (screened[1:] == screened[:-1]).any():
        return np.empty(0), np.sort(values)
    distinct, count = np.unique(values, return_counts=True)
    is_single = count >= max(FEWEST_REPEATS, _SINGLE_FRACTION * len(values))
    if is_single.sum() > _MOST_SINGLE:
        is_single = count > len(values) / n_bins
    if count[is_single].sum() <= _LEAST_SINGLE_FRACTION * len(values):
        is_single[:] = False
    return distinct[is_single], np.repeat(distinct[~is_single], count[~is_single])


def _quantile_edges(ordered: Floats, n_bins: int) -> Floats:
    """The inner edges of bins of equal mass, with further edges near both ends and at wide gaps.

    Args:
        ordered: shape (n,), sorted values.
        n_bins: of equal mass; fewer if there are few values.
    """
    finite = ordered[np.isfinite(ordered)]
    n = len(finite)
    if n < 10 * n_bins:
        n_bins = 2 * max(n // 20, 1)
    if n < n_bins:
        return np.empty(0)
    even_ranks = (np.arange(1, n_bins) * n) // n_bins
    outer_draws = max(_OUTER_DRAWS, int(_OUTER_FRACTION * n))
    has_outer_bins = n > 2 * outer_draws * n_bins
    outer_ranks = (outer_draws, n - outer_draws) if has_outer_bins else ()
    # Gaps are looked for between the outermost bins of equal mass.
    low = n // n_bins
    high = n - n // n_bins
    with np.errstate(over="ignore"):
        range_of_most = finite[9 * n // 10] - finite[n // 10]
        is_gap = np.diff(finite[low:high]) > _GAP_FRACTION * range_of_most
    gap_ranks = np.flatnonzero(is_gap) + low + 1
    ranks = np.concatenate([even_ranks, outer_ranks, gap_ranks]).astype(np.int64)
    return finite[np.unique(ranks)]


def _line_with(atoms: Floats, edges: Floats) -> Line:
    """A line with these edges on which the given values are cells of their own."""
    return Line(np.unique(np.concatenate([edges, atoms, next_float(atoms)])))


def _shared_edges(continuous: dict[int, Floats], n_bins: int) -> dict[int, Floats]:
    """The same edges for all columns that vary, unless one of them crowds into few of the bins.

    Args:
        continuous: sorted values, by the place of the column.
        n_bins: of the shared edges.
    """
    varying = {
        place: values
        for place, values in continuous.items()
        if len(values) >= _DRAWS_PER_SHARED_BIN * n_bins
    }
    if len(varying) < 3:
        return {}
    thinning = max(1, len(varying) // 4)
    pooled = np.concatenate([values[::thinning] for values in varying.values()])
    edges = np.unique(_quantile_edges(np.sort(pooled), n_bins))
    for values in varying.values():
        counts = np.diff(np.searchsorted(values, edges), prepend=0, append=len(values))
        if counts.max() > _MOST_CROWDING / n_bins * len(values):
            return {}
    return dict.fromkeys(varying, edges)
