"""Rényi differential privacy and zero-concentrated differential privacy.

What an event with probabilities p and q proves is the divergence of the two coins Bernoulli(p) and
Bernoulli(q): by data processing, no larger than that of the outputs.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from epsilometer.arrays import Floats
from epsilometer.claims.base import Claim, Real, as_number, check_at_least, check_whole
from epsilometer.errors import InputError

# Zero-concentrated privacy bounds every order at once. Any set of orders gives a valid (if weaker)
# test; 160 orders on this grid give the supremum to about a thousandth of its value, from below.
_ZCDP_ORDERS: Floats = 1.0 + np.geomspace(1e-3, 1e4, 160)
# Bisection steps: 2^-60 is below the spacing of floats near 1.
_BISECTION_STEPS = 60


class DivergenceClaim(Claim):
    """A claim about divergences, tested by the two coins Bernoulli(P(E)) and Bernoulli(Q(E))."""

    @abstractmethod
    def least_values(self, p: Floats, q: Floats) -> Floats:
        """`least_value` for arrays of shape (n,): 0 where p ≤ q."""

    def least_value(self, p: float, q: float) -> float:
        """What the two coins p and q certify, in the direction that certifies more."""
        values = self.least_values(np.array([p]), np.array([q]))
        return float(values[0])

    def max_power(self, q: Real) -> Real:
        """The greatest p for which the claim allows the coins p and q in both directions.

        It is found by bisection, and rounded up: a curve that is too high costs power, never
        soundness.
        """
        q_values = np.atleast_1d(np.asarray(q, dtype=np.float64))
        allowed = q_values.copy()
        refused = np.ones_like(q_values)
        allows_certainty = self.least_values(refused, q_values) <= self.value
        for _ in range(_BISECTION_STEPS):
            middle = 0.5 * (allowed + refused)
            # NaN counts as allowed, which is the safe side.
            is_refused = self.least_values(middle, q_values) > self.value
            allowed = np.where(is_refused, allowed, middle)
            refused = np.where(is_refused, middle, refused)
        power = np.where(allows_certainty, 1.0, refused)
        return power if isinstance(q, np.ndarray) else float(power[0])


@dataclass(frozen=True, slots=True)
class RenyiDP(DivergenceClaim):
    """Rényi differential privacy of one order: D_order(P‖Q) ≤ ε and D_order(Q‖P) ≤ ε.

    Example:
        >>> em.RenyiDP(order=2.0, epsilon=0.5)
        RenyiDP(order=2.0, epsilon=0.5)
    """

    order: float
    epsilon: float
    notion = "renyi"
    parameter = "epsilon"
    symbol = "ε"

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "order", check_order(self.order))
        except InputError as error:
            # The order comes first, but many people write ε first.
            arguments = "order=2, epsilon=0.5"
            are_numbers = isinstance(self.order, int | float) and isinstance(
                self.epsilon, int | float
            )
            if are_numbers and self.epsilon > 1.0 and self.order >= 0.0:
                arguments = f"order={self.epsilon!r}, epsilon={self.order!r}"
            raise InputError(f"{error}; name the two numbers: RenyiDP({arguments})") from None
        object.__setattr__(self, "epsilon", check_at_least("epsilon", self.epsilon, 0.0))

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """The larger divergence of the two coins; 0 where p ≤ q."""
        divergence = _both_directions(p, q, np.array(self.order))
        return np.where(p > q, divergence, 0.0)

    def fixed(self) -> dict[str, float]:
        """The parameter that stays as it is: the order."""
        return {"order": self.order}

    def composed(self, times: int) -> "RenyiDP":
        """Multiplies ε by the number of runs, at the same order."""
        runs = check_whole("times", times)
        return RenyiDP(order=self.order, epsilon=self.epsilon * runs)


@dataclass(frozen=True, slots=True)
class ZCDP(DivergenceClaim):
    """Zero-concentrated differential privacy: D_order ≤ ρ·order for every order above 1.

    Example:
        >>> em.ZCDP(0.5).composed(3)
        ZCDP(rho=1.5)
    """

    rho: float
    notion = "zcdp"
    parameter = "rho"
    symbol = "ρ"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_at_least("rho", self.rho, 0.0))

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """The greatest divergence/order of the two coins over a grid of orders; 0 where p ≤ q.

        The grid includes the limit at order 1, the Kullback–Leibler divergence.
        """
        # Shape (n, orders).
        divergences = _both_directions(p[:, None], q[:, None], _ZCDP_ORDERS)
        above_order_one = (divergences / _ZCDP_ORDERS).max(axis=1)
        at_order_one = np.maximum(_kullback_leibler(p, q), _kullback_leibler(q, p))
        greatest = np.maximum(above_order_one, at_order_one)
        return np.where(p > q, greatest, 0.0)

    def scaled(self, distance: int) -> "ZCDP":
        """Multiplies ρ by the square of the distance."""
        steps = check_whole("distance", distance)
        return ZCDP(self.rho * steps**2)

    def composed(self, times: int) -> "ZCDP":
        """Multiplies ρ by the number of runs."""
        runs = check_whole("times", times)
        return ZCDP(self.rho * runs)


def check_order(order: float) -> float:
    """Returns a Rényi order as a float, or raises an InputError unless it is finite and above 1."""
    number = as_number("order", order)
    if not 1.0 < number < np.inf:
        raise InputError(
            f"order={order!r} must be finite and above 1 for a Rényi divergence (PureDP is order ∞)"
        )
    return number


def bernoulli_divergence(p: Floats, q: Floats, order: Floats) -> Floats:
    """D_order of Bernoulli(p) from Bernoulli(q), elementwise.

    It is infinite where p has an outcome that q lacks.

    With s = order − 1 and the log-ratios u = ln(p/q) and v = ln((1 − p)/(1 − q)) it is ln(p·e^(su)
    + (1 − p)·e^(sv))/s. Next to order 1 that sum is next to 1, and dividing the rounding of its
    logarithm by s would leave nothing but noise. Since p + (1 − p) = 1, the same number is ln(1 +
    p·(e^(su) − 1) + (1 − p)·(e^(sv) − 1))/s. Here every term is proportional to s, so that the
    error stays near 1e-16 times the log-ratios; the limit is the Kullback–Leibler divergence.
    """
    s = np.asarray(order, dtype=np.float64) - 1.0
    # Logarithms of outcomes that cannot happen are infinite or undefined, and are replaced.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        heads = np.where(p > 0.0, _log_ratio(p, q), 0.0)
        tails = np.where(p < 1.0, _log_ratio_of_complements(p, q), 0.0)
        largest_exponent = s * np.maximum(np.abs(heads), np.abs(tails))
        is_small = largest_exponent <= 1.0
        # Both forms hold everywhere up to rounding; one that is needed nowhere is not computed.
        by_small_powers = np.zeros(())
        by_largest_power = np.zeros(())
        if is_small.any():
            by_small_powers = _in_powers_less_one(p, heads, tails, s)
        if not is_small.all():
            by_largest_power = _in_largest_power(p, heads, tails, s)
        divergence = np.where(is_small, by_small_powers, by_largest_power)
        # Rounding may leave it slightly below 0.
        return np.maximum(divergence, 0.0)


def _in_powers_less_one(p: Floats, heads: Floats, tails: Floats, s: Floats) -> Floats:
    """Returns ln(1 + p·(e^(s·heads) − 1) + (1 − p)·(e^(s·tails) − 1))/s."""
    of_heads = p * np.expm1(s * heads)
    of_tails = (1.0 - p) * np.expm1(s * tails)
    sum_less_one = of_heads + of_tails
    return np.asarray(np.log1p(sum_less_one) / s, dtype=np.float64)


def _in_largest_power(p: Floats, heads: Floats, tails: Floats, s: Floats) -> Floats:
    """Returns the same, as the larger term plus what the other adds to it.

    The powers themselves, e^(s·heads), may overflow.
    """
    of_heads = np.where(p > 0.0, heads + np.log(p) / s, -np.inf)
    of_tails = np.where(p < 1.0, tails + np.log1p(-p) / s, -np.inf)
    larger = np.maximum(of_heads, of_tails)
    ratio_of_smaller = np.exp(-s * np.abs(of_heads - of_tails))
    added = np.log1p(ratio_of_smaller) / s
    return np.asarray(larger + added, dtype=np.float64)


def _log_ratio(p: Floats, q: Floats) -> Floats:
    """ln(p/q); where the two are close, from their difference, which floats have exactly."""
    is_close = np.abs(p - q) <= 0.5 * q
    from_difference = np.log1p((p - q) / q)
    from_logarithms = np.log(p) - np.log(q)
    return np.where(is_close, from_difference, from_logarithms)


def _log_ratio_of_complements(p: Floats, q: Floats) -> Floats:
    """ln((1 − p)/(1 − q)); where the two are close, from their difference."""
    is_close = np.abs(p - q) <= 0.5 * (1.0 - q)
    from_difference = np.log1p((q - p) / (1.0 - q))
    from_logarithms = np.log1p(-p) - np.log1p(-q)
    return np.where(is_close, from_difference, from_logarithms)


def _both_directions(p: Floats, q: Floats, order: Floats) -> Floats:
    """The larger of the divergences of p from q and of q from p."""
    of_p_from_q = bernoulli_divergence(p, q, order)
    of_q_from_p = bernoulli_divergence(q, p, order)
    return np.maximum(of_p_from_q, of_q_from_p)


def _kullback_leibler(p: Floats, q: Floats) -> Floats:
    """The Kullback–Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    of_heads = rel_entr(p, q)
    of_tails = rel_entr(1.0 - p, 1.0 - q)
    return np.asarray(of_heads + of_tails, dtype=np.float64)
