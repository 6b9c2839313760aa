"""The empirical Bernstein bound on the mean of bounded independent values.

For n independent, identically distributed values in [0, 1] with mean μ, sample mean m and unbiased
sample variance V, with probability at least 1 − f,

    μ ≤ m + √(2·V·ln(2/f)/n) + 7·ln(2/f)/(3·(n − 1)).

Applied to (high − value)/(high − low) it bounds the mean of values in [low, high] from below.

Reference: Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (2009),
Theorem 4.
"""

import math

from epsilometer.arrays import Floats
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.errors import InputError


def bernstein_lower(values: Floats, low: float, high: float, failure_probability: float) -> float:
    """Returns a lower bound on the mean of independent, identically distributed bounded values.

    Args:
        values: shape (n,); with fewer than two values the bound is `low`.
        low: the least possible value.
        high: the greatest possible value.
        failure_probability: what is spent on the bound.

    Guarantee: above the true mean with at most `failure_probability`. Exact for every n.
    """
    check_failure_probability(failure_probability)
    is_outside = len(values) > 0 and not (low <= values.min() and values.max() <= high)
    if not low < high or is_outside:
        raise InputError(f"low={low!r}, high={high!r}: all values must lie between them")
    n = len(values)
    if n < 2:
        return low
    log_term = math.log(2.0 / failure_probability)
    # The theorem is about the unbiased variance, divided by n − 1.
    variance = float(values.var(ddof=1))
    variance_term = math.sqrt(2.0 * variance * log_term / n)
    range_term = 7.0 * (high - low) * log_term / (3.0 * (n - 1))
    return max(float(values.mean()) - variance_term - range_term, low)
