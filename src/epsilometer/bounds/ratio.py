"""Exact lower bounds on ε (for any δ) and on δ (for any ε) from two counts, and certified values of any claim."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

import epsilometer.bounds.supremum as supremum
from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import Counts, check_failure_probability, lower, upper
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP

# The share of the failure probability that buys the restriction of q (Berger and Boos).
NUISANCE_SHARE = 1.0 / 50.0
# Resolution of the proof: intervals of q, blocks of Y. Finer costs time, coarser costs at most 3 %
# of the shortfall.
_INTERVALS = 64
BLOCKS = 128
# Tried before: fewer blocks, and a larger share of the level for the interpolation. It takes 0.6 of
# the time.
_FEW_BLOCKS = 88
_ROUGH_TOLERANCE = 1e-2
# Resolution of the rough search for the place of the proof.
_ROUGH_POINTS = 11
_ROUGH_BLOCKS = 96
# With at least this many hits and misses on both sides, the rough search treats the counts as
# normal.
_LARGE = 2000
# The proof starts this share of the distance between bound and estimate (0.5 at most) below the
# rough place.
_SLACK = 0.015
# Steps longer than this are refined afterwards.
_COARSE = 0.01
# How close (in normal quantiles), or after how many evaluations, the rough place is good enough.
_CLOSE = 0.004
_LOOKS = 24

Point = tuple[float, float]


class RatioTest:
    """The exact test of P(E) ≤ e^ε·Q(E) + δ for one pair of counts, at one failure probability."""

    def __init__(
        self, left: Counts, right: Counts, failure_probability: float, region: supremum.Region
    ) -> None:
        check_failure_probability(failure_probability)
        self.level = failure_probability - failure_probability * NUISANCE_SHARE
        self.q_range = restricted(right, failure_probability)
        self.region = region
        self._right: supremum.RightSide | None = None
        self._is_large = (
            min(min(side.hits, side.trials - side.hits) for side in (left, right)) >= _LARGE
        )

    def p_value(self, epsilon: float, delta: float) -> float:
        """An upper bound on the p-value of the claim, before the price of restricting q; sharp where it matters."""
        null = supremum.NullLine(grow(epsilon), delta)
        return supremum_over(self.region, null, self.q_range, self.level)

    def rough_height(self, epsilon: float, delta: float) -> float:
        """How far the p-value is above the level, in normal quantiles, at a few values of q only: a mere guide."""
        null = supremum.NullLine(grow(epsilon), delta)
        q = supremum.evenly_spread(self.q_range, _ROUGH_POINTS)
        if self._is_large:
            p_value = float(
                supremum.normal_probability(self.region, null.power(q), q, BLOCKS).max()
            )
        else:
            self._right = self._right or supremum.right_side(self.region, q, _ROUGH_BLOCKS)
            p_value = float(
                supremum.region_probability(
                    self.region, null.power(q), q, _ROUGH_BLOCKS, self._right
                ).max()
            )
        return float(ndtri(min(max(p_value, 1e-300), 1.0 - 1e-16))) - float(ndtri(self.level))

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Whether the claim is refuted."""
        return self.p_value(epsilon, delta) <= self.level


def supremum_over(
    region: supremum.Region,
    null: supremum.NullLine,
    q_range: tuple[float, float],
    level: float,
    finer: float = 1.0,
) -> float:
    """An upper bound on the region's probability over the null with q in the range; sharp near the level.

    Args:
        finer: how many times as many blocks are taken, for regions that reach further out.
    """
    most_blocks = round(BLOCKS * finer)
    tries = ((round(_FEW_BLOCKS * finer), _ROUGH_TOLERANCE), (most_blocks, supremum.TOLERANCE))
    for blocks, tolerance in tries:
        smooth = supremum.interpolated_supremum(region, null, q_range, level, blocks, tolerance)
        if smooth is not None and (smooth <= level or blocks == most_blocks):
            return smooth
    return supremum.greatest_probability(region, null, q_range, level, _INTERVALS, most_blocks)


def restricted(right: Counts, failure_probability: float) -> tuple[float, float]:
    """The range of q that its share of the failure probability buys."""
    side = failure_probability * NUISANCE_SHARE / 2
    return lower(right, side), upper(right, side)


