"""Bandwidths by a rule of thumb."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.local.kernels import Kernel

Floats = NDArray[np.float64]

# Silverman's rule, R's "nrd0", has 0.9 in one dimension; the normal reference rule varies by 15 % up to d = 4.
_FACTOR = 0.9
# Width of the middle half of a normal law in standard deviations, as R rounds it.
_MIDDLE_HALF = 1.34


def spreads(sample: Floats) -> Floats:
    """The robust spread of each coordinate, shape (d,): the smaller of standard deviation and scaled middle half.

    Args:
        sample: shape (n, d).
    """
    quartiles = np.quantile(sample, [0.25, 0.75], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # a single 1e300 has an infinite variance
        deviation = sample.std(axis=0, ddof=1) if len(sample) > 1 else np.zeros(sample.shape[1])
    spread: Floats = np.minimum(deviation, (quartiles[1] - quartiles[0]) / _MIDDLE_HALF)
    # As in R: where the middle half is one value, the deviation; where everything is, that value, or 1.
    spread = np.where(spread > 0.0, spread, deviation)
    return np.where(spread > 0.0, spread, np.where(sample[0] == 0.0, 1.0, np.abs(sample[0])))


def rule_of_thumb(spread: Floats, n: int, kernel: Kernel, undersmoothing: float = 0.0) -> Floats:
    """A bandwidth for each coordinate, shape (d,): 0.9 · spread · n^(−1/(d+4)), times n^(−undersmoothing).

    Reference: Silverman, "Density estimation for statistics and data analysis", 3.31; `bw.nrd0` of R.
    """
    bandwidth: Floats = _FACTOR * kernel.stretch * spread * float(n) ** (-1.0 / (len(spread) + 4.0) - undersmoothing)
    return bandwidth
