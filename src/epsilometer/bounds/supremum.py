"""The greatest probability of a rejection region over the null hypothesis, bounded from above.

X ~ Binomial(n, p) counts an event on the left, Y ~ Binomial(m, q) on the right, independently. The
region is {X ≥ threshold(Y)} with a non-decreasing threshold, so its probability grows with p and
falls with q. The null hypothesis p ≤ slope·q + shift is hardest to reject on its boundary, the line
p = slope·q + shift (cut at 1), which leaves q as a nuisance parameter.

`greatest_probability` bounds the supremum of the region's probability f(q) along that line over an
interval of q *from above*. That is what makes a p-value valid: a maximum over points of a grid is
not a supremum. The range of q is cut into small intervals [a, b]. On each of them two bounds hold,
and the smaller one counts:

* The corner: p at the top of the interval together with q at its bottom.
* The chord: max(f(a), f(b)) + (b − a)²/8·I, where I is the greatest Fisher information about q on
  the interval, along the line. With the score S of the counts, f'' = E[(1_R − ½)·(S² + S')], since
  E[S² + S'] = 0. S' ≤ 0 for binomial counts whose probability is linear in q, and
  E S² = −E S' = I, hence |f''| ≤ ½·(I + I) = I; a function with |f''| ≤ I is at most
  (b − a)²/8·I above its chord.

Sums over Y run over blocks of neighbouring values, each with the threshold of its lowest value.
That enlarges the region, so its probability is never too small. What lies below the first block is
counted in full, and the last block reaches to m.

Guarantee: exact. Every step errs upwards.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincc, ndtr

from epsilometer.arrays import Floats

# Relative. Covers the rounding of the incomplete beta function (its relative error is below 1e-13
# up to 1e9 trials) many times over.
ROUNDING = 1e-11
# Up to this ratio of trials to q, rounding 1 − q changes P(Y < edge) by less than 1e-11 of it, even
# 8 standard deviations out.
_MAX_TRIALS_PER_Q = 1e8
# A real threshold that rounding has put just above an integer must not push that integer out of the
# region: thresholds are lowered by this fraction of themselves …
_THRESHOLD_RELATIVE_SLACK = 1e-12
# … and by this many counts.
_THRESHOLD_ABSOLUTE_SLACK = 1e-9
# Standard deviations of Y that blocks cover on each side by default. A normal tail beyond has a
# probability of 2e-8, negligible against levels near 0.05.
DEFAULT_REACH = 5.5
# Standard deviations of Y that are covered on the right beyond the reach: where q is below ½, the
# right tail of a count is the longer one.
_EXTRA_REACH_RIGHT = 0.5
# Counts covered on the left beyond the reach, for small counts, which are far from normal.
_EXTRA_COUNTS_LEFT = 4.0
# Counts covered on the right beyond the reach, for the longer tail of small counts.
_EXTRA_COUNTS_RIGHT = 12.0
# How often an interval of q whose bound is not yet below the level may be halved. Each halving
# makes the chord's excess four times smaller.
_MAX_HALVINGS = 6


class Range(NamedTuple):
    """A closed interval of probabilities, or of their square roots."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Region:
    """The rejection region {X ≥ threshold(Y)}: the counts at least as extreme as those observed.

    Attributes:
        threshold: maps an array of right counts to the least (real) left counts in the region;
            non-decreasing.
        n_left: trials on the left.
        n_right: trials on the right.
        reach: how many standard deviations of Y the blocks cover on each side. What is left out
            counts in full, so a smaller level needs a longer reach.
    """

    threshold: Callable[[Floats], Floats]
    n_left: int
    n_right: int
    reach: float = DEFAULT_REACH


@dataclass(frozen=True, slots=True)
class NullLine:
    """The boundary p = slope·q + shift of a null hypothesis, cut at 1."""

    slope: float
    shift: float

    def power(self, q: Floats) -> Floats:
        """Returns the left probability at each right probability."""
        return np.minimum(self.slope * q + self.shift, 1.0)


class RightSide(NamedTuple):
    """What the probability of a region needs to know of Y: half of its cost, the same for all p.

    Attributes:
        below: shape (k,), P(Y below the first block) for each q.
        mass: shape (k, blocks), the probability of each block.
        needed: shape (k, blocks), the least left count with which a block's lowest value of Y is in
            the region.
    """

    below: Floats
    mass: Floats
    needed: Floats


