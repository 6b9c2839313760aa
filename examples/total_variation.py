"""A claim of your own: for neighbours, the output distributions differ by at most τ in total variation.

A claim is one curve, the greatest P(E) that it allows when Q(E) = q, and the inverse of that curve. Tests, bounds,
reports and files follow from these two. A `notion` of its own registers it: whoever imports this can read its results.
"""

from dataclasses import dataclass

import numpy as np

from epsilometer.claims import Claim
from epsilometer.claims.base import check_at_least


@dataclass(frozen=True)
class TotalVariation(Claim):
    """P(E) ≤ Q(E) + τ for every event E."""

    tau: float
    notion = "total-variation"
    parameter = "tau"
    symbol = "τ"

    def __post_init__(self):
        check_at_least("tau", self.tau, 0.0)

    def max_power(self, q):  # takes a number or an array
        power = np.minimum(np.asarray(q, dtype=float) + self.tau, 1.0)
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p, q):
        return max(0.0, float(p - q))
