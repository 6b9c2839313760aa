"""The greatest probability of a rejection region over the null, exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, ndtr

from epsilometer.arrays import Floats

# Covers the rounding of the incomplete beta function (relative error below 1e-13 up to 1e9 trials)
# many times over.
ROUNDING = 1e-11
# Up to this ratio of trials to q, rounding 1 − q changes P(Y < edge) by less than 1e-11 of it, even
# 8 spreads out.
_ROUNDED_Q = 1e8
# How often an interval that is not yet below the level may be halved; each halving shrinks the
# chord term 4×.
_DEPTH = 6

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Region:
    """{X ≥ threshold(Y)}: the counts at least as extreme as those seen.

    Attributes:
        threshold: maps an array of right counts to the least (real) left counts in the region;
            non-decreasing.
        n_left: trials on the left.
        n_right: trials on the right.
        reach: how many spreads of Y the blocks cover on each side. What is left out counts in full,
            so a smaller level needs a longer reach.
    """

    threshold: Callable[[Floats], Floats]
    n_left: int
    n_right: int
    reach: float = 5.5


@dataclass(frozen=True, slots=True)
class NullLine:
    """The boundary p = slope·q + shift of a claim, cut at 1."""

    slope: float
    shift: float

    def power(self, q: Floats) -> Floats:
        """The left probability for each right probability."""
        return np.minimum(self.slope * q + self.shift, 1.0)


# P(Y below the first block), shape (k,); the probability of each block and the left counts that it
# needs, (k, blocks).
RightSide = tuple[Floats, Floats, Floats]


def region_probability(
    region: Region, p: Floats, q: Floats, blocks: int | Floats, right: RightSide | None = None
) -> Floats:
    """P(X ≥ threshold(Y)) for each (p, q), from above (equal to it where a block is one value of Y).

    Args:
        p: shape (k,), left probabilities.
        q: shape (k,), right probabilities.
        blocks: the largest number of blocks for the bulk of Y, for each q on its own; or the lowest
            values of blocks that all q share, which makes it the probability of one fixed region
            that contains this one.
        right: the `right_side` of these q and blocks, where it is known.
    """
    n, (below, mass, needed) = float(region.n_left), right or right_side(region, q, blocks)
    inside = np.clip(needed, 1.0, n)
    tail = betainc(inside, n - inside + 1.0, p[:, None])
    tail = np.where(needed <= 0.0, 1.0, np.where(needed > n, 0.0, tail))
    total = (below + (mass * tail).sum(axis=1)) * (1.0 + ROUNDING)
    return np.asarray(np.minimum(total, 1.0), dtype=np.float64)


def right_side(region: Region, q: Floats, blocks: int | Floats) -> RightSide:
    """What `region_probability` needs to know of Y: half of its work, and the same for every p."""
    m = float(region.n_right)
    edges = (
        _block_edges(m, q, blocks, region.reach)
        if isinstance(blocks, int)
        else np.tile(blocks, (len(q), 1))
    )
    # P(Y < edge) by the incomplete beta function: SciPy's binomial function of the same meaning is
    # wrong in the third digit at 1e7 trials.
    inner = np.clip(edges, 1.0, m)
    if m <= _ROUNDED_Q * float(q.min()):  # 4 times as fast as the complement
        below = betainc(m - inner + 1.0, inner, 1.0 - q[:, None])
    else:
        below = betaincc(inner, m - inner + 1.0, q[:, None])
    below = np.where(edges <= 0.0, 0.0, np.where(edges > m, 1.0, below))
    mass = np.diff(np.concatenate([below, np.ones((len(q), 1))], axis=1), axis=1)
    # A real threshold just above an integer through rounding must not push that integer out of the
    # region.
    needed = np.maximum(np.ceil(region.threshold(edges) * (1.0 - 1e-12) - 1e-9), 0.0)
    return below[:, 0], np.maximum(mass, 0.0), needed


def _block_edges(m: float, q: Floats, blocks: int, reach: float) -> Floats:
    """Shape (k, at most blocks + 2): lowest values of Y in each block; the last block reaches to m."""
    centre = m * q
    spread = np.sqrt(m * q * (1.0 - q))
    start = np.maximum(np.floor(centre - reach * spread - 4.0), 0.0)
    stop = np.minimum(np.ceil(centre + (reach + 0.5) * spread + 12.0), m)
    step = np.maximum(np.ceil((stop - start + 1.0) / blocks), 1.0)
    needed = int(np.max(np.ceil((stop - start + 1.0) / step))) + 1
    return np.minimum(start[:, None] + step[:, None] * np.arange(needed), m + 1.0)


def common_edges(region: Region, q_range: Range, blocks: int) -> Floats:
    """Lowest values of blocks that hold the bulk of Y for every q in a range, each as wide as one of `blocks` is."""
    m = float(region.n_right)
    q = np.array(q_range)
    spread = np.sqrt(m * q * (1.0 - q))
    start = max(math.floor(m * q[0] - region.reach * spread[0] - 4.0), 0)
    stop = min(math.ceil(m * q[1] + (region.reach + 0.5) * spread[1] + 12.0), region.n_right)
    step = max(math.floor(((2.0 * region.reach + 0.5) * float(spread.max()) + 17.0) / blocks), 1)
    return np.append(np.arange(start, stop + 1, step, dtype=np.float64), min(stop, m) + 1.0)


def normal_probability(region: Region, p: Floats, q: Floats, blocks: int) -> Floats:
    """Roughly the same by normal distributions: 50 times faster for large counts, a guide and never a proof.

    It keeps the lowest value of each block, so that it errs as the proof does and points at the
    right place.
    """
    n = float(region.n_left)
    m = float(region.n_right)
    edges = _block_edges(m, q, blocks, region.reach)
    below = ndtr((edges - 0.5 - m * q[:, None]) / np.sqrt(m * q * (1.0 - q))[:, None])
    excess = region.threshold(edges[:, :-1]) - 0.5 - n * p[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = ndtr(-excess / np.sqrt(n * p * (1.0 - p))[:, None])
    return np.asarray((np.diff(below, axis=1) * tail).sum(axis=1), dtype=np.float64)


def greatest_probability(
    region: Region, null: NullLine, q_range: Range, level: float, cuts: int, blocks: int
) -> float:
    """An upper bound on the region's probability over the null with q in `q_range`, cut into so many intervals.

    It is refined only as needed to decide whether it is at most `level`: intervals whose bound is
    above the level although both their ends are below are halved a few times.

    Guarantee: never below the supremum. Exact.
    """
    ends = evenly_spread(q_range, cuts + 1)
    at_ends = region_probability(region, null.power(ends), ends, blocks)
    a = ends[:-1]
    b = ends[1:]
    low = at_ends[:-1]
    high = at_ends[1:]
    worst = 0.0
    for depth in range(_DEPTH + 1):
        bound = np.maximum(low, high) + _chord_excess(region, null, a, b)
        bad = ~(bound <= level)  # what is not a number is no evidence
        if bad.any():  # perhaps the corner is lower
            bound[bad] = np.minimum(
                bound[bad], region_probability(region, null.power(b[bad]), a[bad], blocks)
            )
        bad = ~(bound <= level)
        worst = max(worst, float(np.max(bound[~bad], initial=0.0)))
        if not bad.any():
            return worst
        # halving would not help
        if depth == _DEPTH or not (np.maximum(low, high)[bad] <= level).all():
            return max(worst, float(bound.max()))
        a = a[bad]
        b = b[bad]
        low = low[bad]
        high = high[bad]
        middle = 0.5 * (a + b)
        centre = region_probability(region, null.power(middle), middle, blocks)
        a = np.append(a, middle)
        b = np.append(middle, b)
        low = np.append(low, centre)
        high = np.append(centre, high)
    return worst


def evenly_spread(q_range: Range, n: int) -> Floats:
    """n values from one end to the other, even in √q: there the spread of a count does not depend on q."""
    low, high = (float(np.sqrt(end)) for end in q_range)
    return np.linspace(low, high, n) ** 2


def _chord_excess(region: Region, null: NullLine, a: Floats, b: Floats) -> Floats:
    """(b − a)²/8 times the greatest information on [a, b]; infinite where p or q touches 0 or 1."""
    p_low = null.power(a)
    p_high = null.power(b)
    # x(1 − x) is concave, so its least value on an interval is at an end.
    p_spread = np.minimum(p_low * (1.0 - p_low), p_high * (1.0 - p_high))
    q_spread = np.minimum(a * (1.0 - a), b * (1.0 - b))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        information = null.slope * null.slope * region.n_left / p_spread + region.n_right / q_spread
        excess = (b - a) ** 2 / 8.0 * information
    # An interval of no length with infinite information is not a number: nothing is known there.
    return np.where(excess < 1.0, excess, 1.0)


# What the interpolation may add to the supremum, as a share of the level.
TOLERANCE = 2e-3
# Ellipses that are tried, by the sum ρ of their half axes.
_ELLIPSES: Floats = np.linspace(1.04, 8.0, 175)
# Beyond this degree cutting the range into intervals is no slower.
_MOST_DEGREE = 100
# Angles at which the polynomial is evaluated, per degree; between them it is bounded.
_LOOKS_PER_DEGREE = 16


def interpolated_supremum(
    region: Region,
    null: NullLine,
    q_range: Range,
    level: float,
    blocks: int,
    tolerance: float = TOLERANCE,
) -> float | None:
    """An upper bound on the region's probability over the null with q in `q_range`, a little above the supremum.

    None where it would need too many values, or where the null is cut at p = 1 within the range.

    Guarantee: never below the supremum. Exact.
    """
    low, high = (math.sqrt(end) for end in q_range)
    if null.slope * q_range[1] + null.shift >= 1.0:
        return None
    degree = needed_degree(region, null, (low, high), tolerance * level)
    if degree is None:
        return None
    angles = np.arange(0.5, degree + 1.0) * (np.pi / (degree + 1))
    q = (0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)) ** 2
    values = region_probability(region, null.power(q), q, common_edges(region, q_range, blocks))
    # The rounding of the values, at most doubled a few times by the interpolation.
    return min(
        _greatest_between(values, angles)
        + tolerance * level
        + 10.0 * ROUNDING * float(values.max()),
        1.0,
    )


def needed_degree(region: Region, null: NullLine, ends: Range, tolerance: float) -> int | None:
    """The least degree whose error is at most the tolerance for u between the ends; None if it is too large."""
    middle = 0.5 * (ends[0] + ends[1])
    half = 0.5 * (ends[1] - ends[0])
    real = (middle + half * 0.5 * (_ELLIPSES + 1.0 / _ELLIPSES)) ** 2
    imaginary = (half * 0.5 * (_ELLIPSES - 1.0 / _ELLIPSES)) ** 2
    growth = _growth(region.n_left, null, real, imaginary)
    growth += _growth(region.n_right, NullLine(1.0, 0.0), real, imaginary)
    degree = float(
        np.min((growth + np.log(2.0 / ((_ELLIPSES - 1.0) * tolerance))) / np.log(_ELLIPSES))
    )
    return math.ceil(degree) if degree <= _MOST_DEGREE else None


def _growth(trials: int, line: NullLine, real: Floats, imaginary: Floats) -> Floats:
    """The logarithm of a bound on (|p| + |1 − p|)^trials for p = slope·u² + shift with u = a + ib.

    With r = 1 − shift and w = slope·(a² + b²): |p| ≤ w + shift and |1 − p|² = (r − w)² +
    4·slope·b²·r. The sum of the two grows with a² and with b² (the root is at least |r − w|), so it
    is at most its value at the greatest of both.

    Args:
        real: shape (k,), the greatest a² on each ellipse.
        imaginary: shape (k,), the greatest b².
    """
    r = 1.0 - line.shift
    gap = r - line.slope * (real + imaginary)
    rise = 4.0 * line.slope * imaginary * r
    root = np.sqrt(gap**2 + rise)
    # The sum minus 1 is root − gap; in a form that keeps its digits where it is tiny.
    return trials * np.log1p(np.where(gap > 0.0, rise / (root + np.maximum(gap, 0.0)), root - gap))


def _greatest_between(values: Floats, angles: Floats) -> float:
    """A bound on the polynomial through the values at the cosines of the angles, for all cosines.

    As a function t of the angle it is a sum of cosines, and |t''| ≤ Σ j²·|coefficient j|. Where it
    is greatest its slope is 0, so it is there at most |t''|/2·(half a step)² above its value at the
    nearest angle.
    """
    orders = np.arange(len(values))
    coefficients = np.cos(np.outer(orders, angles)) @ values * (2.0 / len(values))
    coefficients[0] /= 2.0
    looks = np.linspace(0.0, np.pi, _LOOKS_PER_DEGREE * len(values) + 1)
    seen = coefficients @ np.cos(np.outer(orders, looks))
    bend = float(orders**2 @ np.abs(coefficients))
    return float(seen.max() + bend * (looks[1] - looks[0]) ** 2 / 8.0)
