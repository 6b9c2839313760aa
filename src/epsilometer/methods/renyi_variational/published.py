"""The published error bound of the variational estimate, for reproduction.

Reference: DP-Auditorium, Theorem 4.3 and Corollary 4.4. Its proof has gaps: the deviation of the left mean is taken
once where it enters α/(α − 1) times, the right one needs E_Q e^(αh) ≥ 1, and the smaller of two η is kept where the
larger is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.renyi_variational.objective import variational_value

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GUARANTEE = "none: the published Chernoff bound, whose proof has gaps (α/(α − 1) is lost, E_Q e^(αh) ≥ 1 is assumed)"


def published_error(order: float, bound: float, n: int, failure_probability: float) -> float:
    """ln((1 + η)/(1 − η)) with η = √(max{3e^(2(α−1)C), 2e^(αC)}·ln(2/β)/n); infinite when η is 1 or more.

    Args:
        order: α.
        bound: C, the largest |h|.
        n: draws of each side.
        failure_probability: β.

    Guarantee: none, see above.
    """
    powers = max(math.log(3.0) + 2.0 * (order - 1.0) * bound, math.log(2.0) + order * bound)
    eta = math.exp(min(0.5 * (powers + math.log(math.log(2.0 / failure_probability)) - math.log(max(n, 1))), 300.0))
    return math.log((1.0 + eta) / (1.0 - eta)) if eta < 1.0 else math.inf


def published_divergence(
    scores: Floats, left: Integers, right: Integers, order: float, failure_probability: float
) -> float:
    """The estimate on counts of cells less the published error; −inf where the error is infinite.

    A constant added to h changes nothing, so C is half the range of the scores.
    """
    n = int(min(left.sum(), right.sum()))
    error = published_error(order, half_range(scores), n, failure_probability)
    if not n or not math.isfinite(error):
        return -math.inf
    return variational_value(scores, left / left.sum(), right / right.sum(), order) - error


def half_range(scores: Floats) -> float:
    """The smallest C after the best shift."""
    return 0.5 * float(scores.max() - scores.min())
