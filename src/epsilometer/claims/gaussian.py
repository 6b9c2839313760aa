"""Gaussian differential privacy: no easier to tell apart than N(0, 1) from N(μ, 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.claims.base import Claim, Real, check_at_least


@dataclass(frozen=True, slots=True)
class GaussianDP(Claim):
    """μ-Gaussian differential privacy."""

    mu: float
    notion = "gaussian"
    parameter = "mu"
    symbol = "μ"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_at_least("mu", self.mu, 0.0))

    def max_power(self, q: Real) -> Real:
        """Φ(Φ⁻¹(q) + μ)."""
        power = np.asarray(ndtr(ndtri(q) + self.mu), dtype=np.float64)
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p: float, q: float) -> float:
        """Φ⁻¹(p) − Φ⁻¹(q), 0 when p ≤ q."""
        if p <= q:
            return 0.0
        if q <= 0.0 or p >= 1.0:
            return math.inf
        return float(ndtri(p) - ndtri(q))

    def with_value(self, value: float) -> Self:
        """Another μ."""
        return type(self)(value)

    def fixed(self) -> dict[str, float]:
        """Nothing besides μ."""
        return {}
