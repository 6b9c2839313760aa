"""Kernels, which spread each draw over its neighbourhood, and their bandwidths by a rule of thumb."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError, blamed


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

    Kernels of higher order, such as Silverman's, are negative in places; so may be an estimate,
    until it is floored.
    """

    name: str
    evaluate: Callable[[Floats], Floats]
    peak: float
    roughness: float
    reach: float
    stretch: float


def _gaussian(u: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi), dtype=np.float64)


def _epanechnikov(u: Floats) -> Floats:
    return 0.75 * np.maximum(1.0 - u * u, 0.0)


def _biweight(u: Floats) -> Floats:
    return 0.9375 * np.maximum(1.0 - u * u, 0.0) ** 2


def _laplace(u: Floats) -> Floats:
    return np.asarray(0.5 * np.exp(-np.abs(u)), dtype=np.float64)


def _silverman(u: Floats) -> Floats:
    wave = np.abs(u) / math.sqrt(2.0)
    return np.asarray(0.5 * np.exp(-wave) * np.sin(wave + math.pi / 4.0), dtype=np.float64)


# A kernel: its name, or the caller's own density K(u), which is given and returns arrays of one
# shape.
KernelChoice = str | Callable[[Floats], Floats]
# The stretches are the ratios of the canonical bandwidths (Marron and Nolan 1988) to the
# Gaussian's.
KERNELS = {
    kernel.name: kernel
    for kernel in (
        # Five bandwidths out the Gaussian has 4e-6 of its peak.
        Kernel(
            "gaussian",
            _gaussian,
            1.0 / math.sqrt(2.0 * math.pi),
            0.5 / math.sqrt(math.pi),
            5.0,
            1.0,
        ),
        Kernel("epanechnikov", _epanechnikov, 0.75, 0.6, 1.0, 2.214),
        Kernel("biweight", _biweight, 0.9375, 5.0 / 7.0, 1.0, 2.623),
        Kernel("laplace", _laplace, 0.5, 0.25, 12.5, 0.740),
        # Its second moment is 0, so there is no canonical bandwidth; this one gives the estimate
        # the same variance.
        Kernel(
            "silverman", _silverman, 0.25 * math.sqrt(2.0), 3.0 * math.sqrt(2.0) / 16.0, 17.5, 0.940
        ),
    )
}
# The caller's own kernels are integrated over this many bandwidths to each side, in steps of 2^-10.
_FAR = 64.0
_STEPS_TO_FAR = 1 << 16
# A step of the integral times the jump of a kernel that is not continuous.
_INTEGRAL_ERROR = 5e-3
# Next to the peak nothing below this matters: what the Gaussian has five bandwidths out.
_NEGLIGIBLE = 4e-6
# A second moment below this is that of a kernel of higher order.
_NO_SECOND_MOMENT = 1e-2


def find_kernel(kernel: object) -> Kernel:
    """The kernel of that name or made of that function, or an InputError."""
    if callable(kernel):
        return _own_kernel(kernel)
    known = KERNELS.get(kernel) if isinstance(kernel, str) else None
    if known is None:
        raise InputError(
            f"kernel={kernel!r} is unknown; known are {', '.join(KERNELS)}, or give a function K(u)"
        )
    return known


@lru_cache(maxsize=16)
def _own_kernel(function: Callable[[Floats], Floats]) -> Kernel:
    """A kernel from the caller's function, with its constants by numerical integration."""
    name = getattr(function, "__name__", type(function).__name__)
    u = np.linspace(-_FAR, _FAR, 2 * _STEPS_TO_FAR + 1)
    with blamed(f"kernel={name}: K(u) failed on an array of numbers"):
        values = np.asarray(function(u), dtype=np.float64)
    if values.shape != u.shape or not np.isfinite(values).all():
        raise InputError(
            f"kernel={name}: K(u) must give a finite number for each number of an array"
        )
    peak = float(np.abs(values).max())
    step = float(u[1] - u[0])
    total = float(values.sum()) * step
    if not abs(total - 1.0) < _INTEGRAL_ERROR:
        raise InputError(
            f"kernel={name}: its integral over [−{_FAR:g}, {_FAR:g}] is {total:.4g}, but must be 1"
        )
    if np.abs(values - values[::-1]).max() > 1e-6 * peak:
        raise InputError(f"kernel={name}: K(−u) must equal K(u)")
    roughness = float(values @ values) * step
    second = float(values @ u**2) * step
    gaussian = KERNELS["gaussian"].roughness
    has_second = second > _NO_SECOND_MOMENT
    stretch = (roughness / second**2 / gaussian) ** 0.2 if has_second else roughness / gaussian
    return Kernel(
        name,
        function,
        peak,
        roughness,
        float(np.abs(u[np.abs(values) > _NEGLIGIBLE * peak]).max()),
        stretch,
    )


