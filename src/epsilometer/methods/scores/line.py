"""Numbers as their own score, and their distance from where they are densest.

Nothing is fitted here but a place, so the scores of the training draws need no cross-fitting. The
log-ratio may rise or fall along a number, so both directions are tried.
"""

from dataclasses import replace

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.methods.scores.cells import MOST_ROWS
from epsilometer.methods.scores.folds import FOLDS, fold_of_rows
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.outputs import Block, Group, Numbers

# Draws per side below which there is nothing to learn.
FEWEST_DRAWS = 5
# Of numbers that take fewer values than this, a distance says no more than the values do.
_FEWEST_FOR_DISTANCE = 8
# Numbers beyond the inverse of this, and differences below it, are not multiplied: they overflow.
TINY = 1e-290
# Numbers are densest in the shortest interval with this fraction of them: a spike holds it whole,
# and for plain noise the interval varies little from sample to sample.
_DENSEST_FRACTION = 0.1
# Draws per side that find this place: more would hardly move it.
_ROWS_FOR_CENTRE = 1 << 12
# Range of the numbers, relative to their size, below which distances are lost to rounding.
_LEAST_REACH = 1e-9
# Draws per side whose distances are counted: a tail of distances needs no more.
_ROWS_FOR_DISTANCE = 1 << 16
# Draws per side that are sorted to place cuts: more would hardly move them, and all draws are
# counted between the cuts.
_SORTED_ROWS = 1 << 15


def line_scores(
    left: Block, right: Block, column: int, outside: tuple[int, int]
) -> list[ContinuousScore]:
    """The scores of one column of numbers; none if it has labels, truth values, or one value only.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        column: which of their columns.
        outside: left and right training draws of other shapes.
    """
    left_column = left.columns[column]
    right_column = right.columns[column]
    if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
        return []
    if left_column.values.dtype == np.bool_ and right_column.values.dtype == np.bool_:
        # Two outcomes are no line.
        return []
    left_numbers = clipped_numbers(left_column)
    right_numbers = clipped_numbers(right_column)
    if min(len(left_numbers), len(right_numbers)) < FEWEST_DRAWS:
        return []
    ordered = np.sort(np.concatenate([left_numbers[:_SORTED_ROWS], right_numbers[:_SORTED_ROWS]]))
    if not ordered[-1] - ordered[0] > TINY * len(ordered):
        return []
    n_values = 1 + np.count_nonzero(np.diff(ordered))
    # Rows that are not counted: NaN, which belongs to no tail, and those beyond `MOST_ROWS`, which
    # make every tail as much rarer on one side as on the other.
    outside_left = outside[0] * len(left_numbers) // max(left.size, 1)
    outside_right = outside[1] * len(right_numbers) // max(right.size, 1)
    outside_left += min(left.size, MOST_ROWS) - len(left_numbers)
    outside_right += min(right.size, MOST_ROWS) - len(right_numbers)
    n_columns = len(left.columns)
    partition = one_group(left.shape, n_columns, Group((-1,) * n_columns, column=column))
    shapes = [ShapeScore(partition=partition, offsets=np.zeros(1))]
    number = ContinuousScore(
        name="number",
        left=left_numbers,
        right=right_numbers,
        ordered=ordered,
        is_line=True,
        is_fitted=False,
        outside=(outside_left, outside_right),
        shapes=shapes,
    )
    return [number, *_distance_scores(number)] if n_values >= _FEWEST_FOR_DISTANCE else [number]


def _distance_scores(number: ContinuousScore) -> list[ContinuousScore]:
    """The distance from where the numbers are densest; none if rounding would spoil it.

    The place is chosen where draws of either side happen to be close together, so the distances of
    training draws are those from the densest place of the other folds.
    """
    left = number.left[:_ROWS_FOR_DISTANCE]
    right = number.right[:_ROWS_FOR_DISTANCE]
    left_folds = fold_of_rows(np.arange(len(left)))
    right_folds = fold_of_rows(np.arange(len(right)))
    first_left = left[:_ROWS_FOR_CENTRE]
    first_right = right[:_ROWS_FOR_CENTRE]
    centre = _densest_place(first_left, first_right)
    without = np.array(
        [
            _densest_place(
                first_left[left_folds[: len(first_left)] != fold],
                first_right[right_folds[: len(first_right)] != fold],
            )
            for fold in range(FOLDS)
        ]
    )
    farthest = max(abs(centre), float(np.abs(without).max()))
    reach = number.ordered[-1] - number.ordered[0]
    # Numbers that differ in their last digits only cannot be cut at a distance from one of them.
    if not farthest < 1.0 / TINY or not reach > _LEAST_REACH * farthest:
        return []
    distance = replace(
        number,
        name="distance",
        is_fitted=True,
        left=np.abs(left - without[left_folds]),
        right=np.abs(right - without[right_folds]),
        outside=(
            number.outside[0] * len(left) // len(number.left),
            number.outside[1] * len(right) // len(number.right),
        ),
        ordered=np.sort(np.abs(number.ordered - centre)),
        centre=centre,
    )
    return [distance]


def clipped_numbers(column: Numbers) -> Floats:
    """The first values without NaN; infinity becomes a large number."""
    values = np.asarray(column.values[:MOST_ROWS], np.float64)
    is_missing = np.isnan(values)
    if is_missing.any():
        values = values[~is_missing]
    return np.clip(values, -1.0 / TINY, 1.0 / TINY)


def _densest_place(left: Floats, right: Floats) -> float:
    """The middle of the shortest interval with `_DENSEST_FRACTION` of the values."""
    ordered = np.sort(np.concatenate([left, right]))
    reach = max(int(_DENSEST_FRACTION * len(ordered)), 1)
    widths = ordered[reach:] - ordered[:-reach]
    return float(ordered[np.argmin(widths) + reach // 2])
