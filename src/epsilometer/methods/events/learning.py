"""Ways of cutting the outputs into cells, learned from training draws; an additive score where there are columns."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.methods.events.additive import fit_score
from epsilometer.methods.events.cells import REPEATS, blocks_of_both, learn_groups, learn_line
from epsilometer.methods.events.choosing import lay_out
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.outputs.columns import EXACT, has_digit, is_long_number
from epsilometer.outputs.scores import Score

# Cells per column, for judging how many draws a score needs.
MOST_BINS = 32
# A shape with fewer training draws than this stays one cell: too little to learn a score from.
_ENOUGH_FOR_SCORE = 200
# Draws per side that place the cells of a score: more would not move them, and trees are slow.
_LINE_ROWS = 40_000
# When frequent signatures cover this share of the training draws, a score over all columns has
# little to add.
_COVERED = 0.99
# With this many draws per side for each weight of a score, fitting and counting may share them.
_ENOUGH_PER_WEIGHT = 100
# More signatures than this are better estimated together, by a score, than one by one; with fewer,
# they may be all.
_MANY_GROUPS = 64
_MOST_KINDS = 32
# With fewer draws per side, scores see more than kinds one by one (svt1 as ten answers at 3000
# draws, of which 900 learn: .53 of the oracle, one by one .43). Nor may more draws than the second
# number be of no known kind: the leak could lie in what varies there.
_ENOUGH_FOR_KINDS = 3000
_FEW_OTHERS = 32

# Makes a score of the given columns from training outputs of one shape, left and right.
FitScore = Callable[[Block, Block, Sequence[int]], Score]
# Which rows of the left and of the right.
Rows = Sequence[Integers | slice]
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Learned:
    """A partition and the training draws that may be counted in it: none of those that shaped its scores.

    Attributes:
        partition: the cells.
        left: training outputs for counting.
        right: training outputs for counting.
        kinds: the cells in the order of their values, where they are so few that each is best
            judged by itself.
    """

    partition: Partition
    left: Outputs
    right: Outputs
    kinds: Integers | None = None

    def halves(self) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
        """How often each cell was seen in either half of the left draws, and of the right ones; shape (cells,) each."""
        cuts = [
            (side, slice(0, side.size // 2), slice(side.size // 2, None))
            for side in (self.left, self.right)
        ]
        (a, b), (c, d) = (
            [self.partition.count(side.take(half)) for half in halves] for side, *halves in cuts
        )
        return (a, b), (c, d)


def learn_by_values(left: Outputs, right: Outputs, ordered: Floats | None = None) -> Learned:
    """Cells by repeated values; `ordered` are single numbers that are sorted already."""
    partition = Partition(tuple(_by_values(*each, ordered) for each in blocks_of_both(left, right)))
    return Learned(partition, left, right)


def few_kinds(way: Learned) -> Integers | None:
    """The cells of outputs with several columns, if a score has no fewer weights, as for ten answers with one "yes"."""
    partition = way.partition
    left = way.left
    right = way.right
    most = min(1 + max(len(block.atoms) for block in partition.blocks), _MOST_KINDS)
    n_groups = sum(len(block.groups) for block in partition.blocks)
    if n_groups > most or min(len(left), len(right)) < _ENOUGH_FOR_KINDS:
        return None
    names: list[tuple[int, ...]] = []  # of what is not known: none
    for block in partition.blocks:
        for group in block.groups:
            name = (
                (len(block.atoms), *group.signature)
                if group.line or -1 not in group.signature
                else ()
            )
            names += [(*name, cell) if name else () for cell in range(group.n_cells)]
        names.append(())
    seen = partition.count(left) + partition.count(right)
    unknown = [number for number, name in enumerate([*names, ()]) if not name]
    varying = np.concatenate([unknown, *lay_out(partition).bins])
    kinds = sorted(np.flatnonzero(seen[:-1]).tolist(), key=names.__getitem__)
    is_known = seen[varying.astype(np.int64)].sum() <= _FEW_OTHERS
    return np.array(kinds) if 1 < len(kinds) <= most and is_known else None


def learn_partitions(left: Outputs, right: Outputs) -> list[Learned]:
    """Every way that may be best: by repeated values, by a score over everything."""
    ways = [learn_by_values(left, right)]
    pairs = blocks_of_both(left, right)
    if any(
        _needs_score(part, a, b)
        for part, (a, b) in zip(ways[0].partition.blocks, pairs, strict=True)
    ):
        rest = left, right
        # Counting on the draws that fitted a score flatters it, so few draws are halved; many do
        # both (measured on 5-dimensional Laplace at 1e5: 1.370 ± 0.048 whole, 1.363 ± 0.062
        # halved).
        if min(len(left), len(right)) < _ENOUGH_PER_WEIGHT * MOST_BINS * max(
            len(a.columns) for a, _ in pairs
        ):
            pairs = blocks_of_both(half_of(left, 0), half_of(right, 0))
            rest = (half_of(left, 1), half_of(right, 1))
        # A score over all columns, where there are several.
        wide = [len(a.columns) > 1 and not is_long_number(a.shape) for a, _ in pairs]
        cut = zip(wide, pairs, strict=True)
        blocks = [
            _by_score(*pair, fit_score) if is_wide else _by_values(*pair) for is_wide, pair in cut
        ]
        ways.append(Learned(Partition(tuple(blocks)), *rest))
    return ways


def learn_simpler(partition: Partition, left: Outputs, right: Outputs) -> list[Learned]:
    """Ways that are easier to understand than the given one, counted on the same draws.

    The one column that matters most instead of a score, and repeated values without what varies
    beside them.
    """
    pairs = {a.shape: (a, b) for a, b in blocks_of_both(left, right)}
    single = [_by_best_column(block, pairs.get(block.shape)) for block in partition.blocks]
    whole = [
        replace(block, groups=tuple(Group(each.signature) for each in block.groups))
        for block in partition.blocks
    ]
    ways = (
        [tuple(block or old for block, old in zip(single, partition.blocks, strict=True))]
        if any(single)
        else []
    )
    if sum(len(block.groups) for block in whole) > 1:
        ways.append(tuple(whole))
    return [Learned(Partition(blocks), left, right) for blocks in ways]


def _by_best_column(
    block: BlockPartition, pair: tuple[Block, Block] | None
) -> BlockPartition | None:
    """Cells of the column with the largest part in a score; None without such a column."""
    terms = [term for group in block.groups for term in getattr(group.score, "terms", ())]
    numbers = [term for term in terms if isinstance(term.cells, Line)]
    if not numbers or pair is None:
        return None
    column = max(numbers, key=lambda term: term.reach).column
    whole = _cut_by_value(Group((-1,) * len(block.atoms)), *pair, column)
    return BlockPartition(block.shape, (None,) * len(block.atoms), (whole,))


def learn_scored(
    left: Outputs, right: Outputs, fit: FitScore, fewest_columns: int = 2
) -> Learned | None:
    """Cells of one score over all columns, made by `fit` on half of the draws and counted on the other half.

    None when no shape has at least `fewest_columns` columns.
    """
    learning = blocks_of_both(half_of(left, 0), half_of(right, 0))
    if all(len(a.columns) < fewest_columns for a, _ in learning):
        return None
    blocks = [
        _by_score(a, b, fit) if len(a.columns) >= fewest_columns else _by_values(a, b)
        for a, b in learning
    ]
    return Learned(Partition(tuple(blocks)), half_of(left, 1), half_of(right, 1))


def half_of(outputs: Outputs, number: int) -> Outputs:
    """The first or the second half of some draws."""
    middle = len(outputs) // 2
    return outputs.take(slice(middle, len(outputs)) if number else slice(0, middle))


def _cut_by_value(
    group: Group, left: Block, right: Block, column: int, rows: Rows = (_ALL, _ALL)
) -> Group:
    """Cuts a group, which has the given rows, along one column of numbers; names stay one cell."""
    a = left.columns[column]
    b = right.columns[column]
    if not (isinstance(a, Numbers) and isinstance(b, Numbers)):
        return group
    return replace(group, line=learn_line(a.values[rows[0]], b.values[rows[1]]), column=column)


def _by_values(left: Block, right: Block, ordered: Floats | None = None) -> BlockPartition:
    """Cells by repeated values; a group that varies in one column is cut there."""
    one, other = (side.columns[0] if len(side.columns) == 1 else None for side in (left, right))
    if isinstance(one, Numbers) and isinstance(other, Numbers):
        line = learn_line(one.values, other.values, ordered=ordered)
        return BlockPartition(left.shape, (None,), (Group((-1,), line),))
    place = line_of_long_numbers(left, right) if is_long_number(left.shape) else None
    if place is not None:
        return BlockPartition(
            left.shape, (None, None), (_cut_by_value(Group((-1, -1)), left, right, place),)
        )
    partition, varying = learn_groups(left, right)
    groups = list(partition.groups)
    for number, *rows in varying:
        columns = _varying(groups[number])
        if len(columns) == 1:
            groups[number] = _cut_by_value(groups[number], left, right, columns[0], rows)
    return replace(partition, groups=tuple(groups))


def line_of_long_numbers(left: Block, right: Block) -> int | None:
    """The column that orders numbers held in two columns; None if their single values say more."""
    rounded, rest = (
        np.concatenate([_values(block, column) for block in (left, right)]) for column in (0, 1)
    )
    if has_digit(left.shape) and np.ptp(rounded) < EXACT:
        return 1  # the digit alone, which is exact
    _, count = np.unique(rest, return_counts=True)
    # Where the remainders repeat, there are only a few numbers, drawn again and again, and no line.
    return None if 2 * count[count >= REPEATS].sum() > count.sum() else 0


def _values(block: Block, column: int) -> Array:
    found = block.columns[column]
    if isinstance(found, Numbers):
        return found.values
    return np.array(
        [zlib.crc32(label.encode(errors="replace")) for label in found.labels], np.int64
    )[found.codes]


def _by_score(left: Block, right: Block, fit: FitScore) -> BlockPartition:
    """Cells of one score over all columns; a single cell if there are too few draws to learn it from."""
    n_columns = len(left.columns)
    group = Group((-1,) * n_columns)
    if min(left.size, right.size) >= _ENOUGH_FOR_SCORE:
        score = fit(left, right, range(n_columns))
        heads = (
            [column.take(slice(0, _LINE_ROWS)) for column in side.columns] for side in (left, right)
        )
        a, b = map(score.evaluate, heads)
        group = replace(group, line=learn_line(a, b), score=score)
    return BlockPartition(left.shape, (None,) * n_columns, (group,))


def _varying(group: Group) -> list[int]:
    return [column for column, code in enumerate(group.signature) if code < 0]


def _needs_score(partition: BlockPartition, left: Block, right: Block) -> bool:
    """Whether repeated values leave something that only a score can use."""
    if len(left.columns) < 2 or partition.is_single_line:
        return False
    if len(partition.groups) > _MANY_GROUPS:
        return True
    cells = np.bincount(
        np.concatenate([partition.index(left), partition.index(right)]), minlength=partition.n_cells
    )
    first = np.cumsum([0] + [group.n_cells for group in partition.groups])
    whole = [
        cells[start]
        for start, group in zip(first, partition.groups, strict=False)
        if len(_varying(group)) > 1
    ]
    return bool(cells[-1] + sum(whole) > (1.0 - _COVERED) * cells.sum())
