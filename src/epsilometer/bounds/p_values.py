"""p-values of exact certificates, valid at every threshold at once: P(p ≤ t) ≤ t for all t.

A certificate is a test at each failure probability. The least failure probability at which it
refutes is a p-value only
if these tests are nested: what refutes at t must refute at every larger t. The joint test of two
counts is not nested as it stands, since its order of the counts depends on the failure probability.
So the order is kept: it is that of the audit's own failure probability f, and R is the region of
all counts that are at least as extreme as those seen. Only the price of restricting q and the level
change with t:

    p = the least t with  sup {P(R; p = max_power(q), q) : q in C(t)} ≤ 0.98·t,

where C(t) are two Clopper–Pearson bounds on q that fail with t/100 each and max_power is the
claimed curve. C(t) grows as t falls, so the tests are nested, and each of them errs with at most t.
At t = f it is the test behind the verdict.

Reference: Berger and Boos, "P values maximized over a confidence set for the nuisance parameter"
    (1994).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

import epsilometer.bounds.supremum as supremum
from epsilometer.arrays import Floats
from epsilometer.bounds.betting import zero_concentrated_curve
from epsilometer.bounds.binomial import Counts, check_failure_probability
from epsilometer.bounds.ratio import (
    BLOCKS,
    NUISANCE_SHARE,
    delta_test,
    epsilon_test,
    grow,
    reach_of,
    restricted,
    supremum_over,
    tested_line,
)
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, Claim, GaussianDP, PureDP, RenyiDP
from epsilometer.errors import EpsilometerError

# Smaller p-values are not told apart: floats end near 1e-308.
LEAST_P_VALUE = 1e-290
# Values of q at which the p-value is guessed.
_LOOKS = 33
# How often a guess is improved at the most, and by which share of itself it may still move.
_ROUNDS = 40
_SETTLED = 2e-3
# The first p-value that is tried is this much larger than the guess; the next ones are its squares.
_FIRST_SLACK = 1.005
# Intervals of q on which a curve is replaced by its value at the upper end.
_PIECES = 192
# Halvings of the bracket of a curve's value: 2^-50 is below anything that matters.
_HALVINGS = 50

Range = tuple[float, float]


def certificate_p_value(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float] | None = None,
) -> float | None:
    """The p-value of the claim for the certificate `certified_value`, at the claimed value of its own parameter.

    Args:
        claim: what is claimed.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: of the certificate; it fixes the order of the counts.
        expected: as for `certified_value`.

    Returns:
        None where two separate bounds are the certificate: a curve without `expected`.

    Guarantee: at most t with probability at most t, for every t, if the claim holds. Exact.
    """
    check_failure_probability(failure_probability)
    if not left.trials or not right.trials:
        return 1.0
    if isinstance(claim, PureDP | ApproxDP):
        if isinstance(claim, ApproxDeltaDP):
            test = delta_test(left, right, failure_probability, claim.epsilon)
        else:
            test = epsilon_test(left, right, failure_probability, claim.delta)
        line = supremum.NullLine(grow(claim.epsilon), claim.delta)
        return _least_threshold(_LineNull(test.region, right, line), failure_probability)
    if expected is None:
        return None
    tested = tested_line(claim, left, right, failure_probability, expected)
    region = tested.test(failure_probability).region
    curve = _claimed_curve(claim, tested.complement)
    return _least_threshold(_CurveNull(region, tested.right, curve), failure_probability)


def _claimed_curve(claim: Claim, complement: bool) -> Callable[[Floats], Floats]:
    """The greatest p that the claim allows at each q, where these may be probabilities of complements."""
    # from fewer orders, which takes a tenth of the time; never below `max_power`
    if isinstance(claim, ZCDP):
        return partial(zero_concentrated_curve, claim.rho)
    # These claims say the same about P(E), Q(E) and about 1 − Q(E), 1 − P(E).
    if not complement or isinstance(claim, GaussianDP | RenyiDP):
        return claim.max_power
    return _turned_curve(claim)


class _Null:
    """What a claim allows, and the region of all counts that speak against it at least as much as those seen."""

    def __init__(self, region: supremum.Region, right: Counts) -> None:
        self.region = region
        self.right = right

    def power(self, q: Floats) -> Floats:
        """The greatest p that the claim allows at each q."""
        raise NotImplementedError

    def is_refuted(self, region: supremum.Region, q_range: Range, level: float) -> bool:
        """Whether the region is surely no likelier than the level, for every q in the range."""
        raise NotImplementedError

    def region_for(self, level: float) -> tuple[supremum.Region, int]:
        """The same region, summed as far out as the level needs, and the number of blocks for that."""
        reach = reach_of(level)
        return replace(self.region, reach=reach), max(BLOCKS, round(BLOCKS * reach / 5.5))

    def rough_probability(self, threshold: float) -> float:
        """The greatest probability of the region at some values of q that a threshold leaves: a guess."""
        region, blocks = self.region_for(_level(threshold))
        q = supremum.evenly_spread(restricted(self.right, threshold), _LOOKS)
        return float(supremum.region_probability(region, self.power(q), q, blocks).max())

    def rejects(self, threshold: float) -> bool:
        """Whether the claim is refuted at this failure probability."""
        level = _level(threshold)
        region, _ = self.region_for(level)
        return self.is_refuted(region, restricted(self.right, threshold), level)


class _LineNull(_Null):
    """A claim p ≤ slope·q + shift."""

    def __init__(self, region: supremum.Region, right: Counts, line: supremum.NullLine) -> None:
        super().__init__(region, right)
        self.line = line

    def power(self, q: Floats) -> Floats:
        return self.line.power(q)

    def is_refuted(self, region: supremum.Region, q_range: Range, level: float) -> bool:
        _, blocks = self.region_for(level)
        return supremum_over(region, self.line, q_range, level, blocks / BLOCKS) <= level


class _CurveNull(_Null):
    """A claim p ≤ curve(q) with any curve that never falls."""

    def __init__(
        self, region: supremum.Region, right: Counts, curve: Callable[[Floats], Floats]
    ) -> None:
        super().__init__(region, right)
        self.curve = curve

    def power(self, q: Floats) -> Floats:
        return self.curve(q)

    def is_refuted(self, region: supremum.Region, q_range: Range, level: float) -> bool:
        _, blocks = self.region_for(level)
        q = supremum.evenly_spread(q_range, _PIECES + 1)
        # On an interval p is largest at its upper end, and the region is likeliest for the smallest
        # q.
        highest = supremum.region_probability(region, self.curve(q[1:]), q[:-1], blocks)
        return bool((highest <= level).all())


def _turned_curve(claim: Claim) -> Callable[[Floats], Floats]:
    """The claim as a curve for complements: the greatest 1 − Q(E) that it allows when 1 − P(E) = q."""

    def curve(q: Floats) -> Floats:
        allowed = q.copy()
        refused = np.ones_like(q)
        is_free = ~(claim.least_values(1.0 - q, np.zeros_like(q)) > claim.value)
        for _ in range(_HALVINGS):
            middle = 0.5 * (allowed + refused)
            # What is not a number counts as allowed: that costs power, never soundness.
            holds = ~(claim.least_values(1.0 - q, 1.0 - middle) > claim.value)
            allowed = np.where(holds, middle, allowed)
            refused = np.where(holds, refused, middle)
        return np.where(is_free, 1.0, refused)

    return curve


def _level(threshold: float) -> float:
    """What is left of a failure probability when the restriction of q is paid for."""
    return threshold * (1.0 - NUISANCE_SHARE)


def _least_threshold(null: _Null, start: float) -> float:
    """The least failure probability that was seen to refute, close to the least there is; 1 if none was."""
    guess = start
    for _ in range(_ROUNDS):
        found = null.rough_probability(guess) / (1.0 - NUISANCE_SHARE)
        found = max(min(found, 1.0), LEAST_P_VALUE)
        is_settled = abs(found - guess) <= _SETTLED * guess
        guess = found
        if is_settled:
            break
    slack = _FIRST_SLACK
    while guess * slack < 1.0:
        if null.rejects(guess * slack):
            return guess * slack
        slack *= slack
    return 1.0


# A p-value by search lies between these normal quantiles; it is found to this distance, about a per
# cent of it.
_LOWEST_QUANTILE = -36.4
_HIGHEST_QUANTILE = 0.0
_CLOSE = 2e-3


def nested_p_value(
    bound_at: Callable[[float], float], claimed: float, failure_probability: float
) -> float | None:
    """The least failure probability at which a bound is above the claim, for bounds that grow with it.

    The bound must grow with the failure probability for all counts, as bounds do whose construction
    does not depend on it otherwise (Clopper–Pearson bounds with fixed shares, bets with fixed
    stakes). Then it is a p-value. The bound
    is nearly a straight line over the normal quantile of the failure probability: few steps find
    the crossing.

    Args:
        bound_at: the certified bound at a failure probability.
        claimed: the claimed value.
        failure_probability: of the certificate, where the search begins.

    Returns:
        A failure probability that was seen to refute; 1 if not even 0.5 refutes, None if the
        certificate has no other confidence.
    """
    from scipy.optimize import brentq  # slow to import, and only needed by those who ask

    seen: dict[float, float] = {}

    def height(quantile: float) -> float:
        if quantile not in seen:
            seen[quantile] = bound_at(float(ndtr(quantile))) - claimed
        # A bound of exactly the claim does not refute it, and a root finder would stop there.
        return seen[quantile] or -1e-300

    start = float(ndtri(failure_probability))
    try:
        is_refuted = height(start) > 0.0
        far = _LOWEST_QUANTILE if is_refuted else max(_HIGHEST_QUANTILE, start)
        low, high = sorted((start, far))
        if height(low) > 0.0:  # even at the lowest
            return float(ndtr(low))
        if not height(high) > 0.0:
            return 1.0
        root = brentq(height, low, high, xtol=_CLOSE)
        height(min(root + 2.0 * _CLOSE, high))
    except EpsilometerError:
        return None
    return float(ndtr(min(quantile for quantile, above in seen.items() if above > 0.0)))
