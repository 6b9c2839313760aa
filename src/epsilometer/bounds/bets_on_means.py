"""Exact lower bounds on a Rényi divergence and on a difference of means: one bet on a score.

Let P be the distribution of the left outputs X and Q that of the right outputs Y, with n and m
independent draws. Both bets have the same form. A claim implies a linear inequality u ≤ v between
an expectation u under P and an expectation v under Q. A gambler who bets against it stakes λ on
every left draw and λ·n/m on every right draw. If no factor of the wealth W can be negative, then
under the claim

    E W = (1 + λ·u)^n · (1 − λ·(n/m)·v)^m ≤ e^(n·λ·u) · e^(−n·λ·v) ≤ 1,

by independence of all draws and 1 + x ≤ e^x. By Markov's inequality W ≥ 1/f has probability at most
f: W is an e-value, and 1/W a p-value. W falls in the claimed value, so that the rejected values are
all values up to the bound, and the bound is above the truth only if W at the truth is at least 1/f.
Score and stake may depend on anything but these draws, and not on the claimed value. Values for
which a factor could become negative are never rejected.

**The divergence** (`JointBet`). Let α > 1 be the order, g = α/(α − 1), and h any bounded function
of an output. With A = E e^((α−1)·h(X)) and B = E e^(α·h(Y)), Hölder's inequality gives

    D_α(P‖Q) ≥ g·ln A − ln B,  with equality for h = ln dP/dQ.

So a claim D_α(P‖Q) ≤ r implies A^g ≤ e^r·B. The power is convex in A and lies above its tangent at
1, hence the claim implies the linear inequality u ≤ v with u = g·(A − 1) and v = e^r·B − 1. (h is
shifted on training draws so that A is near 1: there the tangent loses nothing.) The wealth is

    W(r) = ∏ (1 + λ·g·(e^((α−1)·h(X)) − 1)) · ∏ (1 − λ·(n/m)·(e^r·e^(α·h(Y)) − 1)).

**The difference of means** (`MeanBet`). Let f be a function of an output with values in [−1, 1] and
b any number. A claim E f(X) − E f(Y) ≤ c is u ≤ v with u = E f(X) − b − c and v = E f(Y) − b. The
wealth is

    W(c) = ∏ (1 + λ·(f(X) − b − c)) · ∏ (1 − λ·(n/m)·(f(Y) − b)).

Draws are counted in cells of f: a left draw is taken at the lowest, a right draw at the highest
value of its cell. That makes W smaller, never larger.

When a score takes finitely many values, W needs only how often each was taken by X and by Y, so
that tallies of chunks add up.

Guarantee: exact for any sample sizes, whatever the score and the stake are.
"""

import math
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError

__all__ = [
    "ROUNDING",
    "JointBet",
    "MeanBet",
    "bet_lower",
    "bet_p_value",
]

# Subtracted from a log-wealth: covers the rounding of sums of up to 1e12 logarithms.
ROUNDING = 1e-9
# Halvings of the bracket of the bound: 2^-50 of it is negligible.
_HALVINGS = 50
# Larger log-wealths are treated as this one: the inverse of its exponential is a float above 0.
_MAX_LOG_WEALTH = 660.0
# A bet on means with a stake below this cannot lose everything: values differ by at most 2.
_LARGEST_STAKE = 0.5


