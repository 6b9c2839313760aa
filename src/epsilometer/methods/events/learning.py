"""Candidate partitions of the outputs, learned from training draws: by values or by a score."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.methods.events.additive import fit_score
from epsilometer.methods.events.cells import REPEATS, blocks_of_both, learn_groups, learn_line
from epsilometer.methods.events.choosing import HalvedCounts, Halves, cell_adjacency
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.outputs.columns import EXACT, has_digit, is_long_number
from epsilometer.outputs.scores import Score

# Cells per column, for judging how many draws a score needs.
MOST_BINS = 32
# Training draws per side below which the outputs of a shape stay one cell: too few for a score.
_ENOUGH_FOR_SCORE = 200
# Draws per side that place the cells of a score: more would not move them, and trees are slow.
_LINE_ROWS = 40_000
# When frequent signatures cover this fraction of the training draws, a score has little to add.
_COVERED_FRACTION = 0.99
# With this many draws per side for each weight of a score, the same draws fit it and are counted.
_ENOUGH_PER_WEIGHT = 100
# Above this many signatures, a score is estimated instead of single log-ratios.
_MANY_GROUPS = 64
# At most this many cells count as a small support.
_MOST_SMALL_SUPPORT = 32
# Draws per side below which scores certify more than single cells do (svt1 as ten answers at 3000
# draws, of which 900 are training draws: 0.53 of the oracle by a score, 0.43 by single cells).
_ENOUGH_FOR_SMALL_SUPPORT = 3000
# Training draws of both sides that may lie in no known cell of a small support: the leak could lie
# in what varies there.
_FEW_OUTSIDE = 32

# Fits a score of the given columns to training outputs of one shape, left and right.
FitScore = Callable[[Block, Block, Sequence[int]], Score]

# Which rows of a block.
Rows = Integers | slice
_ALL_ROWS = slice(None)


@dataclass(frozen=True, slots=True)
class LearnedPartition:
    """A partition, and the training draws that may be counted in it: none that shaped its scores.

    Attributes:
        partition: the cells.
        left: training outputs for counting.
        right: training outputs for counting.
        small_support: shape (k,), the cells that contain draws in the order of their values, if
            they are so few that their log-ratios are best estimated one by one; otherwise None.
    """

    partition: Partition
    left: Outputs
    right: Outputs
    small_support: Integers | None = None

    def halves(self) -> HalvedCounts:
        """Counts the cells in both halves of the draws of each side."""
        return HalvedCounts(left=self._halves_of(self.left), right=self._halves_of(self.right))

    def _halves_of(self, side: Outputs) -> Halves:
        middle = side.size // 2
        first = self.partition.count(side.take(slice(0, middle)))
        second = self.partition.count(side.take(slice(middle, None)))
        return first, second


def learn_by_values(
    left: Outputs, right: Outputs, ordered: Floats | None = None
) -> LearnedPartition:
    """Makes cells of repeated values and bins of the rest.

    Args:
        left: training outputs.
        right: training outputs.
        ordered: the values of single numbers, if they are sorted already.
    """
    blocks = tuple(
        _by_values(left_block, right_block, ordered)
        for left_block, right_block in blocks_of_both(left, right)
    )
    return LearnedPartition(Partition(blocks), left, right)


def small_support_cells(learned: LearnedPartition) -> Integers | None:
    """The cells of outputs with several columns, if they are no more than the weights of a score.

    An example are ten answers of which one is "yes".

    Returns:
        Shape (k,), the cells that contain draws in the order of their values; None if the outputs
        do not have a small support.
    """
    partition = learned.partition
    left = learned.left
    right = learned.right
    most_columns = max(len(block.atoms) for block in partition.blocks)
    most_cells = min(1 + most_columns, _MOST_SMALL_SUPPORT)
    n_groups = sum(len(block.groups) for block in partition.blocks)
    if n_groups > most_cells or min(len(left), len(right)) < _ENOUGH_FOR_SMALL_SUPPORT:
        return None
    sort_keys = _sort_keys(partition)
    counts = partition.count(left) + partition.count(right)
    # Cells that stand for more than one value: those without a key, and the bins of lines.
    unknown = [cell for cell, key in enumerate(sort_keys) if not key]
    varying = np.concatenate([unknown, *cell_adjacency(partition).bins]).astype(np.int64)
    if counts[varying].sum() > _FEW_OUTSIDE:
        return None
    filled = np.flatnonzero(counts[:-1]).tolist()
    if not 1 < len(filled) <= most_cells:
        return None
    filled.sort(key=lambda cell: sort_keys[cell])
    return np.array(filled)


def _sort_keys(partition: Partition) -> list[tuple[int, ...]]:
    """What orders the cells by their values; the empty tuple for cells of unknown values."""
    keys: list[tuple[int, ...]] = []
    for block in partition.blocks:
        for group in block.groups:
            is_known = bool(group.line) or -1 not in group.signature
            for cell in range(group.n_cells):
                key = (len(block.atoms), *group.signature, cell)
                keys.append(key if is_known else ())
        # The cell of all other outputs of this shape.
        keys.append(())
    # The cell of outputs of any other shape.
    keys.append(())
    return keys


def learn_partitions(left: Outputs, right: Outputs) -> list[LearnedPartition]:
    """All candidate partitions: by values, and by a score over all columns if that may help."""
    by_values = learn_by_values(left, right)
    pairs = blocks_of_both(left, right)
    needs_score = any(
        _needs_score(block, left_block, right_block)
        for block, (left_block, right_block) in zip(by_values.partition.blocks, pairs, strict=True)
    )
    if not needs_score:
        return [by_values]
    # Counting on the draws that fitted a score flatters it, so few draws are halved; many do both
    # (5-dimensional Laplace noise at 1e5 draws: 1.370 ± 0.048 with all, 1.363 ± 0.062 with halves).
    counted_left = left
    counted_right = right
    most_columns = max(len(left_block.columns) for left_block, _ in pairs)
    if min(len(left), len(right)) < _ENOUGH_PER_WEIGHT * MOST_BINS * most_columns:
        pairs = blocks_of_both(half_of(left, 0), half_of(right, 0))
        counted_left = half_of(left, 1)
        counted_right = half_of(right, 1)
    blocks = []
    for left_block, right_block in pairs:
        if len(left_block.columns) > 1 and not is_long_number(left_block.shape):
            blocks.append(_by_score(left_block, right_block, fit_score))
        else:
            blocks.append(_by_values(left_block, right_block))
    by_score = LearnedPartition(Partition(tuple(blocks)), counted_left, counted_right)
    return [by_values, by_score]


def learn_simpler(partition: Partition, left: Outputs, right: Outputs) -> list[LearnedPartition]:
    """Partitions that are easier to understand than the given one.

    One has the most important column instead of a score, the other has repeated values without the
    lines of what varies beside them.

    Args:
        partition: the one that is hard to understand.
        left: training outputs for counting.
        right: training outputs for counting.
    """
    pairs = {pair[0].shape: pair for pair in blocks_of_both(left, right)}
    simpler: list[tuple[BlockPartition, ...]] = []
    by_column = [_by_best_column(block, pairs.get(block.shape)) for block in partition.blocks]
    if any(by_column):
        simpler.append(
            tuple(new or old for new, old in zip(by_column, partition.blocks, strict=True))
        )
    without_lines = tuple(
        replace(block, groups=tuple(Group(group.signature) for group in block.groups))
        for block in partition.blocks
    )
    if sum(len(block.groups) for block in without_lines) > 1:
        simpler.append(without_lines)
    return [LearnedPartition(Partition(blocks), left, right) for blocks in simpler]


def _by_best_column(
    block: BlockPartition, pair: tuple[Block, Block] | None
) -> BlockPartition | None:
    """Cells of the column with the largest part in a score; None without such a column."""
    terms = [term for group in block.groups for term in getattr(group.score, "terms", ())]
    numbers = [term for term in terms if isinstance(term.cells, Line)]
    if not numbers or pair is None:
        return None
    left, right = pair
    column = max(numbers, key=lambda term: term.reach).column
    n_columns = len(block.atoms)
    group = _cut_by_value(Group((-1,) * n_columns), left, right, column)
    return BlockPartition(block.shape, (None,) * n_columns, (group,))


def learn_scored(
    left: Outputs, right: Outputs, fit: FitScore, fewest_columns: int = 2
) -> LearnedPartition | None:
    """Cells of one score over all columns, fitted on half of the draws and counted on the others.

    Args:
        left: training outputs.
        right: training outputs.
        fit: makes the score.
        fewest_columns: shapes with fewer columns are divided by value.

    Returns:
        None if no shape has enough columns.
    """
    pairs = blocks_of_both(half_of(left, 0), half_of(right, 0))
    if all(len(left_block.columns) < fewest_columns for left_block, _ in pairs):
        return None
    blocks = []
    for left_block, right_block in pairs:
        if len(left_block.columns) >= fewest_columns:
            blocks.append(_by_score(left_block, right_block, fit))
        else:
            blocks.append(_by_values(left_block, right_block))
    return LearnedPartition(Partition(tuple(blocks)), half_of(left, 1), half_of(right, 1))


def half_of(outputs: Outputs, number: int) -> Outputs:
    """The first half of some draws (number 0) or the second one (number 1)."""
    middle = len(outputs) // 2
    return outputs.take(slice(middle, len(outputs)) if number else slice(0, middle))


def _cut_by_value(
    group: Group,
    left: Block,
    right: Block,
    column: int,
    left_rows: Rows = _ALL_ROWS,
    right_rows: Rows = _ALL_ROWS,
) -> Group:
    """Cuts a group, which has the given rows, along a column of numbers; labels stay one cell."""
    left_column = left.columns[column]
    right_column = right.columns[column]
    if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
        return group
    line = learn_line(left_column.values[left_rows], right_column.values[right_rows])
    return replace(group, line=line, column=column)


def _by_values(left: Block, right: Block, ordered: Floats | None = None) -> BlockPartition:
    """Cells by repeated values; a group that varies in one column is cut there."""
    if len(left.columns) == 1:
        left_column = left.columns[0]
        right_column = right.columns[0]
        if isinstance(left_column, Numbers) and isinstance(right_column, Numbers):
            line = learn_line(left_column.values, right_column.values, ordered=ordered)
            return BlockPartition(left.shape, (None,), (Group((-1,), line),))
    if is_long_number(left.shape):
        column = line_of_long_numbers(left, right)
        if column is not None:
            group = _cut_by_value(Group((-1, -1)), left, right, column)
            return BlockPartition(left.shape, (None, None), (group,))
    partition, varying_groups = learn_groups(left, right)
    groups = list(partition.groups)
    for varying in varying_groups:
        group = groups[varying.number]
        columns = _varying_columns(group)
        if len(columns) == 1:
            groups[varying.number] = _cut_by_value(
                group, left, right, columns[0], varying.left_rows, varying.right_rows
            )
    return replace(partition, groups=tuple(groups))


def line_of_long_numbers(left: Block, right: Block) -> int | None:
    """The column that orders numbers held in two columns; None if single values matter more."""
    rounded = np.concatenate([_numbers_of(left, 0), _numbers_of(right, 0)])
    remainder = np.concatenate([_numbers_of(left, 1), _numbers_of(right, 1)])
    if has_digit(left.shape) and np.ptp(rounded) < EXACT:
        # The digit alone, which is exact.
        return 1
    _, count = np.unique(remainder, return_counts=True)
    # Where most remainders repeat, a few numbers are drawn again and again, and there is no line.
    most_repeat = 2 * count[count >= REPEATS].sum() > count.sum()
    return None if most_repeat else 0


def _numbers_of(block: Block, column_number: int) -> Array:
    """The values of a column, shape (n,); hashes of them if they are labels."""
    column = block.columns[column_number]
    if isinstance(column, Numbers):
        return column.values
    hashes = [zlib.crc32(label.encode(errors="replace")) for label in column.labels]
    return np.array(hashes, np.int64)[column.codes]


def _by_score(left: Block, right: Block, fit: FitScore) -> BlockPartition:
    """Cells of one score over all columns; a single cell if there are too few draws for a score."""
    n_columns = len(left.columns)
    group = Group((-1,) * n_columns)
    if min(left.size, right.size) >= _ENOUGH_FOR_SCORE:
        score = fit(left, right, range(n_columns))
        first_rows = slice(0, _LINE_ROWS)
        left_scores = score.evaluate([column.take(first_rows) for column in left.columns])
        right_scores = score.evaluate([column.take(first_rows) for column in right.columns])
        group = replace(group, line=learn_line(left_scores, right_scores), score=score)
    return BlockPartition(left.shape, (None,) * n_columns, (group,))


def _varying_columns(group: Group) -> list[int]:
    """The columns whose values are not fixed by the group's signature."""
    return [column for column, code in enumerate(group.signature) if code < 0]


def _needs_score(partition: BlockPartition, left: Block, right: Block) -> bool:
    """Whether repeated values leave something that only a score can use."""
    if len(left.columns) < 2 or partition.is_single_line:
        return False
    if len(partition.groups) > _MANY_GROUPS:
        return True
    cell_of_row = np.concatenate([partition.index(left), partition.index(right)])
    counts = np.bincount(cell_of_row, minlength=partition.n_cells)
    # Draws in no group, or in a group that varies in several columns and so is a single cell.
    n_uncovered = counts[-1]
    first_cell = 0
    for group in partition.groups:
        if len(_varying_columns(group)) > 1:
            n_uncovered = n_uncovered + counts[first_cell]
        first_cell += group.n_cells
    return bool(n_uncovered > (1.0 - _COVERED_FRACTION) * counts.sum())


# The former name, which `methods.published` still uses.
Learned = LearnedPartition
