"""Gradient boosting of small trees for the log-ratio of two distributions, in plain NumPy.

All nodes of one level of a tree ask the same question ("oblivious" trees), so that a tree is a
handful of numbers: the score can be stored in a result and evaluated anywhere, without the library
or version that fitted it.

Reference: Friedman (2001), "Greedy function approximation"; Newton steps and their gain as in Chen
    and Guestrin (2016).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.cells import learn_line
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.columns import Block, Column, Labels, Numbers
from epsilometer.outputs.lines import CodedColumn
from epsilometer.outputs.scores import TreeScore

# The code of each row in one column, shape (n,).
Codes = NDArray[np.signedinteger]

# Levels of a tree: with 3 it can use interactions of three columns.
_DEPTH = 3
# Trees of a score.
_TREES = 80
# Each tree corrects only this fraction of what is left (the learning rate).
_RATE = 0.15
# Each tree chooses its questions on one row in this many, in turn: no worse beyond chance, and a
# third faster.
_SUBSETS = 3
# Codes per column of numbers: a tree needs no finer questions.
_MOST_BINS = 32
# Codes per column of labels.
_MOST_LABELS = 256
# Rows per side that are fitted: more change little and cost time.
_MOST_ROWS = 30_000
# Rows per side times columns, at most.
_MOST_VALUES = 150_000
# Rows per side that are fitted however many columns there are.
_LEAST_ROWS = 1000
# Of more columns than this, those in which the sides differ most by themselves are fitted.
_MOST_COLUMNS = 150
# Pseudo-rows in every leaf (a ridge penalty).
_RIDGE = 4.0


class _Question(NamedTuple):
    """Whether the code in column `feature` is at least `threshold`."""

    feature: int
    threshold: int


def fit_trees(
    left: Block,
    right: Block,
    columns: Sequence[int],
    n_trees: int = _TREES,
    pairs: Sequence[tuple[int, int]] = (),
) -> TreeScore:
    """Fits a sum of trees that approximates ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns to read.
        n_trees: how many trees.
        pairs: columns that interact. The first two questions of a tree may be about both of them,
            even if neither question is good by itself.
    """
    n_rows = max(min(_MOST_ROWS, _MOST_VALUES // max(len(columns), 1)), _LEAST_ROWS)
    first_rows = slice(0, n_rows)
    left_columns = [column.take(first_rows) for column in left.columns]
    right_columns = [column.take(first_rows) for column in right.columns]
    n_left = min(left.size, n_rows)
    n_right = min(right.size, n_rows)
    codings = []
    codes = []
    for number in columns:
        coding = _learn_coding(left_columns[number], right_columns[number], number)
        left_codes = coding.index(left_columns).astype(np.int16)
        right_codes = coding.index(right_columns).astype(np.int16)
        codings.append(coding)
        codes.append(np.concatenate([left_codes, right_codes]))
    if len(codings) > _MOST_COLUMNS:
        distances = np.array([_chi_squared(column_codes, n_left) for column_codes in codes])
        most_different = np.sort(np.argsort(-distances, kind="stable")[:_MOST_COLUMNS])
        codings = [codings[place] for place in most_different]
        codes = [codes[place] for place in most_different]
    place_of = {coding.column: place for place, coding in enumerate(codings)}
    known_pairs = [
        (place_of[first], place_of[second])
        for first, second in pairs
        if first in place_of and second in place_of
    ]
    return _boost(
        tuple(codings), codes, n_left=n_left, n_right=n_right, n_trees=n_trees, pairs=known_pairs
    )


def _chi_squared(codes: Codes, n_left: int) -> float:
    """How differently the two sides fill the codes of a column."""
    difference = np.bincount(codes[:n_left], minlength=codes.max() + 1)
    right = np.bincount(codes[n_left:])
    difference[: len(right)] -= right
    return float(np.sum(difference**2 / np.maximum(np.bincount(codes), 1)))


def _learn_coding(left: Column, right: Column, number: int) -> CodedColumn:
    """Codes numbers by their cell on a line, and labels by the rank of their odds."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        return CodedColumn(number, learn_line(left.values, right.values, most_bins=_MOST_BINS))
    left_count = _count_labels(left)
    right_count = _count_labels(right)

    def total(label: str) -> int:
        return left_count.get(label, 0) + right_count.get(label, 0)

    def odds(label: str) -> float:
        return (left_count.get(label, 0) + 1.0) / (right_count.get(label, 0) + 1.0)

    labels = sorted({*left_count, *right_count}, key=lambda label: -total(label))
    frequent = sorted(labels[:_MOST_LABELS], key=odds)
    return CodedColumn(number, LabelAtoms(tuple(frequent)))


