"""The published lower bound on a Rényi divergence: densities with a soft floor, and their spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_confidence, check_positive
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.published.local.kernels import BandwidthChoice, KernelChoice
from epsilometer.methods.published.renyi.densities import UNDERSMOOTHING, Densities, Smoothing
from epsilometer.methods.published.renyi.samples import read_densities


@dataclass(frozen=True, slots=True)
class Floor:
    """A soft floor under a density.

    Attributes:
        level: τ, in the units of the density.
        sharpness: β; the floor is soft within about 1/β of its level.
    """

    level: float
    sharpness: float

    def raised(self, q: Floats) -> Floats:
        """q_τ: never below the level, and nearly q where q is well above it."""
        return (
            np.maximum(q, self.level)
            + np.log1p(np.exp(-self.sharpness * np.abs(q - self.level))) / self.sharpness
        )

    def slope(self, q: Floats) -> Floats:
        """The derivative of `raised`, between 0 and 1."""
        return np.asarray(expit(self.sharpness * (q - self.level)), dtype=np.float64)


def check_floor(floor: float, sharpness: float | None = None) -> Floor:
    """Both positive and finite; the sharpness is 1/floor unless given."""
    level = check_positive("floor", floor)
    return Floor(
        level, 1.0 / level if sharpness is None else check_positive("sharpness", sharpness)
    )


def floored_divergence(
    p: object,
    q: object,
    order: float,
    floor: float = 1e-5,
    sharpness: float | None = None,
    width: float = 1.0,
) -> float:
    """D_order of p from q with a soft floor under q: never above the true divergence of the two, up to the softness.

    Args:
        p: shape (k,), probabilities of k outputs, or densities on an even grid.
        q: the same for the other side.
        order: above 1.
        floor: τ.
        sharpness: β, 1/floor unless given.
        width: 1 for probabilities, the distance (or area) between grid points for densities.
    """
    left = _density("p", p)
    right = _density("q", q)
    if left.shape != right.shape:
        raise InputError(f"p has shape {left.shape} and q {right.shape}; they must be the same")
    return estimate(left, right, check_order(order), check_floor(floor, sharpness), width)[0]


def estimate(
    p: Floats, q: Floats, order: float, floor: Floor, width: float
) -> tuple[float, float, float]:
    """The divergence D̂, and the variances of √n·D̂ and √m·D̂ through the draws behind p and q, all of shape (k,).

    Everything is in logarithms, so no power overflows.
    """
    seen = p > 0.0  # every integrand has a factor p
    p = p[seen]
    q = q[seen]
    if not len(p):
        return 0.0, 0.0, 0.0
    raised = floor.raised(q)
    logs = np.log(p) + (order - 1.0) * (np.log(p) - np.log(raised))
    total = float(np.logaddexp.reduce(logs))
    divergence = (total + math.log(width)) / (order - 1.0)
    # Weights p^λ·q_τ^(1−λ)/I, which sum to 1: moments divided by I cannot overflow.
    weight = np.exp(logs - total)
    left = _variance(weight / p, p, width) * order**2 / (order - 1.0) ** 2
    return divergence, left, _variance(floor.slope(q) * weight / raised, q, width)


def _variance(influence: Floats, density: Floats, width: float) -> float:
    """The variance of the influence (given without its factor 1/width) under the density."""
    share = density * width
    values = influence / width
    return max(float(share @ values**2) - float(share @ values) ** 2, 0.0)


def _density(name: str, values: object) -> Floats:
    density = np.asarray(values, dtype=np.float64)
    if density.ndim != 1 or not density.size:
        raise InputError(
            f"{name} has shape {density.shape}; it must be a non-empty row of probabilities or densities"
        )
    if not np.isfinite(density).all() or (density < 0.0).any():
        raise InputError(
            f"{name} has negative or infinite entries; probabilities and densities are finite and ≥ 0"
        )
    return density


# Draws at the level of the floor, n·τ (densities in units of 1/spread): with fewer, the floor is
# below what the samples can resolve, and the bound is too high (measured: randomized response,
# order 7, covers .03 at n·τ = 5).
ENOUGH_AT_FLOOR = 50.0
# n·τ as a product of floats may miss a whole number by rounding.
_ROUNDING = 1.0 - 1e-9


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
    """The lower bound on D_order(left ‖ right); one direction only.

    Args:
        left_outputs: shape (n,) or (n, d): whole numbers, truth values or strings are counted;
            floats that do not repeat get a kernel density on an even grid (d ≤ 2).
        right_outputs: likewise; the sizes may differ.
        order: above 1.
        floor: τ; by default 50/n in units of 1/spread.
        confidence: nominal.
        sharpness: β, 1/τ by default.
        undersmoothing: power to which the bandwidth of a rule is raised.
        kernel: "gaussian", "laplace", "silverman", "epanechnikov", "biweight", or any function K(u)
            of an array that is symmetric and integrates to 1.
        bandwidth: "dpik", the plug-in rule, unless "nrd0" or "nrd" is asked for; a number, or a
            function from the draws of one coordinate to a number, is taken as it is.

    Guarantee: asymptotic.

    Reference: Kutta, Askin, Dunsche, "Lower bounds for Rényi differential privacy in a black-box
        setting", (16).
    """
    smoothing: dict[str, Any] = {
        "undersmoothing": undersmoothing,
        "kernel": kernel,
        "bandwidth": bandwidth,
    }
    return lower_bounds(
        left_outputs, right_outputs, [order], floor, confidence, sharpness=sharpness, **smoothing
    )[0]


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
    """`lower_bound` for several orders from one sample; each holds by itself, not all at once."""
    checked = [check_order(order) for order in orders]
    if floor is not None:
        check_floor(floor, sharpness)
    failure = 1.0 - check_confidence(confidence)
    densities = read_densities(
        left_outputs, right_outputs, Smoothing(undersmoothing, kernel, bandwidth)
    )
    return tuple(bound_from(densities, order, failure, floor, sharpness) for order in checked)


def lower_bound_of_pairs(
    samples: Sequence[tuple[object, object]],
    order: float,
    floor: float | None = None,
    confidence: float = 0.95,
    *,
    sharpness: float | None = None,
) -> tuple[int, FlooredBound]:
    """The largest bound over several pairs of inputs, each with its own independent samples.

    The largest of N bounds of level c holds with probability c^N only, so each is taken at
    confidence^(1/N).

    Args:
        samples: (left outputs, right outputs) of each pair.

    Returns:
        The number of the pair, and its bound.
    """
    if not samples:
        raise InputError("samples is empty: give at least one pair of samples")
    each = check_confidence(confidence) ** (1.0 / len(samples))
    bounds = [
        lower_bound(left, right, order, floor, each, sharpness=sharpness) for left, right in samples
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
    """The bound from estimated densities; without a given floor, with the lowest that enough draws reach."""
    draws = min(densities.sizes) * densities.unit
    chosen = check_floor(ENOUGH_AT_FLOOR / draws if floor is None else floor, sharpness)
    found, left, right = estimate(densities.p, densities.q, order, chosen, densities.width)
    n, m = densities.sizes
    variance = left + right * n / m
    lower = found - float(-ndtri(failure_probability)) * math.sqrt(variance / n)
    doubts: tuple[str, ...] = ()
    if draws * chosen.level < ENOUGH_AT_FLOOR * _ROUNDING:
        doubts = (
            f"floor={chosen.level:g} leaves n·floor = {draws * chosen.level:.3g} draws at its level, fewer than "
            f"{ENOUGH_AT_FLOOR:g}: the bound may well be above the truth; raise the floor or draw more",
        )
    return FlooredBound(lower, found, variance, order, chosen.level, chosen.sharpness, doubts)
