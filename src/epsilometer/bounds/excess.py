"""What a certified excess of power at one ε says: δ at that ε, or ε at a given δ.

A lower bound L on the greatest P(E) − e^ε·Q(E) is a bound on δ at that ε. If L is above a claimed
δ, then some event has p = P(E) and q = Q(E) ≤ (p − L)/e^ε. Every ε' with which δ is kept in both
directions is at least the logarithm of (p − δ)/q and of (1 − q − δ)/(1 − p). The first falls in p,
the second grows; they meet at p + q = 1, where both are (e^ε·(1 − δ) + L − δ)/(1 − L). So ε' is at
least the logarithm of that, whatever p is.
"""

import math

from epsilometer.claims import ApproxDeltaDP, ApproxDP, PureDP

# An excess is below 1 − e^−36 unless rounding has made it 1. The cap keeps what it says about ε
# finite.
_MAX_EXCESS = 1.0 - 2.0**-52


def value_of_excess(claim: PureDP | ApproxDP, epsilon: float, excess_lower: float) -> float:
    """Returns the value of the claim's parameter that a certified excess at one ε refutes.

    Args:
        claim: gives the notion and its fixed parameters; the value that it claims plays no role.
        epsilon: the ε at which the excess is known.
        excess_lower: lower bound on the greatest P(E) − e^epsilon·Q(E).

    Returns:
        0 when the excess refutes nothing.

    Guarantee: if `excess_lower` is a lower bound, so is the result. Exact.
    """
    if isinstance(claim, ApproxDeltaDP):
        # The excess falls with ε: known at a larger ε, it is a bound at the claimed one as well.
        return max(excess_lower, 0.0) if epsilon >= claim.epsilon else 0.0
    if excess_lower <= claim.delta:
        return 0.0
    # The numerator is divided by e^ε, which might overflow, and ε is added afterwards.
    numerator = (1.0 - claim.delta) + (excess_lower - claim.delta) * math.exp(-epsilon)
    denominator = 1.0 - min(excess_lower, _MAX_EXCESS)
    return epsilon + math.log(numerator / denominator)
