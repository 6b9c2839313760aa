"""The sum of the fitted scores of one shape, where several of them know something.

One mechanism may shift one column, correlate two others and make a third depend on a fourth: then
no score sees all of it. The side is regressed on the cross-fitted scores themselves (stacking).

Reference: Wolpert (1992), "Stacked generalization".
"""

from collections.abc import Sequence

import numpy as np

from epsilometer.methods.scores.additive import PriorPart
from epsilometer.methods.scores.folds import fold_of_rows
from epsilometer.methods.scores.learned import ContinuousScore, LearnedScore, ShapeScore, one_group
from epsilometer.methods.scores.regression import fit_regression
from epsilometer.outputs import Block, Group
from epsilometer.outputs.scores import AdditiveScore, JointScore, SumScore, TreeScore

# Draws per side that fit the few weights: more would not move them.
_MOST_ROWS = 20_000


def stacked_score(
    left: Block, right: Block, scores: Sequence[LearnedScore]
) -> ContinuousScore | None:
    """The weighted sum of the fitted scores of a shape; None if there are fewer than two.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        scores: of these outputs; those that are not fitted to all columns are left out.
    """
    parts = [(score, function) for score in scores if (function := _function(score)) is not None]
    if len(parts) < 2:
        return None
    n_left = min(_MOST_ROWS, *(len(score.left) for score, _ in parts))
    n_right = min(_MOST_ROWS, *(len(score.right) for score, _ in parts))
    left_features = np.stack([score.left[:n_left] for score, _ in parts], axis=1)
    right_features = np.stack([score.right[:n_right] for score, _ in parts], axis=1)
    fit = fit_regression(
        left_features,
        right_features,
        fold_of_rows(left.places()[:n_left]),
        fold_of_rows(right.places()[:n_right]),
        [PriorPart(slice(0, len(parts)), np.eye(len(parts)))],
    )
    n_columns = len(left.columns)
    sum_score = SumScore(tuple(function for _, function in parts), fit.weights)
    group = Group((-1,) * n_columns, score=sum_score)
    partition = one_group(left.shape, n_columns, group)
    final = [
        sum_score.evaluate([column.take(slice(0, n_rows)) for column in block.columns])
        for block, n_rows in ((left, n_left), (right, n_right))
    ]
    return ContinuousScore(
        name="stacked",
        left=fit.left,
        right=fit.right,
        ordered=np.sort(np.concatenate(final)),
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )


def _function(score: LearnedScore) -> AdditiveScore | JointScore | TreeScore | None:
    """What a fitted score of one shape computes; None for any other score."""
    if score.is_line or not isinstance(score, ContinuousScore) or len(score.shapes) != 1:
        return None
    groups = score.shapes[0].partition.groups
    function = groups[0].score
    if len(groups) == 1 and isinstance(function, AdditiveScore | JointScore | TreeScore):
        return function
    return None
