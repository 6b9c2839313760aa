"""Gradient boosting of small trees for the log-ratio of two distributions, in plain NumPy.

Every level of a tree asks one question of all rows ("oblivious" trees), so that a tree is a handful of numbers: the
score can be stored in a result and evaluated anywhere, without the library or version that fitted it.

Reference: Friedman (2001), "Greedy function approximation"; Newton steps and their gain as in Chen and Guestrin (2016).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.methods.events.cells import learn_line
from epsilometer.outputs.columns import Block, Column, Labels, Numbers
from epsilometer.outputs.lines import CodedColumn, LabelAtoms
from epsilometer.outputs.scores import TreeScore

Codes = NDArray[np.int32]

# Depth 3 sees interactions of three columns.
_DEPTH = 3
_TREES = 80
# Each tree corrects only this share of what is left.
_RATE = 0.15
# Each tree chooses its questions on one row in this many, in turn: no worse beyond chance, and a third faster.
_PARTS = 3
# Codes per column: a tree needs no finer questions.
_MOST_BINS, _MOST_NAMES = 32, 256
# Rows per side that are fitted, and rows times columns: more change little and cost time.
_MOST_ROWS, _MOST_VALUES = 30_000, 150_000
# Pseudo-rows in every leaf.
_RIDGE = 4.0


def fit_trees(left: Block, right: Block, columns: Sequence[int]) -> TreeScore:
    """A sum of trees that approximates ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns to read.
    """
    most = max(min(_MOST_ROWS, _MOST_VALUES // max(len(columns), 1)), 1000)
    sides = [[column.take(slice(0, most)) for column in block.columns] for block in (left, right)]
    codings = tuple(_code(sides[0][number], sides[1][number], number) for number in columns)
    codes = [np.concatenate([coding.index(side).astype(np.int32) for side in sides]) for coding in codings]
    return _boost(codings, codes, min(left.size, most), min(right.size, most))


def _code(left: Column, right: Column, number: int) -> CodedColumn:
    """Numbers by their cell on a line; names in the order of how much likelier the left makes them."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        return CodedColumn(number, learn_line(left.values, right.values, most_bins=_MOST_BINS))
    counts = [_count_names(side) for side in (left, right)]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: -counts[0].get(name, 0) - counts[1].get(name, 0))
    known = names[:_MOST_NAMES]
    known.sort(key=lambda name: (counts[0].get(name, 0) + 1.0) / (counts[1].get(name, 0) + 1.0))
    return CodedColumn(number, LabelAtoms(tuple(known)))


def _count_names(column: Column) -> dict[str, int]:
    assert isinstance(column, Labels)  # a column holds either numbers or names
    return dict(zip(column.labels, np.bincount(column.codes, minlength=len(column.labels)).tolist(), strict=True))


def _boost(codings: tuple[CodedColumn, ...], codes: list[Codes], n_left: int, n_right: int) -> TreeScore:
    """Newton boosting of the logistic loss; both sides weigh the same whatever their sizes."""
    n = n_left + n_right
    is_left = np.concatenate([np.ones(n_left), np.zeros(n_right)])
    weight = np.where(is_left > 0.0, 0.5 * n / max(n_left, 1), 0.5 * n / max(n_right, 1))
    logit = np.zeros(n)
    sizes = [coding.n_codes for coding in codings]
    features, thresholds, leaves = [], [], []
    for number in range(_TREES):
        share = 1.0 / (1.0 + np.exp(-logit))
        slopes, curvatures = weight * (is_left - share), weight * share * (1.0 - share)
        seen = slice(number % _PARTS, None, _PARTS)
        asked = _grow([code[seen] for code in codes], sizes, slopes[seen], curvatures[seen])
        leaf = _leaves(codes, asked)
        totals = [np.bincount(leaf, each, minlength=1 << _DEPTH) for each in (slopes, curvatures)]
        values = _RATE * totals[0] / (totals[1] + _RIDGE)
        logit += values[leaf]
        features.append([feature for feature, _ in asked])
        thresholds.append([threshold for _, threshold in asked])
        leaves.append(values)
    return TreeScore(codings, np.array(features), np.array(thresholds), np.array(leaves))


def _leaves(codes: list[Codes], asked: list[tuple[int, int]]) -> Codes:
    """The leaf of each row, shape (n,)."""
    leaf = np.zeros(len(codes[0]), dtype=np.int32)
    for feature, threshold in asked:
        leaf += leaf
        leaf += codes[feature] >= threshold
    return leaf


def _grow(codes: list[Codes], sizes: list[int], slopes: Floats, curvatures: Floats) -> list[tuple[int, int]]:
    """The questions of one tree, each the best after those before it."""
    asked: list[tuple[int, int]] = []
    for level in range(_DEPTH):
        leaf = _leaves(codes, asked)
        columns = zip(codes, sizes, strict=True)
        found = [_best_threshold(leaf, 1 << level, *each, slopes, curvatures) for each in columns]
        feature = max(range(len(found)), key=lambda number: found[number][0])
        asked.append((feature, found[feature][1]))
    return asked


def _best_threshold(leaf: Codes, n_leaves: int, codes: Codes, size: int, *of_rows: Floats) -> tuple[float, int]:
    """The gain of the best question about one column, and its threshold, by the slopes and curvatures of the rows."""
    place = leaf * size + codes
    sums = []
    for values in of_rows:
        table = np.bincount(place, values, minlength=n_leaves * size).reshape(n_leaves, size)
        below = np.cumsum(table, axis=1)[:, :-1]
        sums.append((below, table.sum(axis=1)[:, None] - below))
    gains = sum(slope**2 / (curvature + _RIDGE) for slope, curvature in zip(*sums, strict=True))
    total = np.asarray(gains, dtype=np.float64).sum(axis=0)
    best = int(np.argmax(total))
    return float(total[best]), best + 1
