"""Bounds from one training run: m canaries, each included by a fair coin, and guesses of the coins.

The auditor looks at the trained model and guesses r of the m coins; v of these guesses are right.
Under (ε, δ)-privacy,

    P(at least v of r guesses right) ≤ F(v) + 2·m·δ·max_i (F(v − i) − F(v))/i,   i = 1 … v,

where F(v) = P(Binomial(r, e^ε/(e^ε + 1)) ≥ v). The right-hand side is the p-value of the claim.

The bounds are the largest ε or μ whose p-value was seen to be below the failure probability f. They
are exact even where the p-value is not monotone in the parameter (as at large m·δ). Let c(t) be the
least v whose p-value at the parameter t is below f. The bound exceeds the true value only if v
reaches c(t) for some t above the truth, hence only if v reaches the least of these c(t), say c(s).
The claim with parameter s is weaker than the truth and therefore true, so that v ≥ c(s) has a
probability below f.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem
5.2 in the form of Corollary 5.4.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError

# No feasible number of guesses refutes a larger ε.
_MAX_EPSILON = 60.0
# No feasible number of guesses refutes a larger μ.
_MAX_MU = 20.0
# Halvings of the bracket of ε: 2^-60 of 60 is below 1e-15.
_EPSILON_HALVINGS = 60
# Halvings of the bracket of μ: 2^-30 of 20 is 2e-8. Each costs one p-value per ε of the grid below.
_MU_HALVINGS = 30
# The ε at which a Gaussian claim is tested. Any set of ε is sound; steps of 0.2 lose little.
_EPSILON_GRID: Floats = np.linspace(0.0, 16.0, 81)


def one_run_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Returns the p-value of (ε, δ)-privacy: a bound on the probability of v or more right guesses.

    Args:
        m: canaries, each included with probability ½ independently of the others.
        r: guesses; the auditor may abstain on the other canaries.
        v: right guesses.
        epsilon: ε of the claim.
        delta: δ of the claim.

    Guarantee: at most t with probability at most t, if the claim holds and r was fixed before the
        run. Exact, by the theorem above.
    """
    check_guesses(m, r, v)
    if v == 0:
        return 1.0
    # The probability that one guess is right under randomised response with this ε.
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


def one_run_epsilon(m: int, r: int, v: int, delta: float, failure_probability: float) -> float:
    """Returns the largest ε that v right guesses refute at this δ, 0 if none.

    Guarantee: above the true ε with at most `failure_probability`. Exact.
    """

    def p_value(epsilon: float) -> float:
        return one_run_p_value(m=m, r=r, v=v, epsilon=epsilon, delta=delta)

    return _largest_rejected(
        p_value, level=failure_probability, top=_MAX_EPSILON, halvings=_EPSILON_HALVINGS
    )


def one_run_mu(m: int, r: int, v: int, failure_probability: float) -> float:
    """Returns the largest μ that v right guesses refute, 0 if none.

    μ-Gaussian privacy implies (ε, δ(ε))-privacy for every ε. Each of these bounds the probability
    of one and the same event {at least v right guesses}, so the least of the bounds holds: it is a
    p-value, and nothing is spent on choosing it.

    Guarantee: above the true μ with at most `failure_probability`. Exact.
    """

    def p_value(mu: float) -> float:
        claim = GaussianDP(mu)
        return min(
            one_run_p_value(m=m, r=r, v=v, epsilon=epsilon, delta=claim.delta(epsilon))
            for epsilon in _EPSILON_GRID.tolist()
        )

    return _largest_rejected(p_value, level=failure_probability, top=_MAX_MU, halvings=_MU_HALVINGS)


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