def epsilon_test(
    left: Counts, right: Counts, failure_probability: float, delta: float = 0.0
) -> RatioTest:
    """The test whose region is all counts with a score bound on ε at this δ that is at least that of these counts.

    The approximate score bound of counts x of n and y of m is r = n·e^ε/m with s − r·y = z·√(r·(s +
    y) + n·δ), where s = x − n·δ. Solved for x, it is the threshold of the region.

    The root is the spread of rare events. Where Q(E) = 0, P(E) is δ, and the variance of x is
    n·δ·(1 − δ): so z is multiplied by √(1 − δ). Any factor that depends on δ alone keeps the
    regions nested, hence the test exact. Without this one the size at δ = 0.6 and Q(E) = 0 is 0.004
    of 0.05, with it 0.04 (docs/reference/sizes.md).
    """
    level = failure_probability * (1.0 - NUISANCE_SHARE)
    # Not ndtri(1 − level), which is infinite for a tiny level.
    z = -float(ndtri(level)) * math.sqrt(1.0 - delta)
    shift = left.trials * delta
    s = left.hits - shift
    y = float(right.hits)
    constant = s * s - z * z * shift
    if s <= 0.0 or constant <= 0.0:  # no score bound: every count is at least as extreme as these
        return RatioTest(
            left,
            right,
            failure_probability,
            supremum.Region(np.zeros_like, left.trials, right.trials),
        )
    middle = 2.0 * s * y + z * z * (s + y)
    r = 2.0 * constant / (middle + math.sqrt(max(middle * middle - 4.0 * y * y * constant, 0.0)))

    def threshold(y: Floats) -> Floats:
        return (
            shift
            + r * y
            + 0.5 * z * z * r
            + z * np.sqrt(r * y * (1.0 + r) + z * z * r * r / 4.0 + shift)
        )

    region = supremum.Region(threshold, left.trials, right.trials, reach_of(level))
    return RatioTest(left, right, failure_probability, region)


def epsilon_lower(
    left: Counts, right: Counts, failure_probability: float, delta: float = 0.0, least: float = 0.0
) -> float:
    """The certified lower bound on ln((P(E) − δ)/Q(E)), at least `least`.

    Guarantee: above the least ε of any (ε, δ) claim that the mechanism keeps with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if left.hits <= left.trials * delta or not right.trials:
        return least
    test = epsilon_test(left, right, failure_probability, delta)
    # No smaller share than this is ever excluded on the right, so no larger ε is ever rejected.
    top = math.log((left.hits / left.trials - delta) * right.trials / max(right.hits, 0.05))
    return least + _largest_rejected(test, lambda beyond: (least + beyond, delta), top - least)


def delta_test(
    left: Counts, right: Counts, failure_probability: float, epsilon: float
) -> RatioTest:
    """The test whose region is ordered by the observed excess P̂(E) − e^ε·Q̂(E)."""
    # Any order is sound. The cap keeps absurd claims from making it infinite.
    slope = min(grow(epsilon) * left.trials / right.trials, _STEEPEST)
    excess = left.hits - slope * right.hits
    region = supremum.Region(
        lambda y: excess + slope * y, left.trials, right.trials, reach_of(failure_probability)
    )
    return RatioTest(left, right, failure_probability, region)


def delta_lower(left: Counts, right: Counts, failure_probability: float, epsilon: float) -> float:
    """The certified lower bound on P(E) − e^ε·Q(E), at least 0.

    Guarantee: above the least δ of any (ε, δ) claim that the mechanism keeps with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    excess = left.share - grow(epsilon) * right.share
    if excess <= 0.0 or not right.trials:
        return 0.0
    test = delta_test(left, right, failure_probability, epsilon)
    return _largest_rejected(test, lambda delta: (epsilon, delta), excess)


# A difference of one right count already outweighs any number of left counts.
_STEEPEST = 1e200


def reach_of(level: float) -> float:
    """The number of spreads of the right count beyond which its tails are negligible against the level."""
    return max(5.5, math.sqrt(-2.0 * math.log(level)) + 2.5)


def grow(epsilon: float) -> float:
    """e^ε, capped before it overflows: beyond, no event that can be sampled makes a difference."""
    return math.exp(min(epsilon, 700.0))


def _largest_rejected(
    test: RatioTest, claim_at: Callable[[float], tuple[float, float]], top: float
) -> float:
    """The largest value at which the test was seen to reject, to about 1 % of its distance from the estimate `top`.

    The rough p-value (a maximum over points, not a supremum) only guides; what is returned was
    rejected by the test.
    """
    guide = _crossing(lambda value: test.rough_height(*claim_at(value)), top) if top > 0.0 else 0.0
    step = max(min(top - guide, 0.5) * _SLACK, 1e-9)
    kept = guide
    value = guide - step
    while value > 0.0:
        if test.p_value(*claim_at(value)) <= test.level:
            if step <= _COARSE:
                return value
            # Small counts make the p-value jump, so steps may be too long: halve the way back to
            # the last failure.
            halvings = math.ceil(math.log2(step / _COARSE))
            return rejected_end(
                lambda each: test.p_value(*claim_at(each)) <= test.level, value, kept, halvings
            )
        step *= 2.0
        kept = value
        value = value - step
    return 0.0