@dataclass(frozen=True, slots=True)
class JointBet:
    """A bet that D_order(P‖Q) is large.

    Attributes:
        order: α.
        scores: shape (cells,), the values of h, shifted so that the mean of e^((α−1)h) under P is
            expected to be 1.
        stake: λ, the stake on every left draw; between 0 and (α − 1)/α, so that no left factor can
            be negative.
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
        """Returns ln W at a claimed divergence; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), how often X took each value of h.
            right: shape (cells,), how often Y did.
            divergence: r.
        """
        n = int(left.sum())
        m = int(right.sum())
        if divergence > self.greatest(n, m):
            return -math.inf
        g = self.order / (self.order - 1.0)
        # One factor of W minus 1, for each value of h.
        left_gain = self.stake * g * np.expm1((self.order - 1.0) * self.scores)
        left_log_wealth = left @ np.log1p(left_gain)
        # Values that Y never took have no factor, and theirs might be 0.
        was_drawn = right > 0
        right_loss = self.stake * n / m * np.expm1(divergence + self.order * self.scores[was_drawn])
        # Rounding may make a factor 0 exactly at the greatest claim.
        if not (right_loss < 1.0).all():
            return -math.inf
        right_log_wealth = right[was_drawn] @ np.log1p(-right_loss)
        return float(left_log_wealth) + float(right_log_wealth)

    def greatest(self, n: int, m: int) -> float:
        """Returns the largest claim at which no right draw can make the wealth negative.

        Args:
            n: left draws.
            m: right draws.
        """
        return math.log1p(m / (n * self.stake)) - self.order * float(self.scores.max())


@dataclass(frozen=True, slots=True)
class MeanBet:
    """A bet that the means of a function f differ.

    Attributes:
        lowest: shape (cells,), the least value of f in each cell.
        highest: shape (cells,), the greatest value of f in each cell.
        centre: b, between −1 and 1.
        stake: λ, below ½.
    """

    lowest: Floats
    highest: Floats
    centre: float
    stake: float

    def __post_init__(self) -> None:
        is_valid = (self.lowest >= -1.0) & (self.highest <= 1.0) & (self.lowest <= self.highest)
        if not len(self.lowest) or not is_valid.all():
            raise InputError(
                "the values of a bet's cells must lie between -1 and 1, "
                "the lowest below the highest"
            )
        if not -1.0 <= self.centre <= 1.0 or not 0.0 < self.stake < _LARGEST_STAKE:
            raise InputError(
                f"centre={self.centre!r} must lie in [-1, 1] "
                f"and stake={self.stake!r} between 0 and 1/2"
            )

    def log_wealth(self, left: Integers, right: Integers, difference: float) -> float:
        """Returns ln W at a claimed difference; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), counts of the left draws.
            right: shape (cells,), counts of the right draws.
            difference: c.
        """
        n = int(left.sum())
        m = int(right.sum())
        # The factors of W, for each cell, at the end of the cell that makes them smallest.
        left_factor = 1.0 + self.stake * (self.lowest - self.centre - difference)
        right_factor = 1.0 - self.stake * n / m * (self.highest - self.centre)
        # No factor may be negative for any f(X) ≥ −1 and f(Y) ≤ 1.
        can_lose_left = self.stake * (1.0 + self.centre + difference) >= 1.0
        can_lose_right = self.stake * n / m * (1.0 - self.centre) >= 1.0
        if can_lose_left or can_lose_right:
            return -math.inf
        return float(left @ np.log(left_factor)) + float(right @ np.log(right_factor))

    def greatest(self, n: int, m: int) -> float:
        """Returns the largest difference of two means between −1 and 1, for any n and m."""
        return 2.0


def bet_lower(
    bet: JointBet | MeanBet, left: Integers, right: Integers, failure_probability: float
) -> float:
    """Returns the certified lower bound on D_order(P‖Q), or on E f(X) − E f(Y), at least 0.

    Args:
        bet: the score and the stake, fixed before the draws.
        left: shape (cells,), counts of the left draws.
        right: shape (cells,), counts of the right draws.
        failure_probability: what is spent on the bound.

    Guarantee: above the truth with at most `failure_probability`, if the bet was fixed before the
        draws. Exact.
    """
    check_failure_probability(failure_probability)
    if not left.sum() or not right.sum():
        return 0.0
    needed = -math.log(failure_probability) + ROUNDING

    def rejects(claimed: float) -> bool:
        return bet.log_wealth(left, right, claimed) >= needed

    greatest = bet.greatest(int(left.sum()), int(right.sum()))
    if greatest <= 0.0 or not rejects(0.0):
        return 0.0
    if rejects(greatest):
        return greatest
    return rejected_end(rejects, rejected=0.0, kept=greatest, halvings=_HALVINGS)


def bet_p_value(bet: JointBet | MeanBet, left: Integers, right: Integers, claimed: float) -> float:
    """Returns one over the wealth against the claimed value, at most 1.

    Guarantee: at most t with probability at most t, for every t, if the claim holds and the bet was
        fixed before the draws (Markov's inequality). Exact.
    """
    if not left.sum() or not right.sum():
        return 1.0
    log_wealth = bet.log_wealth(left, right, claimed) - ROUNDING
    # Negated: a log-wealth that is not a number is no evidence.
    if not log_wealth > 0.0:
        return 1.0
    return math.exp(-min(log_wealth, _MAX_LOG_WEALTH))
