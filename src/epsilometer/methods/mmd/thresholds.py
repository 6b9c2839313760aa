"""How large the maximum mean discrepancy of a private mechanism can be, and what a larger one proves.

The kernel lies between 0 and 1. Two laws whose total variation is T differ by T·(A − B) with probability laws A and B,
so their discrepancy is at most T·√(E k(a,a') + E k(b,b') − 2·E k(a,b)) ≤ √2·T, and (ε, δ)-privacy allows
T ≤ (e^ε − 1 + 2δ)/(e^ε + 1): the threshold "total-variation". The published one is e^ε − 1 + (1 + e^−ε)·δ
(DP-Auditorium, Theorem 4.13). As no discrepancy exceeds √2, it can refute no ε above ln(1 + √2) ≈ .88.
"""

from __future__ import annotations

import math

from epsilometer.claims import ApproxDeltaDP, ApproxDP, PureDP
from epsilometer.errors import InputError

THRESHOLDS = ("published", "total-variation")
# The greatest discrepancy that a kernel between 0 and 1 can show.
MOST = math.sqrt(2.0)
_HALVINGS = 60
_NAME = "mmd"


def greatest_discrepancy(epsilon: float, delta: float, threshold: str = "published") -> float:
    """The greatest discrepancy that (ε, δ)-privacy allows, by the given threshold."""
    if threshold == "published":
        grow = math.exp(min(epsilon, 700.0))
        return grow - 1.0 + (1.0 + 1.0 / grow) * delta
    shrink = math.exp(-min(epsilon, 700.0))
    return MOST * (1.0 - shrink + 2.0 * delta * shrink) / (1.0 + shrink)


def check_refutable(claim: PureDP | ApproxDP, threshold: str) -> None:
    """Refuses a claim that no discrepancy can refute."""
    delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    allowed = greatest_discrepancy(claim.epsilon, delta, threshold)
    if allowed >= MOST:
        raise InputError(
            f"method='mmd' cannot refute {claim.describe()} by construction: the claim allows a discrepancy of "
            f"{allowed:.3g}, and with a kernel of at most 1 none exceeds √2 (without δ that is ε above ln(1 + √2) ≈ "
            "0.88); use method='auto', or epsilometer.mmd.Options(threshold='total-variation')"
        )


def value_of_discrepancy(claim: PureDP | ApproxDP, discrepancy: float, threshold: str = "published") -> float:
    """A lower bound on the discrepancy in the claim's own parameter; 0 when it proves nothing."""
    if isinstance(claim, ApproxDeltaDP):
        return _least_delta(claim.epsilon, discrepancy, threshold)
    delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    low, high = 0.0, 50.0
    if greatest_discrepancy(low, delta, threshold) >= discrepancy:
        return 0.0
    # Both thresholds grow with ε; what is returned is always refuted.
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if greatest_discrepancy(middle, delta, threshold) < discrepancy:
            low = middle
        else:
            high = middle
    return low


def _least_delta(epsilon: float, discrepancy: float, threshold: str) -> float:
    """Both thresholds are straight lines in δ."""
    start = greatest_discrepancy(epsilon, 0.0, threshold)
    slope = greatest_discrepancy(epsilon, 1.0, threshold) - start
    if discrepancy <= start or slope <= 0.0:
        return 0.0
    return min((discrepancy - start) / slope, 1.0 - 2.0**-52)
