"""The inverse of a claim's curve: the least Q(E) that it allows when P(E) = p.

Wherever something is computed from points, the curve is replaced by a concave polygon that it never
exceeds, so that the inverse errs downwards: that costs power, never soundness.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.supporting_lines import zero_concentrated_curve
from epsilometer.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, TradeOffDP

# Largest exponent of e^ε, which overflows beyond 709.
_MAX_EXPONENT = 700.0
# Points of the curve of any other claim: even in normal quantiles, so that both tails are seen.
_GRID: Floats = ndtr(np.linspace(-7.0, 5.0, 361))
# Added to the power at every corner that is computed: larger than the rounding errors of a curve
# that is itself found by bisection.
_ROUNDING = 1e-12
# Slopes of neighbouring chords that differ by less are those of a straight line.
_STRAIGHT = 1e-9


@dataclass(frozen=True, slots=True)
class Polygon:
    """A concave curve of straight pieces, from power at q = 0 to power 1.

    Attributes:
        q: corners, strictly increasing.
        power: at these corners, strictly increasing.
    """

    q: tuple[float, ...]
    power: tuple[float, ...]

    def least_q(self, power: float) -> float:
        """The least q at which the curve reaches a power; 0 if it does so at once."""
        position = bisect_left(self.power, power)
        if position == 0:
            return 0.0
        if position == len(self.power):
            return self.q[-1]
        low = position - 1
        share = (power - self.power[low]) / (self.power[position] - self.power[low])
        return self.q[low] + share * (self.q[position] - self.q[low])


def least_q_of(claim: Claim) -> Callable[[float], float]:
    """Returns the function from P(E) to the least Q(E) that the claim allows.

    It never falls and is never larger than the least Q(E) that the concave hull of the claim's
    curve allows. (The hull is what follows for mixtures of events.)
    """
    if isinstance(claim, PureDP | ApproxDP):
        return _least_q_of_ratio(claim.epsilon, claim.delta)
    if isinstance(claim, GaussianDP):
        return _least_q_of_gaussian(claim.mu)
    if isinstance(claim, TradeOffDP):
        return _polygon_of_points(claim).least_q
    return _polygon_above_concave_curve(claim).least_q


def _least_q_of_ratio(epsilon: float, delta: float) -> Callable[[float], float]:
    ratio = math.exp(min(epsilon, _MAX_EXPONENT))

    def least_q(power: float) -> float:
        by_event = (power - delta) / ratio
        by_complement = 1.0 - delta - ratio * (1.0 - power)
        return max(by_event, by_complement, 0.0)

    return least_q


def _least_q_of_gaussian(mu: float) -> Callable[[float], float]:
    def least_q(power: float) -> float:
        return float(ndtr(ndtri(power) - mu))

    return least_q


def _polygon_of_points(claim: TradeOffDP) -> Polygon:
    """The concave hull of a curve of the user's; `to_dict` gives points on the safe side."""
    type_one, type_two = claim.to_dict()["curve"]
    q = np.asarray(type_one, dtype=np.float64)
    power = 1.0 - np.asarray(type_two, dtype=np.float64) + claim.excess
    return _hull(q, power)


def _polygon_above_concave_curve(claim: Claim) -> Polygon:
    """A polygon above a concave curve, from its values on the grid.

    Between two points the curve stays below the extensions of the chords on both sides, hence below
    the point where these meet. The polygon has its corners there.
    """
    q = _GRID
    # The first two are computed at all q at once, which is faster.
    if isinstance(claim, ZCDP):
        power = zero_concentrated_curve(claim.rho, q)
    elif isinstance(claim, RenyiDP):
        power = claim.max_power(q)
    else:
        power = np.array([claim.max_power(point) for point in q.tolist()])
    slope = np.diff(power) / np.diff(q)
    start = power[:-1] - slope * q[:-1]
    gap = slope[:-2] - slope[2:]
    is_straight = gap <= _STRAIGHT
    meeting_q = (start[2:] - start[:-2]) / np.where(is_straight, 1.0, gap)
    meeting_q = np.where(is_straight, q[1:-2], np.clip(meeting_q, q[1:-2], q[2:-1]))
    meeting_power = np.minimum(
        start[:-2] + slope[:-2] * meeting_q, start[2:] + slope[2:] * meeting_q
    )
    # Below the second point of the grid and above the last but one nothing confines the curve but
    # its values there, since it never falls.
    corners_q = np.concatenate([[0.0], q[1:2], meeting_q, [q[-2], 1.0]])
    corners_power = np.concatenate([power[1:2], power[1:2], meeting_power, [power[-2], 1.0]])
    # The last piece, too, must lie above the curve, which ends at 1.
    corners_power[-2] = 1.0
    return _hull(corners_q, np.minimum(corners_power + _ROUNDING, 1.0))


def _hull(q: Floats, power: Floats) -> Polygon:
    """The upper concave hull of points, up to where it reaches its greatest power."""
    corners: list[tuple[float, float]] = []
    for point in sorted(zip(q.tolist(), power.tolist(), strict=True)):
        while corners and (_is_below(corners, point) or corners[-1][0] == point[0]):
            corners.pop()
        corners.append(point)
    rising = [corners[0]]
    for corner in corners[1:]:
        if corner[1] <= rising[-1][1]:
            break
        rising.append(corner)
    return Polygon(
        q=tuple(corner[0] for corner in rising), power=tuple(corner[1] for corner in rising)
    )


def _is_below(corners: list[tuple[float, float]], point: tuple[float, float]) -> bool:
    """Whether the last corner lies on or below the line from the one before it to the point."""
    if len(corners) < 2:
        return False
    (q_before, power_before), (q_last, power_last) = corners[-2:]
    q_point, power_point = point
    rise_to_last = (power_last - power_before) * (q_point - q_before)
    rise_to_point = (power_point - power_before) * (q_last - q_before)
    return rise_to_last <= rise_to_point