def _count_labels(column: Column) -> dict[str, int]:
    # A column holds either numbers or labels.
    assert isinstance(column, Labels)
    counts = np.bincount(column.codes, minlength=len(column.labels)).tolist()
    return dict(zip(column.labels, counts, strict=True))


def _boost(
    codings: tuple[CodedColumn, ...],
    codes: list[Codes],
    *,
    n_left: int,
    n_right: int,
    n_trees: int,
    pairs: Sequence[tuple[int, int]],
) -> TreeScore:
    """Fits trees by Newton boosting of the logistic loss; both sides have the same total weight.

    Args:
        codings: of the columns.
        codes: for each column, those of the left rows and then of the right ones.
        n_left: left rows.
        n_right: right rows.
        n_trees: how many trees.
        pairs: places of columns that interact.
    """
    sizes = (n_left, n_right)
    is_left = np.repeat([1.0, 0.0], sizes)
    weight = 0.5 * sum(sizes) / np.repeat(sizes, sizes)
    logit = np.zeros(len(weight))
    starts = np.cumsum([0, *(coding.n_codes for coding in codings)])
    # The codes of all columns in one array, so that all questions are judged at once.
    numbered = [code + np.int32(start) for code, start in zip(codes, starts, strict=False)]
    numbered_of_subsets = [
        np.concatenate([code[subset::_SUBSETS] for code in numbered]) for subset in range(_SUBSETS)
    ]
    features = []
    thresholds = []
    leaves = []
    for number in range(n_trees):
        probability = 1.0 / (1.0 + np.exp(-logit))
        slopes = weight * (is_left - probability)
        curvatures = weight * probability * (1.0 - probability)
        subset = number % _SUBSETS
        rows = slice(subset, None, _SUBSETS)
        questions = _grow(
            numbered_of_subsets[subset],
            [code[rows] for code in codes],
            starts=starts,
            slopes=slopes[rows],
            curvatures=curvatures[rows],
            pairs=pairs,
        )
        leaf = _leaf_of_rows(codes, questions)
        leaf_slopes = np.bincount(leaf, slopes, minlength=1 << _DEPTH)
        leaf_curvatures = np.bincount(leaf, curvatures, minlength=1 << _DEPTH)
        values = _RATE * leaf_slopes / (leaf_curvatures + _RIDGE)
        logit += values[leaf]
        features.append([question.feature for question in questions])
        thresholds.append([question.threshold for question in questions])
        leaves.append(values)
    return TreeScore(codings, np.array(features), np.array(thresholds), np.array(leaves))


def _leaf_of_rows(codes: list[Codes], questions: list[_Question]) -> Codes:
    """The leaf of each row after the given questions, shape (n,)."""
    leaf = np.zeros(len(codes[0]), dtype=np.int16)
    for question in questions:
        leaf += leaf
        leaf += codes[question.feature] >= question.threshold
    return leaf


def _grow(
    numbered: Codes,
    codes: list[Codes],
    *,
    starts: Integers,
    slopes: Floats,
    curvatures: Floats,
    pairs: Sequence[tuple[int, int]],
) -> list[_Question]:
    """The questions of one tree, each the best one after those before it.

    Args:
        numbered: shape (columns · n,), codes of all columns, numbered consecutively.
        codes: the codes of each column.
        starts: shape (columns + 1,), the first number of each column's codes.
        slopes: shape (n,), of the rows.
        curvatures: shape (n,), of the rows.
        pairs: places of columns that interact.
    """
    n_columns = len(codes)
    n_codes = starts[-1]
    repeated_slopes = np.tile(slopes, n_columns)
    repeated_curvatures = np.tile(curvatures, n_columns)
    column_of_code = np.repeat(np.arange(n_columns), np.diff(starts))
    questions: list[_Question] = []
    gain_so_far = 0.0
    best_pair = _best_pair(codes, np.diff(starts), slopes, curvatures, pairs)
    for level in range(_DEPTH):
        if level == 2 and best_pair is not None and best_pair.gain > gain_so_far:
            questions = [best_pair.first, best_pair.second]
        leaf = _leaf_of_rows(codes, questions)
        place = numbered + np.tile(np.multiply(leaf, n_codes, dtype=np.int32), n_columns)
        slope_table = np.bincount(place, repeated_slopes, minlength=n_codes << level)
        curvature_table = np.bincount(place, repeated_curvatures, minlength=n_codes << level)
        gains = _gains(
            np.asarray(slope_table, np.float64).reshape(-1, n_codes),
            np.asarray(curvature_table, np.float64).reshape(-1, n_codes),
            starts,
            column_of_code,
        )
        best = int(np.argmax(gains))
        gain_so_far = float(gains[best])
        feature = int(column_of_code[best])
        questions.append(_Question(feature, threshold=best - int(starts[feature]) + 1))
    return questions


