"""What a Rényi divergence says about pure privacy.

Among all pairs of distributions within ε of each other, randomised response has the largest
divergence of every order α:

    D_α ≤ ln[(sinh αε − sinh (α−1)ε)/sinh ε]/(α − 1) = [ln cosh (α − ½)ε − ln cosh ½ε]/(α − 1).

This is the "tight" threshold. The "published" one is min(ε, 2αε²), which is never smaller.

Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium: a large scale library for auditing
differential privacy" (2023), Lemma 4.6, for the published threshold.
"""

import math

from epsilometer.bisection import rejected_end
from epsilometer.claims.renyi import check_order

# The names of the two thresholds.
THRESHOLDS = ("tight", "published")
# Halvings of the bracket of ε: 2^-60 of it is below the spacing of floats.
_HALVINGS = 60
# The greatest value of ε − ε·tanh(ε/2) is 0.557.
_GREATEST_GAP_AT_ORDER_ONE = 0.56
# Added to the upper end of the bracket, for rounding.
_BRACKET_ROUNDING = 1e-9


def greatest_divergence(epsilon: float, order: float, threshold: str = "tight") -> float:
    """Returns the greatest divergence of an order that ε-privacy allows.

    Args:
        epsilon: ε.
        order: of the Rényi divergence.
        threshold: one of `THRESHOLDS`.
    """
    check_order(order)
    if threshold == "published":
        return min(epsilon, 2.0 * order * epsilon * epsilon)
    step = (order - 1.0) * epsilon
    if step > 1.0:
        return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)) / (order - 1.0)
    # The difference of the two logarithms as the logarithm of 1 plus a small number: next to order
    # 1 the difference would cancel.
    growth = 2.0 * math.sinh(0.5 * step) ** 2 + math.tanh(0.5 * epsilon) * math.sinh(step)
    return math.log1p(growth) / (order - 1.0)


def _log_cosh(value: float) -> float:
    """ln cosh of a value of at least 0, to the last digits for small and for large values."""
    if value < 1.0:
        return math.log1p(2.0 * math.sinh(0.5 * value) ** 2)
    return value + math.log1p(math.exp(-2.0 * value)) - math.log(2.0)


def least_epsilon(divergence: float, order: float, threshold: str = "tight") -> float:
    """Returns the least ε of any pure privacy that allows a divergence of an order.

    Args:
        divergence: a Rényi divergence.
        order: its order.
        threshold: one of `THRESHOLDS`.

    Guarantee: if the divergence is a lower bound, so is the result.
    """
    if divergence <= 0.0:
        return 0.0
    if threshold == "published":
        return max(divergence, math.sqrt(divergence / (2.0 * order)))
    # The threshold grows with ε and with the order. It is below ε, so that the lower end of the
    # bracket, ε = divergence, does not allow the divergence. It is at least ε − ln 2/(order − 1),
    # and at least its limit at order 1, ε·tanh(ε/2) > ε − 0.56: that gives the upper end.
    greatest_gap = min(math.log(2.0) / (order - 1.0), _GREATEST_GAP_AT_ORDER_ONE)
    high = divergence + greatest_gap + _BRACKET_ROUNDING
    return rejected_end(
        lambda epsilon: greatest_divergence(epsilon, order) < divergence,
        rejected=divergence,
        kept=high,
        halvings=_HALVINGS,
    )