def _crossing(height: Callable[[float], float], top: float) -> float:
    """Where a growing function passes 0, between 0 and top, by regula falsi; 0 if it is above at once."""
    low = 0.0
    high = top
    at_low = height(low)
    if at_low > 0.0:
        return 0.0
    at_high = max(height(high), 0.5)
    for turn in range(_LOOKS):
        # Every third step halves the bracket: the p-value may be far from linear when counts are
        # small.
        part = 0.5 if turn % 3 == 2 else min(max(-at_low / (at_high - at_low), 0.02), 0.98)
        value = low + part * (high - low)
        at_value = height(value)
        if abs(at_value) < _CLOSE:
            return value
        if at_value <= 0.0:
            low = value
            at_low = at_value
        else:
            high = value
            at_high = at_value
    return low


def certified_value(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float] | None = None,
) -> float:
    """The largest value of the claim's own parameter that the counts of one event refute (0 if none).

    Args:
        claim: gives the notion and its fixed parameters; its own value plays no role.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what may be spent.
        expected: a guess of P(E) and Q(E), which must not depend on these counts. It makes the test
            of a claim that is a whole curve sharp; without it, such a claim is tested by two
            separate bounds.

    Guarantee: above the mechanism's true value with at most `failure_probability`, if the event was
    fixed before the counts were drawn. Exact.
    """
    if isinstance(claim, ApproxDeltaDP):
        return delta_lower(left, right, failure_probability, claim.epsilon)
    if isinstance(claim, PureDP | ApproxDP):
        return epsilon_lower(left, right, failure_probability, claim.delta)
    if expected is None:
        return two_bounds_value(claim, left, right, failure_probability)
    line = refuted_line(claim, left, right, failure_probability, expected)
    return line.proves(claim) if line else 0.0


def two_bounds_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """The same for any claim, from a lower bound on P(E) and an upper bound on Q(E)."""
    p_lower = lower(left, failure_probability * left_share)
    q_upper = upper(right, failure_probability * (1.0 - left_share))
    return claim.least_value(p_lower, q_upper) if p_lower > q_upper else 0.0


# Intervals of q on which a curve is compared with a line: each is about 0.015 spreads of the right
# frequency wide.
_PIECES = 512
# Of a line that starts higher the slope is fixed, and not the start: the approximate score bound,
# which orders the counts, takes their variances for those of rare events. Where a steep line meets
# few hits, it rather starts lower.
_HIGH_START = 0.25
_STEEP = 2.5
_FEW_HITS = 10.0
_HIGHEST_START = 0.3
# The slope of a curve is a difference over this part of the distance to the diagonal and to the
# borders.
_STEP = 1e-3
# How often the slope is found again at the point that it leads to.
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class RefutedLine:
    """That p ≤ slope·q + shift is refuted, for every q in a range whose price is paid.

    Attributes:
        slope: of the line.
        shift: where it starts.
        q_range: the range.
        fixed: which of "slope" and "shift" was fixed before the draws; the other is a bound from
            the counts.
        complement: p and q are not P(E) and Q(E), but 1 − Q(E) and 1 − P(E).
    """

    slope: float
    shift: float
    q_range: tuple[float, float]
    fixed: str
    complement: bool

    def corners(self) -> tuple[Floats, Floats]:
        """Values of P(E) and Q(E): wherever the line is, one pair has no larger P(E) and no smaller Q(E)."""
        q = supremum.evenly_spread(self.q_range, _PIECES + 1)
        p = supremum.NullLine(self.slope, self.shift).power(q)
        return (1.0 - q[1:], 1.0 - p[:-1]) if self.complement else (p[:-1], q[1:])

    def proves(self, claim: Claim) -> float:
        """The largest value of the claim whose curve lies below the line; values grow with P(E) and fall with Q(E)."""
        return float(claim.least_values(*self.corners()).min())


def refuted_line(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float],
) -> RefutedLine | None:
    """The highest line that the counts refute, among lines of a slope or a start that suit the claim; None if none is.

    Guarantee: a value of the claim is refuted together with a line above its curve. It is above the
        mechanism's true value with at most `failure_probability`, whatever was expected: curves of
        larger values lie above, and which counts are more extreme than others depends on what was
        fixed before the draws only. Exact.
    """
    tested = tested_line(claim, left, right, failure_probability, expected)
    q_range = restricted(tested.right, failure_probability)
    if tested.fixed == "slope":
        shift = delta_lower(tested.left, tested.right, failure_probability, math.log(tested.slope))
        return (
            RefutedLine(tested.slope, shift, q_range, "slope", tested.complement)
            if shift > 0.0
            else None
        )
    least = math.log1p(-tested.shift)  # a line that ends below 1 is below every claim's curve
    epsilon = epsilon_lower(tested.left, tested.right, failure_probability, tested.shift, least)
    if epsilon <= least:
        return None
    return RefutedLine(grow(epsilon), tested.shift, q_range, "shift", tested.complement)


