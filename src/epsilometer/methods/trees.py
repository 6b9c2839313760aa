"""Gradient boosting of small trees for the log-ratio of two distributions, in plain NumPy.

Every level of a tree asks one question of all rows ("oblivious" trees), so that a tree is a handful
of numbers: the score can be stored in a result and evaluated anywhere, without the library or
version that fitted it.

Reference: Friedman (2001), "Greedy function approximation"; Newton steps and their gain as in Chen
    and Guestrin (2016).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.events.cells import learn_line
from epsilometer.outputs.columns import Block, Column, Labels, Numbers
from epsilometer.outputs.lines import CodedColumn, LabelAtoms
from epsilometer.outputs.scores import TreeScore

Codes = NDArray[np.signedinteger]

# Depth 3 sees interactions of three columns.
_DEPTH = 3
_TREES = 80
# Each tree corrects only this share of what is left.
_RATE = 0.15
# Each tree chooses its questions on one row in this many, in turn: no worse beyond chance, and a
# third faster.
_PARTS = 3
# Codes per column: a tree needs no finer questions.
_MOST_BINS = 32
_MOST_NAMES = 256
# Rows per side that are fitted, and rows times columns: more change little and cost time.
_MOST_ROWS = 30_000
_MOST_VALUES = 150_000
# Of more columns than this, those in which the sides differ most by themselves are fitted.
_MOST_COLUMNS = 150
# Pseudo-rows in every leaf.
_RIDGE = 4.0


def fit_trees(
    left: Block, right: Block, columns: Sequence[int], n_trees: int = _TREES
) -> TreeScore:
    """A sum of trees that approximates ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns to read.
        n_trees: how many trees.
    """
    most = max(min(_MOST_ROWS, _MOST_VALUES // max(len(columns), 1)), 1000)
    sides = [[column.take(slice(0, most)) for column in block.columns] for block in (left, right)]
    n_left = min(left.size, most)
    n_right = min(right.size, most)
    codings = [_code(sides[0][number], sides[1][number], number) for number in columns]
    codes = [
        np.concatenate([coding.index(side).astype(np.int16) for side in sides])
        for coding in codings
    ]
    if len(codings) > _MOST_COLUMNS:
        kept = np.sort(
            np.argsort([-_distance(code, n_left) for code in codes], kind="stable")[:_MOST_COLUMNS]
        )
        codings = [codings[place] for place in kept]
        codes = [codes[place] for place in kept]
    return _boost(tuple(codings), codes, (n_left, n_right), n_trees)


def _distance(codes: Codes, n_left: int) -> float:
    """How differently the two sides fill the codes of a column (chi-squared)."""
    left = np.bincount(codes[:n_left], minlength=codes.max() + 1)
    right = np.bincount(codes[n_left:])
    left[: len(right)] -= right
    return float(np.sum(left**2 / np.maximum(np.bincount(codes), 1)))


def _code(left: Column, right: Column, number: int) -> CodedColumn:
    """Numbers by their cell on a line; names in the order of how much likelier the left makes them."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        return CodedColumn(number, learn_line(left.values, right.values, most_bins=_MOST_BINS))
    counts = [_count_names(side) for side in (left, right)]
    names = sorted(
        {*counts[0], *counts[1]}, key=lambda name: -counts[0].get(name, 0) - counts[1].get(name, 0)
    )
    known = names[:_MOST_NAMES]
    known.sort(key=lambda name: (counts[0].get(name, 0) + 1.0) / (counts[1].get(name, 0) + 1.0))
    return CodedColumn(number, LabelAtoms(tuple(known)))


def _count_names(column: Column) -> dict[str, int]:
    assert isinstance(column, Labels)  # a column holds either numbers or names
    return dict(
        zip(
            column.labels,
            np.bincount(column.codes, minlength=len(column.labels)).tolist(),
            strict=True,
        )
    )


def _boost(
    codings: tuple[CodedColumn, ...], codes: list[Codes], sizes: tuple[int, int], n_trees: int
) -> TreeScore:
    """Newton boosting of the logistic loss; both sides weigh the same whatever their sizes."""
    is_left = np.repeat([1.0, 0.0], sizes)
    weight = 0.5 * sum(sizes) / np.repeat(sizes, sizes)
    logit = np.zeros(len(weight))
    starts = np.cumsum([0, *(coding.n_codes for coding in codings)])
    # All columns in one row of codes, so that all questions are judged at once.
    rowed = [code + np.int32(start) for code, start in zip(codes, starts, strict=False)]
    parts = [np.concatenate([code[part::_PARTS] for code in rowed]) for part in range(_PARTS)]
    features = []
    thresholds = []
    leaves = []
    for number in range(n_trees):
        share = 1.0 / (1.0 + np.exp(-logit))
        slopes = weight * (is_left - share)
        curvatures = weight * share * (1.0 - share)
        part = number % _PARTS
        seen = slice(part, None, _PARTS)
        asked = _grow(
            parts[part], [code[seen] for code in codes], starts, slopes[seen], curvatures[seen]
        )
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
    leaf = np.zeros(len(codes[0]), dtype=np.int16)
    for feature, threshold in asked:
        leaf += leaf
        leaf += codes[feature] >= threshold
    return leaf


def _grow(
    rowed: Codes, codes: list[Codes], starts: Integers, *of_rows: Floats
) -> list[tuple[int, int]]:
    """The questions of one tree, each the best after those before it, by the slopes and curvatures of the rows."""
    many = [np.tile(each, len(codes)) for each in of_rows]
    column = np.repeat(np.arange(len(codes)), np.diff(starts))
    asked: list[tuple[int, int]] = []
    for level in range(_DEPTH):
        place = rowed + np.tile(
            np.multiply(_leaves(codes, asked), starts[-1], dtype=np.int32), len(codes)
        )
        tables = [np.bincount(place, each, minlength=starts[-1] << level) for each in many]
        slopes, curvatures = (
            np.asarray(each, np.float64).reshape(-1, starts[-1]) for each in tables
        )
        best = int(np.argmax(_gains(slopes, curvatures, starts, column)))
        asked.append((int(column[best]), best - int(starts[column[best]]) + 1))
    return asked


def _gains(slopes: Floats, curvatures: Floats, starts: Integers, column: Integers) -> Floats:
    """What it gains to ask whether a code is beyond this one, shape (codes,); the arguments have a row per leaf."""
    total = np.zeros(slopes.shape[1])
    sides = []
    for each in (slopes, curvatures):
        sums = np.cumsum(each, axis=1)
        below = sums - np.insert(sums, 0, 0.0, axis=1)[:, starts[column]]
        sides.append((below, each[:, : starts[1]].sum(axis=1)[:, None] - below))
    for slope, curvature in zip(*sides, strict=True):
        total += (slope**2 / (curvature + _RIDGE)).sum(axis=0)
    total[starts[1:] - 1] = -1.0  # nothing is beyond the last code
    return total
