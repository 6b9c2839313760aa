"""The supremum of `supremum.greatest_probability` by polynomial interpolation, where it applies.

It needs about a fifth of the evaluations.

Along the null line p = slope·q + shift, with u = √q, the probability f of a fixed region of counts
is a polynomial in u, and so a function of complex u. A sum over a region is at most the sum of all
absolute values, which for a binomial distribution is (|p| + |1 − p|)^n. Hence |f − ½| ≤ ½·G with
G = (|p| + |1 − p|)^n · (|q| + |1 − q|)^m, which grows slowly near the real line.

What follows is classical. Let G ≤ e^growth inside the ellipse around the range of u whose half axes
add up to ρ times half the range. Then the Chebyshev coefficients of f beyond the constant are at
most e^growth·ρ^−j. The polynomial of degree k through f at the k + 1 zeros of a Chebyshev
polynomial aliases every coefficient beyond k to one below, so that it errs by at most twice the sum
of the coefficients beyond k: 2·e^growth·ρ^−k/(ρ − 1). Degree 40 takes that below a thousandth of a
level of 0.05.

To interpolate one function, the blocks of the right count must be the same for all q.

Guarantee: never below the supremum. Exact.

Reference: Trefethen, "Approximation Theory and Approximation Practice" (2013), Theorems 8.1 and 8.2
(Bernstein).
"""

import math

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.supremum import (
    ROUNDING,
    NullLine,
    Range,
    Region,
    common_edges,
    region_probability,
)

# What the interpolation may add to the supremum, as a fraction of the level.
TOLERANCE = 2e-3
# Ellipses that are tried, by the sum ρ of their half axes (in units of half the range). Each gives
# a valid bound on the error; the best of them is used.
_ELLIPSES: Floats = np.linspace(1.04, 8.0, 175)
# Beyond this degree, cutting the range into intervals is no slower.
_MAX_DEGREE = 100
# Angles at which the polynomial is evaluated, per coefficient; between them it is bounded.
_ANGLES_PER_COEFFICIENT = 16
# Factor on the rounding of the interpolated values. Interpolation at Chebyshev points of at most
# this degree multiplies errors of the values by less than 5.
_ROUNDING_GROWTH = 10.0


def interpolated_supremum(
    region: Region,
    null: NullLine,
    q_range: Range,
    *,
    level: float,
    blocks: int,
    tolerance: float = TOLERANCE,
) -> float | None:
    """Returns an upper bound on the region's probability along the null line with q in a range.

    Args:
        region: the rejection region.
        null: the boundary of the null hypothesis.
        q_range: the values of q over which the supremum is taken.
        level: the probability that the result will be compared with.
        blocks: the number of blocks for the bulk of Y at one q.
        tolerance: what the interpolation may add, as a fraction of the level.

    Returns:
        None where too many values would be needed, or where the null line is cut at p = 1 within
        the range, so that the probability is no polynomial.

    Guarantee: never below the supremum. Exact.
    """
    q_low, q_high = q_range
    if null.slope * q_high + null.shift >= 1.0:
        return None
    roots = Range(low=math.sqrt(q_low), high=math.sqrt(q_high))
    degree = needed_degree(region, null, roots, tolerance * level)
    if degree is None:
        return None
    # The zeros of the Chebyshev polynomial of degree + 1 are the cosines of these angles.
    angles = np.arange(0.5, degree + 1.0) * (np.pi / (degree + 1))
    middle = 0.5 * (roots.low + roots.high)
    half_width = 0.5 * (roots.high - roots.low)
    q = (middle + half_width * np.cos(angles)) ** 2
    edges = common_edges(region, q_range, blocks)
    values = region_probability(region, null.power(q), q, edges)
    interpolation_error = tolerance * level
    rounding_error = _ROUNDING_GROWTH * ROUNDING * float(values.max())
    return min(_greatest_between(values, angles) + interpolation_error + rounding_error, 1.0)


def needed_degree(region: Region, null: NullLine, roots: Range, tolerance: float) -> int | None:
    """Returns the least degree whose error is provably at most the tolerance.

    Args:
        region: the rejection region.
        null: the boundary of the null hypothesis.
        roots: the range of u = √q.
        tolerance: absolute.

    Returns:
        None if the degree is too large to be worth it.
    """
    u_low, u_high = roots
    middle = 0.5 * (u_low + u_high)
    half_width = 0.5 * (u_high - u_low)
    # The squares of the greatest real and imaginary parts of u on each ellipse.
    real = (middle + half_width * 0.5 * (_ELLIPSES + 1.0 / _ELLIPSES)) ** 2
    imaginary = (half_width * 0.5 * (_ELLIPSES - 1.0 / _ELLIPSES)) ** 2
    growth = _growth(region.n_left, null, real, imaginary)
    growth += _growth(region.n_right, NullLine(slope=1.0, shift=0.0), real, imaginary)
    # Solves 2·e^growth·ρ^−k/(ρ − 1) = tolerance for k, on every ellipse.
    degrees = (growth + np.log(2.0 / ((_ELLIPSES - 1.0) * tolerance))) / np.log(_ELLIPSES)
    degree = float(np.min(degrees))
    return math.ceil(degree) if degree <= _MAX_DEGREE else None


def _growth(trials: int, line: NullLine, real: Floats, imaginary: Floats) -> Floats:
    """The logarithm of a bound on (|p| + |1 − p|)^trials for p = slope·u² + shift with u = a + ib.

    With r = 1 − shift and w = slope·(a² + b²): |p| ≤ w + shift and |1 − p|² = (r − w)² +
    4·slope·b²·r. The sum of the two grows with a² and with b² (the root is at least |r − w|), so it
    is at most its value at the greatest of both.

    Args:
        trials: of the binomial distribution.
        line: the slope and the shift.
        real: shape (k,), the greatest a² on each ellipse.
        imaginary: shape (k,), the greatest b².

    Returns:
        Shape (k,).
    """
    r = 1.0 - line.shift
    gap = r - line.slope * (real + imaginary)
    rise = 4.0 * line.slope * imaginary * r
    root = np.sqrt(gap**2 + rise)
    # The sum minus 1 is root − gap. Where the gap is positive the two may nearly cancel, and
    # rise/(root + gap) is the same number with all its digits.
    sum_minus_one = np.where(gap > 0.0, rise / (root + np.maximum(gap, 0.0)), root - gap)
    return trials * np.log1p(sum_minus_one)


def _greatest_between(values: Floats, angles: Floats) -> float:
    """An upper bound on the polynomial through the values at the cosines of the angles.

    As a function t of the angle the polynomial is a sum of cosines, and |t''| ≤ Σ j²·|coefficient
    j|. Where t is greatest its slope is 0, so it is there at most |t''|/2·(half a step)² above its
    value at the nearest of the angles where it is evaluated.

    Args:
        values: shape (degree + 1,).
        angles: the same shape, of the zeros of a Chebyshev polynomial.
    """
    orders = np.arange(len(values))
    # The discrete cosine transform gives the Chebyshev coefficients.
    coefficients = np.cos(np.outer(orders, angles)) @ values * (2.0 / len(values))
    coefficients[0] /= 2.0
    grid = np.linspace(0.0, np.pi, _ANGLES_PER_COEFFICIENT * len(values) + 1)
    on_grid = coefficients @ np.cos(np.outer(orders, grid))
    step = grid[1] - grid[0]
    curvature = float(orders**2 @ np.abs(coefficients))
    return float(on_grid.max() + curvature * step**2 / 8.0)
