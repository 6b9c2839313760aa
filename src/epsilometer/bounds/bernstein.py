"""The empirical Bernstein bound on the mean of bounded independent values.

Reference: Maurer and Pontil (2009), "Empirical Bernstein bounds and sample variance penalization", Theorem 4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.errors import InputError


def bernstein_lower(values: NDArray[np.float64], low: float, high: float, failure_probability: float) -> float:
    """A lower bound on the mean of independent, identically distributed values in [low, high].

    Args:
        values: shape (n,); with fewer than two the bound is `low`.
        low: the least value.
        high: the greatest.
        failure_probability: what may be spent.

    Guarantee: above the true mean with at most `failure_probability`. Exact for every n. (The theorem bounds the mean
        of values in [0, 1] from above; applied to (high − value)/(high − low) it bounds this mean from below.)
    """
    check_failure_probability(failure_probability)
    if not low < high or (len(values) and not (low <= values.min() and values.max() <= high)):
        raise InputError(f"low={low!r}, high={high!r}: all values must lie between them")
    n = len(values)
    if n < 2:
        return low
    needed = math.log(2.0 / failure_probability)
    # The theorem is about the unbiased variance, divided by n − 1.
    chance = math.sqrt(2.0 * float(values.var(ddof=1)) * needed / n)
    return max(float(values.mean()) - chance - 7.0 * (high - low) * needed / (3.0 * (n - 1)), low)
