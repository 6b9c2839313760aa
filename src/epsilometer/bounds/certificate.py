"""From two counts to a certified value of a claim's own parameter."""

from __future__ import annotations

from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.ratio import delta_lower, epsilon_lower
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP


def certified_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """The largest value of the claim's own parameter that the counts of one event refute (0 if none).

    Args:
        claim: gives the notion and its fixed parameters; its own value plays no role.
        left: counts of the event under P.
        right: counts of the event under Q.
        failure_probability: what may be spent.
        left_share: for notions without a joint test, the part of it that bounds P(E); must not depend on these counts.

    Guarantee: above the mechanism's true value with at most `failure_probability`, if the event was fixed before the
    counts were drawn. Exact.
    """
    if isinstance(claim, ApproxDeltaDP):
        return delta_lower(left, right, failure_probability, claim.epsilon)
    if isinstance(claim, PureDP | ApproxDP):
        return epsilon_lower(left, right, failure_probability, claim.delta if isinstance(claim, ApproxDP) else 0.0)
    return two_bounds_value(claim, left, right, failure_probability, left_share)


def two_bounds_value(
    claim: Claim, left: Counts, right: Counts, failure_probability: float, left_share: float = 0.5
) -> float:
    """The same for any claim, from a lower bound on P(E) and an upper bound on Q(E)."""
    p_lower = lower(left, failure_probability * left_share)
    q_upper = upper(right, failure_probability * (1.0 - left_share))
    return claim.least_value(p_lower, q_upper) if p_lower > q_upper else 0.0
