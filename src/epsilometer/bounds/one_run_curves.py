"""One training run against a claim that is a curve: Gaussian, f-DP, Rényi, zero-concentrated.

With u units and p_i as in `bounds.one_run`, let X_i = Σ_{k≥i} k·p_k/u and H_i = Σ_{k≥i}
(r − k)·p_k/u: right and wrong guesses on the event of at least i right ones. The sets I of counts
from i on say H_{i−1} ≥ g(X_i), where g(x) is the least Q(E) that the claim allows when P(E) = x.

**The recursion.** Suppose that at least v are right with probability β or more. Begin with
x = β·v/u and h = β·(r − v)/u, and for i = v − 1, …, 0 let

    h' = max(h, g(x)),   x' = x + i/(r − i)·(h' − h).

Then X_i ≥ x and X_i + H_i ≥ x + h at every i, so that β is impossible if x + h > r/u at the end,
because X_0 + H_0 = r/u.

*Proof*, downwards from i = v, where X_v ≥ x and X_v + H_v = r·P(≥ v)/u ≥ x + h. If h' = h, nothing
changes, while X and X + H only grow. Else H_i ≥ g(X_{i+1}) ≥ g(x) = h', since g never falls, and it
remains to show X_i ≥ x'. Since p_i enters both sums,

    X_i = X_{i+1} + i/(r − i)·(H_i − H_{i+1}) ≥ X_{i+1} + i/(r − i)·(h' − H_{i+1}),

so it suffices that (r − i)·X_{i+1} − i·H_{i+1} ≥ (r − i)·x − i·h. The left-hand side is
(r/u)·Σ_{k>i} (k − i)·p_k, which is the sum of X_k + H_k over all k > i. The right-hand side is the
same sum of the recursion's x + h, and each term of the first sum is at least that of the second by
the induction hypothesis. ∎

The same argument, with another recursion in the place of X and H, shows that x + h grows with β and
with g. So what is refuted at β is refuted above β, and what refutes a claim refutes every stronger
one: bisection is valid in β (the p-value) and in the parameter of the claim.

Only tails I are used, so the p-value is valid but not the least one (.47 against .40 by linear
programming at m = r = 12).

Reference: Mahloujifar, Melis, Chaudhuri, "Auditing f-Differential Privacy in One Run" (2024),
Algorithm 3; the proof is ours.
"""

import math
from collections.abc import Callable, Sequence

from epsilometer.bisection import rejected_end
from epsilometer.bounds.inverse_curves import inverse_of_hull
from epsilometer.bounds.one_run import MAX_MU, Guesses, check_guesses
from epsilometer.claims import GaussianDP

# Maps P(E) to the least Q(E) that a claim allows; it never falls.
LeastQ = Callable[[float], float]

# Relative. More than the sums of 10^6 steps are rounded by.
_ROUNDING = 1e-9
# A p-value is not searched for below this.
_LEAST_P_VALUE = 1e-15
# Halvings of the logarithm of a p-value: 2^-36 of ln 1e15 is 5e-10.
_P_VALUE_HALVINGS = 36
# Halvings of the bracket of μ: 2^-24 of 20 is 1e-6.
_MU_HALVINGS = 24


def curve_refutes(least_q: LeastQ, units: float, r: int, v: int, level: float) -> bool:
    """Whether the claim excludes that v or more guesses are right with probability `level`.

    Args:
        least_q: of the claim, see `bounds.inverse_curves`.
        units: m for guesses of both kinds, m/2 if all guesses are "in".
        r: guesses.
        v: right guesses.
        level: a probability.

    Guarantee: true only if P(at least v right) < level under the claim. Exact.
    """
    limit = r / units * (1.0 + _ROUNDING)
    right = level * v / units
    wrong = level * (r - v) / units
    for i in range(v - 1, -1, -1):
        more_wrong = max(wrong, least_q(min(right, 1.0)))
        if more_wrong == wrong:
            # Nothing can change any more.
            break
        right += i / (r - i) * (more_wrong - wrong)
        wrong = more_wrong
        # X is a mean of probabilities.
        if right + wrong > limit or right > 1.0 + _ROUNDING:
            return True
    return right + wrong > limit


def curve_p_value(least_q: LeastQ, units: float, guesses: Sequence[Guesses]) -> float:
    """Returns the p-value of a claim from several numbers of guesses, each of which is paid for.

    Guarantee: at most t with probability at most t, if the claim holds and the r were fixed before
        the run. Exact, by the recursion above and the union bound.
    """

    def is_refuted(log_level: float) -> bool:
        level = math.exp(log_level)
        return any(curve_refutes(least_q, units, r, v, level) for r, v in guesses)

    if not is_refuted(0.0):
        return 1.0
    log_level = rejected_end(
        is_refuted, rejected=0.0, kept=math.log(_LEAST_P_VALUE), halvings=_P_VALUE_HALVINGS
    )
    return min(len(guesses) * math.exp(log_level), 1.0)


def curve_mu(units: float, guesses: Sequence[Guesses], failure_probability: float) -> float:
    """Returns the largest μ that several numbers of guesses refute, 0 if none.

    Guarantee: above the true μ with at most `failure_probability`. Exact.
    """
    level = failure_probability / len(guesses)

    def is_refuted(mu: float) -> bool:
        least_q = inverse_of_hull(GaussianDP(mu))
        return any(curve_refutes(least_q, units, r, v, level) for r, v in guesses)

    if not is_refuted(0.0):
        return 0.0
    return rejected_end(is_refuted, rejected=0.0, kept=MAX_MU, halvings=_MU_HALVINGS)


def one_run_mu(m: int, r: int, v: int, failure_probability: float) -> float:
    """Returns the largest μ that v right guesses of r among m canaries refute, 0 if none.

    Guarantee: above the true μ with at most `failure_probability`. Exact.
    """
    check_guesses(m, r, v)
    return curve_mu(m, [Guesses(r, v)], failure_probability)
