"""Exact tests of P(E) ≤ e^ε·Q(E) + δ from two counts, and the lower bounds on ε and δ they give.

The left count X ~ Binomial(n, p) and the right count Y ~ Binomial(m, q) of one event E are
independent, with p = P(E) and q = Q(E). The construction has three parts.

**One rejection region** (Buehler). The observed counts fix the region of all counts at least as
extreme as these. Its order (by the score bound on ε in `epsilon_test`, by the observed excess in
`delta_test`) depends on what was fixed before the draws, never on the parameter that is being
bounded. A claim with a larger parameter allows more, and the region stays. So the p-value, the
greatest probability of the region under the claim, grows with the parameter, the rejected
parameters form an interval, and the end of that interval is an exact lower bound.

**A restricted nuisance parameter** (Berger and Boos). The p-value is a supremum over q. A small
part of the failure probability, `NUISANCE_SHARE`, is spent on a Clopper–Pearson interval for q;
the supremum is taken over that interval only, and compared with what is left: the level. If the
claim holds, it is rejected only if q is outside its interval or the counts are in a region whose
probability is at most the level. The two probabilities add up to the failure probability.

**A supremum, not a maximum over points.** It is bounded from above on all of the interval
(`interpolation`, `supremum`).

Guarantee: a bound exceeds the true value with at most `failure_probability`. Exact for every number
of draws, if the event was fixed before the counts were drawn.

Reference: Buehler, "Confidence intervals for the product of two binomial parameters" (1957); Berger
and Boos, "P values maximized over a confidence set for the nuisance parameter" (1994).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.bounds.interpolation import TOLERANCE, interpolated_supremum
from epsilometer.bounds.supremum import (
    DEFAULT_REACH,
    NullLine,
    Range,
    Region,
    RightSide,
    evenly_spread,
    greatest_probability,
    normal_probability,
    region_probability,
    right_side,
)

# The fraction of the failure probability that is spent on the interval for q.
NUISANCE_SHARE = 1.0 / 50.0

# Resolution of the certificate. Finer costs time; this one costs at most 3 % of the distance
# between the bound and the truth.
# Intervals of q at first, where interpolation does not apply.
_INTERVALS = 64
# Blocks of Y.
BLOCKS = 128
# Blocks of Y in the coarse certificate, which is tried first. If it rejects, it has taken 0.6 of
# the time of the fine one.
_COARSE_BLOCKS = 88
# What interpolation may add in the coarse certificate, as a fraction of the level.
_COARSE_TOLERANCE = 1e-2

# Resolution of the rough p-value, which only guides the search for the bound.
# Values of q.
_ROUGH_POINTS = 11
# Blocks of Y.
_ROUGH_BLOCKS = 96
# With at least this many hits and misses on both sides, the rough p-value treats the counts as
# normal.
_MIN_COUNTS_FOR_NORMAL = 2000
# The rough p-value is kept in this range before its normal quantile is taken, which is infinite at
# 0 and at 1.
_LEAST_ROUGH_P_VALUE = 1e-300
_GREATEST_ROUGH_P_VALUE = 1.0 - 1e-16

# The first value that is certified lies below the rough bound, by this fraction of the distance
# between the rough bound and the estimate …
_FIRST_STEP = 0.015
# … where distances above this (in units of ε or δ) count as this.
_LONGEST_DISTANCE = 0.5
# The shortest first step, in units of ε or δ.
_SHORTEST_STEP = 1e-9
# A rejected value that was reached by a step longer than this is refined afterwards.
_LONG_STEP = 0.01
# The search for the rough bound stops this close to the level, in normal quantiles …
_ROUGH_TOLERANCE = 0.004
# … or after this many evaluations.
_MAX_ROUGH_EVALUATIONS = 24

# Right counts below this are treated as this many hits when the upper end of the search for ε is
# computed. With 0 hits of m, no q below 0.05/m is excluded at any failure probability below 0.95.
_LEAST_RIGHT_HITS = 0.05
# Largest exponent of e^ε, which overflows beyond 709. See `grow`.
_MAX_EXPONENT = 700.0
# Largest slope of the order of counts in `delta_test`: with it, a difference of one right count
# already outweighs any number of left counts.
_MAX_ORDER_SLOPE = 1e200
# Standard deviations added to the reach of a region. See `reach_of`.
_EXTRA_REACH = 2.5


class RatioClaim(NamedTuple):
    """The claim P(E) ≤ e^epsilon·Q(E) + delta."""

    epsilon: float
    delta: float


class RatioTest:
    """The exact test of P(E) ≤ e^ε·Q(E) + δ for one pair of counts, at one failure probability.

    Attributes:
        level: what is left of the failure probability after the restriction of q.
        q_range: the values of q over which the supremum is taken.
        region: the rejection region that the observed counts fix.
    """

    def __init__(
        self, left: Counts, right: Counts, failure_probability: float, region: Region
    ) -> None:
        check_failure_probability(failure_probability)
        self.level = failure_probability - failure_probability * NUISANCE_SHARE
        self.q_range = restricted(right, failure_probability)
        self.region = region
        # The right side of the rough p-value, computed once: it does not depend on the claim.
        self._rough_right_side: RightSide | None = None
        fewest = min(left.hits, left.misses, right.hits, right.misses)
        self._has_large_counts = fewest >= _MIN_COUNTS_FOR_NORMAL

    def p_value(self, epsilon: float, delta: float) -> float:
        """Returns an upper bound on the greatest probability of the region under the claim.

        It is sharp near the level. What was spent on the restriction of q is not added.
        """
        null = NullLine(slope=grow(epsilon), shift=delta)
        return supremum_over(self.region, null, self.q_range, self.level)

    def rough_height(self, epsilon: float, delta: float) -> float:
        """Returns roughly how far the p-value is above the level, in normal quantiles.

        It takes a maximum over a few values of q instead of a supremum: it guides a search and
        never certifies.
        """
        null = NullLine(slope=grow(epsilon), shift=delta)
        q = evenly_spread(self.q_range, _ROUGH_POINTS)
        p = null.power(q)
        if self._has_large_counts:
            probabilities = normal_probability(self.region, p, q, BLOCKS)
        else:
            if self._rough_right_side is None:
                self._rough_right_side = right_side(self.region, q, _ROUGH_BLOCKS)
            probabilities = region_probability(
                self.region, p, q, _ROUGH_BLOCKS, right=self._rough_right_side
            )
        p_value = float(probabilities.max())
        p_value = min(max(p_value, _LEAST_ROUGH_P_VALUE), _GREATEST_ROUGH_P_VALUE)
        return float(ndtri(p_value)) - float(ndtri(self.level))

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Whether the claim is refuted."""
        return self.p_value(epsilon, delta) <= self.level


