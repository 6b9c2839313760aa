"""Lines above the curves of claims, for bets against these claims.

The curve `max_power` of a claim confines the probabilities (p, q) of every event: p ≤ max_power(q).
Bets are fair below a line, so that a claim is replaced by some lines that its curve never exceeds.
A line that is too high costs power, never soundness: wherever something is computed, it is rounded
upwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from epsilometer.arrays import Floats
from epsilometer.claims import (
    ZCDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
    bernoulli_divergence,
)

# Largest exponent of e^ε, which overflows beyond 709.
_MAX_EXPONENT = 700.0
# Added to the shift of every line that is computed from points of a curve: a probability that is
# larger than any rounding error of these.
_ROUNDING = 1e-11
# The least slope of a line. A steeper line through the same point at q = 0 lies higher; a flat one
# would have no projection.
_LEAST_SLOPE = 1e-9
# Differences of neighbouring slopes below this are rounding: the curve is straight there.
_STRAIGHT = 1e-12
# The q between which lines are laid: even in normal quantiles, the tails beyond ±3.6 left out.
_GRID: Floats = ndtr(np.linspace(-3.6, 3.6, 28))
# Normal quantiles of the points at which a Gaussian curve is touched.
_GAUSSIAN_QUANTILES: Floats = np.linspace(-4.2, 4.2, 29)
# The q at which an arbitrary curve is evaluated: dense near 0, and even in normal quantiles.
_STEPS: Floats = np.unique(
    np.concatenate([[0.0, 1.0], np.geomspace(1e-7, 1.0, 700), ndtr(np.linspace(-4.0, 4.0, 1400))])
)
# Orders at which a zero-concentrated claim is tested. Fewer orders allow more, so bets stay fair.
_ORDERS: Floats = 1.0 + np.geomspace(1e-2, 1e3, 32)
# A larger ρ is treated as this one. No divergence of two coins whose probabilities a bet can use
# comes near it.
_MAX_RHO = 1e6
# Halvings of an interval within [0, 1]: 2^-44 is 6e-14, below `_ROUNDING`.
_HALVINGS = 44


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines p = slope·q + shift above the curves of some claims.

    Attributes:
        slopes: shape (claims, lines).
        shifts: the same shape.
    """

    slopes: Floats
    shifts: Floats


class ClaimLines(NamedTuple):
    """Lines p = slope·q + shift above the curve of one claim.

    Attributes:
        slopes: shape (lines,).
        shifts: shape (lines,).
    """

    slopes: Floats
    shifts: Floats


def lines_of(claims: Sequence[Claim]) -> Lines:
    """Returns the supporting lines of several claims of one notion."""
    lines = [supporting_lines(claim) for claim in claims]
    return Lines(
        slopes=np.stack([line.slopes for line in lines]),
        shifts=np.stack([line.shifts for line in lines]),
    )


@lru_cache(maxsize=4096)
def supporting_lines(claim: Claim) -> ClaimLines:
    """Returns lines that the claim's curve never exceeds."""
    if isinstance(claim, PureDP | ApproxDP):
        return _lines_of_ratio(claim.epsilon, claim.delta)
    if isinstance(claim, GaussianDP):
        return _lines_of_gaussian(claim.mu)
    if isinstance(claim, TradeOffDP):
        # A curve of the user's: nothing but that it never decreases is known.
        return _lines_above_steps(claim)
    return lines_above_concave_curve(claim, _GRID)


def _lines_of_ratio(epsilon: float, delta: float) -> ClaimLines:
    """The two lines of (ε, δ)-privacy: for the event, and for its complement."""
    ratio = np.exp(min(epsilon, _MAX_EXPONENT))
    return ClaimLines(
        slopes=np.array([ratio, 1.0 / ratio]),
        shifts=np.array([delta, 1.0 - (1.0 - delta) / ratio]),
    )


def _lines_of_gaussian(mu: float) -> ClaimLines:
    """Tangents of the concave curve p = Φ(Φ⁻¹(q) + μ), at q = Φ(z)."""
    z = _GAUSSIAN_QUANTILES
    slopes = np.exp(-mu * (z + 0.5 * mu))
    return ClaimLines(slopes=slopes, shifts=ndtr(z + mu) - slopes * ndtr(z) + _ROUNDING)


