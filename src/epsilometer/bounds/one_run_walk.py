"""One training run, several numbers of guesses at once, for (ε, δ) claims.

Guesses are put in order of sureness: r_1 < r_2 < … of them, each set within the next one. Given the
run's output and all other coins, a guess under ε-privacy is right with probability at most
s = e^ε/(1 + e^ε): the number of right guesses lags behind a walk of independent Bernoulli(s) steps,
and so does every sum of right guesses with positive weights. Under (ε, δ) a guess "in"
of canary j, whose output has the densities f (coin in) and g (coin out), is right with probability
f/(f + g). The excess over s, weighted by the density (f + g)/2 of the output, is

    ½·(f − s·(f + g))⁺ = ½·(1 − s)·(f − e^ε·g)⁺,

which integrates to at most ½·(1 − s)·δ; the guess "out" adds as much. So the excesses of all
guesses sum to at most u·δ·(1 − s) = u·δ/(1 + e^ε) in expectation, with u = m units, or m/2 if all
guesses are "in". One by one the guesses can be coupled with independent Bernoulli(s) steps, so that
no guess is right where its step fails, but for these excesses. Sure guesses are worth more than
others, so right ones count with weights: if W_k is the sum of those of the r_k surest guesses,

    P(W_k ≥ t_k for some k) ≤ C + u·δ/(1 + e^ε),

where C is the probability that the walk with these weights reaches t_k after r_k steps for some k.
Numbers of guesses are strongly dependent, so that a dozen of them cost little more than one.

The weights depend on r_k/u only, so that nothing is paid for them. They are the normal scores of
the ranks: behind Gaussian noise the log-odds that a guess is right are in proportion to them, as
long as they are small. With equal weights the bounds at 1000 canaries are 4 to 5 % smaller for
Gaussian noise and one record in subsampled batches, and 3 % larger for randomised response.

The p-value orders the outcomes by their least tail, the smallest of the probabilities that the walk
alone has at least the weight W_k after r_k steps, and adds up all that are no larger. It need not
be monotone in ε (the thresholds are whole numbers, and the last term falls), so the bound is not
found by bisection: ε is covered from 0 upwards by intervals, and each is rejected as a whole by a
p-value that no ε in it exceeds.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, ndtri, xlog1py, xlogy

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.bounds.one_run import MAX_EPSILON, Guesses

# The weight of a guess that is one standard deviation from the middle. Twice as many steps change
# bounds by less than a hundredth, and make laws longer.
_WEIGHT_STEPS = 2
# The width of the first interval of ε.
_FIRST_WIDTH = 1.0
# The covering ends where an interval of this width cannot be rejected.
_LEAST_WIDTH = 1e-4
# Relative. Outcomes whose tail exceeds the observed one by no more than this count as no larger.
_TIE = 1e-9
# The same, absolute: more than what the windows and trimmed ends leave out of a tail.
_TINY_TAIL = 1e-18
# A p-value that is larger than this is not computed any further.
_HOPELESS = 0.5
# The window of a binomial distribution in standard deviations, and what is added to it. Beyond
# it lies less than 1e-20, by Bernstein's inequality.
_WINDOW_DEVIATIONS = 10.0
_WINDOW_MARGIN = 40.0
# An end of a law that has no more than this is left out.
_NOTHING = 1e-21
# Added to every p-value: more than all that is left out and than the sums are rounded by.
_LEFT_OUT = 1e-12
# Halvings of the logarithm of a tail, from 1 to the smallest one that is told apart.
_TAIL_HALVINGS = 60


class Steps(NamedTuple):
    """Steps of a walk between two numbers of guesses.

    Attributes:
        number: how many.
        weight: of each success.
    """

    number: int
    weight: int


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
        p_value = _greatest_p_value(
            units, guesses, delta, low=covered, high=covered + width, hopeless=failure_probability
        )
        if p_value < failure_probability:
            covered += width
        else:
            width *= 0.5
    return covered


def walk_needed(
    units: float,
    guesses: Sequence[Guesses],
    epsilon: float,
    delta: float,
    failure_probability: float,
) -> tuple[Guesses, ...]:
    """Returns for each number of guesses how many right ones would refute (ε, δ)-privacy.

    The right ones of the smaller numbers are taken as they are, and the others may be anything.
    Where not even all right guesses would do, v is r + 1.
    """
    steps = weighted_steps(units, guesses)
    chance = _chance(epsilon)
    excess = _excess(units, delta, epsilon) + _LEFT_OUT

    def refutes(log_tail: float) -> bool:
        thresholds = _thresholds(steps, math.exp(log_tail), chance)
        return crossing_probability(steps, thresholds, chance) + excess < failure_probability

    smallest = math.log(_TINY_TAIL)
    if not refutes(smallest):
        return tuple(Guesses(r, r + 1) for r, _ in guesses)
    refuting = rejected_end(refutes, rejected=smallest, kept=0.0, halvings=_TAIL_HALVINGS)
    thresholds = _thresholds(steps, math.exp(refuting), chance)
    return _needed_for(guesses, steps, thresholds)


def _needed_for(
    guesses: Sequence[Guesses], steps: Sequence[Steps], thresholds: Sequence[int]
) -> tuple[Guesses, ...]:
    """The right guesses with which the walk reaches the thresholds, from where it was before."""
    needed = []
    right = 0
    weight = 0
    for (r, v), step, threshold in zip(guesses, steps, thresholds, strict=True):
        more = max(-((weight - threshold) // step.weight), 0)
        needed.append(Guesses(r, right + more if more <= step.number else r + 1))
        weight += step.weight * (v - right)
        right = v
    return tuple(needed)


def weighted_steps(units: float, guesses: Sequence[Guesses]) -> tuple[Steps, ...]:
    """The steps up to each number of guesses, with the normal scores of their ranks as weights."""
    sizes = np.array([count.r for count in guesses])
    before = np.concatenate([[0], sizes[:-1]])
    # Among the scores of all canaries the middle one of these guesses cuts off this upper tail.
    tail = (before + sizes) / 2.0 / (2.0 * units)
    weights = np.maximum(np.rint(-_WEIGHT_STEPS * ndtri(tail)), 1.0).astype(np.int_)
    return tuple(
        Steps(number, weight)
        for number, weight in zip((sizes - before).tolist(), weights.tolist(), strict=True)
    )


def _chance(epsilon: float) -> float:
    """The greatest probability of a right guess under ε-privacy."""
    return float(expit(epsilon))


def _excess(units: float, delta: float, epsilon: float) -> float:
    return units * delta * float(expit(-epsilon))


def _greatest_p_value(
    units: float,
    guesses: Sequence[Guesses],
    delta: float,
    low: float,
    high: float,
    *,
    hopeless: float = _HOPELESS,
) -> float:
    """Returns a bound on the p-values of all ε between `low` and `high`; 1 if above `hopeless`.

    For each such ε an outcome counts if its tail at ε is at most the observed least tail at ε. Then
    its tail at `low` is at most the observed least tail at `high`. The walk at `high` crosses these
    lower thresholds at least as often, and the excess is greatest at `low`.
    """
    excess = _excess(units, delta, low)
    if excess > hopeless:
        return 1.0
    steps = weighted_steps(units, guesses)
    more_right = np.diff([0, *(count.v for count in guesses)])
    observed = np.cumsum(more_right * [step.weight for step in steps])
    laws = _laws(steps, _chance(high))
    least = min(law.tail(value) for law, value in zip(laws, observed.tolist(), strict=True))
    # A walk crosses thresholds at least as often as a single one of them.
    if least + excess > hopeless:
        return 1.0
    thresholds = _thresholds(steps, least, _chance(low))
    crossing = crossing_probability(steps, thresholds, _chance(high))
    return min(crossing + excess + _LEFT_OUT, 1.0)


class _Law(NamedTuple):
    """The law of a weight.

    Attributes:
        lowest: the first value.
        mass: shape (n,), the probabilities of `lowest`, `lowest` + 1, …
    """

    lowest: int
    mass: Floats

    def tail(self, value: int) -> float:
        """The probability of at least a value."""
        return min(float(self.mass[max(value - self.lowest, 0) :].sum()), 1.0)

    def threshold(self, tail: float) -> int:
        """The least value whose tail is at most the given one."""
        tails = np.cumsum(self.mass[::-1])
        return self.lowest + len(tails) - int(np.searchsorted(tails, tail, side="right"))

    def then(self, steps: Steps, chance: float) -> "_Law":
        """The law after some more independent steps."""
        first, more = _binomial_window(steps.number, chance)
        weight = steps.weight
        mass = np.zeros(len(self.mass) + weight * (len(more) - 1))
        # Values that leave the same remainder stay among themselves.
        for remainder in range(min(weight, len(self.mass))):
            part = np.convolve(self.mass[remainder::weight], more)
            mass[remainder::weight][: len(part)] = part
        return _Law(self.lowest + weight * first, mass).trimmed()

    def trimmed(self) -> "_Law":
        """The law without its ends, which are long and hold nothing."""
        first = int(np.searchsorted(np.cumsum(self.mass), _NOTHING))
        n_last = int(np.searchsorted(np.cumsum(self.mass[::-1]), _NOTHING))
        return _Law(self.lowest + first, self.mass[first : len(self.mass) - n_last])


@lru_cache(maxsize=4)
def _laws(steps: tuple[Steps, ...], chance: float) -> list[_Law]:
    """The laws of a walk after each number of steps; those of one end of ε are asked for often."""
    laws = [_Law(0, np.ones(1))]
    for more in steps:
        laws.append(laws[-1].then(more, chance))
    return laws[1:]


def _thresholds(steps: tuple[Steps, ...], tail: float, chance: float) -> list[int]:
    """For every number of steps the least weight whose tail is at most the given one."""
    at_most = tail * (1.0 + _TIE) + _TINY_TAIL
    return [law.threshold(at_most) for law in _laws(steps, chance)]


def crossing_probability(steps: Sequence[Steps], thresholds: Sequence[int], chance: float) -> float:
    """The probability that a walk reaches some threshold.

    Args:
        steps: between one threshold and the next.
        thresholds: of the weight after these steps.
        chance: of a success, in each independent step.
    """
    # The law of the walks that have not crossed.
    law = _Law(0, np.ones(1))
    crossed = 0.0
    for more, threshold in zip(steps, thresholds, strict=True):
        law = law.then(more, chance)
        n_kept = min(max(threshold - law.lowest, 0), len(law.mass))
        crossed += float(law.mass[n_kept:].sum())
        law = law._replace(mass=law.mass[:n_kept])
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
