"""The exact law of Gaussian noise about a centre that is 1 with some probability, against the centre 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsilometer.zoo.laws import PairLaw
from epsilometer.zoo.numerics import FloatArray, Panels

# Beyond 40 standard deviations a Gaussian weighs less than any float.
_REACH = 40.0


@dataclass(frozen=True)
class SubsampledGaussianLaw(PairLaw):
    """(1 − rate)·N(0, sigma²) + rate·N(1, sigma²) on the left, N(0, sigma²) on the right.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian mechanism".
    """

    sigma: float
    rate: float

    def pure_epsilon(self) -> float:
        """Infinite: the ratio of the densities is unbounded."""
        return math.inf

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`: the ratio is monotone, so the best events are half-lines."""
        return 0.0 if math.isinf(epsilon) else max(self._above(epsilon), self._below(epsilon), 0.0)

    def renyi(self, order: float) -> float:
        """See `PairLaw`; by quadrature, exact to rounding."""
        if math.isinf(order):
            return math.inf
        panels = Panels.between((0.0, max(1.0, order)), self.sigma, _REACH * self.sigma)
        x, weights = panels.nodes.ravel(), panels.weights.ravel()
        log_right = -0.5 * (x / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        ratio = self._log_ratio(x)
        if order == 1.0:
            right = np.exp(log_right) * weights
            return float(max((right * np.exp(ratio)) @ ratio, right @ -ratio))
        moments = [order * ratio, (1.0 - order) * ratio]
        logs = [float(np.logaddexp.reduce(log_right + np.log(weights) + moment)) for moment in moments]
        return max(*logs, 0.0) / (order - 1.0)

    def mu(self) -> float:
        """That of no subsampling: far out in the tail the included person is all that counts."""
        return 1.0 / self.sigma

    def rho(self) -> float:
        """That of no subsampling: D_order/order tends to it as the order grows, and never exceeds it."""
        return 0.5 / self.sigma**2

    def _log_ratio(self, x: FloatArray) -> FloatArray:
        shifted = math.log(self.rate) + (x - 0.5) / self.sigma**2
        if self.rate == 1.0:
            return shifted
        return np.logaddexp(math.log1p(-self.rate), shifted)

    def _above(self, epsilon: float) -> float:
        """P(x > t) − e^ε·Q(x > t) where the ratio passes e^ε."""
        excess = math.expm1(epsilon) + self.rate
        end = 0.5 + self.sigma**2 * math.log(excess / self.rate)
        return self.rate * _tail((end - 1.0) / self.sigma) - excess * _tail(end / self.sigma)

    def _below(self, epsilon: float) -> float:
        """Q(x < t) − e^ε·P(x < t) where the inverse ratio passes e^ε."""
        excess = math.expm1(-epsilon) + self.rate
        if excess <= 0.0:
            return 0.0
        end = 0.5 + self.sigma**2 * math.log(excess / self.rate)
        grow = math.exp(epsilon)
        inside = _tail(-end / self.sigma)
        return inside - grow * ((1 - self.rate) * inside + self.rate * _tail((1.0 - end) / self.sigma))


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2
