"""The Rényi divergence of two densities with a soft floor under the second, and its spread.

With order λ, floor τ and sharpness β: q_τ = max(q, τ) + log1p(e^(−β|q − τ|))/β, which is the published
ln(e^(βq) + e^(βτ))/β without its overflow; π(q) = 1/(1 + e^(−β(q − τ))) is its slope; I = ∫ p^λ·q_τ^(1−λ).

Reference: Kutta, Askin, Dunsche, "Lower bounds for Rényi differential privacy in a black-box setting", (14)–(18). The
denominator of the variance is squared, which the paper omits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from epsilometer.claims.base import as_number
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError

Floats = NDArray[np.float64]


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
        return np.maximum(q, self.level) + np.log1p(np.exp(-self.sharpness * np.abs(q - self.level))) / self.sharpness

    def slope(self, q: Floats) -> Floats:
        """The derivative of `raised`, between 0 and 1."""
        return np.asarray(expit(self.sharpness * (q - self.level)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A plug-in estimate.

    Attributes:
        divergence: D̂.
        left_variance: of √n·D̂ through the draws behind p.
        right_variance: of √m·D̂ through the draws behind q.
    """

    divergence: float
    left_variance: float
    right_variance: float


def check_floor(floor: float, sharpness: float | None = None) -> Floor:
    """Both positive and finite; the sharpness is 1/floor unless given."""
    level = as_number("floor", floor)
    if not 0.0 < level < math.inf:
        raise InputError(f"floor={floor!r} makes no sense: it must be a finite number above 0, e.g. 1e-5")
    if sharpness is None:
        return Floor(level, 1.0 / level)
    beta = as_number("sharpness", sharpness)
    if not 0.0 < beta < math.inf:
        raise InputError(f"sharpness={sharpness!r} makes no sense: it must be a finite number above 0, e.g. 1/floor")
    return Floor(level, beta)


def floored_divergence(
    p: object, q: object, order: float, floor: float = 1e-5, sharpness: float | None = None, width: float = 1.0
) -> float:
    """D_order of p from q with a soft floor under q: never above the true divergence of the two, up to the softness.

    Args:
        p: shape (k,), probabilities of k outputs, or densities on an even grid.
        q: the same for the other law.
        order: above 1.
        floor: τ.
        sharpness: β, 1/floor unless given.
        width: 1 for probabilities, the distance (or area) between grid points for densities.
    """
    left, right = _density("p", p), _density("q", q)
    if left.shape != right.shape:
        raise InputError(f"p has shape {left.shape} and q {right.shape}; they must be the same")
    return estimate(left, right, check_order(order), check_floor(floor, sharpness), width).divergence


def estimate(p: Floats, q: Floats, order: float, floor: Floor, width: float) -> Estimate:
    """The divergence and its spread; all shapes (k,). Everything in logarithms, so no power overflows."""
    seen = p > 0.0  # every integrand has a factor p
    p, q = p[seen], q[seen]
    if not len(p):
        return Estimate(0.0, 0.0, 0.0)
    raised = floor.raised(q)
    ratio = np.log(p) - np.log(raised)
    logs = np.log(p) + (order - 1.0) * ratio
    top = float(logs.max())
    integral = float(np.exp(logs - top).sum())
    divergence = (top + math.log(integral * width)) / (order - 1.0)
    # Weights p^λ·q_τ^(1−λ)/I, which sum to 1: moments divided by I cannot overflow.
    weight = np.exp(logs - top) / integral
    slope = floor.slope(q)
    left = _variance(weight / p, p, width) * order**2
    right = _variance(slope * weight / raised, q, width) * (order - 1.0) ** 2
    scale = (order - 1.0) ** 2
    return Estimate(divergence, left / scale, right / scale)


def _variance(influence: Floats, density: Floats, width: float) -> float:
    """Of the influence (given without its factor 1/width) under the density."""
    share = density * width
    values = influence / width
    return max(float(share @ values**2) - float(share @ values) ** 2, 0.0)


def _density(name: str, values: object) -> Floats:
    density = np.asarray(values, dtype=np.float64)
    if density.ndim != 1 or not density.size:
        raise InputError(f"{name} has shape {density.shape}; it must be a non-empty row of probabilities or densities")
    if not np.isfinite(density).all() or (density < 0.0).any():
        raise InputError(f"{name} has negative or infinite entries; probabilities and densities are finite and ≥ 0")
    return density
