"""Which columns interact: what the additive score leaves unexplained where two columns meet.

For every pair of columns the draws are sorted into coarse cells of both. In each cell the left
draws should be as many as the additive score says; the squared deviations in units of their
variance add up to a chi-squared statistic.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.joint import varying_columns
from epsilometer.methods.scores.learned import OutcomeScore
from epsilometer.methods.scores.values import learn_column_outcomes
from epsilometer.outputs import Block, Labels, Numbers
from epsilometer.outputs.columns import Column

# Cells of each column: with more, weak interactions drown in the noise of many cells.
_CELLS = 6
# Columns whose pairs are looked at, the first ones: 24 make 276 pairs.
_MOST_COLUMNS = 24
# Draws per side: more would only find interactions too weak to matter.
_MOST_ROWS = 1 << 13
# Chance that any pair is found where no columns interact. It costs the time of growing trees.
_FALSE_ALARMS = 0.05
# Pairs whose combinations of values are scored: the clearest ones.
_MOST_PAIRS_OF_VALUES = 2
# Two columns have combinations if these are more than this many times the values of either column.
_LEAST_COMBINATIONS = 1.5
# A cell with a smaller variance holds no draws.
_NO_VARIANCE = 1e-9


class InteractingPair(NamedTuple):
    """Two columns, by their places, and by how many standard deviations they interact."""

    first: int
    second: int
    z: float


def interacting_pairs(
    left: Block, right: Block, left_scores: Floats, right_scores: Floats
) -> list[InteractingPair]:
    """The pairs of columns that interact beyond chance, the clearest first.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        left_scores: shape (n,), cross-fitted additive scores of the left draws.
        right_scores: shape (m,), of the right draws.
    """
    n_left = min(left.size, _MOST_ROWS)
    n_right = min(right.size, _MOST_ROWS)
    offset = np.log(n_left / n_right)
    probability = expit(np.concatenate([left_scores[:n_left], right_scores[:n_right]]) + offset)
    residual = np.repeat([1.0, 0.0], [n_left, n_right]) - probability
    variance = probability * (1.0 - probability)
    codes = [
        _coarse_codes(one, other, n_left, n_right)
        for one, other in zip(left.columns, right.columns, strict=True)
    ]
    places = [place for place, code in enumerate(codes) if code.any()][:_MOST_COLUMNS]
    pairs = []
    n_codes = _CELLS + 1
    for position, first in enumerate(places):
        for second in places[:position]:
            cell = codes[first] * n_codes + codes[second]
            deviations = np.bincount(cell, residual)
            variances = np.bincount(cell, variance)
            is_filled = variances > _NO_VARIANCE
            degrees = int(np.count_nonzero(is_filled))
            if not degrees:
                continue
            statistic = float((deviations[is_filled] ** 2 / variances[is_filled]).sum())
            z = (statistic - degrees) / np.sqrt(2.0 * degrees)
            pairs.append(InteractingPair(second, first, float(z)))
    if not pairs:
        return []
    required = -float(ndtri(_FALSE_ALARMS / len(pairs)))
    found = [pair for pair in pairs if pair.z > required]
    return sorted(found, key=lambda pair: -pair.z)


def pair_outcomes(
    left: Block, right: Block, pairs: Sequence[InteractingPair]
) -> list[OutcomeScore]:
    """The scores of the values of two columns that interact.

    Two categories may be even on both sides and agree on one of them: then only their combinations
    tell the sides apart, and there are too many for a tree.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        pairs: of columns that interact, the clearest first.
    """
    if len(left.columns) == 2:
        # The outcomes of the whole outputs are the same.
        return []
    varying = varying_columns(left, right)
    discrete = [pair for pair in pairs if not {pair.first, pair.second} & set(varying)]
    best = discrete[:_MOST_PAIRS_OF_VALUES]
    scores = [
        learn_column_outcomes(left, right, (pair.first, pair.second), outside=(0, 0))
        for pair in best
    ]
    # All pairs of columns were looked at to find these.
    n_columns = min(len(left.columns), _MOST_COLUMNS)
    n_rivals = max(n_columns * (n_columns - 1) // 2 // max(len(best), 1), 1)
    return [
        replace(score, n_rivals=n_rivals)
        for score in scores
        if score is not None and _has_combinations(score)
    ]


def _has_combinations(score: OutcomeScore) -> bool:
    """Whether the values of one column do not say those of the other, as a text its first word."""
    (block,) = score.partition.blocks
    n_values = max((len(atoms) for atoms in block.atoms if atoms), default=0)
    return len(block.groups) > _LEAST_COMBINATIONS * n_values


def _coarse_codes(left: Column, right: Column, n_left: int, n_right: int) -> Integers:
    """A small number for each draw: an interval of numbers, or one of the most frequent labels."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        values = np.concatenate(
            [
                np.asarray(left.values[:n_left], np.float64),
                np.asarray(right.values[:n_right], np.float64),
            ]
        )
        ordered = np.sort(values)
        ranks = (np.arange(1, _CELLS) * len(ordered)) // _CELLS
        return np.searchsorted(np.unique(ordered[ranks]), values, side="right")
    code_of: dict[str, int] = {}
    codes = []
    for column, n_rows in ((left, n_left), (right, n_right)):
        assert isinstance(column, Labels)
        numbers = [code_of.setdefault(label, len(code_of)) for label in column.labels]
        codes.append(np.array([*numbers, 0], dtype=np.int64)[column.codes[:n_rows]])
    together = np.concatenate(codes)
    by_frequency = np.argsort(-np.bincount(together, minlength=1), kind="stable")
    rank = np.empty(len(by_frequency), dtype=np.int64)
    rank[by_frequency] = np.arange(len(by_frequency))
    return np.minimum(rank, _CELLS)[together]
