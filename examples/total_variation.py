"""A claim of your own: the output distributions of neighbours differ by at most τ in total variation.

A claim is one curve, the greatest P(E) that it allows when Q(E) = q, and the inverse of that curve.
Tests, bounds, reports and files follow from these two. A `notion` of its own registers it: whoever
imports this can read its results.
"""

from dataclasses import dataclass

import numpy as np

from epsilometer.claims import Claim, Real, check_at_least


@dataclass(frozen=True)
class TotalVariation(Claim):
    """P(E) ≤ Q(E) + τ for every event E."""

    tau: float
    notion = "total-variation"
    parameter = "tau"
    symbol = "τ"

    def __post_init__(self) -> None:
        check_at_least("tau", self.tau, 0.0)

    def max_power(self, q: Real) -> Real:  # takes a number or an array
        power = np.minimum(q + self.tau, 1.0)
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p: float, q: float) -> float:
        return max(0.0, float(p - q))