def lines_above_concave_curve(claim: Claim, q: Floats) -> ClaimLines:
    """Returns lines above a concave curve, from its values at some points.

    Between two points the curve stays below the extensions of the chords on both sides. The line
    with the slope of the chord between the two points is shifted up to where these extensions meet.

    Args:
        claim: whose curve it is.
        q: shape (points,), ascending; there is a line for each stretch but the first and last.
    """
    # The first two are computed at all q at once, which is faster.
    if isinstance(claim, RenyiDP):
        power = _divergence_curve(q, np.array([claim.order]), np.array([claim.epsilon]))
    elif isinstance(claim, ZCDP):
        power = zero_concentrated_curve(claim.rho, q)
    else:
        power = np.array([claim.max_power(point) for point in q.tolist()])
    # The chord from each point to the next one: its slope, and its value at q = 0.
    slope = np.diff(power) / np.diff(q)
    start = power[:-1] - slope * q[:-1]
    # Chords that have a neighbour on both sides, with their end points.
    slope_before = slope[:-2]
    slope_here = slope[1:-1]
    slope_after = slope[2:]
    start_before = start[:-2]
    start_after = start[2:]
    q_low = q[1:-2]
    q_high = q[2:-1]
    power_low = power[1:-2]
    power_high = power[2:-1]
    # Where the extensions of the neighbouring chords meet.
    gap = slope_before - slope_after
    is_straight = gap <= _STRAIGHT
    meeting_q = (start_after - start_before) / np.where(is_straight, 1.0, gap)
    meeting_q = np.clip(meeting_q, q_low, q_high)
    meeting_p = np.minimum(
        start_before + slope_before * meeting_q, start_after + slope_after * meeting_q
    )
    shift = np.where(is_straight, -np.inf, meeting_p - slope_here * meeting_q)
    # The line is at least as high as the curve at both points.
    shift_at_points = np.maximum(power_low - slope_here * q_low, power_high - slope_here * q_high)
    return ClaimLines(
        slopes=np.maximum(slope_here, _LEAST_SLOPE),
        shifts=np.maximum(shift, shift_at_points) + _ROUNDING,
    )


def _lines_above_steps(claim: TradeOffDP) -> ClaimLines:
    """Lines above any curve that never decreases.

    Between two points the curve stays below its value at the right one: the line must be above that
    value at the left one.
    """
    power = claim.max_power(_STEPS)
    slopes = np.maximum(np.diff(claim.max_power(_GRID)) / np.diff(_GRID), _LEAST_SLOPE)
    shifts = np.max(power[1:] - slopes[:, None] * _STEPS[:-1], axis=1)
    return ClaimLines(slopes=slopes, shifts=shifts + _ROUNDING)


def zero_concentrated_curve(rho: float, q: Floats) -> Floats:
    """Returns at least the greatest power that ρ-zero-concentrated privacy allows at each q.

    It considers some of the orders only, so it is never below the exact curve. `ZCDP.max_power`
    considers others, and may be above or below it by some 1e-4.

    Args:
        rho: ρ.
        q: shape (k,).

    Returns:
        Shape (k,).
    """
    return _divergence_curve(q, _ORDERS, min(rho, _MAX_RHO) * _ORDERS)


def _divergence_curve(q: Floats, orders: Floats, limits: Floats) -> Floats:
    """The greatest p for which the coins p and q diverge by no more than the limits.

    Args:
        q: shape (k,).
        orders: shape (orders,), of the Rényi divergences, in both directions.
        limits: shape (orders,).

    Returns:
        Shape (k,): the upper ends of the brackets of a bisection, so never too small.
    """
    allowed = q.copy()
    refused = np.ones(len(q))
    for _ in range(_HALVINGS):
        middle = 0.5 * (allowed + refused)
        forward = bernoulli_divergence(middle[:, None], q[:, None], orders)
        backward = bernoulli_divergence(q[:, None], middle[:, None], orders)
        # What is not a number counts as allowed: a curve that is too high costs power, never
        # soundness.
        is_allowed = ~np.any(np.maximum(forward, backward) > limits, axis=1)
        allowed = np.where(is_allowed, middle, allowed)
        refused = np.where(is_allowed, refused, middle)
    return refused
