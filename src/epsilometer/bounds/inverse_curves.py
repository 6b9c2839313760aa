"""The curve of a claim, read the other way: the least Q(E) that it allows when P(E) = p.

`max_power` answers how likely an event may be on one side, given the other. A test that knows the
mass of an event on one side needs the inverse: how much of it the other side must have. Where
something is computed by approximation, it is rounded downwards, which costs power, never soundness.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds.supporting_lines import ClaimLines, lines_above_concave_curve
from epsilometer.claims import Claim, GaussianDP, TradeOffDP
from epsilometer.claims.pure import HockeyStickClaim

# Largest exponent of e^ε, which overflows beyond 709.
_MAX_EXPONENT = 700.0
# Where lines are laid above a curve without a closed form: even in normal quantiles and so dense
# that they lie within a thousandth of the curve. The first is at 1e-7, which a million scores do
# not reach.
_DENSE_GRID: Floats = ndtr(np.linspace(-5.2, 5.2, 105))


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
    return lines_above_concave_curve(claim, _DENSE_GRID)


def _of_lines(lines: ClaimLines, p: Floats) -> Floats:
    """The least q that is on or above no line: the largest of their solutions."""
    solutions = (p[..., None] - lines.shifts) / lines.slopes
    return np.asarray(solutions.max(axis=-1), dtype=np.float64)