def region_probability(
    region: Region, p: Floats, q: Floats, blocks: int | Floats, right: RightSide | None = None
) -> Floats:
    """Returns P(X ≥ threshold(Y)) for each (p, q), from above.

    It is equal to that probability where every block is one value of Y.

    Args:
        region: the rejection region.
        p: shape (k,), left probabilities.
        q: shape (k,), right probabilities.
        blocks: the largest number of blocks for the bulk of Y, chosen for each q separately; or
            the lowest values of blocks that all q share, which makes the result the probability of
            one fixed region that contains this one.
        right: the `right_side` of these q and blocks, where it is known.

    Returns:
        Shape (k,).
    """
    n = float(region.n_left)
    if right is None:
        right = right_side(region, q, blocks)
    needed = right.needed
    # P(X ≥ k) = I_p(k, n − k + 1) for 1 ≤ k ≤ n; it is 1 for smaller and 0 for larger k.
    inside = np.clip(needed, 1.0, n)
    tail = betainc(inside, n - inside + 1.0, p[:, None])
    tail = np.where(needed <= 0.0, 1.0, np.where(needed > n, 0.0, tail))
    # What is below the first block counts in full.
    total = (right.below + (right.mass * tail).sum(axis=1)) * (1.0 + ROUNDING)
    return np.asarray(np.minimum(total, 1.0), dtype=np.float64)


def right_side(region: Region, q: Floats, blocks: int | Floats) -> RightSide:
    """Returns what `region_probability` needs to know of Y at these q, shape (k,), and blocks."""
    m = float(region.n_right)
    if isinstance(blocks, int):
        edges = _block_edges(m, q, blocks, region.reach)
    else:
        edges = np.tile(blocks, (len(q), 1))
    # P(Y < edge) by the incomplete beta function: SciPy's binomial distribution function is wrong
    # in the third digit at 1e7 trials.
    inside = np.clip(edges, 1.0, m)
    if m <= _MAX_TRIALS_PER_Q * float(q.min()):
        # Four times as fast as the complement, and exact enough where 1 − q is.
        below_edge = betainc(m - inside + 1.0, inside, 1.0 - q[:, None])
    else:
        below_edge = betaincc(inside, m - inside + 1.0, q[:, None])
    below_edge = np.where(edges <= 0.0, 0.0, np.where(edges > m, 1.0, below_edge))
    # The last block reaches to m, so its upper end has P(Y < end) = 1.
    ends = np.concatenate([below_edge, np.ones((len(q), 1))], axis=1)
    mass = np.diff(ends, axis=1)
    lowered = (
        region.threshold(edges) * (1.0 - _THRESHOLD_RELATIVE_SLACK) - _THRESHOLD_ABSOLUTE_SLACK
    )
    needed = np.maximum(np.ceil(lowered), 0.0)
    return RightSide(below=below_edge[:, 0], mass=np.maximum(mass, 0.0), needed=needed)


def _block_edges(m: float, q: Floats, blocks: int, reach: float) -> Floats:
    """The lowest value of Y in each block, for each q; the last block reaches to m.

    Returns:
        Shape (k, at most blocks + 2).
    """
    mean = m * q
    deviation = np.sqrt(m * q * (1.0 - q))
    start = np.maximum(np.floor(mean - reach * deviation - _EXTRA_COUNTS_LEFT), 0.0)
    stop = np.minimum(
        np.ceil(mean + (reach + _EXTRA_REACH_RIGHT) * deviation + _EXTRA_COUNTS_RIGHT), m
    )
    width = np.maximum(np.ceil((stop - start + 1.0) / blocks), 1.0)
    n_edges = int(np.max(np.ceil((stop - start + 1.0) / width))) + 1
    # Edges beyond m belong to empty blocks, where q needs fewer blocks than others.
    return np.minimum(start[:, None] + width[:, None] * np.arange(n_edges), m + 1.0)


def common_edges(region: Region, q_range: Range, blocks: int) -> Floats:
    """Returns the lowest values of blocks that hold the bulk of Y for every q in a range.

    Each block is as wide as one of `blocks` blocks for the q with the largest deviation.
    """
    m = float(region.n_right)
    q = np.array(q_range)
    deviation = np.sqrt(m * q * (1.0 - q))
    lowest = m * q[0] - region.reach * deviation[0] - _EXTRA_COUNTS_LEFT
    highest = m * q[1] + (region.reach + _EXTRA_REACH_RIGHT) * deviation[1] + _EXTRA_COUNTS_RIGHT
    start = max(math.floor(lowest), 0)
    stop = min(math.ceil(highest), region.n_right)
    reaches = 2.0 * region.reach + _EXTRA_REACH_RIGHT
    # The counts added on both sides, and one because both ends are included.
    extra_counts = _EXTRA_COUNTS_LEFT + _EXTRA_COUNTS_RIGHT + 1.0
    width = max(math.floor((reaches * float(deviation.max()) + extra_counts) / blocks), 1)
    return np.append(np.arange(start, stop + 1, width, dtype=np.float64), min(stop, m) + 1.0)


