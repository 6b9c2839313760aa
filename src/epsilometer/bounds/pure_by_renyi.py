"""What a Rényi divergence says about pure privacy.

Among all pairs of laws within ε of each other, randomized response has the largest divergence of every order α:

    D_α ≤ ln[(sinh αε − sinh (α−1)ε)/sinh ε]/(α − 1) = [ln cosh (α − ½)ε − ln cosh ½ε]/(α − 1).

The published threshold is min(ε, 2αε²), which is never smaller (DP-Auditorium, Lemma 4.6).
"""

from __future__ import annotations

import math

from epsilometer.claims.renyi import check_order

THRESHOLDS = ("tight", "published")
_HALVINGS = 60


def greatest_divergence(epsilon: float, order: float, threshold: str = "tight") -> float:
    """The greatest divergence of this order that ε-privacy allows, by the given threshold."""
    check_order(order)
    if threshold == "published":
        return min(epsilon, 2.0 * order * epsilon * epsilon)
    return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)) / (order - 1.0)


def _log_cosh(value: float) -> float:
    """Exact to the last digits for small and for large values."""
    if value < 1.0:
        return math.log1p(2.0 * math.sinh(0.5 * value) ** 2)
    return value + math.log1p(math.exp(-2.0 * value)) - math.log(2.0)


def least_epsilon(divergence: float, order: float, threshold: str = "tight") -> float:
    """The least ε of any pure privacy that allows this divergence of this order.

    Guarantee: if the divergence is a lower bound, so is the answer.
    """
    if divergence <= 0.0:
        return 0.0
    if threshold == "published":
        return max(divergence, math.sqrt(divergence / (2.0 * order)))
    # The threshold grows with ε and is at least ε − ln 2/(order − 1); the lower end of the bracket is always refuted.
    low, high = divergence, divergence + math.log(2.0) / (order - 1.0) + 1e-9
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if greatest_divergence(middle, order) < divergence:
            low = middle
        else:
            high = middle
    return low
