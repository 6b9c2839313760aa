"""Bounds from one training run: m canaries, each included by a fair coin, and guesses of the coins.

The auditor looks at the trained model and guesses r of the m coins; v of these guesses are right.
Let p_i be the probability that exactly i are right.

**What a claim says about p.** Take one canary j, and let E be the event that it is guessed "in" and
that k of the *other* guesses are right, with k + 1 in some set I. A claim bounds P(E | coin j in)
by max_power(P(E | coin j out)), and likewise for the guess "out". Average both over all canaries.
The guess of canary j is right on the one side and wrong on the other, so the sums count the right
and the wrong guesses, and since max_power is concave (Jensen),

    Σ_I i·p_i/u ≤ max_power(Σ_I (r − i + 1)·p_{i−1}/u)   for every set I of counts,          (1)

with u = m units; u = m/2 if all guesses are "in", because the events of the guess "out" are then
empty and drop out of the average. A canary without a guess counts as wrong in (1), never as right,
so that fewer than r guesses may be made.

**(ε, δ), exactly.** Let b_i be the probabilities of Binomial(r, s), s = e^ε/(1 + e^ε), and F(k) its
tail, P(Binomial ≥ k). Then i·b_i = e^ε·(r − i + 1)·b_{i−1}. Write i·p_i = e^ε·(r − i + 1)·p_{i−1} +
e_i; by (1) the positive e_i sum to at most u·δ. The ratio p_i/b_i grows by e_i/(i·b_i) at i, and
the p_i sum to 1, hence

    P(at least v right) = F(v) + Σ_k e_k·w_k,   w_k = [F(max(k, v)) − F(k)·F(v)]/(k·b_k) ≥ 0.

Binomial probabilities are log-concave, so that F(k)/b_k falls and P(Binomial < k)/b_{k−1} grows
with k: w_k grows up to k = v and falls from there on. The greatest value is therefore

    F + (1 − F)·min(1, u·δ/v · F/b_v),   F = F(v),                                           (2)

and randomised response with an atom at v attains it for two-sided guesses: no bound that holds for
all mechanisms is smaller. It is the p-value of the claim. It grows with ε (F/b_v does, and where
u·δ·F/(v·b_v) < 1 the rest follows), so that bisection finds the largest ε that is refuted.

**Steinke's bound** is F(v) + 2·m·δ·max_i (F(v − i) − F(v))/i, i = 1 … v: it counts δ twice. It is
kept for comparison. Its inversion is exact although this p-value need not be monotone in ε: let
c(t) be the least v whose p-value at t is below the failure probability f. The bound exceeds the
truth only if v reaches c(t) for some t above the truth, hence only if v reaches the least of these,
say c(s). The claim s is weaker than the truth, so true, and v ≥ c(s) has a probability below f.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem
5.2 in the form of Corollary 5.4; (1) is the first step of Mahloujifar, Melis, Chaudhuri, "Auditing
f-Differential Privacy in One Run" (2024).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincc, gammaln, xlog1py, xlogy

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError

# No feasible number of guesses refutes a larger ε.
MAX_EPSILON = 60.0
# No feasible number of guesses refutes a larger μ.
MAX_MU = 20.0
# Halvings of the bracket of ε: 2^-60 of 60 is below 1e-15.
_EPSILON_HALVINGS = 60
# Halvings of the bracket of μ: 2^-30 of 20 is 2e-8. Each costs one p-value per ε of the grid below.
_MU_HALVINGS = 30
# The ε at which Steinke's bound tests a Gaussian claim. Any set of ε is sound; steps of 0.2 lose
# little.
_EPSILON_GRID: Floats = np.linspace(0.0, 16.0, 81)
# Tails below this may have lost digits; the ratio F/b is then bounded by a geometric series.
_LEAST_TAIL = 1e-290
# Relative. What the logarithm of a binomial coefficient of 10^7 guesses loses, and more.
_ROUNDING = 1e-7


class Guesses(NamedTuple):
    """How many coins were guessed, and how many of these guesses are right."""

    r: int
    v: int


def exact_p_value(units: float, r: int, v: int, epsilon: float, delta: float) -> float:
    """Returns formula (2): the greatest probability of v or more right guesses.

    Args:
        units: m for guesses of both kinds, m/2 if all guesses are "in".
        r: guesses.
        v: right guesses.
        epsilon: ε of the claim.
        delta: δ of the claim.

    Guarantee: at most t with probability at most t, if the claim holds and r was fixed before the
        run. Exact.
    """
    if v == 0:
        return 1.0
    # The probability that one guess is right under randomised response with this ε.
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(betainc(v, r - v + 1, chance))
    if delta == 0.0:
        return tail
    others = float(betaincc(v, r - v + 1, chance))
    excess = units * delta / v * _tail_per_mass(r, v, epsilon, tail) * (1.0 + _ROUNDING)
    return min(tail + others * min(excess, 1.0), 1.0)


def _tail_per_mass(r: int, v: int, epsilon: float, tail: float) -> float:
    """F(v)/b_v of Binomial(r, e^ε/(1 + e^ε)), rounded up where the tail underflows."""
    # The ratio of b_{v+1} to b_v; further ratios are smaller.
    ratio = (r - v) / (v + 1.0) * math.exp(min(epsilon, MAX_EPSILON))
    if tail < _LEAST_TAIL:
        return 1.0 / (1.0 - ratio) if ratio < 1.0 else math.inf
    log_binomial = float(gammaln(r + 1.0) - gammaln(v + 1.0) - gammaln(r - v + 1.0))
    log_mass = log_binomial - r * math.log1p(math.exp(-epsilon)) - (r - v) * epsilon
    return math.exp(min(math.log(tail) - log_mass, 700.0))


def one_run_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Returns the p-value of (ε, δ)-privacy from v right guesses of r among m canaries.

    Args:
        m: canaries, each included with probability ½ independently of the others.
        r: guesses; the auditor may abstain on the other canaries.
        v: right guesses.
        epsilon: ε of the claim.
        delta: δ of the claim.

    Guarantee: at most t with probability at most t, if the claim holds and r was fixed before the
        run. Exact, and no smaller value would be, see (2).
    """
    check_guesses(m, r, v)
    return exact_p_value(units=m, r=r, v=v, epsilon=epsilon, delta=delta)