def supremum_over(
    region: Region, null: NullLine, q_range: Range, level: float, finer: float = 1.0
) -> float:
    """Returns an upper bound on the region's probability along the null line with q in the range.

    The cheapest way that settles the question is used: coarse interpolation, fine interpolation,
    or intervals where the range does not allow interpolation. Each of them is an upper bound, so
    that it is no selection to use whichever is convenient.

    Args:
        region: the rejection region.
        null: the boundary of the null hypothesis.
        q_range: the values of q over which the supremum is taken.
        level: the probability that the result will be compared with; the bound is sharp near it.
        finer: how many times as many blocks are taken, for regions that reach further out.
    """
    coarse = interpolated_supremum(
        region,
        null,
        q_range,
        level=level,
        blocks=round(_COARSE_BLOCKS * finer),
        tolerance=_COARSE_TOLERANCE,
    )
    if coarse is not None and coarse <= level:
        return coarse
    blocks = round(BLOCKS * finer)
    fine = interpolated_supremum(
        region, null, q_range, level=level, blocks=blocks, tolerance=TOLERANCE
    )
    if fine is not None:
        return fine
    return greatest_probability(region, null, q_range, level=level, cuts=_INTERVALS, blocks=blocks)


def restricted(right: Counts, failure_probability: float) -> Range:
    """Returns the interval for q on which `NUISANCE_SHARE` of the failure probability is spent.

    Guarantee: q is outside with at most that share: half of it for each end. Exact.
    """
    error_share = failure_probability * NUISANCE_SHARE / 2
    return Range(low=lower(right, error_share), high=upper(right, error_share))


