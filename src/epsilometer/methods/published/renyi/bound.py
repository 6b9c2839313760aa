"""The published lower bound on a Rényi divergence: densities with a soft floor, and its variance.

Reference: Kutta, Askin, Dunsche (2024), "Lower bounds for Rényi differential privacy in a black-box
    setting". Equation numbers below are those of this paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_confidence, check_positive
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.published.local.kernels import BandwidthChoice, KernelChoice
from epsilometer.methods.published.renyi.densities import UNDERSMOOTHING, Densities, Smoothing
from epsilometer.methods.published.renyi.samples import read_densities
from epsilometer.one_line import one_line

# Draws at the level of the floor, n·τ (densities in units of 1/scale): with fewer, the floor is
# below what the samples can resolve, and the bound is too high (measured: randomized response,
# order 7, covers .03 at n·τ = 5).
ENOUGH_AT_FLOOR = 50.0
# n·τ as a product of floats may miss a whole number by rounding.
_ROUNDING = 1.0 - 1e-9


# --- bounds from samples ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlooredBound:
    """A lower bound on D_order(left ‖ right).

    Attributes:
        lower_bound: holds with about the requested confidence; may be below 0 when the samples show
            nothing.
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
    kernel: KernelChoice = "gaussian",
    bandwidth: BandwidthChoice = None,
) -> FlooredBound:
    """Returns the lower bound on D_order(left ‖ right); one direction only.

    Args:
        left_outputs: shape (n,) or (n, d): whole numbers, truth values or strings are counted;
            floats that do not repeat get a kernel density on an even grid (d ≤ 2). Where one
            column is continuous and some of its values, or other columns, repeat, each repeated
            value is counted and the rest has a density of its own. So it is with a list of outputs
            of several kinds: numbers or None, tuples of a name and a number.
        right_outputs: likewise; the sizes may differ.
        order: above 1.
        floor: τ; by default 50/n in units of 1/scale, where the scale is a robust standard
            deviation of the outputs. Of mixed outputs it is a probability at a point mass, and a
            density in units of 1/scale beside them.
        confidence: nominal.
        sharpness: β, 1/τ by default.
        undersmoothing: power to which the bandwidth of a rule is raised.
        kernel: "gaussian", "laplace", "silverman", "epanechnikov", "biweight", or any function K(u)
            of an array that is symmetric and integrates to 1.
        bandwidth: "dpik", the plug-in rule, unless "nrd0" or "nrd" is asked for; a number, or a
            function from the draws of one coordinate to a number, is taken as it is. Outputs of two
            coordinates have the normal reference rule of each instead of "dpik".

    Guarantee: asymptotic.

    Reference: Kutta, Askin, Dunsche (2024), (16).
    """
    bounds = lower_bounds(
        left_outputs,
        right_outputs,
        [order],
        floor=floor,
        confidence=confidence,
        sharpness=sharpness,
        undersmoothing=undersmoothing,
        kernel=kernel,
        bandwidth=bandwidth,
    )
    return bounds[0]


def lower_bounds(
    left_outputs: object,
    right_outputs: object,
    orders: Sequence[float],
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
    undersmoothing: float = UNDERSMOOTHING,
    kernel: KernelChoice = "gaussian",
    bandwidth: BandwidthChoice = None,
) -> tuple[FlooredBound, ...]:
    """Computes `lower_bound` at several orders from one sample; each holds alone, not jointly."""
    checked_orders = [check_order(order) for order in orders]
    if floor is not None:
        check_floor(floor, sharpness)
    failure_probability = 1.0 - check_confidence(confidence)
    smoothing = Smoothing(undersmoothing, kernel, bandwidth)
    densities = read_densities(left_outputs, right_outputs, smoothing)
    return tuple(
        bound_from(densities, order, failure_probability, floor, sharpness)
        for order in checked_orders
    )