@dataclass(frozen=True, slots=True)
class TestedLine:
    """A line that suits a claim, and the counts to test it with; fixed before these are drawn.

    Attributes:
        left: counts of the event under P; of its complement under Q where `complement` says so.
        right: counts of the event under Q; of its complement under P.
        slope: of the line.
        shift: where it starts.
        fixed: which of the two is kept; the other becomes a bound.
        complement: whether the complement is tested.
    """

    __test__ = False  # no test case, whatever its name begins with

    left: Counts
    right: Counts
    slope: float
    shift: float
    fixed: str
    complement: bool

    def test(self, failure_probability: float) -> RatioTest:
        """The exact test of such lines, with the region of these counts."""
        if self.fixed == "slope":
            return delta_test(self.left, self.right, failure_probability, math.log(self.slope))
        return epsilon_test(self.left, self.right, failure_probability, self.shift)


def tested_line(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float],
) -> TestedLine:
    """The line that is tested for a claim: its slope and start do not depend on the counts, only on their trials."""
    slope, shift = _promising_line(
        claim, expected, (left.trials, right.trials), failure_probability
    )
    complement = slope < 1.0
    if complement:  # a slope of at least 1 keeps the start low
        left, right = (Counts(side.trials - side.hits, side.trials) for side in (right, left))
        slope, shift = 1.0 / slope, 1.0 - (1.0 - shift) / slope
    shift = max(shift, 0.0)
    expected_hits = right.trials * (1.0 - expected[0] if complement else expected[1])
    if shift > _HIGH_START and (slope < _STEEP or expected_hits > _FEW_HITS):
        return TestedLine(left, right, slope, shift, "slope", complement)
    return TestedLine(left, right, slope, min(shift, _HIGHEST_START), "shift", complement)


def _promising_line(
    claim: Claim, expected: Point, trials: tuple[int, int], failure: float
) -> Point:
    """Slope and start of the tangent at the point which counts with the expected frequencies refute only just."""
    p, q = within(np.array(expected[:1]), np.array(expected[1:]), trials)
    if p <= q:
        return 1.0, 0.0
    touched = (p, q)
    slope = np.sqrt(p * (1.0 - p) / (q * (1.0 - q)))
    for _ in range(_ROUNDS):
        nearer = towards_curve(p, q, slope, trials, -float(ndtri(failure)))
        touched = nearer if claim.least_values(*nearer) > 0.0 else (p, q)
        # Half of the way: at a corner of the curve, such as a Rényi claim has, whole steps would go
        # to and fro.
        slope = np.sqrt(slope * curve_through(claim, *touched)[1])
    return float(slope[0]), float(touched[0][0] - slope[0] * touched[1][0])


def within(p: Floats, q: Floats, trials: tuple[int, int]) -> tuple[Floats, Floats]:
    """Frequencies less extreme than any that so many trials distinguish from 0 and 1."""
    least, other = (0.5 / max(each, 1) for each in trials)
    return np.clip(p, least, 1.0 - least), np.clip(q, other, 1.0 - other)


def curve_through(claim: Claim, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Roughly how fast the value that allows (p, q) grows with p, and the slope of that value's curve, elementwise."""
    step = _STEP * np.maximum(np.minimum(np.minimum(q, 1.0 - p), p - q), 1e-12)
    # Values next to the borders may be infinite, and their differences undefined.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth = (claim.least_values(p + step, q) - claim.least_values(p - step, q)) / (2.0 * step)
        fall = (
            claim.least_values(p, q - step) - claim.least_values(p, np.minimum(q + step, 1.0))
        ) / (2.0 * step)
        slope = fall / growth
    return growth, np.where((slope > 0.0) & np.isfinite(slope), slope, 1.0)


def towards_curve(
    p: Floats, q: Floats, slope: Floats, trials: tuple[int, int], z: float
) -> tuple[Floats, Floats]:
    """The most likely (p, q) of those for which p − slope·q is smaller by z of its spreads."""
    left = p * (1.0 - p) / max(trials[0], 1)
    right = q * (1.0 - q) / max(trials[1], 1)
    part = z / np.sqrt(left + slope**2 * right)
    return np.maximum(p - part * left, 0.0), np.minimum(q + part * slope * right, 1.0)


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