def reach_of(level: float) -> float:
    """Returns how many standard deviations of Y the blocks of a region must cover.

    A normal tail beyond z has a probability below exp(−z²/2). At z = √(−2·ln(level)) that is the
    level; a few standard deviations more make it negligible against the level. What is not covered
    is counted in full: a reach that is too short costs power, never soundness.
    """
    return max(DEFAULT_REACH, math.sqrt(-2.0 * math.log(level)) + _EXTRA_REACH)


def grow(epsilon: float) -> float:
    """Returns e^ε, capped before it overflows.

    The cap makes the null of a larger ε smaller than it is. That refutes nothing: the interval for
    q reaches beyond e^−700 for every number of draws, and at such q the capped null allows p = 1.
    """
    return math.exp(min(epsilon, _MAX_EXPONENT))


def epsilon_test(
    left: Counts, right: Counts, failure_probability: float, delta: float = 0.0
) -> RatioTest:
    """Returns the test whose counts are ordered by the approximate score bound on ε at this δ.

    The score bound of counts x of n and y of m is the r = n·e^ε/m that solves

        s − r·y = z·√(r·(s + y) + n·δ),  where s = x − n·δ.

    The region holds all counts whose r is at least the observed one. Solved for x at the observed
    r, the equation is the threshold of the region:

        x = n·δ + r·y + z²·r/2 + z·√(r·y·(1 + r) + z²·r²/4 + n·δ).

    The root is the standard deviation of rare events. Where Q(E) = 0, P(E) is δ, and the variance
    of x is n·δ·(1 − δ): so z is multiplied by √(1 − δ). Any factor that depends on δ alone keeps
    the order free of ε, hence the test exact. Without this one the size at δ = 0.6 and Q(E) = 0 is
    0.004 of 0.05, with it 0.04 (docs/sizes.md).
    """
    level = failure_probability * (1.0 - NUISANCE_SHARE)
    # Not ndtri(1 − level), which is infinite for a tiny level.
    z = -float(ndtri(level)) * math.sqrt(1.0 - delta)
    shift = left.trials * delta
    s = left.hits - shift
    y = float(right.hits)
    constant = s * s - z * z * shift
    if s <= 0.0 or constant <= 0.0:
        # There is no score bound: every count is at least as extreme as these.
        everything = Region(threshold=np.zeros_like, n_left=left.trials, n_right=right.trials)
        return RatioTest(left, right, failure_probability, everything)
    # The smaller root of the quadratic y²·r² − linear·r + constant = 0, in the form without
    # cancellation.
    linear = 2.0 * s * y + z * z * (s + y)
    discriminant = max(linear * linear - 4.0 * y * y * constant, 0.0)
    r = 2.0 * constant / (linear + math.sqrt(discriminant))

    def threshold(y: Floats) -> Floats:
        root = np.sqrt(r * y * (1.0 + r) + z * z * r * r / 4.0 + shift)
        return shift + r * y + 0.5 * z * z * r + z * root

    region = Region(
        threshold=threshold, n_left=left.trials, n_right=right.trials, reach=reach_of(level)
    )
    return RatioTest(left, right, failure_probability, region)


def delta_test(
    left: Counts, right: Counts, failure_probability: float, epsilon: float
) -> RatioTest:
    """Returns the test whose counts are ordered by the observed excess P̂(E) − e^ε·Q̂(E)."""
    # Any order that is free of δ is sound. The cap keeps an absurd ε from making it infinite.
    slope = min(grow(epsilon) * left.trials / right.trials, _MAX_ORDER_SLOPE)
    excess = left.hits - slope * right.hits
    region = Region(
        threshold=lambda y: excess + slope * y,
        n_left=left.trials,
        n_right=right.trials,
        reach=reach_of(failure_probability),
    )
    return RatioTest(left, right, failure_probability, region)


