"""The curve of a claim, read the other way: the least Q(E) that it allows when P(E) = p.

`max_power` answers how likely an event may be on one side, given the other. A test that knows the
probability of an event on one side needs the inverse: how much of it the other side must have.

There are two, for two tests:

* `least_q`, for the rank test: the inverse of the curve itself, for many probabilities at once.
* `inverse_of_hull`, for the recursion of one training run: the inverse of the curve's concave hull,
  because the recursion is about mixtures of events, and what holds for these is the hull. It takes
  one number at a time, thousands of times in a row, each of which depends on the one before.

Both err downwards, which costs power, never soundness. Ratios and Gaussian curves have closed
forms. A curve of the user's is known at its corners, or at points on the safe side. Any other curve
is concave, and is replaced by straight lines above it, or by a polygon above it.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.supporting_lines import (
    ClaimLines,
    lines_above_concave_curve,
    zero_concentrated_curve,
)
from epsilometer.claims import ZCDP, Claim, GaussianDP, RenyiDP, TradeOffDP
from epsilometer.claims.pure import HockeyStickClaim

# Largest exponent of e^ε, which overflows beyond 709.
_MAX_EXPONENT = 700.0
# Where lines are laid above a curve without a closed form: even in normal quantiles and so dense
# that they lie within a thousandth of the curve. The first is at 1e-7, which a million scores do
# not reach.
_LINES_GRID: Floats = ndtr(np.linspace(-5.2, 5.2, 105))
# Points of a curve without a closed form between which the polygon has its corners: even in normal
# quantiles, so that both tails are seen.
_POLYGON_GRID: Floats = ndtr(np.linspace(-7.0, 5.0, 361))
# Added to the power at every corner that is computed: larger than the rounding errors of a curve
# that is itself found by bisection.
_ROUNDING = 1e-12
# Slopes of neighbouring chords that differ by less are those of a straight line.
_STRAIGHT = 1e-9


# --- The curve itself, for arrays ---


def least_q(claim: Claim, p: Floats) -> Floats:
    """Returns the least Q(E) that a claim allows for events with P(E) = p.

    Args:
        claim: what is claimed.
        p: of any shape.

    Returns:
        The same shape, between 0 and 1; never above the exact inverse by more than rounding.
    """
    if isinstance(claim, HockeyStickClaim):
        q = _of_ratio(claim.epsilon, claim.delta, p)
    elif isinstance(claim, GaussianDP):
        q = ndtr(ndtri(p) - claim.mu)
    elif isinstance(claim, TradeOffDP):
        q = _of_steps(claim, p)
    else:
        q = _of_lines(_lines(claim), p)
    return np.clip(np.asarray(q, dtype=np.float64), 0.0, 1.0)


def _of_ratio(epsilon: float, delta: float, p: Floats) -> Floats:
    """Solves p = e^ε·q + δ, and the same of the complement, for q."""
    ratio = np.exp(min(epsilon, _MAX_EXPONENT))
    by_event = (p - delta) / ratio
    by_complement = 1.0 - delta - (1.0 - p) * ratio
    return np.asarray(np.maximum(by_event, by_complement), dtype=np.float64)


def _of_steps(claim: TradeOffDP, p: Floats) -> Floats:
    """Goes along the corners of a curve to the first point that is high enough."""
    corners, powers = _corners(claim.curve)
    needed = p - claim.excess
    # The first corner at which the curve is high enough; where none is, the last one.
    after = np.minimum(np.searchsorted(powers, needed, side="left"), len(powers) - 1)
    before = np.maximum(after - 1, 0)
    rise = powers[after] - powers[before]
    has_rise = rise > 0.0
    fraction = (needed - powers[before]) / np.where(has_rise, rise, 1.0)
    fraction = np.where(has_rise, np.clip(fraction, 0.0, 1.0), 0.0)
    q = corners[before] + fraction * (corners[after] - corners[before])
    return np.where(needed <= powers[0], 0.0, q)


@lru_cache(maxsize=64)
def _corners(
    curve: Callable[[float], float] | tuple[Sequence[float], Sequence[float]],
) -> tuple[Floats, Floats]:
    """Type-I errors, and the power that is allowed there; a function is taken on the safe side."""
    type_one, type_two = TradeOffDP(curve).to_dict()["curve"]
    # A curve that falls by rounding is replaced by one that is nowhere lower.
    powers = np.maximum.accumulate(1.0 - np.asarray(type_two, dtype=np.float64))
    return np.asarray(type_one, dtype=np.float64), powers


@lru_cache(maxsize=256)
def _lines(claim: Claim) -> ClaimLines:
    """Lines above the curve of a claim that has no closed form."""
    return lines_above_concave_curve(claim, _LINES_GRID)


def _of_lines(lines: ClaimLines, p: Floats) -> Floats:
    """The least q that is on or above no line: the largest of their solutions."""
    solutions = (p[..., None] - lines.shifts) / lines.slopes
    return np.asarray(solutions.max(axis=-1), dtype=np.float64)


# --- Its concave hull, for one number at a time ---


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


def inverse_of_hull(claim: Claim) -> Callable[[float], float]:
    """Returns the function from P(E) to the least Q(E) that the claim allows.

    It never falls and is never larger than the least Q(E) that the concave hull of the claim's
    curve allows.
    """
    if isinstance(claim, HockeyStickClaim):
        return lambda power: float(least_q(claim, np.asarray(power)))
    if isinstance(claim, GaussianDP):
        return _least_q_of_gaussian(claim.mu)
    if isinstance(claim, TradeOffDP):
        return _polygon_of_points(claim).least_q
    return _polygon_above_concave_curve(claim).least_q


def _least_q_of_gaussian(mu: float) -> Callable[[float], float]:
    """As in `least_q`, without what that does for arrays: it would take most of the time."""

    def least_q_of_one(power: float) -> float:
        return float(ndtr(ndtri(power) - mu))

    return least_q_of_one


def _polygon_of_points(claim: TradeOffDP) -> Polygon:
    """The concave hull of a curve of the user's; `to_dict` gives points on the safe side."""
    type_one, type_two = claim.to_dict()["curve"]
    # Left of its first point a curve goes on flat, and its hull has a corner there.
    q = np.concatenate([[0.0], type_one])
    power = 1.0 - np.concatenate([type_two[:1], type_two]) + claim.excess
    return _hull(q, power)


def _polygon_above_concave_curve(claim: Claim) -> Polygon:
    """A polygon above a concave curve, from its values on the grid.

    Between two points the curve stays below the extensions of the chords on both sides, hence below
    the point where these meet. The polygon has its corners there.
    """
    q = _POLYGON_GRID
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
