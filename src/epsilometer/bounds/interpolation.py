"""The same supremum as in `unconditional`, by interpolation: a fifth of the evaluations wherever it applies.

Along the null p = slope·q + shift, with u = √q, the probability f of a fixed region of counts is a polynomial in u, and
so a function of complex u. A sum over a region is at most the sum of all absolute values, which for a binomial law is
(|p| + |1 − p|)^n. Hence |f − ½| ≤ ½·G with G = (|p| + |1 − p|)^n · (|q| + |1 − q|)^m: tame near the real line.

What follows is classical (Bernstein; Trefethen, Approximation Theory and Approximation Practice, theorems 8.1 and 8.2).
If G ≤ e^growth inside the ellipse around the range of u whose half axes add up to ρ times half the range, then the
Chebyshev coefficients of f beyond the constant are at most e^growth·ρ^−j. The polynomial of degree k through f at the
k + 1 zeros of a Chebyshev polynomial adds every coefficient beyond k to one below, so it errs by at most twice the sum
of what it cannot see: 2·e^growth·ρ^−k/(ρ − 1). Degree 40 takes that below a thousandth of a level of 0.05.
"""

from __future__ import annotations

import math

import numpy as np

from epsilometer.bounds.unconditional import ROUNDING, Array, NullLine, Region, common_edges, region_probability

# What the interpolation may add to the supremum, as a share of the level.
_TOLERANCE = 2e-3
# Ellipses that are tried, by the sum ρ of their half axes.
_ELLIPSES: Array = np.linspace(1.04, 8.0, 175)
# Beyond this degree cutting the range into intervals is no slower.
_MOST_DEGREE = 100
# Angles at which the polynomial is looked at, per degree; what it does in between is bounded.
_LOOKS_PER_DEGREE = 16


def interpolated_supremum(
    region: Region, null: NullLine, q_range: tuple[float, float], level: float, blocks: int
) -> float | None:
    """An upper bound on the region's probability over the null with q in `q_range`, a little above the supremum.

    None where it would need too many values, or where the null is cut at p = 1 within the range.

    Guarantee: never below the supremum. Exact.
    """
    low, high = (math.sqrt(end) for end in q_range)
    if null.slope * q_range[1] + null.shift >= 1.0:
        return None
    degree = needed_degree(region, null, (low, high), _TOLERANCE * level)
    if degree is None:
        return None
    angles = np.arange(0.5, degree + 1.0) * (np.pi / (degree + 1))
    q = (0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)) ** 2
    values = region_probability(region, null.power(q), q, common_edges(region, q_range, blocks))
    # The rounding of the values, at most doubled a few times by the interpolation.
    supremum = _greatest_between(values, angles) + _TOLERANCE * level + 10.0 * ROUNDING * float(values.max())
    return min(supremum, 1.0)


def needed_degree(region: Region, null: NullLine, ends: tuple[float, float], tolerance: float) -> int | None:
    """The least degree whose error is at most the tolerance for u between the ends; None if it is too large."""
    middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
    real = (middle + half * 0.5 * (_ELLIPSES + 1.0 / _ELLIPSES)) ** 2
    imaginary = (half * 0.5 * (_ELLIPSES - 1.0 / _ELLIPSES)) ** 2
    growth = _growth(region.n_left, null, real, imaginary) + _growth(
        region.n_right, NullLine(1.0, 0.0), real, imaginary
    )
    degree = float(np.min((growth + np.log(2.0 / ((_ELLIPSES - 1.0) * tolerance))) / np.log(_ELLIPSES)))
    return math.ceil(degree) if degree <= _MOST_DEGREE else None


def _growth(trials: int, line: NullLine, real: Array, imaginary: Array) -> Array:
    """The logarithm of a bound on (|p| + |1 − p|)^trials for p = slope·u² + shift with u = a + ib.

    With r = 1 − shift and w = slope·(a² + b²): |p| ≤ w + shift and |1 − p|² = (r − w)² + 4·slope·b²·r. The sum of the
    two grows with a² and with b² (the root is at least |r − w|), so it is at most its value at the greatest of both.

    Args:
        real: shape (k,), the greatest a² on each ellipse.
        imaginary: shape (k,), the greatest b².
    """
    r = 1.0 - line.shift
    gap = r - line.slope * (real + imaginary)
    rise = 4.0 * line.slope * imaginary * r
    root = np.sqrt(gap**2 + rise)
    # The sum minus 1 is root − gap; in a form that keeps its digits where it is tiny.
    excess = np.where(gap > 0.0, rise / (root + np.maximum(gap, 0.0)), root - gap)
    return trials * np.log1p(excess)


def _greatest_between(values: Array, angles: Array) -> float:
    """A bound on the polynomial through the values at the cosines of the angles, for all cosines.

    As a function t of the angle it is a sum of cosines, and |t''| ≤ Σ j²·|coefficient j|. Where it is greatest its
    slope is 0, so it is there at most |t''|/2·(half a step)² above its value at the nearest place looked at.
    """
    orders = np.arange(len(values))
    coefficients = np.cos(np.outer(orders, angles)) @ values * (2.0 / len(values))
    coefficients[0] /= 2.0
    looks = np.linspace(0.0, np.pi, _LOOKS_PER_DEGREE * len(values) + 1)
    seen = coefficients @ np.cos(np.outer(orders, looks))
    bend = float(orders**2 @ np.abs(coefficients))
    return float(seen.max() + bend * (looks[1] - looks[0]) ** 2 / 8.0)