class _PairOfQuestions(NamedTuple):
    """Two questions about columns that interact, and what they gain together."""

    gain: float
    first: _Question
    second: _Question


def _best_pair(
    codes: list[Codes],
    n_codes: Integers,
    slopes: Floats,
    curvatures: Floats,
    pairs: Sequence[tuple[int, int]],
) -> _PairOfQuestions | None:
    """The best two questions about any of the pairs; None without pairs.

    Args:
        codes: the codes of each column.
        n_codes: shape (columns,), how many codes each column has.
        slopes: shape (n,), of the rows.
        curvatures: shape (n,), of the rows.
        pairs: places of columns that interact.
    """
    best: _PairOfQuestions | None = None
    for first, second in pairs:
        shape = (int(n_codes[first]), int(n_codes[second]))
        cell = codes[first].astype(np.int32) * shape[1] + codes[second]
        gain = np.zeros((shape[0] - 1, shape[1] - 1))
        if not gain.size:
            continue
        tables = []
        for weight in (slopes, curvatures):
            table = np.bincount(cell, weight, minlength=shape[0] * shape[1]).reshape(shape)
            sums = table.cumsum(axis=0).cumsum(axis=1)
            low_low = sums[:-1, :-1]
            low_high = sums[:-1, -1:] - low_low
            high_low = sums[-1:, :-1] - low_low
            high_high = sums[-1, -1] - low_low - low_high - high_low
            tables.append((low_low, low_high, high_low, high_high))
        for slope, curvature in zip(*tables, strict=True):
            gain += slope**2 / (curvature + _RIDGE)
        place = int(np.argmax(gain))
        row, column = divmod(place, gain.shape[1])
        value = float(gain[row, column])
        if best is None or value > best.gain:
            best = _PairOfQuestions(
                gain=value,
                first=_Question(first, threshold=row + 1),
                second=_Question(second, threshold=column + 1),
            )
    return best


def _gains(
    slopes: Floats, curvatures: Floats, starts: Integers, column_of_code: Integers
) -> Floats:
    """What it gains to ask whether a code is beyond each one, shape (codes,).

    Args:
        slopes: shape (leaves, codes).
        curvatures: shape (leaves, codes).
        starts: shape (columns + 1,), the first number of each column's codes.
        column_of_code: shape (codes,).
    """
    slopes_below, slopes_beyond = _split_sums(slopes, starts, column_of_code)
    curvatures_below, curvatures_beyond = _split_sums(curvatures, starts, column_of_code)
    total = np.zeros(slopes.shape[1])
    total += (slopes_below**2 / (curvatures_below + _RIDGE)).sum(axis=0)
    total += (slopes_beyond**2 / (curvatures_beyond + _RIDGE)).sum(axis=0)
    # Nothing is beyond the last code of a column.
    total[starts[1:] - 1] = -1.0
    return total


def _split_sums(table: Floats, starts: Integers, column_of_code: Integers) -> tuple[Floats, Floats]:
    """Sums up to each code of its column, and beyond it; shape (leaves, codes) each."""
    sums = np.cumsum(table, axis=1)
    padded = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
    sums_before_column = padded[:, starts[column_of_code]]
    below = sums - sums_before_column
    # Every column has the same total.
    total = table[:, : starts[1]].sum(axis=1)[:, None]
    return below, total - below