def lower_bound_of_pairs(
    samples: Sequence[tuple[object, object]],
    order: float,
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
    undersmoothing: float = UNDERSMOOTHING,
    kernel: KernelChoice = "gaussian",
    bandwidth: BandwidthChoice = None,
) -> tuple[int, FlooredBound]:
    """Returns the largest bound over several pairs of inputs, with independent samples for each.

    The largest of N bounds of level c holds with probability c^N only, so each is taken at
    confidence^(1/N).

    Args:
        samples: (left outputs, right outputs) of each pair.
        order: above 1.
        floor: τ; as for `lower_bound`.
        confidence: nominal, of the largest bound.
        sharpness: β, 1/τ by default.
        undersmoothing: as for `lower_bound`.
        kernel: as for `lower_bound`.
        bandwidth: as for `lower_bound`; a rule or a function chooses it anew for each pair.

    Returns:
        The number of the pair, and its bound.

    Reference: Kutta, Askin, Dunsche (2024), (8).
    """
    if not isinstance(samples, tuple | list):
        raise InputError(
            f"samples={one_line(samples)} must be a list of pairs (left outputs, right outputs)"
        )
    if not samples:
        raise InputError("samples is empty: give at least one pair of samples")
    for pair in samples:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(
                "samples must be a list of pairs (left outputs, right outputs), one for each pair "
                f"of inputs; it holds {one_line(pair)}"
            )
    pair_confidence = check_confidence(confidence) ** (1.0 / len(samples))
    bounds = [
        lower_bound(
            left,
            right,
            order,
            floor,
            pair_confidence,
            sharpness=sharpness,
            undersmoothing=undersmoothing,
            kernel=kernel,
            bandwidth=bandwidth,
        )
        for left, right in samples
    ]
    best = max(range(len(bounds)), key=lambda number: bounds[number].lower_bound)
    return best, bounds[best]


def bound_from(
    densities: Densities,
    order: float,
    failure_probability: float,
    floor: float | None,
    sharpness: float | None,
) -> FlooredBound:
    """Returns the bound from estimated densities.

    Args:
        densities: of both sides.
        order: λ.
        failure_probability: nominal.
        floor: τ; None takes the lowest that enough draws reach.
        sharpness: β; None takes 1/τ.

    Reference: Kutta, Askin, Dunsche (2024), (16) and (18).
    """
    n, m = densities.sizes
    # Draws per unit of density, in the units of the outputs.
    draws = min(n, m) * densities.unit
    soft_floor = check_floor(ENOUGH_AT_FLOOR / draws if floor is None else floor, sharpness)
    plug_in = estimate(densities.p, densities.q, order, soft_floor, densities.width)
    variance = plug_in.left_variance + plug_in.right_variance * n / m
    quantile = float(-ndtri(failure_probability))
    warnings: tuple[str, ...] = ()
    if draws * soft_floor.level < ENOUGH_AT_FLOOR * _ROUNDING:
        warnings = (
            f"floor={soft_floor.level:g} leaves n·floor = {draws * soft_floor.level:.3g} draws at "
            f"its level, fewer than {ENOUGH_AT_FLOOR:g}: the bound may well be above the truth; "
            "raise the floor or draw more",
        )
    return FlooredBound(
        lower_bound=plug_in.divergence - quantile * math.sqrt(variance / n),
        estimate=plug_in.divergence,
        variance=variance,
        order=order,
        floor=soft_floor.level,
        sharpness=soft_floor.sharpness,
        warnings=warnings,
    )


# --- the floored divergence -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Floor:
    """A soft floor under a density, (13).

    Attributes:
        level: τ, in the units of the density.
        sharpness: β; the floor is soft within about 1/β of its level.
    """

    level: float
    sharpness: float

    def raised(self, q: Floats) -> Floats:
        """Returns q_τ: never below the level, and nearly q where q is well above it."""
        softness = np.log1p(np.exp(-self.sharpness * np.abs(q - self.level))) / self.sharpness
        return np.maximum(q, self.level) + softness

    def slope(self, q: Floats) -> Floats:
        """Returns the derivative of `raised`, between 0 and 1; (17)."""
        return np.asarray(expit(self.sharpness * (q - self.level)), dtype=np.float64)