def normal_probability(region: Region, p: Floats, q: Floats, blocks: int) -> Floats:
    """Returns roughly the probability of a region, by normal distributions.

    It is 50 times faster for large counts. It guides a search and never certifies. It takes the
    threshold of the lowest value of each block, as `region_probability` does, so that it has the
    same error and points at the right value.

    Args:
        region: the rejection region.
        p: shape (k,), left probabilities.
        q: shape (k,), right probabilities.
        blocks: the largest number of blocks for the bulk of Y.

    Returns:
        Shape (k,).
    """
    n = float(region.n_left)
    m = float(region.n_right)
    edges = _block_edges(m, q, blocks, region.reach)
    # The half is the continuity correction.
    below_edge = ndtr((edges - 0.5 - m * q[:, None]) / np.sqrt(m * q * (1.0 - q))[:, None])
    excess = region.threshold(edges[:, :-1]) - 0.5 - n * p[:, None]
    # p may be 1, where the deviation is 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = ndtr(-excess / np.sqrt(n * p * (1.0 - p))[:, None])
    mass = np.diff(below_edge, axis=1)
    return np.asarray((mass * tail).sum(axis=1), dtype=np.float64)


def greatest_probability(
    region: Region, null: NullLine, q_range: Range, *, level: float, cuts: int, blocks: int
) -> float:
    """Returns an upper bound on the region's probability along the null line with q in a range.

    It is refined only as needed to decide whether it is at most `level`: intervals whose bound is
    above the level although both their ends are below it are halved a few times.

    Args:
        region: the rejection region.
        null: the boundary of the null hypothesis.
        q_range: the values of q over which the supremum is taken.
        level: the probability that the result will be compared with.
        cuts: the number of intervals at first.
        blocks: the largest number of blocks for the bulk of Y.

    Guarantee: never below the supremum. Exact.
    """
    ends = evenly_spread(q_range, cuts + 1)
    at_ends = region_probability(region, null.power(ends), ends, blocks)
    # The intervals [a, b] that are not settled yet, and the region's probability at their ends.
    a = ends[:-1]
    b = ends[1:]
    at_a = at_ends[:-1]
    at_b = at_ends[1:]
    # The greatest bound of a settled interval.
    greatest = 0.0
    for depth in range(_MAX_HALVINGS + 1):
        larger_end = np.maximum(at_a, at_b)
        bound = larger_end + _chord_excess(region, null, a, b)
        # Negated: a bound that is not a number does not settle its interval.
        is_open = ~(bound <= level)
        if is_open.any():
            # The bound of the corner may be lower.
            corner = region_probability(region, null.power(b[is_open]), a[is_open], blocks)
            bound[is_open] = np.minimum(bound[is_open], corner)
        is_open = ~(bound <= level)
        greatest = max(greatest, float(np.max(bound[~is_open], initial=0.0)))
        if not is_open.any():
            return greatest
        # Halving does not help where the probability at an end is above the level.
        can_help = (larger_end[is_open] <= level).all()
        if depth == _MAX_HALVINGS or not can_help:
            return max(greatest, float(bound.max()))
        a = a[is_open]
        b = b[is_open]
        at_a = at_a[is_open]
        at_b = at_b[is_open]
        middle = 0.5 * (a + b)
        at_middle = region_probability(region, null.power(middle), middle, blocks)
        a = np.append(a, middle)
        b = np.append(middle, b)
        at_a = np.append(at_a, at_middle)
        at_b = np.append(at_middle, at_b)
    return greatest


def evenly_spread(q_range: Range, n: int) -> Floats:
    """Returns n values from one end of a range to the other, at even distances of √q.

    On that scale the standard deviation of a count does not depend on q, for small q.
    """
    low_root = float(np.sqrt(q_range[0]))
    high_root = float(np.sqrt(q_range[1]))
    return np.linspace(low_root, high_root, n) ** 2


def _chord_excess(region: Region, null: NullLine, a: Floats, b: Floats) -> Floats:
    """(b − a)²/8 times the greatest Fisher information on [a, b], at most 1.

    The information about q along the line is slope²·n/(p(1 − p)) + m/(q(1 − q)); it is infinite
    where p or q touches 0 or 1, and there the trivial bound 1 remains.

    Args:
        a: shape (k,), lower ends of intervals of q.
        b: shape (k,), their upper ends.

    Returns:
        Shape (k,).
    """
    p_low = null.power(a)
    p_high = null.power(b)
    # x(1 − x) is concave, so its least value on an interval is at an end.
    p_variance = np.minimum(p_low * (1.0 - p_low), p_high * (1.0 - p_high))
    q_variance = np.minimum(a * (1.0 - a), b * (1.0 - b))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        left_information = null.slope * null.slope * region.n_left / p_variance
        right_information = region.n_right / q_variance
        information = left_information + right_information
        excess = (b - a) ** 2 / 8.0 * information
    # An interval of no length with infinite information gives nan: nothing is known there.
    return np.where(excess < 1.0, excess, 1.0)
