"""One training run, several numbers of guesses at once, for (ε, δ) claims.

Guesses are put in order of sureness: r_1 < r_2 < … of them, each set within the next one. Given the
run's output and all other coins, a guess under ε-privacy is right with probability at most
s = e^ε/(1 + e^ε): the number of right guesses lags behind a walk of independent Bernoulli(s) steps,
and with it the probability that *some* r_k has at least v_k right ones. Under (ε, δ) a guess "in"
of canary j, whose output has the densities f (coin in) and g (coin out), is right with probability
f/(f + g). The excess over s, weighted by the density (f + g)/2 of the output, is

    ½·(f − s·(f + g))⁺ = ½·(1 − s)·(f − e^ε·g)⁺,

which integrates to at most ½·(1 − s)·δ; the guess "out" adds as much. So the excesses of all
guesses sum to at most u·δ·(1 − s) = u·δ/(1 + e^ε) in expectation, with u = m units, or m/2 if all
guesses are "in". A coupling that fails only with these excesses gives

    P(some r_k has at least v_k right) ≤ C + u·δ/(1 + e^ε),

where C is the probability that the walk reaches v_k after r_k steps for some k. Numbers of guesses
are strongly dependent, so that a dozen of them cost little more than one.

The p-value orders the outcomes by their least binomial tail, min_k P(Binomial(r_k, s) ≥ v_k), and
adds up all that are no larger. It need not be monotone in ε (the thresholds are whole numbers, and
the last term falls), so the bound is not found by bisection: ε is covered from 0 upwards by
intervals, and each is rejected as a whole by a p-value that no ε in it exceeds.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, xlog1py, xlogy

from epsilometer.arrays import Floats
from epsilometer.bounds.one_run import MAX_EPSILON, Guesses

# The width of the first interval of ε.
_FIRST_WIDTH = 1.0
# The covering ends where an interval of this width cannot be rejected.
_LEAST_WIDTH = 1e-5
# Relative. Outcomes whose tail exceeds the observed one by no more than this count as no larger.
_TIE = 1e-9
# A p-value that is larger than this is not computed any further.
_HOPELESS = 0.5
# The window of a binomial distribution in standard deviations, and what is added to it. Beyond
# it lies less than 1e-20, by Bernstein's inequality.
_WINDOW_DEVIATIONS = 10.0
_WINDOW_MARGIN = 40.0
# Added to every p-value: more than all the windows leave out and than the sums are rounded by.
_LEFT_OUT = 1e-12


def walk_p_value(units: float, guesses: Sequence[Guesses], epsilon: float, delta: float) -> float:
    """Returns the p-value of (ε, δ)-privacy from several numbers of guesses, paid together.

    Args:
        units: m for guesses of both kinds, m/2 if all guesses are "in".
        guesses: by growing r; each set of guesses lies within the next one.
        epsilon: ε of the claim.
        delta: δ of the claim.

    Guarantee: at most t with probability at most t, if the claim holds and the r were fixed before
        the run. Exact.
    """
    return _greatest_p_value(units, guesses, delta, low=epsilon, high=epsilon)


def walk_epsilon(
    units: float, guesses: Sequence[Guesses], delta: float, failure_probability: float
) -> float:
    """Returns an ε below which every value is refuted at this δ, 0 if none is.

    Guarantee: above the true ε with at most `failure_probability`: then the true ε lies in one of
        the rejected intervals, so that its own p-value is below `failure_probability`. Exact.
    """
    covered = 0.0
    width = _FIRST_WIDTH
    while width >= _LEAST_WIDTH and covered < MAX_EPSILON:
        p_value = _greatest_p_value(units, guesses, delta, low=covered, high=covered + width)
        if p_value < failure_probability:
            covered += width
        else:
            width *= 0.5
    return covered


def _greatest_p_value(
    units: float, guesses: Sequence[Guesses], delta: float, low: float, high: float
) -> float:
    """Returns a bound on the p-values of all ε between `low` and `high`.

    For each such ε an outcome counts if its tail at ε is at most the observed least tail at ε. Then
    its tail at `low` is at most the observed least tail at `high`. The walk at `high` crosses these
    lower thresholds at least as often, and the excess is greatest at `low`.
    """
    low_chance = 1.0 / (1.0 + math.exp(-low))
    high_chance = 1.0 / (1.0 + math.exp(-high))
    sizes = np.array([count.r for count in guesses])
    right = np.array([count.v for count in guesses])
    least = float(np.min(_tails(sizes, right, high_chance)))
    if least > _HOPELESS:
        return 1.0
    thresholds = _thresholds(sizes, least * (1.0 + _TIE), low_chance)
    crossing = crossing_probability(
        [Guesses(r, v) for r, v in zip(sizes.tolist(), thresholds.tolist(), strict=True)],
        high_chance,
    )
    excess = units * delta / (1.0 + math.exp(low))
    return min(crossing + excess + _LEFT_OUT, 1.0)


def _tails(sizes: NDArray[np.int_], right: NDArray[np.int_], chance: float) -> Floats:
    """P(Binomial(r, chance) ≥ v) for arrays of r and v."""
    inside = np.clip(right, 1, sizes)
    tails = betainc(inside, sizes - inside + 1, chance)
    return np.where(right <= 0, 1.0, np.where(right > sizes, 0.0, tails))


def _thresholds(sizes: NDArray[np.int_], level: float, chance: float) -> NDArray[np.int_]:
    """For every r the least v whose tail is at most the level; r + 1 if there is none."""
    above = np.zeros_like(sizes)
    at_most = sizes + 1
    while np.any(at_most - above > 1):
        middle = (above + at_most) // 2
        is_at_most = _tails(sizes, middle, chance) <= level
        at_most = np.where(is_at_most, middle, at_most)
        above = np.where(is_at_most, above, middle)
    return at_most


def crossing_probability(boundary: Sequence[Guesses], chance: float) -> float:
    """The probability that a walk has at least v successes after r steps, for some (r, v).

    Args:
        boundary: by growing r.
        chance: of a success, in each independent step.
    """
    # The law of the successes of walks that have not crossed: law[i] is that of `lowest` + i.
    law: Floats = np.ones(1)
    lowest = 0
    crossed = 0.0
    steps = 0
    for r, v in boundary:
        first, mass = _binomial_window(r - steps, chance)
        law = np.convolve(law, mass)
        lowest += first
        steps = r
        n_kept = min(max(v - lowest, 0), len(law))
        crossed += float(law[n_kept:].sum())
        law = law[:n_kept]
        if n_kept == 0:
            break
    return min(crossed, 1.0)


def _binomial_window(trials: int, chance: float) -> tuple[int, Floats]:
    """The masses of a binomial distribution around its mean, and the number of the first one."""
    mean = trials * chance
    reach = _WINDOW_DEVIATIONS * math.sqrt(mean * (1.0 - chance)) + _WINDOW_MARGIN
    first = max(math.floor(mean - reach), 0)
    last = min(math.ceil(mean + reach), trials)
    count = np.arange(first, last + 1, dtype=np.float64)
    log_binomial = gammaln(trials + 1.0) - gammaln(count + 1.0) - gammaln(trials - count + 1.0)
    log_mass = log_binomial + xlogy(count, chance) + xlog1py(trials - count, -chance)
    return first, np.exp(log_mass)
