"""Audits from one training run: m canaries, each put in or left out by a fair coin, and guesses about the coins.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem 5.2 with the form of
Corollary 5.4: P(at least v of r guesses right) ≤ f(v) + 2mδ·max_i (f(v − i) − f(v))/i, where f(v) is the upper tail
P(Binomial(r, e^ε/(e^ε + 1)) ≥ v).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from epsilometer.bisection import rejected_end
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError

# 2^-60 of any bracket used here is below 1e-15.
_HALVINGS = 60
# No feasible number of guesses proves anything beyond these.
_MOST_EPSILON, _MOST_MU = 60.0, 20.0


def one_run_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """The greatest probability of v or more right guesses that (ε, δ)-privacy allows (an upper bound on it).

    Args:
        m: canaries, each included with probability ½ by itself.
        r: guesses; the auditor may abstain on the others.
        v: right guesses.

    Guarantee: exact.
    """
    check_guesses(m, r, v)
    if v == 0:
        return 1.0
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(betainc(v, r - v + 1, chance))
    fewer = np.arange(v - 1, -1, -1, dtype=np.float64)  # v − 1, v − 2, …, 0 right guesses
    log_mass = gammaln(r + 1.0) - gammaln(fewer + 1.0) - gammaln(r - fewer + 1.0)
    mass = np.exp(log_mass + xlogy(fewer, chance) + xlog1py(r - fewer, -chance))
    steepest = float(np.max(np.cumsum(mass) / np.arange(1, v + 1)))
    return min(tail + 2.0 * m * delta * steepest, 1.0)


def one_run_epsilon(m: int, r: int, v: int, delta: float, failure_probability: float) -> float:
    """The largest ε that v right guesses refute at this δ, 0 if none.

    Guarantee: exact: above the true ε with at most `failure_probability`.
    """
    return _largest_rejected(
        lambda epsilon: one_run_p_value(m, r, v, epsilon, delta), failure_probability, _MOST_EPSILON
    )


def one_run_mu(m: int, r: int, v: int, failure_probability: float) -> float:
    """The largest μ that v right guesses refute, 0 if none.

    μ-Gaussian privacy implies (ε, δ) for every ε with its own δ, and each of them bounds the probability of one
    and the same event: the least of these bounds is a p-value.

    Guarantee: exact.
    """
    candidates = np.linspace(0.0, 16.0, 81)

    def p_value(mu: float) -> float:
        claim = GaussianDP(mu)
        return min(one_run_p_value(m, r, v, float(epsilon), claim.delta(float(epsilon))) for epsilon in candidates)

    return _largest_rejected(p_value, failure_probability, _MOST_MU, halvings=30)


def check_guesses(m: int, r: int, v: int) -> None:
    """0 ≤ v ≤ r ≤ m, whole numbers, at least one canary."""
    for name, value in (("m", m), ("r", r), ("v", v)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"{name}={value!r} must be a whole number")
    if not 0 <= v <= r <= m or m < 1:
        raise InputError(
            f"m={m}, r={r}, v={v}: r of m canaries (at least 1) are guessed, v of them rightly, so 0 ≤ v ≤ r ≤ m"
        )


def _largest_rejected(p_value: Callable[[float], float], level: float, top: float, halvings: int = _HALVINGS) -> float:
    """The largest value below `top` with a p-value below the level; p-values grow with the value."""
    if p_value(0.0) >= level:
        return 0.0
    return rejected_end(lambda value: p_value(value) < level, 0.0, top, halvings)
