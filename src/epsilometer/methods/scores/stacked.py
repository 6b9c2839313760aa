"""The sum of the fitted scores of one shape, where several of them know something.

One mechanism may shift one column, correlate two others and make a third depend on a fourth: then
no score sees all of it. The side is regressed on the cross-fitted scores themselves (stacking).

Reference: Wolpert (1992), "Stacked generalization".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epsilometer.methods.scores.additive import PriorPart
from epsilometer.methods.scores.folds import fold_of_rows
from epsilometer.methods.scores.learned import ContinuousScore, LearnedScore, ShapeScore, one_group
from epsilometer.methods.scores.pooled import ShapeOdds
from epsilometer.methods.scores.regression import fit_regression
from epsilometer.outputs import Block, Group
from epsilometer.outputs.scores import AdditiveScore, JointScore, SumScore, TreeScore

# Draws per side that fit the few weights: more would not move them.
_MOST_ROWS = 20_000


class StackedScore(NamedTuple):
    """A weighted sum of scores, and the weight of the log-odds of the shape in it."""

    score: ContinuousScore
    weight_of_shape: float


def stacked_score(
    left: Block, right: Block, scores: Sequence[LearnedScore], odds: ShapeOdds | None
) -> StackedScore | None:
    """The weighted sum of fitted scores; None if there are fewer than two.

    Args:
        left: training outputs of some columns.
        right: training outputs of the same columns.
        scores: of these outputs; those that are not fitted to all columns are left out.
        odds: of the shapes of the outputs, which are one more score; None if all have one shape.
    """
    parts = [(score, function) for score in scores if (function := _function(score)) is not None]
    n_parts = len(parts) + (odds is not None)
    if not parts or n_parts < 2:
        return None
    n_left = min(_MOST_ROWS, *(len(score.left) for score, _ in parts))
    n_right = min(_MOST_ROWS, *(len(score.right) for score, _ in parts))
    left_features = [score.left[:n_left] for score, _ in parts]
    right_features = [score.right[:n_right] for score, _ in parts]
    if odds is not None:
        left_features.append(odds.left[:n_left])
        right_features.append(odds.right[:n_right])
    fit = fit_regression(
        np.stack(left_features, axis=1),
        np.stack(right_features, axis=1),
        fold_of_rows(left.places()[:n_left]),
        fold_of_rows(right.places()[:n_right]),
        [PriorPart(slice(0, n_parts), np.eye(n_parts))],
    )
    n_columns = len(left.columns)
    sum_score = SumScore(tuple(function for _, function in parts), fit.weights[: len(parts)])
    weight_of_shape = 0.0 if odds is None else float(fit.weights[-1])
    group = Group((-1,) * n_columns, score=sum_score)
    partition = one_group(left.shape, n_columns, group)
    final = [
        sum_score.evaluate([column.take(slice(0, n_rows)) for column in block.columns])
        for block, n_rows in ((left, n_left), (right, n_right))
    ]
    if odds is not None:
        final[0] = final[0] + weight_of_shape * odds.final_left[:n_left]
        final[1] = final[1] + weight_of_shape * odds.final_right[:n_right]
    score = ContinuousScore(
        name="stacked",
        left=fit.left,
        right=fit.right,
        ordered=np.sort(np.concatenate(final)),
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )
    return StackedScore(score, weight_of_shape)


def _function(score: LearnedScore) -> AdditiveScore | JointScore | TreeScore | None:
    """What a fitted score of one shape computes; None for any other score."""
    if score.is_line or not isinstance(score, ContinuousScore) or len(score.shapes) != 1:
        return None
    groups = score.shapes[0].partition.groups
    function = groups[0].score
    if len(groups) == 1 and isinstance(function, AdditiveScore | JointScore | TreeScore):
        return function
    return None