# A bandwidth: a number or one per coordinate, the name of a rule, or a function from the draws, of
# shape (n,) or (n, d), to either.
BandwidthChoice = Any
# Factors of the normal reference rules, by R's names: Silverman's, which is ours, and Scott's.
RULES = {"nrd0": 0.9, "nrd": 1.06, "silverman": 0.9, "scott": 1.06}


def own_bandwidth(name: str, function: Callable[[Floats], Any], rows: Floats) -> Floats:
    """What the caller's function says about these draws, shape (d,), or an InputError.

    Args:
        rows: shape (n, d).
    """
    with blamed(f"{name}={function!r:.80} failed on draws of shape {rows.shape}"):
        h = np.asarray(function(rows[:, 0] if rows.shape[1] == 1 else rows), dtype=np.float64)
    if h.size not in (1, rows.shape[1]) or not (np.isfinite(h) & (h > 0.0)).all():
        text = f"{name}={function!r:.80} gave {h!r:.80}; it must be positive, one number or one per coordinate"
        raise InputError(text)
    return np.broadcast_to(h.ravel(), (rows.shape[1],)).copy()


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
    # As in R: where the middle half is one value, the deviation; where everything is, that value,
    # or 1.
    spread = np.where(spread > 0.0, spread, deviation)
    return np.where(spread > 0.0, spread, np.where(sample[0] == 0.0, 1.0, np.abs(sample[0])))


def rule_of_thumb(
    spread: Floats, n: int, kernel: Kernel, undersmoothing: float = 0.0, rule: str = "nrd0"
) -> Floats:
    """A bandwidth for each coordinate, shape (d,): 0.9 · spread · n^(−1/(d+4)), times n^(−undersmoothing).

    The factor 0.9 is that of R's "nrd0"; the normal reference rule varies by 15 % up to d = 4.

    Reference: Silverman, "Density estimation for statistics and data analysis", 3.31; `bw.nrd0` of
        R.
    """
    rate = float(n) ** (-1.0 / (len(spread) + 4.0) - undersmoothing)
    return np.asarray(RULES[rule] * kernel.stretch * spread * rate, dtype=np.float64)


def bin_linearly(scaled: Floats, shape: tuple[int, ...]) -> Floats:
    """How much of the draws each point of a grid gets, when every draw is shared among the corners of its cell.

    Args:
        scaled: shape (n, d), the draws in steps of the grid from its first point, none outside it.
        shape: of the grid, and of the result.
    """
    cell = np.minimum(scaled.astype(np.int64), np.array(shape) - 2)
    share = scaled - cell
    strides = np.array([math.prod(shape[j + 1 :]) for j in range(len(shape))])
    first = cell @ strides
    total = np.zeros(math.prod(shape))
    for corner in product((0, 1), repeat=len(shape)):
        weight = np.prod(np.where(corner, share, 1.0 - share), axis=1)
        total += np.bincount(first + int(np.dot(corner, strides)), weight, len(total))
    return total.reshape(shape)


def convolve(values: Floats, weights: Floats) -> Floats:
    """The whole convolution along the last axis, by the fast Fourier transform, with zeros beyond the ends."""
    size = values.shape[-1] + len(weights) - 1
    length = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(values, length) * np.fft.rfft(weights, length)
    return np.asarray(np.fft.irfft(spectrum, length)[..., :size], dtype=np.float64)
