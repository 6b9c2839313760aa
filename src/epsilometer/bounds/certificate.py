"""From the counts of one event to a certified value of any claim's parameter.

Pure and approximate privacy are lines, P(E) ≤ e^ε·Q(E) + δ, and `two_counts` tests them directly.
Other notions are curves: P(E) ≤ max_power(Q(E)). They are tested by way of a line, in three steps.

1. Before the draws, a line is chosen that touches the curve near the probabilities which are
   expected (`tested_line`). Either its slope or its shift is then fixed.
2. From the counts, `two_counts` finds the highest line of that slope, or of that shift, which is
   refuted for every q in an interval (`refuted_line`). Its failure probability covers the interval
   as well: with the promised confidence, Q(E) is in the interval and P(E) is above the line.
3. The bound is the least value of the claim's parameter among all points of the line
   (`RefutedLine.proves`): every point above the line needs a value at least as large, since values
   grow with P(E) and fall with Q(E). This needs neither concavity nor derivatives.

Guarantee: above the mechanism's true value with at most the failure probability, if the event and
the expected probabilities were fixed before the counts were drawn. Exact: which line is tested
costs power if it is chosen badly, never soundness.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.supremum import NullLine, Range, evenly_spread
from epsilometer.bounds.two_counts import (
    RatioTest,
    delta_lower,
    delta_test,
    epsilon_lower,
    epsilon_test,
    grow,
    restricted,
)
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP

# Intervals of q on which a curve is compared with a line. Each is about 0.015 standard errors of
# the right frequency wide.
_LINE_INTERVALS = 512

# The slope of a line is fixed, and not its shift, where the line starts above this probability: the
# approximate score bound, which orders the counts for a fixed shift, takes their variances for
# those of rare events.
_HIGH_SHIFT = 0.25
# A line at least this steep …
_STEEP_SLOPE = 2.5
# … that is expected to meet at most this many right hits keeps a fixed shift nevertheless.
_FEW_HITS = 10.0
# The largest shift that is ever fixed.
_LARGEST_FIXED_SHIFT = 0.3
# … unless the line starts above this probability, from which the cap is far,
_CAPPED_TOO_FAR = 0.7
# and at most this many left misses are expected: an event that nearly always tells the inputs
# apart (607 draws per side that all do, order 1.2: certified 3.35 with the cap, 5.45 without).
_FEW_MISSES = 10.0

# Derivatives of a claim's value are differences over this fraction of the distance to the diagonal
# and to the borders of the unit square.
_DIFFERENCE_STEP = 1e-3
# The least such distance, a probability.
_LEAST_DISTANCE = 1e-12
# How often the slope is computed again at the point that it leads to.
_SLOPE_ROUNDS = 6


def certified_value(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float] | None = None,
) -> float:
    """Returns the largest value of the claim's parameter that the counts of one event refute.

    Args:
        claim: gives the notion and its fixed parameters; the value that it claims plays no role.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what is spent on the bound.
        expected: an estimate of P(E) and Q(E), which must not depend on these counts. It makes the
            test of a claim that is a curve sharp; without it, such a claim is tested by two
            separate bounds.

    Returns:
        0 if nothing is refuted.

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
    if line is None:
        return 0.0
    return line.proves(claim)


def two_bounds_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """Returns the same for any claim, from a lower bound on P(E) and an upper bound on Q(E).

    Args:
        claim: gives the notion and its fixed parameters.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what is spent on the two bounds together.
        left_share: the fraction of it that is spent on P(E). It must not depend on these counts.

    Guarantee: both bounds hold together except with `failure_probability` (union bound). Exact.
    """
    p_lower = lower(left, failure_probability * left_share)
    q_upper = upper(right, failure_probability * (1.0 - left_share))
    if p_lower <= q_upper:
        return 0.0
    return claim.least_value(p_lower, q_upper)


