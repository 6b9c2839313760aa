"""An exact interval for the area under the ROC curve."""

import math

import numpy as np
from scipy.special import rel_entr

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.bounds.budget import check_failure_probability

# Halvings of a bracket within [0, 1]; 2^-50 is below what anybody reads.
_HALVINGS = 50


def observed_auroc(left: Floats, right: Floats) -> float:
    """Returns the fraction of pairs in which the left score is larger; ties count half.

    Args:
        left: shape (n,), ascending.
        right: shape (m,), ascending.
    """
    n_smaller = np.searchsorted(right, left, side="left")
    n_at_most = np.searchsorted(right, left, side="right")
    # The mean of each is exact for fewer than 2^53 pairs.
    n_wins = int(n_smaller.sum()) + int(n_at_most.sum())
    return n_wins / (2 * len(left) * len(right))


def auroc_interval(
    auroc: float, n_left: int, n_right: int, failure_probability: float
) -> tuple[float, float]:
    """Returns an interval for P(left score > right score), ties counted half.

    The observed area is the average, over all ways to pair the scores, of the mean of
    r = min(n, m) independent values in [0, 1]. By Jensen's inequality its exponential moments are
    no larger than those of one such mean, so that Chernoff's bound for r coins holds for it.

    Args:
        auroc: the observed area.
        n_left: scores of the left.
        n_right: scores of the right.
        failure_probability: half of it for each end.

    Guarantee: exact for independent scores, of any distributions.

    Reference: Hoeffding (1963), Theorem 1 and section 5b.
    """
    error_share = check_failure_probability(failure_probability) / 2.0
    needed = -math.log(error_share) / min(n_left, n_right)

    def is_too_far(area: float) -> bool:
        return _divergence(auroc, area) >= needed

    # `rejected_end` returns the last value that is too far away, so the interval contains all
    # values that are not.
    lower = 0.0
    if is_too_far(0.0):
        lower = rejected_end(is_too_far, rejected=0.0, kept=auroc, halvings=_HALVINGS)
    upper = 1.0
    if is_too_far(1.0):
        upper = rejected_end(is_too_far, rejected=1.0, kept=auroc, halvings=_HALVINGS)
    return lower, upper


def wrong_way_deviate(left: Floats, right: Floats) -> float:
    """Returns by how many standard errors left scores are smaller, by Mann and Whitney's test.

    It is a normal approximation, ties included: good enough for a warning, and for nothing else.

    Args:
        left: shape (n,), ascending.
        right: shape (m,), ascending.
    """
    n = len(left)
    m = len(right)
    total = n + m
    _, tied = np.unique(np.concatenate([left, right]), return_counts=True)
    sizes = tied.astype(np.float64)
    spread = total + 1.0 - float((sizes**3 - sizes).sum()) / (total * (total - 1.0))
    if spread <= 0.0:  # all scores are equal
        return 0.0
    return (0.5 - observed_auroc(left, right)) / math.sqrt(spread / (12.0 * n * m))


def _divergence(observed: float, true: float) -> float:
    """The Kullback–Leibler divergence of the coin `observed` from the coin `true`."""
    return float(rel_entr(observed, true) + rel_entr(1.0 - observed, 1.0 - true))
