"""One score over all outputs, whatever their shapes: it is large where the left side is likelier.

A single number is its own score. Outputs with several columns get the additive score of `additive`,
per shape, to which the log-odds of the shape are added. `tails` then chooses the end of a score
that is worth certifying.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.environment import one_thread
from epsilometer.methods.events.additive import (
    GRAM_ROWS,
    MOST_WEIGHTS,
    FoldRows,
    Side,
    as_score,
    fit,
    folds_of,
    starts_of,
)
from epsilometer.methods.events.cells import (
    MOST_ROWS,
    ColumnCells,
    ColumnView,
    ProductCells,
    blocks_of_both,
    cut_columns,
)
from epsilometer.methods.events.curves import separation_evidence
from epsilometer.methods.events.learning import line_of_long_numbers
from epsilometer.outputs import (
    Block,
    BlockPartition,
    Event,
    Group,
    Line,
    Numbers,
    Outputs,
    Partition,
)
from epsilometer.outputs.columns import Column, is_long_number
from epsilometer.outputs.scores import AdditiveScore

# Training draws per side, or of one shape, below which there is nothing to learn.
_FEWEST_DRAWS = 5
# Cells into which `LearnedScore.partition` divides a score, to compare it with other partitions.
_N_CELLS = 32
# Scores nearer than this fraction of their range are equal, but were summed in another order.
_ROUNDING = 1e-9
# Numbers beyond the inverse of this, and differences below it, are not multiplied: they overflow.
_TINY = 1e-100


class ShapeScore(NamedTuple):
    """How the outputs of one shape are scored.

    Attributes:
        partition: the groups of the shape with the scores of what varies in them, without lines.
        offsets: shape (groups,), what is added to the score of each group.
    """

    partition: BlockPartition
    offsets: Floats


@dataclass(frozen=True, slots=True)
class LearnedScore:
    """One score over all outputs, with the cross-validated scores of the training draws.

    Attributes:
        shapes: how each shape is scored.
        left: shape (n,), scores of the left draws by weights that were fitted without them.
        right: shape (m,), of the right draws.
        ordered: the scores of all draws by the final weights, sorted; if the score is the output
            itself, those of the first draws of either side.
        is_line: whether the score is the output itself, a number.
        centre: if given, the score is the distance of a number from here.
    """

    shapes: Sequence[ShapeScore]
    left: Floats
    right: Floats
    ordered: Floats
    is_line: bool = False
    centre: float | None = None

    @property
    def additive_scores(self) -> list[AdditiveScore]:
        """Its scores of several columns; none if it is a number or depends on the shape only."""
        return [
            group.score
            for shape in self.shapes
            if len(shape.partition.atoms) > 1
            for group in shape.partition.groups
            if isinstance(group.score, AdditiveScore)
        ]

    @property
    def partition(self) -> Partition:
        """Cells of about equal mass."""
        quantiles = np.linspace(0.0, 1.0, _N_CELLS + 1)[1:-1]
        return self.cut(np.unique(np.quantile(self.ordered, quantiles)))

    def cut(self, thresholds: Floats) -> Partition:
        """Cells between the given scores, in every shape.

        Args:
            thresholds: shape (k,), ascending.
        """
        if self.centre is not None:
            thresholds = np.concatenate([self.centre - thresholds[::-1], self.centre + thresholds])
        blocks = []
        for block, offsets in self.shapes:
            groups = []
            for group, offset in zip(block.groups, offsets, strict=True):
                if self._has_scores(group):
                    groups.append(replace(group, line=Line(np.unique(thresholds - offset))))
                else:
                    groups.append(group)
            blocks.append(replace(block, groups=tuple(groups)))
        return Partition(tuple(blocks))

    def tail_event(self, mass: float, upper: bool) -> Event:
        """The outputs at one end of the score.

        Args:
            mass: the fraction of all draws that it should hold.
            upper: whether it is the upper end.
        """
        threshold = self._threshold(mass, upper)
        # Cells along a line from low to high numbers; with a centre, far ones are at both ends.
        cells = [not upper, upper] if self.centre is None else [upper, not upper, upper]
        chosen: list[bool] = []
        for block, offsets in self.shapes:
            for group, offset in zip(block.groups, offsets, strict=True):
                if self._has_scores(group):
                    # The last cell of a line is NaN.
                    chosen += [*cells, False]
                else:
                    chosen.append(bool((offset >= threshold) == upper))
            # The cell of all other outputs of this shape.
            chosen.append(False)
        # The cell of outputs of any other shape.
        chosen.append(False)
        return Event(self.cut(np.array([threshold])), np.array(chosen))

    def _has_scores(self, group: Group) -> bool:
        """Whether outputs of this group differ in their score."""
        return self.is_line or group.score is not None

    def _threshold(self, mass: float, upper: bool) -> float:
        """The score between the tail and the rest, not on a score that draws have."""
        ordered = self.ordered
        n = len(ordered)
        size = min(max(round(mass * n), 1), n - 1)
        first_above = n - size if upper else size
        low = ordered[first_above - 1]
        high = ordered[first_above]
        # Sums of weights are equal only up to rounding.
        rounding = 0.0 if self.is_line else _ROUNDING * (ordered[-1] - ordered[0])
        middle = 0.5 * (low + high)
        if high - low > rounding and middle > low:
            return float(middle)
        return float(high - rounding if upper else np.nextafter(low + rounding, np.inf))


def learn_scores(left: Outputs, right: Outputs, lines: bool = True) -> list[LearnedScore]:
    """Learns the scores that may be best.

    One is a score of the columns; if columns are correlated, another is a score of what each column
    adds to those before it.

    Args:
        left: training outputs.
        right: training outputs.
        lines: whether single numbers, which are their own score, are wanted.
    """
    pairs = blocks_of_both(left, right)
    if min(len(left), len(right)) < _FEWEST_DRAWS:
        return []
    has_several_columns = any(
        len(left_block.columns) > 1 and not is_long_number(left_block.shape)
        for left_block, _ in pairs
    )
    if not has_several_columns:
        return _scores_of_single_values(pairs) if lines else []
    with one_thread():
        scores = [_score_of_columns(pairs, decorrelate=False)]
        if len(pairs) == 1 and _has_correlated_columns(*pairs[0]):
            scores.append(_score_of_columns(pairs, decorrelate=True))
    return scores


# --- Single values ---

# Outputs that take this many distinct values are also put into a learned order: fewer have hardly
# any order, and more are too many to learn one.
_FEW_VALUES = range(4, 25)
# Single numbers are densest in the shortest interval with this fraction of them: a spike holds it
# whole, and for plain noise the interval varies little from sample to sample.
_DENSEST_FRACTION = 0.1
# Draws per side that are sorted to place cuts: more would hardly move them, and all draws are
# counted between the cuts.
_SORTED_ROWS = 1 << 15
# Draws per side that decide between the number and its distance from the centre.
_SCREENING_ROWS = 1 << 12
# Prior log-odds against the distance (noisy_gradient_descent at 1e4 draws: one seed in 16 took it
# by chance, and certified nothing).
_LOG_ODDS_AGAINST_DISTANCE = 2.0


def _scores_of_single_values(pairs: Sequence[tuple[Block, Block]]) -> list[LearnedScore]:
    """Scores of outputs that are single values of one shape.

    A number is its own score. A second one is its distance from where the numbers are densest, if
    that separates the sides better. If there are few distinct values, of any type, a third score
    learns their order from the log-ratio of each value and of its neighbours.
    """
    if len(pairs) > 1:
        return []
    left_block, right_block = pairs[0]
    n_columns = len(left_block.columns)
    if not n_columns:
        return []
    place = line_of_long_numbers(left_block, right_block) if n_columns > 1 else 0
    if place is None:
        return []
    left_column = left_block.columns[place]
    right_column = right_block.columns[place]
    learned_orders: list[LearnedScore] = []
    if n_columns == 1:
        screened = np.concatenate(
            [
                _values_or_codes(left_column)[:_SCREENING_ROWS],
                _values_or_codes(right_column)[:_SCREENING_ROWS],
            ]
        )
        if len(np.unique(screened)) in _FEW_VALUES:
            with one_thread():
                learned_orders.append(_score_of_columns(pairs, decorrelate=False))
    if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
        return learned_orders
    left = _clipped_numbers(left_column)
    right = _clipped_numbers(right_column)
    if min(len(left), len(right)) < _FEWEST_DRAWS:
        return learned_orders
    ordered = np.sort(np.concatenate([left[:_SORTED_ROWS], right[:_SORTED_ROWS]]))
    if not ordered[-1] - ordered[0] > _TINY * len(ordered):
        return learned_orders
    group = Group((-1,) * n_columns, column=place)
    partition = BlockPartition(left_block.shape, (None,) * n_columns, (group,))
    shapes = [ShapeScore(partition=partition, offsets=np.zeros(1))]
    number = LearnedScore(shapes, left=left, right=right, ordered=ordered, is_line=True)
    centre = _densest_place(ordered)
    if not _separates_better_by_distance(left, right, centre):
        return [number, *learned_orders]
    distance = LearnedScore(
        shapes,
        left=np.abs(left - centre),
        right=np.abs(right - centre),
        ordered=np.sort(np.abs(ordered - centre)),
        is_line=True,
        centre=centre,
    )
    return [number, distance, *learned_orders]


def _values_or_codes(column: Column) -> Array:
    """The values of numbers, or the codes of labels; shape (n,)."""
    return column.values if isinstance(column, Numbers) else column.codes


def _clipped_numbers(column: Numbers) -> Floats:
    """The first values without NaN, which is left to the cells; infinity becomes a large number."""
    values = np.asarray(column.values[:MOST_ROWS], np.float64)
    return np.clip(values[~np.isnan(values)], -1.0 / _TINY, 1.0 / _TINY)


def _densest_place(ordered: Floats) -> float:
    """The middle of the shortest interval with `_DENSEST_FRACTION` of the values."""
    reach = max(int(_DENSEST_FRACTION * len(ordered)), 1)
    widths = ordered[reach:] - ordered[:-reach]
    return float(ordered[np.argmin(widths) + reach // 2])


def _separates_better_by_distance(left: Floats, right: Floats, centre: float) -> bool:
    """Whether the distance from the centre separates the sides clearly better than the number."""
    if not abs(centre) < 1.0 / _TINY:
        return False
    first_left = left[:_SCREENING_ROWS]
    first_right = right[:_SCREENING_ROWS]
    by_number = separation_evidence(first_left, first_right)
    by_distance = separation_evidence(np.abs(first_left - centre), np.abs(first_right - centre))
    return by_number + _LOG_ODDS_AGAINST_DISTANCE < by_distance


# --- Scores of several columns ---

# Shapes that get a score of their own, the most frequent first.
_MOST_SHAPES = 16
# Of at most this many columns, interactions are scored, too.
_MOST_FOR_INTERACTIONS = 4


@dataclass(frozen=True, slots=True)
class _FittedShape:
    """The score of a shape with the scores of its training draws.

    Attributes:
        score: of the shape.
        left: shape (n,), scores of the left draws by weights that were fitted without their fold.
        right: shape (m,), of the right draws.
        final: shape (n + m,), scores of all draws by the final weights.
    """

    score: ShapeScore
    left: Floats
    right: Floats
    final: Floats


def _score_of_columns(pairs: Sequence[tuple[Block, Block]], decorrelate: bool) -> LearnedScore:
    """Scores every shape by its columns and adds the log-odds of the shape.

    Args:
        pairs: left and right training outputs of each shape.
        decorrelate: whether columns are replaced by what they add to those before them.
    """
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)
    folds = [(folds_of(left), folds_of(right)) for left, right in by_size]
    fold_sizes = np.array([[[len(rows) for rows in side] for side in pair] for pair in folds])
    all_log_odds = _log_odds(fold_sizes)
    shapes = []
    left_scores = []
    right_scores = []
    final_scores = []
    for number, (left_block, right_block) in enumerate(by_size):
        left_folds, right_folds = folds[number]
        log_odds = all_log_odds[number, 0]
        log_odds_without = all_log_odds[number, 1:]
        if number < _MOST_SHAPES:
            fitted = _fit_shape(left_block, right_block, left_folds, right_folds, decorrelate)
        else:
            fitted = _without_score(left_block, right_block)
        for scores, fold_rows in ((fitted.left, left_folds), (fitted.right, right_folds)):
            for rows, without in zip(fold_rows, log_odds_without, strict=True):
                scores[rows] += without
        left_scores.append(fitted.left)
        right_scores.append(fitted.right)
        final_scores.append(fitted.final + log_odds)
        shapes.append(ShapeScore(fitted.score.partition, fitted.score.offsets + log_odds))
    return LearnedScore(
        shapes,
        left=np.concatenate(left_scores),
        right=np.concatenate(right_scores),
        ordered=np.sort(np.concatenate(final_scores)),
    )


def _log_odds(fold_sizes: Integers) -> Floats:
    """Log-odds of each shape, overall and leaving out each fold.

    Args:
        fold_sizes: shape (shapes, 2, folds), draws of the left and of the right side.

    Returns:
        Shape (shapes, 1 + folds).
    """
    total = fold_sizes.sum(axis=2, keepdims=True)
    counts = np.concatenate([total, total - fold_sizes], axis=2).astype(np.float64)
    if len(counts) == 1:
        return np.zeros((1, counts.shape[2]))
    # Half a draw more for each shape shrinks the odds towards even ones.
    left = counts[:, 0]
    right = counts[:, 1]
    left_log = np.log((left + 0.5) / (left.sum(axis=0) + 1.0))
    right_log = np.log((right + 0.5) / (right.sum(axis=0) + 1.0))
    return np.asarray(left_log - right_log)


def _fit_shape(
    left: Block, right: Block, left_folds: FoldRows, right_folds: FoldRows, decorrelate: bool
) -> _FittedShape:
    """Fits the additive score of one shape, with interactions if there are few columns."""
    if decorrelate:
        views = _innovations(left, right)
    else:
        views = [ColumnView(column, None) for column in range(len(left.columns))]
    if not views or min(left.size, right.size) < _FEWEST_DRAWS:
        return _without_score(left, right)
    columns = cut_columns(left, right, views)
    if not columns:
        return _without_score(left, right)
    interactions = _interactions(columns)
    cuts: list[ColumnCells | ProductCells] = [*columns, *interactions]
    left_side = Side.of(cuts, left, left_folds)
    right_side = Side.of(cuts, right, right_folds)
    starts = starts_of(cuts)
    all_weights = fit(cuts, left_side, right_side)
    weights = all_weights[0]
    weights_without = list(all_weights[1:])
    if interactions:
        weights_of_cuts = np.split(weights, starts[1:-1])
        score = _score_by_key(left, columns, interactions, weights_of_cuts)
    else:
        score = _one_group(left, as_score(columns, weights))
    return _FittedShape(
        score=score,
        left=left_side.left_out(starts, weights_without),
        right=right_side.left_out(starts, weights_without),
        final=np.concatenate([left_side.score(starts, weights), right_side.score(starts, weights)]),
    )


def _without_score(left: Block, right: Block) -> _FittedShape:
    """A shape whose outputs all have the score 0."""
    return _FittedShape(
        score=_one_group(left),
        left=np.zeros(left.size),
        right=np.zeros(right.size),
        final=np.zeros(left.size + right.size),
    )


def _one_group(block: Block, score: AdditiveScore | None = None) -> ShapeScore:
    """All outputs of a shape as one group."""
    n_columns = len(block.columns)
    group = Group((-1,) * n_columns or (0,), score=score)
    partition = BlockPartition(block.shape, (None,) * n_columns, (group,))
    return ShapeScore(partition=partition, offsets=np.zeros(1))


def _interactions(columns: Sequence[ColumnCells]) -> list[ProductCells]:
    """Every other column, conditional on the column with the most repeated values.

    There are none for more than `_MOST_FOR_INTERACTIONS` columns, without a continuous column among
    the others, and if there would be too many weights.
    """
    if not 1 < len(columns) <= _MOST_FOR_INTERACTIONS:
        return []
    key = max(columns, key=lambda column: len(column.atoms))
    others = [column for column in columns if column is not key]
    size_of_columns = sum(column.size for column in columns)
    size_of_interactions = key.size * sum(other.size for other in others)
    has_continuous = any(other.size > len(other.atoms) for other in others)
    # A continuous column may have single values, too, but then is no key.
    is_key = 2 * len(key.known) > key.size
    if not is_key or not has_continuous or size_of_columns + size_of_interactions > MOST_WEIGHTS:
        return []
    return [ProductCells(key, other) for other in others]


def _score_by_key(
    block: Block,
    columns: Sequence[ColumnCells],
    interactions: list[ProductCells],
    weights: Sequence[Floats],
) -> ShapeScore:
    """A group for each known value of the key, with a score of the other columns.

    A last group holds all other values of the key.

    Args:
        block: outputs of the shape.
        columns: of the score.
        interactions: of the key with the other columns.
        weights: for each of the columns, then for each interaction.
    """
    key = interactions[0].key
    key_column = key.term.column
    n_columns = len(block.columns)
    weights_of_columns = weights[: len(columns)]
    by_column = {
        cut.term.column: cut_weights
        for cut, cut_weights in zip(columns, weights_of_columns, strict=True)
    }
    # Shape (values of the key, cells of the other column).
    by_value = [cut_weights.reshape(key.size, -1) for cut_weights in weights[len(columns) :]]
    n_values = len(key.known)
    groups = []
    for code in range(n_values):
        terms = []
        for interaction, more_weights in zip(interactions, by_value, strict=True):
            other = interaction.other
            terms.append(other.weighted(by_column[other.term.column] + more_weights[code]))
        signature = tuple(code if number == key_column else -1 for number in range(n_columns))
        groups.append(Group(signature, score=AdditiveScore(tuple(terms))))
    rest_score = as_score(columns, np.concatenate(weights_of_columns))
    groups.append(Group((-1,) * n_columns, score=rest_score))
    atoms = tuple(key.known if number == key_column else None for number in range(n_columns))
    return ShapeScore(
        partition=BlockPartition(block.shape, atoms, tuple(groups)),
        offsets=np.append(by_column[key_column][:n_values], 0.0),
    )


# --- Correlated columns ---

# Columns, at most, whose correlations are used.
_MOST_CORRELATED = 64
# Correlations up to this are left alone.
_LEAST_CORRELATION = 0.05
# Rows of both sides in which repeated values are looked for.
_ROWS_FOR_REPEATS = 2048
# Columns vary continuously if at most this fraction of neighbours among sorted values are equal.
_MOST_REPEATED = 0.001
# Outliers are pulled in to this many units from the median.
_MOST_UNITS = 50.0


def _has_correlated_columns(left: Block, right: Block) -> bool:
    """Whether all columns vary continuously and some of them are correlated."""
    if not 1 < len(left.columns) <= _MOST_CORRELATED:
        return False
    if min(left.size, right.size) < _FEWEST_DRAWS:
        return False
    rows = _matrix(left, right)
    if rows is None:
        return False
    screened = np.sort(rows[:_ROWS_FOR_REPEATS], axis=0)
    if (screened[1:] == screened[:-1]).mean() > _MOST_REPEATED:
        return False
    standardised, _ = _standardised(rows)
    correlation = np.abs(np.atleast_2d(np.corrcoef(standardised.T)))
    np.fill_diagonal(correlation, 0.0)
    return bool(correlation.max() > _LEAST_CORRELATION)


def _matrix(left: Block, right: Block) -> Floats | None:
    """The first rows of both sides, shape (rows, columns).

    Returns:
        None if there is anything else than finite numbers of a usual size, or a column with a
        quartile range of about 0.
    """
    columns = []
    for left_column, right_column in zip(left.columns, right.columns, strict=True):
        if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
            return None
        columns.append(
            np.concatenate(
                [
                    np.asarray(left_column.values[:GRAM_ROWS], np.float64),
                    np.asarray(right_column.values[:GRAM_ROWS], np.float64),
                ]
            )
        )
    rows = np.stack(columns, axis=1)
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    varies = high / 2 - low / 2 > _TINY
    is_usual = varies & (np.abs(low) < 1.0 / _TINY) & (np.abs(high) < 1.0 / _TINY)
    return rows if np.isfinite(rows).all() and is_usual.all() else None


def _standardised(rows: Floats) -> tuple[Floats, Floats]:
    """Columns around their medians, in units of their median absolute deviation; and the units.

    Returns:
        Shape (rows, columns), with outliers pulled in, and shape (columns,).
    """
    centre = np.median(rows, axis=0)
    unit = np.maximum(np.median(np.abs(rows - centre), axis=0), 1e-300)
    return np.clip((rows - centre) / unit, -_MOST_UNITS, _MOST_UNITS), unit


def _innovations(left: Block, right: Block) -> list[ColumnView]:
    """Each column less its best linear forecast from those before it.

    They are given by the inverse of the Cholesky factor of the covariance.
    """
    rows = _matrix(left, right)
    assert rows is not None
    standardised, unit = _standardised(rows)
    factor = np.linalg.cholesky(np.cov(standardised.T) + 1e-9 * np.eye(rows.shape[1]))
    mixes = np.linalg.inv(factor) / unit
    return [ColumnView(column, mix) for column, mix in enumerate(mixes)]
