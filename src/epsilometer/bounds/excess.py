"""What a certified excess at one ε says: δ at that ε, or ε at a given δ.

A bound L on the greatest P(E) − e^ε·Q(E) is a bound on δ at that ε. If L is above a claimed δ, then some event has
p = P(E) and q = Q(E) ≤ (p − L)/e^ε. Every ε' with which δ is kept in both directions is at least the logarithm of
(p − δ)/q and of (1 − q − δ)/(1 − p). The first falls in p, the second grows; they meet at p + q = 1, where both are
(e^ε·(1 − δ) + L − δ)/(1 − L). So ε' is at least the logarithm of that, whatever p is.
"""

from __future__ import annotations

import math

from epsilometer.claims import ApproxDeltaDP, ApproxDP, PureDP

# An excess is below 1 − e^−36 unless rounding made it 1: what it says about ε stays finite.
_MOST = 1.0 - 2.0**-52


def value_of_excess(claim: PureDP | ApproxDP, epsilon: float, excess_lower: float) -> float:
    """A certified excess at one ε in the claim's own parameter; 0 when it proves nothing.

    Args:
        claim: gives the notion and its fixed parameters; its own value plays no role.
        epsilon: at which the excess is known.
        excess_lower: lower bound on the greatest P(E) − e^epsilon·Q(E).
    """
    if isinstance(claim, ApproxDeltaDP):
        return max(excess_lower, 0.0) if epsilon >= claim.epsilon else 0.0
    delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    if excess_lower <= delta:
        return 0.0
    above = (1.0 - delta) + (excess_lower - delta) * math.exp(-epsilon)
    return epsilon + math.log(above / (1.0 - min(excess_lower, _MOST)))
