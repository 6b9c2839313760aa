"""How wide a Gaussian kernel should be: the direct plug-in rule, from counts on an even grid.

Reference: Wand and Jones, "Kernel smoothing", section 3.6 (two stages; known as `dpik` in R's KernSmooth).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The published experiments raise the bandwidth to this power, so that the bias vanishes faster than the spread.
UNDERSMOOTHING = 1.1
# Distance of the quartiles of the normal law, in standard deviations.
_QUARTILES = 1.349


def spread_of(counts: Floats, spacing: float) -> float:
    """The smaller of the standard deviation and the scaled distance of the quartiles."""
    total = counts.sum()
    place = np.arange(len(counts)) * spacing
    mean = counts @ place / total
    deviation = math.sqrt(max(counts @ (place - mean) ** 2 / total, 0.0))
    running = np.cumsum(counts) / total
    low, high = np.interp([0.25, 0.75], running, place)
    quartiles = float(high - low) / _QUARTILES
    return min(deviation, quartiles) if quartiles > 0.0 else deviation


def plug_in_bandwidth(counts: Floats, spacing: float) -> float:
    """The bandwidth that minimises the estimated mean integrated squared error.

    Args:
        counts: shape (k,), draws binned linearly to an even grid.
        spacing: distance of the grid points.
    """
    n = float(counts.sum())
    spread = spread_of(counts, spacing)
    if not spread > 0.0:
        return spacing
    step = spacing / spread
    first = (2.0 * math.sqrt(2.0) ** 9 / (7.0 * n)) ** (1.0 / 9.0)
    sixth = _derivative_functional(counts, step, 6, first)
    if not sixth < 0.0:  # only rounding can bring it here
        return _thumb(spread, n)
    second = (-3.0 * math.sqrt(2.0 / math.pi) / (sixth * n)) ** (1.0 / 7.0)
    fourth = _derivative_functional(counts, step, 4, second)
    if not fourth > 0.0:
        return _thumb(spread, n)
    return float(spread * (4.0 * math.pi) ** -0.1 * (1.0 / (fourth * n)) ** 0.2)


def _thumb(spread: float, n: float) -> float:
    """The normal reference rule."""
    return float(1.06 * spread * n**-0.2)


def undersmoothed(bandwidth: float, spread: float, power: float = UNDERSMOOTHING) -> float:
    """The bandwidth raised to a power, in units of the spread: a change of units then changes nothing else."""
    return bandwidth if not spread > 0.0 else spread * (bandwidth / spread) ** power


def smooth(counts: Floats, spacing: float, bandwidth: float) -> Floats:
    """Counts averaged with a Gaussian kernel along the last axis; what leaves the grid is lost, the rest is kept.

    The kernel's weights sum to 1 whatever its width: a kernel narrower than the grid leaves a histogram.
    """
    reach = min(int(5.0 * bandwidth / spacing), counts.shape[-1] - 1)
    if reach < 1:
        return counts.astype(np.float64)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * (spacing / bandwidth)) ** 2)
    return np.maximum(_convolve(counts, kernel / kernel.sum()), 0.0)


def _derivative_functional(counts: Floats, step: float, degree: int, bandwidth: float) -> float:
    """The estimate of ∫ f^(degree)·f, for draws in units of their spread."""
    n = counts.sum()
    reach = min(int((4.0 + degree) * bandwidth / step), len(counts) - 1)
    z = np.arange(-reach, reach + 1) * (step / bandwidth)
    coefficients = np.zeros(degree + 1)
    coefficients[degree] = 1.0
    kernel = np.polynomial.hermite_e.hermeval(z, coefficients) * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return float(counts @ _convolve(counts, kernel / bandwidth ** (degree + 1)) / n**2)


def _convolve(counts: Floats, kernel: Floats) -> Floats:
    """Along the last axis, with a kernel of odd length, by the fast Fourier transform; the ends see zeros beyond."""
    size, reach = counts.shape[-1], len(kernel) // 2
    length = 1 << (size + 2 * reach - 1).bit_length()
    product = np.fft.rfft(counts, length) * np.fft.rfft(kernel, length)
    return np.asarray(np.fft.irfft(product, length)[..., reach : reach + size], dtype=np.float64)
