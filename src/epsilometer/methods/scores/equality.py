"""Columns of numbers that are sometimes equal: a value that is copied, or drawn twice.

Two continuous columns are never equal by chance, so that a few equal pairs tell a lot. The score of
a pair is its outcome: the first column is below, equal to, or above the second one.
"""

from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.cells import FEWEST_REPEATS
from epsilometer.methods.scores.folds import FOLDS, fold_of_rows
from epsilometer.methods.scores.joint import varying_columns
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.values import posterior_means
from epsilometer.outputs import Block, Group, Line, Numbers
from epsilometer.outputs.scores import AdditiveScore, Term

# Columns whose pairs are looked at, the first ones.
_MOST_COLUMNS = 24
# Draws per side in which equal values are looked for.
_SCREENING_ROWS = 1 << 13
# Pairs that become candidates: those whose values are equal more often on one side.
_MOST_PAIRS = 2
# Values below, equal to and above: the cells of the difference. The last one is NaN.
_N_CELLS = 4


class _EqualPair(NamedTuple):
    """Two columns, and the squared difference of how often they are equal, in its variance."""

    difference: float
    first: int
    second: int


def equality_scores(left: Block, right: Block) -> list[ContinuousScore]:
    """The scores of pairs of columns that are sometimes equal.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
    """
    places = varying_columns(left, right)[:_MOST_COLUMNS]
    pairs = []
    for position, second in enumerate(places):
        for first in places[:position]:
            left_equal = _n_equal(left, first, second)
            right_equal = _n_equal(right, first, second)
            total = left_equal + right_equal
            n_left = min(left.size, _SCREENING_ROWS)
            n_right = min(right.size, _SCREENING_ROWS)
            if FEWEST_REPEATS <= total < n_left + n_right:
                gap = left_equal / max(n_left, 1) - right_equal / max(n_right, 1)
                pairs.append(_EqualPair(gap**2 / total, first, second))
    best = sorted(pairs, key=lambda pair: -pair.difference)[:_MOST_PAIRS]
    n_rivals = max(len(pairs) // max(len(best), 1), 1)
    return [_score(left, right, pair.first, pair.second, n_rivals) for pair in best]


def _numbers(block: Block, place: int, n_rows: int | None = None) -> Floats:
    column = block.columns[place]
    # Only columns of numbers are compared.
    assert isinstance(column, Numbers)
    return np.asarray(column.values[:n_rows], np.float64)


def _n_equal(block: Block, first: int, second: int) -> int:
    """How often two columns are equal in the first rows."""
    one = _numbers(block, first, _SCREENING_ROWS)
    other = _numbers(block, second, _SCREENING_ROWS)
    return int(np.count_nonzero(one == other))


def _score(left: Block, right: Block, first: int, second: int, n_rivals: int) -> ContinuousScore:
    """The score of one pair of columns."""
    n_columns = len(left.columns)
    mix = np.zeros(n_columns)
    mix[first] = 1.0
    mix[second] = -1.0
    line = Line(np.array([0.0, np.nextafter(0.0, 1.0)]))
    uncut = Term(first, line, np.zeros(_N_CELLS), mix)
    left_cells = uncut.index(left.columns)
    right_cells = uncut.index(right.columns)
    left_folds = fold_of_rows(left.places())
    right_folds = fold_of_rows(right.places())
    left_counts = _counts(left_cells, left_folds)
    right_counts = _counts(right_cells, right_folds)
    weights = posterior_means(
        np.concatenate([left_counts.sum(axis=0)[None], left_counts.sum(axis=0) - left_counts]),
        np.concatenate([right_counts.sum(axis=0)[None], right_counts.sum(axis=0) - right_counts]),
    )
    term = Term(first, line, weights[0], mix)
    group = Group((-1,) * n_columns, score=AdditiveScore((term,)))
    partition = one_group(left.shape, n_columns, group)
    return ContinuousScore(
        name="equal columns",
        left=weights[1 + left_folds, left_cells],
        right=weights[1 + right_folds, right_cells],
        ordered=np.sort(weights[0][np.concatenate([left_cells, right_cells])]),
        n_rivals=n_rivals,
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )


def _counts(cells: Integers, folds: Integers) -> Integers:
    """Draws by fold and cell, shape (folds, cells)."""
    counts = np.bincount(cells + folds * _N_CELLS, minlength=FOLDS * _N_CELLS)
    return counts.reshape(FOLDS, _N_CELLS)