@dataclass(frozen=True, slots=True)
class RefutedLine:
    """A refuted half-plane p ≤ slope·q + shift, for all q in a range.

    Guarantee: with the promised confidence q is in the range and p is above the line. The failure
        probability that was spent covers both statements.

    Attributes:
        slope: the slope of the line.
        shift: the value of the line at q = 0.
        q_range: the range of q.
        fixed: which of "slope" and "shift" was fixed before the draws; the other is a bound from
            the counts.
        complement: whether p and q are not P(E) and Q(E), but 1 − Q(E) and 1 − P(E).
    """

    slope: float
    shift: float
    q_range: Range
    fixed: str
    complement: bool

    def corners(self) -> tuple[Floats, Floats]:
        """Returns pairs of P(E) and Q(E), one of which is no more extreme than the true pair.

        The range of q is cut into intervals. In each, p is at least the line's value at the lower
        end, and q at most the upper end. So wherever the true pair is above the line, the pair of
        its interval has no larger P(E) and no smaller Q(E).

        Returns:
            Two arrays of shape (intervals,).
        """
        q = evenly_spread(self.q_range, _LINE_INTERVALS + 1)
        p = NullLine(slope=self.slope, shift=self.shift).power(q)
        least_p = p[:-1]
        greatest_q = q[1:]
        if self.complement:
            return 1.0 - greatest_q, 1.0 - least_p
        return least_p, greatest_q

    def proves(self, claim: Claim) -> float:
        """Returns the certified value of the claim's parameter: its least value along the line."""
        p, q = self.corners()
        return float(claim.least_values(p, q).min())


def refuted_line(
    claim: Claim,
    left: Counts,
    right: Counts,
    failure_probability: float,
    expected: tuple[float, float],
) -> RefutedLine | None:
    """Returns the highest line that the counts refute, of a slope or a shift that suits the claim.

    Args:
        claim: gives the notion and its fixed parameters.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what is spent on the line.
        expected: an estimate of P(E) and Q(E), which must not depend on these counts.

    Returns:
        None if no line is refuted.

    Guarantee: the true probabilities are on or below the line with at most `failure_probability`,
        whatever was expected: the order of the counts depends only on what was fixed before the
        draws. Exact.
    """
    tested = tested_line(claim, left, right, failure_probability, expected)
    q_range = restricted(tested.right, failure_probability)
    if tested.fixed == "slope":
        slope = tested.slope
        shift = delta_lower(tested.left, tested.right, failure_probability, math.log(slope))
        is_refuted = shift > 0.0
    else:
        shift = tested.shift
        # Only lines that reach 1 at q = 1 are of use: every claim's curve does.
        least = math.log1p(-shift)
        epsilon = epsilon_lower(
            tested.left, tested.right, failure_probability, delta=shift, least=least
        )
        slope = grow(epsilon)
        is_refuted = epsilon > least
    if not is_refuted:
        return None
    return RefutedLine(
        slope=slope,
        shift=shift,
        q_range=q_range,
        fixed=tested.fixed,
        complement=tested.complement,
    )


@dataclass(frozen=True, slots=True)
class TestedLine:
    """A line that suits a claim, and the counts to test it with; fixed before these are drawn.

    Attributes:
        left: counts of the event under P; of its complement under Q if `complement` is set.
        right: counts of the event under Q; of its complement under P if `complement` is set.
        slope: the slope of the line.
        shift: the value of the line at q = 0.
        fixed: which of "slope" and "shift" is kept; the other becomes a bound.
        complement: whether the complement is tested.
    """

    __test__ = False  # Tells pytest that this is no test case, whatever its name begins with.

    left: Counts
    right: Counts
    slope: float
    shift: float
    fixed: str
    complement: bool

    def test(self, failure_probability: float) -> RatioTest:
        """Returns the exact test of such lines, with the region of these counts."""
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
    """Returns the line that is tested for a claim.

    Its slope and its shift depend on the numbers of trials and not on the hits.
    """
    expected_p, expected_q = expected
    tangent = _promising_line(
        claim,
        expected_p=expected_p,
        expected_q=expected_q,
        trials=(left.trials, right.trials),
        failure_probability=failure_probability,
    )
    # A line with a slope below 1 is tested on the complement, where its slope is above 1: that
    # keeps its shift low.
    complement = tangent.slope < 1.0
    if complement:
        # p ≤ slope·q + shift  is the same as  1 − q ≤ (1 − p)/slope + 1 − (1 − shift)/slope.
        slope = 1.0 / tangent.slope
        shift = 1.0 - (1.0 - tangent.shift) / tangent.slope
        tested_left = right.complement
        tested_right = left.complement
        expected_left = 1.0 - expected_q
        expected_right = 1.0 - expected_p
    else:
        slope = tangent.slope
        shift = tangent.shift
        tested_left = left
        tested_right = right
        expected_left = expected_p
        expected_right = expected_q
    shift = max(shift, 0.0)
    expected_hits = tested_right.trials * expected_right
    expected_misses = tested_left.trials * (1.0 - expected_left)
    is_shift_capped = shift > _CAPPED_TOO_FAR and expected_misses <= _FEW_MISSES
    if shift > _HIGH_SHIFT and (
        slope < _STEEP_SLOPE or expected_hits > _FEW_HITS or is_shift_capped
    ):
        fixed = "slope"
    else:
        fixed = "shift"
        shift = min(shift, _LARGEST_FIXED_SHIFT)
    return TestedLine(
        left=tested_left,
        right=tested_right,
        slope=slope,
        shift=shift,
        fixed=fixed,
        complement=complement,
    )


