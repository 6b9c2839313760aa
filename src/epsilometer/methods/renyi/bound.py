"""The published lower bound on a Rényi divergence, from two samples.

Guarantee: asymptotic. As the samples grow the bound exceeds D_order(left ‖ right) with probability at most
1 − confidence, if the floor falls slowly enough: the number of draws at the level of the floor must stay large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.renyi.bandwidth import UNDERSMOOTHING
from epsilometer.methods.renyi.densities import Densities
from epsilometer.methods.renyi.flooring import Floor, check_floor, estimate
from epsilometer.methods.renyi.samples import read_densities

# Draws at the level of the floor, n·τ (densities in units of 1/spread): at fewer the floor is below what the samples
# can tell, and the bound is too high (measured: randomized response, order 7, covers .03 at n·τ = 5).
ENOUGH_AT_FLOOR = 50.0
# n·τ as a product of floats may miss a whole number by rounding.
_ROUNDING = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class FlooredBound:
    """A lower bound on D_order(left ‖ right).

    Attributes:
        lower_bound: holds with about the asked confidence; may be below 0 when the samples tell nothing.
        estimate: the plug-in estimate.
        variance: asymptotic, of √n·estimate for the n left outputs.
        order: of the divergence.
        floor: τ.
        sharpness: β.
        warnings: why not to trust it.
        guarantee: always "asymptotic".
    """

    lower_bound: float
    estimate: float
    variance: float
    order: float
    floor: float
    sharpness: float
    warnings: tuple[str, ...] = ()
    guarantee: str = "asymptotic"


def lower_bound(
    left_outputs: object,
    right_outputs: object,
    order: float,
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
    undersmoothing: float = UNDERSMOOTHING,
) -> FlooredBound:
    """The lower bound on D_order(left ‖ right); one direction only.

    Args:
        left_outputs: shape (n,) or (n, d): whole numbers, truth values or strings are counted; floats that do not
            repeat get a kernel density on an even grid (d ≤ 2).
        right_outputs: likewise; the sizes may differ.
        order: above 1.
        floor: τ; by default 50/n in units of 1/spread.
        confidence: nominal.
        sharpness: β, 1/τ by default.
        undersmoothing: power to which the plug-in bandwidth is raised.

    Guarantee: asymptotic.

    Reference: Kutta, Askin, Dunsche, "Lower bounds for Rényi differential privacy in a black-box setting", (16).
    """
    (bound,) = lower_bounds(
        left_outputs, right_outputs, [order], floor, confidence, sharpness=sharpness, undersmoothing=undersmoothing
    )
    return bound


def lower_bounds(
    left_outputs: object,
    right_outputs: object,
    orders: Sequence[float],
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
    undersmoothing: float = UNDERSMOOTHING,
) -> tuple[FlooredBound, ...]:
    """`lower_bound` for several orders from one sample; each holds by itself, not all at once."""
    checked = [check_order(order) for order in orders]
    if floor is not None:
        check_floor(floor, sharpness)
    failure = 1.0 - _check_confidence(confidence)
    densities = read_densities(left_outputs, right_outputs, undersmoothing)
    return tuple(bound_from(densities, order, failure, floor, sharpness) for order in checked)


def lower_bound_of_pairs(
    samples: Sequence[tuple[object, object]],
    order: float,
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
) -> tuple[int, FlooredBound]:
    """The largest bound over several pairs of inputs, each with independent samples of its own.

    The largest of N bounds of level c holds with probability c^N only, so each is taken at confidence^(1/N).

    Args:
        samples: (left outputs, right outputs) of each pair.

    Returns:
        The number of the pair, and its bound.
    """
    if not samples:
        raise InputError("samples is empty: give at least one pair of samples")
    each = _check_confidence(confidence) ** (1.0 / len(samples))
    bounds = [lower_bound(left, right, order, floor, each, sharpness=sharpness) for left, right in samples]
    best = max(range(len(bounds)), key=lambda number: bounds[number].lower_bound)
    return best, bounds[best]


def bound_from(
    densities: Densities, order: float, failure_probability: float, floor: float | None, sharpness: float | None
) -> FlooredBound:
    """The bound from estimated densities."""
    chosen = choose_floor(densities, floor, sharpness)
    found = estimate(densities.p, densities.q, order, chosen, densities.width)
    n, m = densities.sizes
    variance = found.left_variance + found.right_variance * n / m
    cost = float(-ndtri(failure_probability)) * math.sqrt(variance / n)
    return FlooredBound(
        found.divergence - cost,
        found.divergence,
        variance,
        order,
        chosen.level,
        chosen.sharpness,
        _doubts(densities, chosen),
    )


def choose_floor(densities: Densities, floor: float | None, sharpness: float | None) -> Floor:
    """The given floor, or the lowest that enough draws reach."""
    if floor is None:
        floor = ENOUGH_AT_FLOOR / (min(densities.sizes) * densities.unit)
    return check_floor(floor, sharpness)


def _doubts(densities: Densities, floor: Floor) -> tuple[str, ...]:
    at_floor = min(densities.sizes) * densities.unit * floor.level
    if at_floor >= ENOUGH_AT_FLOOR * _ROUNDING:
        return ()
    return (
        f"floor={floor.level:g} leaves n·floor = {at_floor:.3g} draws at its level, fewer than {ENOUGH_AT_FLOOR:g}: "
        "the bound may well be above the truth; raise the floor or draw more",
    )


def _check_confidence(confidence: float) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r} must lie strictly between 0 and 1, e.g. 0.95")
    return float(confidence)
