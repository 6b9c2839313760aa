"""An exact lower bound on a Rényi divergence: one bet on a score of the outputs.

Let P be the law of the left outputs X, Q that of the right outputs Y, α > 1 the order, g = α/(α − 1), and h any bounded
function of an output, fixed before the draws. With A = E e^((α−1)·h(X)) and B = E e^(α·h(Y)), Hölder's inequality gives

    D_α(P‖Q) ≥ g·ln A − ln B,  with equality for h = ln dP/dQ.

So a claim D_α(P‖Q) ≤ r implies A^g ≤ e^r·B. The power is convex in A and lies above its tangent at 1, hence the claim
implies the *linear* inequality

    u ≤ v  with  u = g·(A − 1)  and  v = e^r·B − 1.                                                             (*)

(h is shifted on training draws so that A is near 1: there the tangent gives nothing away.) For n draws X, m draws Y and
stakes λ on the left, λ·n/m on the right, the wealth of a gambler who bets against (*) is

    W(r) = ∏ (1 + λ·g·(e^((α−1)·h(X)) − 1)) · ∏ (1 − λ·(n/m)·(e^r·e^(α·h(Y)) − 1)).

If no factor can be negative, then under the claim

    E W(r) = (1 + λ·u)^n · (1 − λ·(n/m)·v)^m ≤ e^(n·λ·u) · e^(−n·λ·v) ≤ 1,

by independence of all draws and 1 + x ≤ e^x. By Markov's inequality W(r) ≥ 1/δ has probability at most δ: W(r) is an
e-value. W falls in r, so the claims that it rejects are all r up to the bound; and the bound is above the true
divergence D only if W(D) ≥ 1/δ. The stake may depend on anything but these draws (and not on r); larger r than those
for which every factor is certain to be non-negative are never rejected.

When h takes finitely many values, W needs only how often each was taken by X and by Y: tallies of chunks add up.

Guarantee: exact, for any sample sizes, whatever h and the stake are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Covers the rounding of sums of up to 1e12 logarithms.
ROUNDING = 1e-9
# Halvings of the bracket of the bound: 2^-50 of it is nothing.
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class JointBet:
    """A bet that D_order(P‖Q) is large.

    Attributes:
        order: α.
        scores: shape (cells,), the values of h, shifted so that the mean of e^((α−1)h) under P is expected to be 1.
        stake: λ, what is staked on every left draw; between 0 and (α − 1)/α.
    """

    order: float
    scores: Floats
    stake: float

    def __post_init__(self) -> None:
        if not 1.0 < self.order < math.inf:
            raise InputError(f"order={self.order!r} makes no sense: a Rényi order is finite and above 1")
        if not len(self.scores) or not np.isfinite(self.scores).all():
            raise InputError("scores must be finite, at least one")
        if not 0.0 < self.stake < (self.order - 1.0) / self.order:
            raise InputError(f"stake={self.stake!r} must lie strictly between 0 and (order - 1)/order")

    def log_wealth(self, left: Integers, right: Integers, divergence: float) -> float:
        """ln W at a claimed divergence; −inf where the bet is not allowed.

        Args:
            left: shape (cells,), how often P took each value of h.
            right: the same for Q.
            divergence: r.
        """
        n, m = int(left.sum()), int(right.sum())
        if divergence > self.greatest(n, m):
            return -math.inf
        gain = left @ np.log1p(self.stake * self._growth() * np.expm1((self.order - 1.0) * self.scores))
        pay = np.exp(divergence + self.order * self.scores) - 1.0
        factors = 1.0 - self.stake * n / m * pay
        seen = right > 0
        if (factors[seen] <= 0.0).any():  # exactly at the edge of what is allowed
            return -math.inf
        return float(gain) + float(right[seen] @ np.log(factors[seen]))

    def greatest(self, n: int, m: int) -> float:
        """The largest claim at which no draw can bring the wealth below 0."""
        return math.log1p(m / (n * self.stake)) - self.order * float(self.scores.max())

    def _growth(self) -> float:
        return self.order / (self.order - 1.0)


def divergence_lower(bet: JointBet, left: Integers, right: Integers, failure_probability: float) -> float:
    """The certified lower bound on D_order(P‖Q), at least 0.

    Guarantee: above the true divergence with at most `failure_probability`, if the bet was fixed before the draws.
        Exact.

    Args:
        bet: the score and the stake.
        left: shape (cells,), counts of the draws of P.
        right: counts of the draws of Q.
        failure_probability: what may be spent.
    """
    check_failure_probability(failure_probability)
    if not left.sum() or not right.sum():
        return 0.0
    needed = -math.log(failure_probability) + ROUNDING
    low, high = 0.0, bet.greatest(int(left.sum()), int(right.sum()))
    if high <= 0.0 or bet.log_wealth(left, right, low) < needed:
        return 0.0
    if bet.log_wealth(left, right, high) >= needed:
        return high
    return greatest_rejected(partial(bet.log_wealth, left, right), needed, low, high)


def greatest_rejected(log_wealth: Callable[[float], float], needed: float, low: float, high: float) -> float:
    """The greatest claim that a falling wealth rejects, from below, between one that it rejects and one it may not."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if log_wealth(middle) >= needed:
            low = middle
        else:
            high = middle
    return low
