"""Exact lower bounds on ε (for any δ) and on δ (for any ε) from two counts, and certified values of any claim."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

import epsilometer.bounds.supremum as supremum
from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import Counts, check_failure_probability, lower, upper
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP

# The share of the failure probability that buys the restriction of q (Berger and Boos).
_NUISANCE_SHARE = 1.0 / 50.0
# Resolution of the proof: intervals of q, blocks of Y. Finer costs time, coarser costs at most 3 % of the shortfall.
_INTERVALS, _BLOCKS = 64, 128
# Resolution of the rough search for the place of the proof.
_ROUGH_POINTS, _ROUGH_BLOCKS = 11, 96
# With at least this many hits and misses on both sides, the rough search treats the counts as normal.
_LARGE = 2000
# The proof starts this share of the distance between bound and estimate (0.5 at most) below the rough place.
_SLACK = 0.015
# Steps longer than this are refined afterwards.
_COARSE = 0.01
# How close (in normal quantiles), or after how many evaluations, the rough place is good enough.
_CLOSE, _LOOKS = 0.004, 24


class RatioTest:
    """The exact test of P(E) ≤ e^ε·Q(E) + δ for one pair of counts, at one failure probability."""

    def __init__(self, left: Counts, right: Counts, failure_probability: float, region: supremum.Region) -> None:
        check_failure_probability(failure_probability)
        nuisance = failure_probability * _NUISANCE_SHARE
        self.level = failure_probability - nuisance
        self.q_range = (lower(right, nuisance / 2), upper(right, nuisance / 2))
        self.region = region
        misses = left.trials - left.hits, right.trials - right.hits
        self._is_large = min(left.hits, right.hits, *misses) >= _LARGE

    def p_value(self, epsilon: float, delta: float) -> float:
        """An upper bound on the p-value of the claim, before the price of restricting q; sharp where it matters."""
        null = supremum.NullLine(_grow(epsilon), delta)
        smooth = supremum.interpolated_supremum(self.region, null, self.q_range, self.level, _BLOCKS)
        if smooth is not None:
            return smooth
        return supremum.greatest_probability(self.region, null, self.q_range, self.level, _INTERVALS, _BLOCKS)

    def rough_height(self, epsilon: float, delta: float) -> float:
        """How far the p-value is above the level, in normal quantiles, at a few values of q only: a mere guide."""
        null = supremum.NullLine(_grow(epsilon), delta)
        q = supremum.evenly_spread(self.q_range, _ROUGH_POINTS)
        if self._is_large:
            p_value = float(supremum.normal_probability(self.region, null.power(q), q, _BLOCKS).max())
        else:
            p_value = float(supremum.region_probability(self.region, null.power(q), q, _ROUGH_BLOCKS).max())
        return float(ndtri(min(max(p_value, 1e-300), 1.0 - 1e-16))) - float(ndtri(self.level))

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Whether the claim is refuted."""
        return self.p_value(epsilon, delta) <= self.level


def epsilon_test(left: Counts, right: Counts, failure_probability: float, delta: float = 0.0) -> RatioTest:
    """The test whose region is all counts with a score bound on ε at this δ that is at least that of these counts.

    The approximate score bound of counts x of n and y of m is r = n·e^ε/m with s − r·y = z·√(r·(s + y) + n·δ), where
    s = x − n·δ. Solved for x, it is the threshold of the region.
    """
    level = failure_probability * (1.0 - _NUISANCE_SHARE)
    z = -float(ndtri(level))  # not ndtri(1 − level), which is infinite for a tiny level
    shift = left.trials * delta
    s, y = left.hits - shift, float(right.hits)
    constant = s * s - z * z * shift
    if s <= 0.0 or constant <= 0.0:  # no score bound: every count is at least as extreme as these
        return RatioTest(left, right, failure_probability, supremum.Region(np.zeros_like, left.trials, right.trials))
    middle = 2.0 * s * y + z * z * (s + y)
    r = 2.0 * constant / (middle + math.sqrt(max(middle * middle - 4.0 * y * y * constant, 0.0)))
    region = supremum.Region(
        lambda y: shift + r * y + 0.5 * z * z * r + z * np.sqrt(r * y * (1.0 + r) + z * z * r * r / 4.0 + shift),
        left.trials,
        right.trials,
        _reach(level),
    )
    return RatioTest(left, right, failure_probability, region)


