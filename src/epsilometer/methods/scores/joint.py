"""Scores that see columns of numbers together: norms, and a regression on products and directions.

Columns are standardised and then decorrelated, so that rotated or correlated noise becomes round.
Norms of the standardised columns are scores of their own (a change of scale shows in them); the
regression has the decorrelated columns, their products, their norm and their direction as features.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.additive import PriorPart
from epsilometer.methods.scores.folds import fold_of_rows
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.line import TINY
from epsilometer.methods.scores.regression import fit_regression
from epsilometer.outputs import Block, Group, Numbers
from epsilometer.outputs.scores import JointScore

# Columns, at most, of which all products are features.
_MOST_FOR_PRODUCTS = 10
# Columns, at most, that are seen together.
_MOST_COLUMNS = 64
# Draws per side that fit a regression, and more of few features: up to this many numbers.
_MOST_ROWS = 20_000
_MOST_NUMBERS = 1_500_000
# Draws per side below which there is nothing to learn.
_FEWEST_ROWS = 50
# Standardised columns are clipped to ± this, in median absolute deviations.
_MOST_UNITS = 50.0
# Values in which repetitions are looked for.
_SCREENING_VALUES = 2048
# Columns vary if at least this fraction of their values is distinct.
_LEAST_DISTINCT = 0.1
# A feature with a smaller standard deviation is constant up to rounding.
_NO_DEVIATION = 1e-9


def joint_scores(left: Block, right: Block) -> list[ContinuousScore]:
    """The joint scores of the columns of numbers that vary; none if fewer than two do.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
    """
    if min(left.size, right.size) < _FEWEST_ROWS:
        return []
    columns = varying_columns(left, right)
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return []
    rows = slice(0, _MOST_ROWS)
    left_rows = _matrix(left, columns, rows)
    right_rows = _matrix(right, columns, rows)
    pooled = np.concatenate([left_rows, right_rows])
    if not np.isfinite(pooled).all():
        return []
    centre = np.median(pooled, axis=0)
    scale = np.median(np.abs(pooled - centre), axis=0)
    if not (scale > TINY).all() or not (np.abs(centre) < 1.0 / TINY).all():
        return []
    plain = JointScore.of_norm(columns, centre, scale, rotation=np.eye(len(columns)), norm=0)
    standardised = plain.standardised(pooled)
    covariance = np.cov(standardised.T) + 1e-9 * np.eye(len(columns))
    rotation = np.linalg.inv(np.linalg.cholesky(covariance))
    blank = replace(plain, rotation=rotation, norms=np.zeros(3))
    scores = [
        _norm_score(left, right, replace(blank, norms=np.eye(3)[number]), left_rows, right_rows)
        for number in range(3)
    ]
    regressions = [
        _regression_score(
            left, right, blank=blank, left_rows=left_rows, right_rows=right_rows, degree=degree
        )
        for degree in (1, 2)
    ]
    return [*scores, *regressions]


def varying_columns(left: Block, right: Block) -> tuple[int, ...]:
    """The columns of numbers that hardly repeat."""
    varying = []
    for number, (one, other) in enumerate(zip(left.columns, right.columns, strict=True)):
        if not (isinstance(one, Numbers) and isinstance(other, Numbers)):
            continue
        if one.values.dtype == np.bool_:
            continue
        screened = np.concatenate(
            [one.values[:_SCREENING_VALUES], other.values[:_SCREENING_VALUES]]
        )
        if len(np.unique(screened)) >= _LEAST_DISTINCT * len(screened):
            varying.append(number)
    return tuple(varying)


def _matrix(block: Block, columns: tuple[int, ...], rows: slice) -> Floats:
    """Some columns of the first rows, shape (rows, columns)."""
    numbers = []
    for place in columns:
        column = block.columns[place]
        # Only columns of numbers are asked for.
        assert isinstance(column, Numbers)
        numbers.append(np.asarray(column.values[rows], np.float64))
    return np.stack(numbers, axis=1)


def _learned(
    name: str,
    score: JointScore,
    *,
    left: Block,
    right: Block,
    left_scores: Floats,
    right_scores: Floats,
    final: Floats,
    is_line: bool,
) -> ContinuousScore:
    n_columns = len(left.columns)
    group = Group((-1,) * n_columns, score=score)
    partition = one_group(left.shape, n_columns, group)
    return ContinuousScore(
        name=name,
        left=left_scores,
        right=right_scores,
        ordered=np.sort(final),
        is_line=is_line,
        is_fitted=not is_line,
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )


def _norm_score(
    left: Block, right: Block, score: JointScore, left_rows: Floats, right_rows: Floats
) -> ContinuousScore:
    """A norm as a score, along which the log-ratio may rise or fall."""
    left_scores = score.of_rows(left_rows)
    right_scores = score.of_rows(right_rows)
    final = np.concatenate([left_scores, right_scores])
    return _learned(
        "norm",
        score,
        left=left,
        right=right,
        left_scores=left_scores,
        right_scores=right_scores,
        final=final,
        is_line=True,
    )


def _regression_score(
    left: Block,
    right: Block,
    *,
    blank: JointScore,
    left_rows: Floats,
    right_rows: Floats,
    degree: int,
) -> ContinuousScore:
    """The regression on columns, and for degree 2 on products, norm and direction, too."""
    k = len(blank.columns)
    has_products = k <= _MOST_FOR_PRODUCTS
    n_features = k if degree == 1 else 2 * k + 1 + (k * (k + 1) // 2 if has_products else k)
    n_rows = max(_MOST_NUMBERS // n_features // 2, 1000)
    left_rows = left_rows[:n_rows]
    right_rows = right_rows[:n_rows]
    first, second = np.triu_indices(k) if has_products else (np.arange(k), np.arange(k))
    left_features = _features(blank, left_rows, first, second)
    right_features = _features(blank, right_rows, first, second)
    if degree == 1:
        left_features = left_features[:, :k]
        right_features = right_features[:, :k]
    deviation = np.concatenate([left_features, right_features]).std(axis=0)
    unit = np.where(deviation > _NO_DEVIATION, deviation, 1.0)
    bounds = np.cumsum([0, k] if degree == 1 else [0, k, k, 1, len(first)]).tolist()
    parts = [
        PriorPart(slice(start, stop), np.eye(stop - start)) for start, stop in pairwise(bounds)
    ]
    fit = fit_regression(
        left_features / unit,
        right_features / unit,
        fold_of_rows(left.places()[: len(left_rows)]),
        fold_of_rows(right.places()[: len(right_rows)]),
        parts,
    )
    weights = fit.weights / unit
    score = replace(blank, linear=weights[:k])
    if degree == 2:
        quadratic = np.zeros((k, k))
        quadratic[first, second] = weights[bounds[3] :]
        score = replace(
            score,
            direction=weights[bounds[1] : bounds[2]],
            norms=np.array([0.0, weights[bounds[2]], 0.0]),
            quadratic=quadratic,
        )
    final = score.of_rows(np.concatenate([left_rows, right_rows]))
    return _learned(
        "linear" if degree == 1 else "joint",
        score,
        left=left,
        right=right,
        left_scores=fit.left,
        right_scores=fit.right,
        final=final,
        is_line=False,
    )


def _features(score: JointScore, rows: Floats, first: Integers, second: Integers) -> Floats:
    """Decorrelated columns, their direction, their norm and their products."""
    z = score.rotated(score.standardised(rows))
    norm = np.sqrt((z**2).sum(axis=1, keepdims=True))
    direction = z / np.maximum(norm, 1e-300)
    return np.concatenate([z, direction, norm, z[:, first] * z[:, second]], axis=1)
