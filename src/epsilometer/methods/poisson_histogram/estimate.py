"""The published estimate of the hockey-stick divergence from two histograms, with a Poisson number of draws.

Reference: DP-Auditorium, Algorithm 3, after Gilbert and McMillan, "Property testing for differential privacy".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.claims.base import as_number, check_whole
from epsilometer.errors import InputError

Integers = NDArray[np.int64]

# How many draws are used must not depend on them, so their number has a seed of its own.
_SEED = 20_180_617


@dataclass(frozen=True, slots=True)
class HistogramEstimate:
    """What Algorithm 3 returns, and what it needed.

    Attributes:
        value: Σ max(0, (x_j − e^ε·y_j)/r) − η; an estimate, not a bound.
        wanted: r, the Poisson number of draws per side that it asked for.
        used: how many it got.
        mean: λ, the mean of r.
    """

    value: float
    wanted: int
    used: int
    mean: float

    @property
    def is_complete(self) -> bool:
        """Whether there were as many draws as it asked for."""
        return self.used >= self.wanted > 0


def poisson_mean(n_cells: int, epsilon: float, tolerance: float, margin: float) -> float:
    """λ = max{4m(1 + e^2ε)/β², 12(1 + e^2ε)/η²}, with m cells, tolerance β and margin η."""
    check_whole("n_cells", n_cells)
    for name, value in (("tolerance", tolerance), ("margin", margin)):
        if not 0.0 < as_number(name, value) < math.inf:
            raise InputError(f"{name}={value!r} makes no sense: it must be a positive number")
    grow = 1.0 + math.exp(min(2.0 * epsilon, 700.0))
    return max(4.0 * n_cells * grow / tolerance**2, 12.0 * grow / margin**2)


def estimate(
    left: ArrayLike, right: ArrayLike, epsilon: float, tolerance: float = 1.0 / 3.0, margin: float = 0.05
) -> HistogramEstimate:
    """Algorithm 3 on the histograms of two samples.

    Independent draws are exchangeable, so a random part of each histogram is the histogram of fewer draws. Where there
    are fewer draws than r, all are used, and the estimate says so.

    Args:
        left: shape (cells,), counts of the draws of P.
        right: the same for Q.
        epsilon: of the divergence.
        tolerance: β; the bias of the estimate is at most β/4, upwards.
        margin: η, what is subtracted for chance.

    Guarantee: none as a lower bound, because the bias is not subtracted.
    """
    x, y = (np.asarray(side, dtype=np.int64) for side in (left, right))
    mean = poisson_mean(len(x), epsilon, tolerance, margin)
    rng = np.random.default_rng(_SEED)
    # A Poisson number beyond what NumPy can draw is beyond any sample, too.
    wanted = int(rng.poisson(min(mean, 1e18)))
    used = min(wanted, int(x.sum()), int(y.sum()))
    if used < 1:
        return HistogramEstimate(-margin, wanted, 0, mean)
    parts = [rng.multivariate_hypergeometric(side, used, method="marginals") for side in (x, y)]
    excess = (parts[0] - math.exp(min(epsilon, 700.0)) * parts[1]) / used
    return HistogramEstimate(float(np.maximum(excess, 0.0).sum()) - margin, wanted, used, mean)
