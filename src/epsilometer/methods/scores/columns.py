"""Each column of structured outputs alone, as if the others did not exist.

A part that occurs in several shapes (a field beside a list of any length) is one column: its values
in all of these shapes together.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.forecast import selection_penalty
from epsilometer.methods.scores.by_shape import additive_score
from epsilometer.methods.scores.cells import ColumnView, cut_columns, first_rows
from epsilometer.methods.scores.learned import LearnedScore
from epsilometer.methods.scores.line import line_scores
from epsilometer.methods.scores.pooled import Pool, columns_of
from epsilometer.methods.scores.values import learn_column_outcomes
from epsilometer.outputs import Block

# Columns that become candidates: those in which the sides differ most. More would cost time, and
# one of them is nearly always enough.
_MOST_COLUMNS = 3
# Draws per side of a column that decide which columns these are.
_SCREENING_ROWS = 1 << 13
# Draws per side that learn a function of a column.
_MOST_ROWS = 1 << 15
# Columns that are screened, the first ones.
_MOST_SCREENED = 256


def column_scores(
    pairs: Sequence[tuple[Block, Block]], n_draws: tuple[int, int]
) -> list[LearnedScore]:
    """The scores of the columns in which the sides differ most.

    Args:
        pairs: left and right training outputs of each shape.
        n_draws: left and right training draws of all shapes.
    """
    screened = []
    for pool in columns_of(pairs, _MOST_SCREENED):
        difference = _difference(pool)
        if difference is not None:
            screened.append((difference, pool))
    best = sorted(screened, key=lambda item: -item[0])[:_MOST_COLUMNS]
    scores = [
        pool.scattered(score, n_draws)
        for _, pool in best
        for score in _scores_of_column(pool.left, pool.right)
    ]
    return [replace(score, n_rivals=len(screened) // max(len(best), 1)) for score in scores]


def _scores_of_column(left: Block, right: Block) -> list[LearnedScore]:
    """The scores of single values: a number, its distance, a function of it, its outcomes."""
    scores: list[LearnedScore] = [*line_scores(left, right, 0, outside=(0, 0))]
    if scores:
        some = (first_rows(left, _MOST_ROWS), first_rows(right, _MOST_ROWS))
        scores.append(additive_score("function", [some]))
    outcomes = learn_column_outcomes(left, right, (0,), outside=(0, 0))
    return scores if outcomes is None else [*scores, outcomes]


def _difference(pool: Pool) -> float | None:
    """How much the sides differ in a column: in all cells together, or in a single one.

    Returns:
        The larger of two statistics in standard deviations; None if the column does not vary.
    """
    left = first_rows(pool.left, _SCREENING_ROWS)
    right = first_rows(pool.right, _SCREENING_ROWS)
    cuts = cut_columns(left, right, [ColumnView(0, None)], n_columns=2)
    if not cuts:
        return None
    (cut,) = cuts
    left_counts = np.bincount(cut.index(left.columns), minlength=cut.size)
    right_counts = np.bincount(cut.index(right.columns), minlength=cut.size)
    by_cell = _deviances(left_counts, right_counts, max(left.size, 1), max(right.size, 1))
    # A sum of k deviances is about k − 1 by chance, with the variance 2·(k − 1).
    together = (float(by_cell.sum()) - (cut.size - 1)) / np.sqrt(2.0 * (cut.size - 1))
    single = float(np.sqrt(by_cell.max())) - selection_penalty(cut.size)
    return max(float(together), single)


def _deviances(left: Integers, right: Integers, n_left: int, n_right: int) -> Floats:
    """The deviance of equal probabilities in each cell, shape (cells,)."""
    total = left + right
    share = n_left / (n_left + n_right)
    return np.asarray(
        2.0
        * (
            xlogy(left, left / np.maximum(total * share, 1e-300))
            + xlogy(right, right / np.maximum(total * (1.0 - share), 1e-300))
        )
    )
