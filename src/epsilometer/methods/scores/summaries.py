"""Statistics of many columns that need no fit: for long vectors, of which there are few draws.

A gradient or a model has hundreds of numbers, and a training takes minutes. Ten draws are too few
to learn a direction among hundreds, but the scale of all numbers together shows in each of them: a
normalisation by something private, a parameter that is not finite, a step that was skipped.
"""

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.methods.scores.cells import MOST_ROWS, first_rows
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.line import FEWEST_DRAWS
from epsilometer.outputs import Block, Group, Numbers
from epsilometer.outputs.scores import Statistic, SummaryScore

# Columns of numbers from which on they are a vector: of fewer, each is looked at by itself.
_FEWEST_COLUMNS = 8


def summary_scores(left: Block, right: Block, *, has_norms: bool) -> list[ContinuousScore]:
    """The statistics of all columns of numbers that vary; none for short vectors.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        has_norms: whether norms of the columns are scores already, so that only zeros and values
            that are not finite are counted.
    """
    columns = _columns_of_numbers(left, right)
    if len(columns) < _FEWEST_COLUMNS:
        return []
    statistics = [Statistic.ZEROS, Statistic.NOT_FINITE]
    if not has_norms:
        statistics = [Statistic.MEAN_SQUARE, Statistic.LARGEST, *statistics]
    scores = [_score(left, right, SummaryScore(columns, statistic)) for statistic in statistics]
    return [score for score in scores if score is not None]


def _columns_of_numbers(left: Block, right: Block) -> tuple[int, ...]:
    """The columns of numbers, without truth values."""
    return tuple(
        place
        for place, columns in enumerate(zip(left.columns, right.columns, strict=True))
        if all(
            isinstance(column, Numbers) and column.values.dtype != np.bool_ for column in columns
        )
    )


def _score(left: Block, right: Block, summary: SummaryScore) -> ContinuousScore | None:
    """A statistic as a score, along which the log-ratio may rise or fall; None if it is equal."""
    left_scores = _evaluate(left, summary)
    right_scores = _evaluate(right, summary)
    is_left_known = ~np.isnan(left_scores)
    is_right_known = ~np.isnan(right_scores)
    known_left = left_scores[is_left_known]
    known_right = right_scores[is_right_known]
    ordered = np.sort(np.concatenate([known_left, known_right]))
    if min(len(known_left), len(known_right)) < FEWEST_DRAWS or ordered[0] == ordered[-1]:
        return None
    n_columns = len(left.columns)
    partition = one_group(left.shape, n_columns, Group((-1,) * n_columns, score=summary))
    return ContinuousScore(
        name=summary.statistic.value,
        left=known_left,
        right=known_right,
        ordered=ordered,
        is_line=True,
        is_fitted=False,
        is_count=summary.statistic.is_count,
        outside=(len(left_scores) - len(known_left), len(right_scores) - len(known_right)),
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )


def _evaluate(block: Block, summary: SummaryScore) -> Floats:
    return summary.evaluate(first_rows(block, MOST_ROWS).columns)