def epsilon_lower(left: Counts, right: Counts, failure_probability: float, delta: float = 0.0) -> float:
    """The certified lower bound on ln((P(E) − δ)/Q(E)), at least 0.

    Guarantee: above the least ε of any (ε, δ) claim that the mechanism keeps with at most `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if left.hits <= left.trials * delta or not right.trials:
        return 0.0
    test = epsilon_test(left, right, failure_probability, delta)
    # No smaller share than this is ever excluded on the right, so no larger ε is ever rejected.
    top = math.log((left.share - delta) / max(right.share, 0.05 / right.trials))
    return _largest_rejected(test, lambda epsilon: (epsilon, delta), top)


def delta_test(left: Counts, right: Counts, failure_probability: float, epsilon: float) -> RatioTest:
    """The test whose region is ordered by the observed excess P̂(E) − e^ε·Q̂(E)."""
    grow = _grow(epsilon) * left.trials / right.trials
    excess = left.hits - grow * right.hits
    reach = _reach(failure_probability)
    region = supremum.Region(lambda y: excess + grow * y, left.trials, right.trials, reach)
    return RatioTest(left, right, failure_probability, region)


def delta_lower(left: Counts, right: Counts, failure_probability: float, epsilon: float) -> float:
    """The certified lower bound on P(E) − e^ε·Q(E), at least 0.

    Guarantee: above the least δ of any (ε, δ) claim that the mechanism keeps with at most `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    excess = left.share - _grow(epsilon) * right.share
    if excess <= 0.0 or not right.trials:
        return 0.0
    test = delta_test(left, right, failure_probability, epsilon)
    return _largest_rejected(test, lambda delta: (epsilon, delta), excess)


def _reach(level: float) -> float:
    """The number of spreads of the right count beyond which its tails are negligible against the level."""
    return max(5.5, math.sqrt(-2.0 * math.log(level)) + 2.5)


def _grow(epsilon: float) -> float:
    """e^ε, capped before it overflows: beyond, no event that can be sampled makes a difference."""
    return math.exp(min(epsilon, 700.0))


def _largest_rejected(test: RatioTest, claim_at: Callable[[float], tuple[float, float]], top: float) -> float:
    """The largest value at which the test was seen to reject, to about 1 % of its distance from the estimate `top`.

    The rough p-value (a maximum over points, not a supremum) only guides; what is returned was rejected by the test.
    """
    guide = _crossing(lambda value: test.rough_height(*claim_at(value)), top) if top > 0.0 else 0.0
    step = max(min(top - guide, 0.5) * _SLACK, 1e-9)
    kept, value = guide, guide - step
    while value > 0.0:
        if test.rejects(*claim_at(value)):
            if step <= _COARSE:
                return value
            # Small counts make the p-value jump, so steps may be too long: halve the way back to the last failure.
            halvings = math.ceil(math.log2(step / _COARSE))
            return rejected_end(lambda between: test.rejects(*claim_at(between)), value, kept, halvings)
        step *= 2.0
        kept, value = value, value - step
    return 0.0


def _crossing(height: Callable[[float], float], top: float) -> float:
    """Where a growing function passes 0, between 0 and top, by regula falsi; 0 if it is above at once."""
    low, high = 0.0, top
    at_low = height(low)
    if at_low > 0.0:
        return 0.0
    at_high = max(height(high), 0.5)
    for turn in range(_LOOKS):
        # Every third step halves the bracket: the p-value may be far from linear when counts are small.
        part = 0.5 if turn % 3 == 2 else min(max(-at_low / (at_high - at_low), 0.02), 0.98)
        value = low + part * (high - low)
        at_value = height(value)
        if abs(at_value) < _CLOSE:
            return value
        if at_value <= 0.0:
            low, at_low = value, at_value
        else:
            high, at_high = value, at_value
    return low


def certified_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """The largest value of the claim's own parameter that the counts of one event refute (0 if none).

    Args:
        claim: gives the notion and its fixed parameters; its own value plays no role.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what may be spent.
        left_share: for notions without a joint test, the part of it that bounds P(E); must not depend on these counts.

    Guarantee: above the mechanism's true value with at most `failure_probability`, if the event was fixed before the
    counts were drawn. Exact.
    """
    if isinstance(claim, ApproxDeltaDP):
        return delta_lower(left, right, failure_probability, claim.epsilon)
    if isinstance(claim, PureDP | ApproxDP):
        return epsilon_lower(left, right, failure_probability, claim.delta)
    return two_bounds_value(claim, left, right, failure_probability, left_share)


def two_bounds_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """The same for any claim, from a lower bound on P(E) and an upper bound on Q(E)."""
    p_lower = lower(left, failure_probability * left_share)
    q_upper = upper(right, failure_probability * (1.0 - left_share))
    return claim.least_value(p_lower, q_upper) if p_lower > q_upper else 0.0


# An excess is below 1 − e^−36 unless rounding made it 1: what it says about ε stays finite.
_MOST = 1.0 - 2.0**-52


def value_of_excess(claim: PureDP | ApproxDP, epsilon: float, excess_lower: float) -> float:
    """A certified excess at one ε in the claim's own parameter; 0 when it proves nothing.

    Args:
        claim: gives the notion and its fixed parameters; its own value plays no role.
        epsilon: at which the excess is known.
        excess_lower: lower bound on the greatest P(E) − e^epsilon·Q(E).
    """
    if isinstance(claim, ApproxDeltaDP):
        return max(excess_lower, 0.0) if epsilon >= claim.epsilon else 0.0
    if excess_lower <= claim.delta:
        return 0.0
    above = (1.0 - claim.delta) + (excess_lower - claim.delta) * math.exp(-epsilon)
    return epsilon + math.log(above / (1.0 - min(excess_lower, _MOST)))
