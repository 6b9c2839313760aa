"""An exact lower bound on the difference of the means of a bounded function under two laws: one bet.

Let f be a function of an output with values in [−1, 1], fixed before the draws. For n draws X of P, m draws Y of Q, a
centre b and a stake λ, the wealth of a gambler who bets against E f(X) − E f(Y) ≤ c is

    W(c) = ∏ (1 + λ·(f(X) − b − c)) · ∏ (1 − λ·(n/m)·(f(Y) − b)).

If no factor can be negative, then under that claim, by independence and 1 + x ≤ e^x,

    E W(c) ≤ e^(n·λ·(E f(X) − b − c)) · e^(−n·λ·(E f(Y) − b)) ≤ 1,

so W(c) ≥ 1/δ has probability at most δ (Markov). W falls in c: the claims that it rejects are all c up to the bound.
Centre and stake may depend on anything but these draws, and not on c.

Draws are counted in cells of f: a left draw is taken at the lowest, a right draw at the highest value of its cell. That
makes W smaller, never larger.

Guarantee: exact, for any sample sizes, whatever f, centre and stake are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.bounds.joint_bet import ROUNDING, greatest_rejected
from epsilometer.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
            raise InputError("the values of a bet's cells must lie between -1 and 1, the lowest below the highest")
        if not -1.0 <= self.centre <= 1.0 or not 0.0 < self.stake < 0.5:
            raise InputError(f"centre={self.centre!r} must lie in [-1, 1] and stake={self.stake!r} between 0 and 1/2")

    def log_wealth(self, left: Integers, right: Integers, difference: float) -> float:
        """ln W at a claimed difference; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), counts of the draws of P.
            right: the same for Q.
            difference: c.
        """
        n, m = int(left.sum()), int(right.sum())
        gains = 1.0 + self.stake * (self.lowest - self.centre - difference)
        losses = 1.0 - self.stake * n / m * (self.highest - self.centre)
        # The factors must be certain not to be negative, whatever f(X) ≥ −1 and f(Y) ≤ 1 are.
        if self.stake * (1.0 + self.centre + difference) >= 1.0 or self.stake * n / m * (1.0 - self.centre) >= 1.0:
            return -math.inf
        return float(left @ np.log(gains)) + float(right @ np.log(losses))


def difference_lower(bet: MeanBet, left: Integers, right: Integers, failure_probability: float) -> float:
    """The certified lower bound on E f(X) − E f(Y), at least 0.

    Guarantee: above the true difference with at most `failure_probability`, if the bet was fixed before the draws.
        Exact.

    Args:
        bet: function, centre and stake.
        left: shape (cells,), counts of the draws of P.
        right: counts of the draws of Q.
        failure_probability: what may be spent.
    """
    check_failure_probability(failure_probability)
    if not left.sum() or not right.sum():
        return 0.0
    needed = -math.log(failure_probability) + ROUNDING
    low, high = 0.0, 2.0
    if bet.log_wealth(left, right, low) < needed:
        return 0.0
    return greatest_rejected(partial(bet.log_wealth, left, right), needed, low, high)
