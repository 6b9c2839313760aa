"""Correlated columns: what each of them adds to those before it."""

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.methods.scores.additive import GRAM_ROWS
from epsilometer.methods.scores.cells import ColumnView
from epsilometer.methods.scores.line import FEWEST_DRAWS, TINY
from epsilometer.outputs import Block, Numbers

# Columns, at most, whose correlations are used.
_MOST_CORRELATED = 64
# Correlations up to this are left alone.
_LEAST_CORRELATION = 0.05
# Rows of both sides in which repeated values are looked for.
_ROWS_FOR_REPEATS = 2048
# Columns vary continuously if at most this fraction of neighbours among sorted values are equal.
_MOST_REPEATED = 0.001
# Outliers are pulled in to this many units from the median.
_MOST_UNITS = 50.0


def has_correlated_columns(left: Block, right: Block) -> bool:
    """Whether all columns vary continuously and some of them are correlated."""
    if not 1 < len(left.columns) <= _MOST_CORRELATED:
        return False
    if min(left.size, right.size) < FEWEST_DRAWS:
        return False
    rows = number_matrix(left, right)
    if rows is None:
        return False
    screened = np.sort(rows[:_ROWS_FOR_REPEATS], axis=0)
    if (screened[1:] == screened[:-1]).mean() > _MOST_REPEATED:
        return False
    standardised, _ = standardised_columns(rows)
    correlation = np.abs(np.atleast_2d(np.corrcoef(standardised.T)))
    np.fill_diagonal(correlation, 0.0)
    return bool(correlation.max() > _LEAST_CORRELATION)


def number_matrix(left: Block, right: Block) -> Floats | None:
    """The first rows of both sides, shape (rows, columns).

    Returns:
        None if there is anything else than finite numbers of a usual size, or a column with a
        quartile range of about 0.
    """
    columns = []
    for left_column, right_column in zip(left.columns, right.columns, strict=True):
        if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
            return None
        columns.append(
            np.concatenate(
                [
                    np.asarray(left_column.values[:GRAM_ROWS], np.float64),
                    np.asarray(right_column.values[:GRAM_ROWS], np.float64),
                ]
            )
        )
    rows = np.stack(columns, axis=1)
    if not np.isfinite(rows).all():
        return None
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    varies = high / 2 - low / 2 > TINY
    is_usual = varies & (np.abs(low) < 1.0 / TINY) & (np.abs(high) < 1.0 / TINY)
    return rows if is_usual.all() else None


def standardised_columns(rows: Floats) -> tuple[Floats, Floats]:
    """Columns around their medians, in units of their median absolute deviation; and the units.

    Returns:
        Shape (rows, columns), with outliers pulled in, and shape (columns,).
    """
    centre = np.median(rows, axis=0)
    unit = np.maximum(np.median(np.abs(rows - centre), axis=0), 1e-300)
    return np.clip((rows - centre) / unit, -_MOST_UNITS, _MOST_UNITS), unit


def innovations(left: Block, right: Block) -> list[ColumnView]:
    """Each column less its best linear forecast from those before it.

    They are given by the inverse of the Cholesky factor of the covariance.
    """
    rows = number_matrix(left, right)
    assert rows is not None
    standardised, unit = standardised_columns(rows)
    factor = np.linalg.cholesky(np.cov(standardised.T) + 1e-9 * np.eye(rows.shape[1]))
    mixes = np.linalg.inv(factor) / unit
    return [ColumnView(column, mix) for column, mix in enumerate(mixes)]