def epsilon_lower(
    left: Counts, right: Counts, failure_probability: float, delta: float = 0.0, least: float = 0.0
) -> float:
    """Returns the certified lower bound on ln((P(E) − δ)/Q(E)), at least `least`.

    Args:
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what is spent on the bound.
        delta: δ of the claim.
        least: the trivial bound, which is returned where nothing larger is certified. It may be
            negative.

    Guarantee: above the least ε of any (ε, δ) claim that the mechanism keeps with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if left.hits <= left.trials * delta or not right.trials:
        return least
    test = epsilon_test(left, right, failure_probability, delta)
    # An upper end for the search: larger ε are not certified, which can only cost power.
    right_hits = max(right.hits, _LEAST_RIGHT_HITS)
    top = math.log((left.hits / left.trials - delta) * right.trials / right_hits)

    def claim_at(beyond: float) -> RatioClaim:
        return RatioClaim(epsilon=least + beyond, delta=delta)

    return least + _largest_rejected(test, claim_at, top - least)


def delta_lower(left: Counts, right: Counts, failure_probability: float, epsilon: float) -> float:
    """Returns the certified lower bound on P(E) − e^ε·Q(E), at least 0.

    Guarantee: above the least δ of any (ε, δ) claim that the mechanism keeps with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    excess = left.share - grow(epsilon) * right.share
    if excess <= 0.0 or not right.trials:
        return 0.0
    test = delta_test(left, right, failure_probability, epsilon)

    def claim_at(delta: float) -> RatioClaim:
        return RatioClaim(epsilon=epsilon, delta=delta)

    return _largest_rejected(test, claim_at, excess)


def _largest_rejected(
    test: RatioTest, claim_at: Callable[[float], RatioClaim], estimate: float
) -> float:
    """The largest value that the test was seen to reject, 0 if none was.

    It is found to about 1 % of its distance from the estimate. The rough p-value only says where to
    begin: what is returned was rejected by the exact test. Since the p-value grows with the value,
    all smaller values are rejected as well, and the search spends nothing.

    Args:
        test: the exact test.
        claim_at: the claim at a value of the parameter.
        estimate: the value at which the observed frequencies lie on the boundary of the claim.
    """

    def rough_height(value: float) -> float:
        claim = claim_at(value)
        return test.rough_height(claim.epsilon, claim.delta)

    def rejects(value: float) -> bool:
        claim = claim_at(value)
        return test.rejects(claim.epsilon, claim.delta)

    rough_bound = _crossing(rough_height, estimate) if estimate > 0.0 else 0.0
    step = max(min(estimate - rough_bound, _LONGEST_DISTANCE) * _FIRST_STEP, _SHORTEST_STEP)
    not_rejected = rough_bound
    value = rough_bound - step
    while value > 0.0:
        if rejects(value):
            if step <= _LONG_STEP:
                return value
            # Small counts make the p-value jump, so that the last step may be too long: halve the
            # way back to the last value that was not rejected.
            halvings = math.ceil(math.log2(step / _LONG_STEP))
            return rejected_end(rejects, rejected=value, kept=not_rejected, halvings=halvings)
        step *= 2.0
        not_rejected = value
        value = value - step
    return 0.0


def _crossing(height: Callable[[float], float], top: float) -> float:
    """Where a growing function passes 0, between 0 and `top`, by regula falsi.

    It is 0 if the function is above 0 there already.
    """
    low = 0.0
    high = top
    at_low = height(low)
    if at_low > 0.0:
        return 0.0
    # At the estimate the p-value is far above the level, up to jumps of small counts.
    at_high = max(height(high), 0.5)
    for evaluation in range(_MAX_ROUGH_EVALUATIONS):
        # Every third step halves the bracket: the p-value may be far from linear when counts are
        # small.
        if evaluation % 3 == 2:
            fraction = 0.5
        else:
            fraction = min(max(-at_low / (at_high - at_low), 0.02), 0.98)
        value = low + fraction * (high - low)
        at_value = height(value)
        if abs(at_value) < _ROUGH_TOLERANCE:
            return value
        if at_value <= 0.0:
            low = value
            at_low = at_value
        else:
            high = value
            at_high = at_value
    return low