class _Tangent(NamedTuple):
    """The line p = slope·q + shift that touches a claim's curve."""

    slope: float
    shift: float


def _promising_line(
    claim: Claim,
    expected_p: float,
    expected_q: float,
    trials: tuple[int, int],
    failure_probability: float,
) -> _Tangent:
    """The tangent at the point that counts with the expected frequencies would only just refute."""
    p, q = within(np.array([expected_p]), np.array([expected_q]), trials)
    if p <= q:
        # No violation is expected, so that any line will do.
        return _Tangent(slope=1.0, shift=0.0)
    z = -float(ndtri(failure_probability))
    touched = Frequencies(p, q)
    slope = np.sqrt(p * (1.0 - p) / (q * (1.0 - q)))
    for _ in range(_SLOPE_ROUNDS):
        nearer = towards_curve(p, q, slope, trials, z)
        # Where the point has passed the diagonal, no value of the claim goes through it.
        is_violation = claim.least_values(nearer.p, nearer.q) > 0.0
        touched = nearer if is_violation else Frequencies(p, q)
        # Half of the way: at a corner of the curve, such as a Rényi claim has, whole steps would
        # oscillate.
        slope = np.sqrt(slope * curve_through(claim, touched.p, touched.q).slope)
    return _Tangent(slope=float(slope[0]), shift=float(touched.p[0] - slope[0] * touched.q[0]))


class Frequencies(NamedTuple):
    """Pairs of probabilities of an event under P and under Q, each of shape (k,)."""

    p: Floats
    q: Floats


class LocalCurve(NamedTuple):
    """How a claim's value behaves near pairs (p, q) of probabilities, each of shape (k,).

    Attributes:
        growth: the derivative with respect to p of the value whose curve goes through (p, q).
        slope: the slope of that curve.
    """

    growth: Floats
    slope: Floats


def within(p: Floats, q: Floats, trials: tuple[int, int]) -> Frequencies:
    """Returns the probabilities, moved away from 0 and 1 by half a hit of so many trials.

    Args:
        p: shape (k,).
        q: shape (k,).
        trials: on the left and on the right.
    """
    n_left, n_right = trials
    least_p = 0.5 / max(n_left, 1)
    least_q = 0.5 / max(n_right, 1)
    return Frequencies(p=np.clip(p, least_p, 1.0 - least_p), q=np.clip(q, least_q, 1.0 - least_q))


def curve_through(claim: Claim, p: Floats, q: Floats) -> LocalCurve:
    """Returns roughly how the claim's value behaves near (p, q), by central differences.

    Args:
        claim: gives the notion and its fixed parameters.
        p: shape (k,).
        q: shape (k,).
    """
    distance = np.minimum(np.minimum(q, 1.0 - p), p - q)
    step = _DIFFERENCE_STEP * np.maximum(distance, _LEAST_DISTANCE)
    # Values next to the borders may be infinite, and their differences undefined.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rise = claim.least_values(p + step, q) - claim.least_values(p - step, q)
        growth = rise / (2.0 * step)
        fall = claim.least_values(p, q - step) - claim.least_values(p, np.minimum(q + step, 1.0))
        # Along a curve of constant value, dp/dq is the fall in q over the growth in p.
        slope = fall / (2.0 * step) / growth
    is_usable = (slope > 0.0) & np.isfinite(slope)
    return LocalCurve(growth=growth, slope=np.where(is_usable, slope, 1.0))


def towards_curve(
    p: Floats, q: Floats, slope: Floats, trials: tuple[int, int], z: float
) -> Frequencies:
    """Returns the most likely (p, q) for which p − slope·q is smaller by z standard errors.

    Args:
        p: shape (k,), expected frequencies on the left.
        q: shape (k,), expected frequencies on the right.
        slope: shape (k,).
        trials: on the left and on the right.
        z: standard errors of the difference.
    """
    n_left, n_right = trials
    p_variance = p * (1.0 - p) / max(n_left, 1)
    q_variance = q * (1.0 - q) / max(n_right, 1)
    scale = z / np.sqrt(p_variance + slope**2 * q_variance)
    return Frequencies(
        p=np.maximum(p - scale * p_variance, 0.0),
        q=np.minimum(q + scale * slope * q_variance, 1.0),
    )
