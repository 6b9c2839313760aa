"""The additive score over all outputs, whatever their shapes.

Each shape gets an additive score of its columns (`additive`), with interactions if there are few
columns, and the log-odds of the shape are added: so outputs of all shapes are comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.additive import (
    MOST_WEIGHTS,
    FoldRows,
    Side,
    as_score,
    fit,
    folds_of,
    starts_of,
)
from epsilometer.methods.scores.cells import (
    ColumnCells,
    ColumnView,
    ProductCells,
    cut_columns,
)
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.line import FEWEST_DRAWS
from epsilometer.methods.scores.rotation import innovations
from epsilometer.methods.scores.values import posterior_means
from epsilometer.outputs import Block, BlockPartition, Group
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.scores import AdditiveScore

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


def additive_score(
    name: str, pairs: Sequence[tuple[Block, Block]], decorrelate: bool = False
) -> ContinuousScore:
    """Scores every shape by its columns and adds the log-odds of the shape.

    Args:
        name: of the score.
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
    return ContinuousScore(
        name=name,
        shapes=shapes,
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
    counts = np.concatenate([total, total - fold_sizes], axis=2)
    if len(counts) == 1:
        return np.zeros((1, counts.shape[2]))
    # A shape is an outcome like any other.
    return posterior_means(counts[:, 0].T, counts[:, 1].T).T


def _fit_shape(
    left: Block, right: Block, left_folds: FoldRows, right_folds: FoldRows, decorrelate: bool
) -> _FittedShape:
    """Fits the additive score of one shape, with interactions if there are few columns."""
    if decorrelate:
        views = innovations(left, right)
    else:
        views = [ColumnView(column, None) for column in range(len(left.columns))]
    if not views or min(left.size, right.size) < FEWEST_DRAWS:
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
    return ShapeScore(partition=one_group(block.shape, n_columns, group), offsets=np.zeros(1))


def _interactions(columns: Sequence[ColumnCells]) -> list[ProductCells]:
    """Every other column, conditional on the column with the most repeated values, labels first.

    There are none for more than `_MOST_FOR_INTERACTIONS` columns, without a continuous column among
    the others, and if there would be too many weights.
    """
    if not 1 < len(columns) <= _MOST_FOR_INTERACTIONS:
        return []
    # Rounded numbers repeat as labels do, but neighbours among them are alike.
    key = max(
        columns,
        key=lambda column: (isinstance(column.term.cells, LabelAtoms), len(column.atoms)),
    )
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
