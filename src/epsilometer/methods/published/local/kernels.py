"""Kernels, which spread each draw over its neighbourhood, and their bandwidths by a rule of thumb."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError


@dataclass(frozen=True, slots=True)
class Kernel:
    """A symmetric density on the line; in d dimensions the product of d of them.

    Attributes:
        name: as `kernel=` takes it.
        evaluate: the density, same shape as its argument.
        peak: its greatest value.
        roughness: the integral of its square in one dimension.
        reach: beyond this many bandwidths it is 0, or too small to matter next to any floor.
        stretch: bandwidth that smooths as much as a Gaussian kernel of bandwidth 1.
    """

    name: str
    evaluate: Callable[[Floats], Floats]
    peak: float
    roughness: float
    reach: float
    stretch: float


def _gaussian(u: Floats) -> Floats:
    density: Floats = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return density


def _epanechnikov(u: Floats) -> Floats:
    return 0.75 * np.maximum(1.0 - u * u, 0.0)


def _biweight(u: Floats) -> Floats:
    return 0.9375 * np.maximum(1.0 - u * u, 0.0) ** 2


# The stretches are the ratios of the canonical bandwidths (Marron and Nolan 1988) to the Gaussian's.
KERNELS = {
    kernel.name: kernel
    for kernel in (
        # Five bandwidths out the Gaussian has 4e-6 of its peak.
        Kernel("gaussian", _gaussian, 1.0 / math.sqrt(2.0 * math.pi), 0.5 / math.sqrt(math.pi), 5.0, 1.0),
        Kernel("epanechnikov", _epanechnikov, 0.75, 0.6, 1.0, 2.214),
        Kernel("biweight", _biweight, 0.9375, 5.0 / 7.0, 1.0, 2.623),
    )
}


def find_kernel(name: object) -> Kernel:
    """The kernel of that name, or an InputError."""
    kernel = KERNELS.get(name) if isinstance(name, str) else None
    if kernel is None:
        raise InputError(f"kernel={name!r} is unknown; known are {', '.join(KERNELS)}")
    return kernel


# Silverman's rule, R's "nrd0", has 0.9 in one dimension; the normal reference rule varies by 15 % up to d = 4.
_FACTOR = 0.9
# Width of the middle half of a normal distribution in standard deviations, as R rounds it.
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