def check_floor(floor: float, sharpness: float | None = None) -> Floor:
    """Returns a floor, both parameters positive and finite; the sharpness is 1/floor by default."""
    level = check_positive("floor", floor)
    if sharpness is None:
        return Floor(level, 1.0 / level)
    return Floor(level, check_positive("sharpness", sharpness))


def floored_divergence(  # noqa: PLR0917  # researchers call it as the paper writes it
    p: object,
    q: object,
    order: float,
    floor: float = 1e-5,
    sharpness: float | None = None,
    width: float = 1.0,
) -> float:
    """Returns D_order of p from q with a soft floor under q.

    It is never above the true divergence of the two, up to the softness of the floor.

    Args:
        p: shape (k,), probabilities of k outputs, or densities on an even grid.
        q: shape (k,), the same for the other side.
        order: above 1.
        floor: τ.
        sharpness: β, 1/floor unless given.
        width: 1 for probabilities, the distance (or area) between grid points for densities.

    Reference: Kutta, Askin, Dunsche (2024), (11) to (14).
    """
    left = _density("p", p)
    right = _density("q", q)
    if left.shape != right.shape:
        raise InputError(f"p has shape {left.shape} and q {right.shape}; they must be the same")
    soft_floor = check_floor(floor, sharpness)
    return estimate(left, right, check_order(order), soft_floor, width).divergence


class DivergenceEstimate(NamedTuple):
    """A plug-in estimate of a floored divergence.

    Attributes:
        divergence: D̂.
        left_variance: of √n·D̂, through the n draws behind p.
        right_variance: of √m·D̂, through the m draws behind q.
    """

    divergence: float
    left_variance: float
    right_variance: float


def estimate(
    p: Floats, q: Floats, order: float, floor: Floor, width: float | Floats
) -> DivergenceEstimate:
    """Returns the plug-in estimate and its variances, computed in logarithms so nothing overflows.

    Args:
        p: shape (k,), probabilities or densities.
        q: shape (k,), of the other side.
        order: λ.
        floor: under q.
        width: what each point stands for, as for `floored_divergence`; shape (k,) where a point
            mass stands beside a density.

    Reference: Kutta, Askin, Dunsche (2024), (18).
    """
    # Every integrand has a factor p.
    has_mass = p > 0.0
    widths = np.broadcast_to(width, p.shape)[has_mass]
    p = p[has_mass]
    q = q[has_mass]
    if not len(p):
        return DivergenceEstimate(0.0, 0.0, 0.0)
    raised = floor.raised(q)
    log_terms = np.log(widths) + np.log(p) + (order - 1.0) * (np.log(p) - np.log(raised))
    log_sum = float(np.logaddexp.reduce(log_terms))
    # Weights p^λ·q_τ^(1−λ)·width/I, which sum to 1: moments divided by I cannot overflow.
    weights = np.exp(log_terms - log_sum)
    left_influence = weights / (p * widths)
    right_influence = floor.slope(q) * weights / (raised * widths)
    return DivergenceEstimate(
        divergence=log_sum / (order - 1.0),
        left_variance=_variance(left_influence, p * widths) * order**2 / (order - 1.0) ** 2,
        right_variance=_variance(right_influence, q * widths),
    )


def _variance(influence: Floats, probabilities: Floats) -> float:
    """Returns the variance of the influence of one draw."""
    second_moment = float(probabilities @ influence**2)
    return max(second_moment - float(probabilities @ influence) ** 2, 0.0)


def _density(name: str, values: object) -> Floats:
    """Returns probabilities or densities as a checked array of shape (k,)."""
    density = np.asarray(values, dtype=np.float64)
    if density.ndim != 1 or not density.size:
        raise InputError(
            f"{name} has shape {density.shape}; it must be a non-empty row of probabilities or "
            "densities"
        )
    if not np.isfinite(density).all() or (density < 0.0).any():
        raise InputError(
            f"{name} has negative or infinite entries; probabilities and densities are finite and "
            "≥ 0"
        )
    return density
