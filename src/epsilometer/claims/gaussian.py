"""Gaussian differential privacy: no easier to distinguish than N(0, 1) from N(μ, 1)."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.claims.base import Claim, Real, check_at_least, check_whole
from epsilometer.claims.pure import ApproxDP
from epsilometer.errors import InputError

# Halvings of a bracket; 2^-80 of any bracket used here is below the spacing of floats.
_HALVINGS = 80


@dataclass(frozen=True, slots=True)
class GaussianDP(Claim):
    """μ-Gaussian differential privacy.

    Attributes:
        mu: how far apart the two normal distributions are.
        at_delta: the user's δ, if it was calibrated for (ε, δ); it changes no bound.

    Example:
        >>> em.GaussianDP(1.0).epsilon(delta=1e-5)
        4.37...
    """

    mu: float
    at_delta: float | None = None
    notion = "gaussian"
    parameter = "mu"
    symbol = "μ"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_at_least("mu", self.mu, 0.0))
        if self.at_delta is not None and not 0.0 < self.at_delta < 1.0:
            raise InputError(f"at_delta={self.at_delta!r} must lie strictly between 0 and 1")

    @classmethod
    def from_approx(cls, epsilon: float, delta: float) -> Self:
        """The claim of Gaussian noise that is calibrated to be exactly (ε, δ)-private.

        Reference: Balle and Wang (2018), the analytic calibration; μ = sensitivity/σ.
        """
        target = ApproxDP(epsilon, delta)
        if not target.delta > 0.0:
            raise InputError(f"delta={delta!r}: Gaussian noise needs a δ above 0")
        # δ grows with μ; at μ = 2·(√(2ε) + 40) it is 1 up to rounding.
        most = 2.0 * (math.sqrt(2.0 * target.epsilon) + 40.0)
        mu = rejected_end(
            lambda mu: cls(mu).delta(target.epsilon) <= target.delta, 0.0, most, _HALVINGS
        )
        return cls(mu=mu, at_delta=target.delta)

    def delta(self, epsilon: float) -> float:
        """The exact δ of the curve at this ε."""
        if self.mu == 0.0:
            return 0.0
        half = 0.5 * self.mu
        shift = epsilon / self.mu
        p = float(ndtr(half - shift))
        # e^ε·Q(E), as one exponential: e^ε alone may overflow.
        scaled_q = math.exp(min(epsilon + float(log_ndtr(-half - shift)), 0.0))
        return max(p - scaled_q, 0.0)

    def epsilon(self, delta: float) -> float:
        """The exact ε of the curve at this δ."""
        if not 0.0 < delta < 1.0:
            raise InputError(f"delta={delta!r} must lie strictly between 0 and 1")
        if self.delta(0.0) <= delta:
            return 0.0
        most = 0.5 * self.mu * self.mu + 40.0 * self.mu + 1e-9
        return rejected_end(lambda epsilon: self.delta(epsilon) > delta, 0.0, most, _HALVINGS)

    def scaled(self, distance: int) -> Self:
        """Multiplies μ by the distance."""
        mu = self.mu * check_whole("distance", distance)
        return type(self)(mu=mu, at_delta=self.at_delta)

    def composed(self, times: int) -> Self:
        """Multiplies μ by the square root of the number of runs."""
        mu = self.mu * math.sqrt(check_whole("times", times))
        return type(self)(mu=mu, at_delta=self.at_delta)

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data: μ, and the user's δ if there is one."""
        data: dict[str, Any] = {"notion": self.notion, "mu": self.mu}
        if self.at_delta is not None:
            data["at_delta"] = self.at_delta
        return data

    def max_power(self, q: Real) -> Real:
        """Returns Φ(Φ⁻¹(q) + μ)."""
        power = np.asarray(ndtr(ndtri(q) + self.mu), dtype=np.float64)
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p: float, q: float) -> float:
        """Returns Φ⁻¹(p) − Φ⁻¹(q), or 0 when p ≤ q."""
        return float(self.least_values(np.asarray(p), np.asarray(q)))

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """`least_value` for arrays of shape (n,)."""
        with np.errstate(invalid="ignore"):
            return np.where(p > q, ndtri(p) - ndtri(q), 0.0)
