"""Exact lower bounds on a Rényi divergence and on a difference of means: one bet on a score of the outputs."""

import math
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError

# Covers the rounding of sums of up to 1e12 logarithms.
ROUNDING = 1e-9
# Halvings of the bracket of the bound: 2^-50 of it is negligible.
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class JointBet:
    """A bet that D_order(P‖Q) is large.

    Attributes:
        order: α.
        scores: shape (cells,), the values of h, shifted so that the mean of e^((α−1)h) under P is
            expected to be 1.
        stake: λ, what is staked on every left draw; between 0 and (α − 1)/α.
    """

    order: float
    scores: Floats
    stake: float

    def __post_init__(self) -> None:
        check_order(self.order)
        if not len(self.scores) or not np.isfinite(self.scores).all():
            raise InputError("scores must be finite, at least one")
        if not 0.0 < self.stake < (self.order - 1.0) / self.order:
            raise InputError(
                f"stake={self.stake!r} must lie strictly between 0 and (order - 1)/order"
            )

    def log_wealth(self, left: Integers, right: Integers, divergence: float) -> float:
        """ln W at a claimed divergence; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), how often P took each value of h.
            right: the same for Q.
            divergence: r.
        """
        n = int(left.sum())
        m = int(right.sum())
        if divergence > self.greatest(n, m):
            return -math.inf
        growth = self.order / (self.order - 1.0)
        gain = left @ np.log1p(self.stake * growth * np.expm1((self.order - 1.0) * self.scores))
        seen = right > 0
        paid = self.stake * n / m * np.expm1(divergence + self.order * self.scores[seen])
        if not (paid < 1.0).all():  # exactly at the limit
            return -math.inf
        return float(gain) + float(right[seen] @ np.log1p(-paid))

    def greatest(self, n: int, m: int) -> float:
        """The largest claim at which no draw can make the wealth negative."""
        return math.log1p(m / (n * self.stake)) - self.order * float(self.scores.max())


@dataclass(frozen=True, slots=True)
class MeanBet:
    """A bet that the means differ.

    Attributes:
        lowest: shape (cells,), the least value of f in each cell.
        highest: shape (cells,), the greatest.
        centre: b, between −1 and 1.
        stake: λ, below 1/2.
    """

    lowest: Floats
    highest: Floats
    centre: float
    stake: float

    def __post_init__(self) -> None:
        inside = (self.lowest >= -1.0) & (self.highest <= 1.0) & (self.lowest <= self.highest)
        if not len(self.lowest) or not inside.all():
            raise InputError(
                "the values of a bet's cells must lie between -1 and 1, the lowest below the highest"
            )
        if not -1.0 <= self.centre <= 1.0 or not 0.0 < self.stake < 0.5:
            raise InputError(
                f"centre={self.centre!r} must lie in [-1, 1] and stake={self.stake!r} between 0 and 1/2"
            )

    def log_wealth(self, left: Integers, right: Integers, difference: float) -> float:
        """ln W at a claimed difference; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), counts of the draws of P.
            right: the same for Q.
            difference: c.
        """
        n = int(left.sum())
        m = int(right.sum())
        gains = 1.0 + self.stake * (self.lowest - self.centre - difference)
        losses = 1.0 - self.stake * n / m * (self.highest - self.centre)
        # No factor may be negative for any f(X) ≥ −1 and f(Y) ≤ 1.
        if (
            self.stake * (1.0 + self.centre + difference) >= 1.0
            or self.stake * n / m * (1.0 - self.centre) >= 1.0
        ):
            return -math.inf
        return float(left @ np.log(gains)) + float(right @ np.log(losses))

    def greatest(self, n: int, m: int) -> float:
        """No two means between −1 and 1 differ by more."""
        return 2.0


def bet_lower(
    bet: JointBet | MeanBet, left: Integers, right: Integers, failure_probability: float
) -> float:
    """The certified lower bound on what the bet is about, at least 0: D_order(P‖Q), or E f(X) − E f(Y).

    Guarantee: above the truth with at most `failure_probability`, if the bet was fixed before the
        draws. Exact.

    Args:
        bet: its score and stake; or its function, centre and stake.
        left: shape (cells,), counts of the draws of P.
        right: counts of the draws of Q.
        failure_probability: what may be spent.
    """
    check_failure_probability(failure_probability)
    if not left.sum() or not right.sum():
        return 0.0
    needed = -math.log(failure_probability) + ROUNDING
    high = bet.greatest(int(left.sum()), int(right.sum()))
    if high <= 0.0 or not bet.log_wealth(left, right, 0.0) >= needed:
        return 0.0
    if bet.log_wealth(left, right, high) >= needed:
        return high
    return rejected_end(
        lambda claimed: bet.log_wealth(left, right, claimed) >= needed, 0.0, high, _HALVINGS
    )


def bet_p_value(bet: JointBet | MeanBet, left: Integers, right: Integers, claimed: float) -> float:
    """One over the wealth against the claimed value, at most 1: a p-value by Markov's inequality.

    Guarantee: at most t with probability at most t, for every t, if the claim holds and the bet was
    fixed before the draws. Exact.
    """
    if not left.sum() or not right.sum():
        return 1.0
    log_wealth = bet.log_wealth(left, right, claimed) - ROUNDING
    return math.exp(-min(log_wealth, _MOST_LOG_WEALTH)) if log_wealth > 0.0 else 1.0


# Its inverse is still a float above 0.
_MOST_LOG_WEALTH = 660.0


THRESHOLDS = ("tight", "published")
# 2^-60 of the bracket is below the spacing of floats.
_EPSILON_HALVINGS = 60


def greatest_divergence(epsilon: float, order: float, threshold: str = "tight") -> float:
    """The greatest divergence of this order that ε-privacy allows, by the given threshold."""
    check_order(order)
    if threshold == "published":
        return min(epsilon, 2.0 * order * epsilon * epsilon)
    step = (order - 1.0) * epsilon
    if step > 1.0:
        return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)) / (order - 1.0)
    # The difference of the two logarithms as one of them: next to order 1 it would cancel.
    grown = 2.0 * math.sinh(0.5 * step) ** 2 + math.tanh(0.5 * epsilon) * math.sinh(step)
    return math.log1p(grown) / (order - 1.0)


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
    # The threshold grows with ε and with the order. It is at least ε − ln 2/(order − 1), and at
    # least ε·tanh(ε/2) > ε − 0.56, its limit at order 1. The lower end of the bracket is always
    # refuted.
    high = divergence + min(math.log(2.0) / (order - 1.0), 0.56) + 1e-9
    return rejected_end(
        lambda e: greatest_divergence(e, order) < divergence, divergence, high, _EPSILON_HALVINGS
    )
