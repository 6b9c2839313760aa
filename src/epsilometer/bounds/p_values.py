"""p-values of exact certificates, valid at every threshold at once: P(p ≤ t) ≤ t for all t.

A certificate is a test at each failure probability. The least failure probability at which it
refutes is a p-value only if these tests are nested: what refutes at t must refute at every larger
t. The joint test of two counts is not nested as it stands, since its order of the counts depends on
the failure probability. So the order is kept: it is that of the audit's failure probability f, and
R is the region of all counts that are at least as extreme as those observed. Only the error share
for restricting q and the level change with t:

    p = the least t with  sup {P(R; p = max_power(q), q) : q in C(t)} ≤ 0.98·t,

where C(t) is the Clopper–Pearson interval for q, whose two ends fail with t/100 each, and max_power
is the claimed curve. C(t) grows as t falls, so that the tests are nested, and each of them errs
with at most t. At t = f it is the test behind the verdict.

Any t that is seen to refute, and not only the least, is a conservative p-value.

Reference: Berger and Boos, "P values maximized over a confidence set for the nuisance parameter"
(1994).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.binomial import Counts
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.bounds.certificate import tested_line
from epsilometer.bounds.supporting_lines import zero_concentrated_curve
from epsilometer.bounds.supremum import (
    DEFAULT_REACH,
    NullLine,
    Range,
    Region,
    evenly_spread,
    region_probability,
)
from epsilometer.bounds.two_counts import (
    BLOCKS,
    NUISANCE_SHARE,
    delta_test,
    epsilon_test,
    grow,
    reach_of,
    restricted,
    supremum_over,
)
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, Claim, GaussianDP, PureDP, RenyiDP
from epsilometer.errors import EpsilometerError

# Smaller p-values are reported as this one: floats end near 1e-308.
LEAST_P_VALUE = 1e-290
# Values of q at which the p-value is estimated.
_ROUGH_POINTS = 33
# How often an estimate is improved at the most.
_MAX_ROUNDS = 40
# The fraction of itself by which a converged estimate may still move.
_CONVERGED = 2e-3
# The first p-value that is tested is this many times the estimate; the next ones are larger by the
# square of this factor, by the square of that, and so on.
_FIRST_SLACK = 1.005
# Intervals of q on which a curve is replaced by its value at the upper end.
_CURVE_INTERVALS = 192
# Halvings of the bracket of a curve's value: 2^-50 is below anything that matters.
_HALVINGS = 50

# Normal quantiles. A p-value by search lies between the probabilities of these two.
_LOWEST_QUANTILE = -36.4
_HIGHEST_QUANTILE = 0.0
# The search stops this close to the crossing, in normal quantiles: about a per cent of the p-value.
_QUANTILE_TOLERANCE = 2e-3
# Stands for a bound of exactly the claim: below 0, since such a bound does not refute.
_JUST_BELOW_ZERO = -1e-300

Curve = Callable[[Floats], Floats]


def certificate_p_value(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float] | None = None,
) -> float | None:
    """Returns the p-value of a claim that belongs to the certificate of `certified_value`.

    Args:
        claim: what is claimed, with the claimed value of its parameter.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: of the certificate; it fixes the order of the counts.
        expected: as for `certified_value`.

    Returns:
        None where two separate bounds are the certificate: for a curve without `expected`.

    Guarantee: at most t with probability at most t, for every t, if the claim holds. Exact.
    """
    check_failure_probability(failure_probability)
    if not left.trials or not right.trials:
        return 1.0
    null: _Null
    if isinstance(claim, PureDP | ApproxDP):
        if isinstance(claim, ApproxDeltaDP):
            test = delta_test(left, right, failure_probability, claim.epsilon)
        else:
            test = epsilon_test(left, right, failure_probability, claim.delta)
        line = NullLine(slope=grow(claim.epsilon), shift=claim.delta)
        null = _LineNull(test.region, right, line)
        return _least_threshold(null, failure_probability)
    if expected is None:
        return None
    tested = tested_line(claim, left, right, failure_probability, expected)
    test = tested.test(failure_probability)
    curve = _claimed_curve(claim, tested.complement)
    null = _CurveNull(test.region, tested.right, curve)
    return _least_threshold(null, failure_probability)


class _Null(ABC):
    """A claim, and the region of all counts at least as extreme as those observed.

    Args:
        region: the region, which does not depend on the threshold of the p-value.
        right: the observed right counts.
    """

    def __init__(self, region: Region, right: Counts) -> None:
        self.region = region
        self.right = right

    @abstractmethod
    def power(self, q: Floats) -> Floats:
        """Returns the greatest p that the claim allows at each q, shape (k,)."""

    @abstractmethod
    def is_refuted(self, region: Region, q_range: Range, level: float) -> bool:
        """Whether the region is certainly no likelier than the level, for every q in the range."""

    def region_for(self, level: float) -> Region:
        """Returns the same region, summed as far out as the level needs."""
        return replace(self.region, reach=reach_of(level))

    def rough_probability(self, threshold: float) -> float:
        """Estimates the greatest probability of the region at a threshold, from a few values of q.

        It guides a search and never certifies.
        """
        region = self.region_for(_level(threshold))
        q = evenly_spread(restricted(self.right, threshold), _ROUGH_POINTS)
        return float(region_probability(region, self.power(q), q, _blocks_for(region)).max())

    def rejects(self, threshold: float) -> bool:
        """Whether the claim is refuted at this failure probability."""
        level = _level(threshold)
        return self.is_refuted(self.region_for(level), restricted(self.right, threshold), level)


class _LineNull(_Null):
    """A claim p ≤ slope·q + shift."""

    def __init__(self, region: Region, right: Counts, line: NullLine) -> None:
        super().__init__(region, right)
        self.line = line

    def power(self, q: Floats) -> Floats:
        return self.line.power(q)

    def is_refuted(self, region: Region, q_range: Range, level: float) -> bool:
        finer = _blocks_for(region) / BLOCKS
        return supremum_over(region, self.line, q_range, level, finer) <= level


class _CurveNull(_Null):
    """A claim p ≤ curve(q), for any curve that never falls."""

    def __init__(self, region: Region, right: Counts, curve: Curve) -> None:
        super().__init__(region, right)
        self.curve = curve

    def power(self, q: Floats) -> Floats:
        return self.curve(q)

    def is_refuted(self, region: Region, q_range: Range, level: float) -> bool:
        q = evenly_spread(q_range, _CURVE_INTERVALS + 1)
        # On an interval p is at most the curve's value at the upper end, and the region is
        # likeliest for the smallest q.
        greatest = region_probability(region, self.curve(q[1:]), q[:-1], _blocks_for(region))
        return bool((greatest <= level).all())


def _blocks_for(region: Region) -> int:
    """As many blocks as the reach of a region needs, so that blocks are no wider than usual."""
    return max(BLOCKS, round(BLOCKS * region.reach / DEFAULT_REACH))


def _claimed_curve(claim: Claim, complement: bool) -> Curve:
    """The greatest p that the claim allows at each q, for an event or for its complement.

    Args:
        claim: what is claimed.
        complement: whether p stands for 1 − Q(E) and q for 1 − P(E).
    """
    if isinstance(claim, ZCDP):
        # From fewer orders, which takes a tenth of the time. It is never below the exact curve.
        return partial(zero_concentrated_curve, claim.rho)
    # These claims say the same about P(E), Q(E) and about 1 − Q(E), 1 − P(E).
    is_symmetric = isinstance(claim, GaussianDP | RenyiDP)
    if not complement or is_symmetric:
        return claim.max_power
    return _complement_curve(claim)


def _complement_curve(claim: Claim) -> Curve:
    """The claim as a curve for complements: the greatest 1 − Q(E) allowed when 1 − P(E) = q."""

    def curve(q: Floats) -> Floats:
        allowed = q.copy()
        refused = np.ones_like(q)
        # Where even Q(E) = 0 is allowed, 1 − Q(E) may be 1.
        is_unlimited = ~(claim.least_values(1.0 - q, np.zeros_like(q)) > claim.value)
        for _ in range(_HALVINGS):
            middle = 0.5 * (allowed + refused)
            # What is not a number counts as allowed: that costs power, never soundness.
            is_allowed = ~(claim.least_values(1.0 - q, 1.0 - middle) > claim.value)
            allowed = np.where(is_allowed, middle, allowed)
            refused = np.where(is_allowed, refused, middle)
        # The upper end of the bracket: never too small.
        return np.where(is_unlimited, 1.0, refused)

    return curve


def _level(threshold: float) -> float:
    """What is left of a failure probability after the error share for restricting q is spent."""
    return threshold * (1.0 - NUISANCE_SHARE)


def _least_threshold(null: _Null, start: float) -> float:
    """A failure probability that was seen to refute, close to the least one; 1 if none was.

    The fixed point t = (greatest probability at t)/0.98 is estimated by iteration; then thresholds
    from the estimate upwards are tested exactly. Since the tests are nested, taking the first that
    refutes spends nothing.

    Args:
        null: the claim and the region.
        start: where the iteration begins.
    """
    estimate = start
    for _ in range(_MAX_ROUNDS):
        improved = null.rough_probability(estimate) / (1.0 - NUISANCE_SHARE)
        improved = max(min(improved, 1.0), LEAST_P_VALUE)
        has_converged = abs(improved - estimate) <= _CONVERGED * estimate
        estimate = improved
        if has_converged:
            break
    slack = _FIRST_SLACK
    while estimate * slack < 1.0:
        if null.rejects(estimate * slack):
            return estimate * slack
        slack *= slack
    return 1.0


def nested_p_value(
    bound_at: Callable[[float], float], claimed: float, failure_probability: float
) -> float | None:
    """Returns the least failure probability at which a bound is above the claim.

    The bound must grow with the failure probability for all counts, as bounds do whose construction
    does not depend on it otherwise (Clopper–Pearson bounds with fixed shares, bets with fixed
    stakes). Then the tests are nested, and the result is a p-value.

    Over the normal quantile of the failure probability the bound is nearly a straight line, so that
    few steps find the crossing.

    Args:
        bound_at: the certified bound at a failure probability.
        claimed: the claimed value.
        failure_probability: of the certificate, where the search begins.

    Returns:
        A failure probability that was seen to refute; 1 if not even 0.5 refutes, None if the
        certificate has no bound at other confidences.
    """
    from scipy.optimize import brentq  # Slow to import, and needed by few.

    # By normal quantile: how far the bound is above the claim.
    heights: dict[float, float] = {}

    def height(quantile: float) -> float:
        if quantile not in heights:
            heights[quantile] = bound_at(float(ndtr(quantile))) - claimed
        # A root finder would stop at a height of 0, which does not refute.
        return heights[quantile] or _JUST_BELOW_ZERO

    start = float(ndtri(failure_probability))
    try:
        is_refuted = height(start) > 0.0
        other_end = _LOWEST_QUANTILE if is_refuted else max(_HIGHEST_QUANTILE, start)
        low = min(start, other_end)
        high = max(start, other_end)
        if height(low) > 0.0:
            return float(ndtr(low))
        if not height(high) > 0.0:
            return 1.0
        root = brentq(height, low, high, xtol=_QUANTILE_TOLERANCE)
        # A quantile surely beyond the root, so that one close to it was seen to refute.
        height(min(root + 2.0 * _QUANTILE_TOLERANCE, high))
    except EpsilometerError:
        return None
    refuting = [quantile for quantile, excess in heights.items() if excess > 0.0]
    return float(ndtr(min(refuting)))
