"""The tests behind the health checks, each with a false alarm of about 1e-9."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

# The probability that one check trips on healthy draws.
FALSE_ALARM = 1e-9
# Evidence is the logarithm of a fair bet's winnings, which exceeds this with probability at most
# FALSE_ALARM.
EVIDENCE_THRESHOLD = -np.log(FALSE_ALARM)
# Within so many standard deviations of the mean, no tail is as thin as an alarm needs it.
USUAL_DEVIATIONS = 3.0

# From this variance on, a hypergeometric count is approximated by a normal distribution.
_NORMAL_FROM_VARIANCE = 400.0
# The distance from the mean is then scaled by this factor: an alarm needs 7 standard deviations
# instead of 6.1, which more than covers the error of the approximation.
_NORMAL_MARGIN = 6.1 / 7.0
# Concentrations of the Dirichlet-multinomial alternatives: 1 when almost all outputs of a group are
# equal, large when the groups differ little.
_CONCENTRATIONS = 4.0 ** np.arange(11)


def hypergeometric_tails(
    seen: int, population: int, marked: int, drawn: int, usual: float = 0.0
) -> float:
    """Returns twice the smaller tail of a hypergeometric count, at most 1.

    Exact up to a variance of `_NORMAL_FROM_VARIANCE`; beyond, by the normal distribution, with a
    margin.

    Args:
        seen: the number of marked items among the drawn.
        population: the number of items.
        marked: how many of them are marked.
        drawn: how many of them are drawn, without replacement.
        usual: within so many standard deviations of the mean, 1 is returned without computing.
    """
    mean = drawn * marked / population
    variance = mean * (1.0 - marked / population) * (population - drawn) / max(population - 1, 1)
    if abs(seen - mean) < usual * math.sqrt(variance):
        return 1.0
    if variance > _NORMAL_FROM_VARIANCE:
        return float(2.0 * ndtr(-abs(seen - mean) / np.sqrt(variance) * _NORMAL_MARGIN))
    low = max(0, drawn + marked - population)
    high = min(marked, drawn)
    if low >= high:
        return 1.0
    counts = np.arange(low, high + 1.0)
    log_ways_marked = _log_binomial(marked, counts)
    log_ways_others = _log_binomial(population - marked, drawn - counts)
    log_ways_all = _log_binomial(population, drawn)
    probabilities = np.exp(log_ways_marked + log_ways_others - log_ways_all)
    lower_tail = probabilities[counts <= seen].sum()
    upper_tail = probabilities[counts >= seen].sum()
    return min(1.0, 2.0 * float(min(lower_tail, upper_tail)))


def _log_binomial(n: int, k: "NDArray[np.float64] | int") -> "NDArray[np.float64]":
    """Returns the logarithm of "n choose k"."""
    logarithm: NDArray[np.float64] = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return logarithm


def clustering_evidence(counts: NDArray[np.int64]) -> float:
    """Returns the evidence that outputs drawn together are alike.

    If draws are independent, given the totals every order of them is equally likely. Groups with
    Dirichlet-multinomial counts have another distribution of orders, so the likelihood ratio,
    averaged over some concentrations, is a fair bet. Its logarithm exceeds `EVIDENCE_THRESHOLD` by
    chance with probability at most `FALSE_ALARM`.

    Args:
        counts: of shape (groups, categories): a row per group of neighbouring draws, a column per
            distinct outcome.
    """
    totals = counts.sum(axis=0)
    concentrations = _CONCENTRATIONS[:, None, None]
    prior = concentrations * (totals / max(totals.sum(), 1))[totals > 0]
    by_category = (gammaln(prior + counts[:, totals > 0]) - gammaln(prior)).sum(axis=2)
    group_sizes = counts.sum(axis=1)
    by_size = gammaln(_CONCENTRATIONS[:, None] + group_sizes) - gammaln(_CONCENTRATIONS[:, None])
    log_orders = gammaln(totals.sum() + 1.0) - gammaln(totals + 1.0).sum()
    log_likelihoods = (by_category - by_size).sum(axis=1)
    log_average = np.logaddexp.reduce(log_likelihoods) - np.log(len(_CONCENTRATIONS))
    return float(log_average + log_orders)