def one_run_epsilon(m: int, r: int, v: int, delta: float, failure_probability: float) -> float:
    """Returns the largest ε that v right guesses refute at this δ, 0 if none.

    Guarantee: above the true ε with at most `failure_probability`. Exact.
    """
    check_guesses(m, r, v)
    return exact_epsilon(m, r, v, delta, failure_probability)


def exact_epsilon(units: float, r: int, v: int, delta: float, failure_probability: float) -> float:
    """The same, for either kind of guesses: see `exact_p_value` for the units."""

    def p_value(epsilon: float) -> float:
        return exact_p_value(units=units, r=r, v=v, epsilon=epsilon, delta=delta)

    return _largest_rejected(
        p_value, level=failure_probability, top=MAX_EPSILON, halvings=_EPSILON_HALVINGS
    )


def steinke_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Returns the p-value of (ε, δ)-privacy by Steinke's bound, for comparison with the literature.

    Guarantee: at most t with probability at most t for t < ½, if the claim holds and r was fixed
        before the run.
    """
    check_guesses(m, r, v)
    if v == 0:
        return 1.0
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(betainc(v, r - v + 1, chance))
    # Numbers of right guesses below v: v − 1, v − 2, …, 0.
    fewer = np.arange(v - 1, -1, -1, dtype=np.float64)
    log_binomial = gammaln(r + 1.0) - gammaln(fewer + 1.0) - gammaln(r - fewer + 1.0)
    mass = np.exp(log_binomial + xlogy(fewer, chance) + xlog1py(r - fewer, -chance))
    # F(v − i) − F(v) = P(v − i ≤ Binomial < v), for i = 1 … v.
    tail_differences = np.cumsum(mass)
    steepest = float(np.max(tail_differences / np.arange(1, v + 1)))
    return min(tail + 2.0 * m * delta * steepest, 1.0)


def steinke_epsilon(m: int, r: int, v: int, delta: float, failure_probability: float) -> float:
    """Returns the largest ε that Steinke's bound refutes at this δ, 0 if none."""

    def p_value(epsilon: float) -> float:
        return steinke_p_value(m=m, r=r, v=v, epsilon=epsilon, delta=delta)

    return _largest_rejected(
        p_value, level=failure_probability, top=MAX_EPSILON, halvings=_EPSILON_HALVINGS
    )


def steinke_mu(m: int, r: int, v: int, failure_probability: float) -> float:
    """Returns the largest μ that Steinke's bound refutes, 0 if none.

    μ-Gaussian privacy implies (ε, δ(ε))-privacy for every ε. Each of these bounds the probability
    of one and the same event {at least v right guesses}, so the least of the bounds holds: it is a
    p-value, and nothing is spent on choosing it.

    Guarantee: above the true μ with at most `failure_probability`. Exact.
    """

    def p_value(mu: float) -> float:
        claim = GaussianDP(mu)
        return min(
            steinke_p_value(m=m, r=r, v=v, epsilon=epsilon, delta=claim.delta(epsilon))
            for epsilon in _EPSILON_GRID.tolist()
        )

    return _largest_rejected(p_value, level=failure_probability, top=MAX_MU, halvings=_MU_HALVINGS)


def check_guesses(m: int, r: int, v: int) -> None:
    """Raises InputError unless m ≥ 1, r and v are whole numbers with 0 ≤ v ≤ r ≤ m."""
    for name, value in (("m", m), ("r", r), ("v", v)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"{name}={value!r} must be a whole number")
    if not 0 <= v <= r <= m or m < 1:
        raise InputError(
            f"m={m}, r={r}, v={v}: r of m canaries (at least 1) are guessed, "
            "v of them rightly, so 0 ≤ v ≤ r ≤ m"
        )


def _largest_rejected(
    p_value: Callable[[float], float], level: float, top: float, halvings: int
) -> float:
    """The largest value below `top` whose p-value was seen to be below the level; 0 if none was."""
    if not p_value(0.0) < level:
        return 0.0
    return rejected_end(
        lambda value: p_value(value) < level, rejected=0.0, kept=top, halvings=halvings
    )
