"""Kernels, which distribute each draw over its neighbourhood, and bandwidths by rules of thumb."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError, blamed

# A kernel: its name, or the caller's own density K(u), a function from an array to one of the same
# shape.
KernelChoice = str | Callable[[Floats], Floats]
# A bandwidth: a number or one per coordinate, the name of a rule, or a function from the draws, of
# shape (n,) or (n, d), to either.
BandwidthChoice = Any

# The caller's own kernels are integrated over this many bandwidths to each side.
_INTEGRATION_LIMIT = 64.0
# Steps to each side: 2^-10 of a bandwidth each.
_INTEGRATION_STEPS = 1 << 16
# The integral may differ from 1 by this: a step times the jump of a kernel that is not continuous.
_INTEGRAL_ERROR = 5e-3
# K(u) and K(−u) may differ by this fraction of the peak.
_SYMMETRY_ERROR = 1e-6
# Next to the peak nothing below this fraction matters: what the Gaussian has five bandwidths out.
_NEGLIGIBLE = 4e-6
# A second moment below this is that of a kernel of higher order.
_NO_SECOND_MOMENT = 1e-2
# Interquartile range of a normal distribution in standard deviations, as R rounds it.
_NORMAL_QUARTILE_RANGE = 1.34


@dataclass(frozen=True, slots=True)
class Kernel:
    """A symmetric density on the line; `SpaceKernel` makes one of d dimensions of it.

    Kernels of higher order, such as Silverman's, are negative in places; so may be an estimate,
    until it is floored.

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


# The stretches are the ratios of the canonical bandwidths (Marron and Nolan 1988) to the
# Gaussian's.
KERNELS = {
    "gaussian": Kernel(
        name="gaussian",
        evaluate=_gaussian,
        peak=1.0 / math.sqrt(2.0 * math.pi),
        roughness=0.5 / math.sqrt(math.pi),
        # Five bandwidths out the Gaussian has 4e-6 of its peak.
        reach=5.0,
        stretch=1.0,
    ),
    "epanechnikov": Kernel(
        name="epanechnikov",
        evaluate=_epanechnikov,
        peak=0.75,
        roughness=0.6,
        reach=1.0,
        stretch=2.214,
    ),
    "biweight": Kernel(
        name="biweight",
        evaluate=_biweight,
        peak=0.9375,
        roughness=5.0 / 7.0,
        reach=1.0,
        stretch=2.623,
    ),
    "laplace": Kernel(
        name="laplace",
        evaluate=_laplace,
        peak=0.5,
        roughness=0.25,
        reach=12.5,
        stretch=0.740,
    ),
    "silverman": Kernel(
        name="silverman",
        evaluate=_silverman,
        peak=0.25 * math.sqrt(2.0),
        roughness=3.0 * math.sqrt(2.0) / 16.0,
        reach=17.5,
        # Its second moment is 0, so there is no canonical bandwidth; this one gives the estimate
        # the same variance.
        stretch=0.940,
    ),
}


def find_kernel(kernel: object) -> Kernel:
    """Returns the kernel of that name or made of that function; refuses anything else."""
    if callable(kernel):
        return _kernel_from_function(kernel)
    known = KERNELS.get(kernel) if isinstance(kernel, str) else None
    if known is None:
        raise InputError(
            f"kernel={kernel!r} is unknown; known are {', '.join(KERNELS)}, or give a function K(u)"
        )
    return known


@lru_cache(maxsize=16)
def _kernel_from_function(function: Callable[[Floats], Floats]) -> Kernel:
    """Returns a kernel from the caller's function, with constants by numerical integration."""
    name = getattr(function, "__name__", type(function).__name__)
    u = np.linspace(-_INTEGRATION_LIMIT, _INTEGRATION_LIMIT, 2 * _INTEGRATION_STEPS + 1)
    with blamed(f"kernel={name}: K(u) failed on an array of numbers"):
        values = np.asarray(function(u), dtype=np.float64)
    if values.shape != u.shape or not np.isfinite(values).all():
        raise InputError(
            f"kernel={name}: K(u) must give a finite number for each number of an array"
        )
    peak = float(np.abs(values).max())
    step = float(u[1] - u[0])
    integral = float(values.sum()) * step
    if not abs(integral - 1.0) < _INTEGRAL_ERROR:
        raise InputError(
            f"kernel={name}: its integral over [−{_INTEGRATION_LIMIT:g}, {_INTEGRATION_LIMIT:g}] "
            f"is {integral:.4g}, but must be 1"
        )
    if np.abs(values - values[::-1]).max() > _SYMMETRY_ERROR * peak:
        raise InputError(f"kernel={name}: K(−u) must equal K(u)")
    roughness = float(values @ values) * step
    second_moment = float(values @ u**2) * step
    gaussian_roughness = KERNELS["gaussian"].roughness
    if second_moment > _NO_SECOND_MOMENT:
        stretch = (roughness / second_moment**2 / gaussian_roughness) ** 0.2
    else:
        stretch = roughness / gaussian_roughness
    matters = np.abs(values) > _NEGLIGIBLE * peak
    return Kernel(
        name=name,
        evaluate=function,
        peak=peak,
        roughness=roughness,
        reach=float(np.abs(u[matters]).max()),
        stretch=stretch,
    )


# --- kernels in several dimensions ------------------------------------------------------------

SHAPES = ("product", "spherical")
# Nodes per unit of the radius at which a spherical kernel is integrated; a polynomial of degree 63
# is exact, and kinks of the known kernels lie at whole numbers.
_RADIAL_NODES = 32
# An integral this small next to that of the absolute value is none to divide by.
_NO_INTEGRAL = 1e-6


@dataclass(frozen=True, slots=True)
class SpaceKernel:
    """A symmetric density in d dimensions, made of one on the line.

    The product of d of them, or a function of the distance alone, c·K(|u|), as condition (K1) of
    the paper has it. For the Gaussian both are the same.

    Attributes:
        profile: the kernel on the line.
        dimensions: d.
        is_spherical: whether it depends on the distance alone.
        factor: c, which makes its integral 1; 1 for a product.
        roughness: the integral of its square.
        stretch: bandwidth that smooths as much as a Gaussian kernel of bandwidth 1.

    Reference: Askin, Kutta, Dette (2022), Section II-B and Appendix B.
    """

    profile: Kernel
    dimensions: int
    is_spherical: bool
    factor: float
    roughness: float
    stretch: float

    @property
    def peak(self) -> float:
        """Its greatest value."""
        if self.is_spherical:
            return self.factor * self.profile.peak
        return float(self.profile.peak**self.dimensions)

    @property
    def reach(self) -> float:
        """Beyond this many bandwidths in a coordinate it is 0, or too small to matter."""
        return self.profile.reach

    def evaluate(self, u: Floats) -> Floats:
        """Returns the density at u, shape (…, d), without the last axis."""
        if self.is_spherical:
            return self.at_distance(np.sqrt((u * u).sum(axis=-1)))
        return np.asarray(self.profile.evaluate(u).prod(axis=-1), dtype=np.float64)

    def at_distance(self, distance: Floats) -> Floats:
        """Returns the density of a spherical kernel at a distance, any shape."""
        return np.asarray(self.factor * self.profile.evaluate(distance), dtype=np.float64)


def find_space_kernel(kernel: object, shape: str, dimensions: int) -> SpaceKernel:
    """Returns the kernel in d dimensions of that name or function.

    Args:
        kernel: a name of `KERNELS`, or the caller's function on the line.
        shape: "product" or "spherical".
        dimensions: d.

    Raises:
        InputError: there is no such kernel, or its spherical form has no positive integral.
    """
    profile = find_kernel(kernel)
    if shape == "product" or dimensions == 1 or profile is KERNELS["gaussian"]:
        return SpaceKernel(
            profile=profile,
            dimensions=dimensions,
            is_spherical=False,
            factor=1.0,
            roughness=float(profile.roughness**dimensions),
            stretch=profile.stretch,
        )
    return _spherical_kernel(profile, dimensions)


@lru_cache(maxsize=64)
def _spherical_kernel(profile: Kernel, dimensions: int) -> SpaceKernel:
    """Returns c·K(|u|) with its constants, by integrals over the radius."""
    nodes, node_weights = np.polynomial.legendre.leggauss(_RADIAL_NODES)
    starts = np.arange(_INTEGRATION_LIMIT)[:, None]
    radius = (starts + (nodes + 1.0) / 2.0).ravel()
    # Relative to the surface of the unit sphere, which cancels in `factor`.
    weights = np.tile(node_weights / 2.0, len(starts)) * radius ** (dimensions - 1)
    values = profile.evaluate(radius)
    integral = float(weights @ values)
    if not integral > _NO_INTEGRAL * float(weights @ np.abs(values)):
        raise InputError(
            f"kernel={profile.name}, kernel_shape='spherical': its integral over {dimensions} "
            "dimensions is not positive; take kernel_shape='product' or another kernel"
        )
    sphere = 2.0 * math.pi ** (dimensions / 2.0) / math.gamma(dimensions / 2.0)
    factor = 1.0 / (sphere * integral)
    roughness = float(weights @ values**2) * sphere * factor**2
    # The second moment of one coordinate is that of the distance divided by d.
    second_moment = float(weights @ (values * radius**2)) * sphere * factor / dimensions
    gaussian_roughness = (4.0 * math.pi) ** (-dimensions / 2.0)
    if second_moment > _NO_SECOND_MOMENT:
        canonical = roughness / second_moment**2 / gaussian_roughness
        stretch = canonical ** (1.0 / (dimensions + 4.0))
    else:
        stretch = (roughness / gaussian_roughness) ** (1.0 / dimensions)
    return SpaceKernel(
        profile=profile,
        dimensions=dimensions,
        is_spherical=True,
        factor=factor,
        roughness=roughness,
        stretch=stretch,
    )


# --- bandwidths -------------------------------------------------------------------------------

# Factors of the normal reference rules, by R's names and by their authors'. Ours is Silverman's.
RULES = {
    "nrd0": 0.9,
    "nrd": 1.06,
    "silverman": 0.9,
    "scott": 1.06,
}


def own_bandwidth(name: str, function: Callable[[Floats], Any], rows: Floats) -> Floats:
    """Returns the bandwidth that the caller's function gives for these draws, shape (d,).

    Args:
        name: of the setting, for error texts.
        function: from draws of shape (n,) or (n, d) to a number, or to one per coordinate.
        rows: shape (n, d).
    """
    d = rows.shape[1]
    with blamed(f"{name}={function!r:.80} failed on draws of shape {rows.shape}"):
        h = np.asarray(function(rows[:, 0] if d == 1 else rows), dtype=np.float64)
    if h.size not in (1, d) or not (np.isfinite(h) & (h > 0.0)).all():
        raise InputError(
            f"{name}={function!r:.80} gave {h!r:.80}; it must be positive, one number or one per "
            "coordinate"
        )
    return np.broadcast_to(h.ravel(), (d,)).copy()


def robust_scales(sample: Floats) -> Floats:
    """Returns a robust scale of each coordinate, shape (d,).

    It is the smaller of the standard deviation and the interquartile range, scaled to be the
    standard deviation of a normal distribution.

    Args:
        sample: shape (n, d).
    """
    low, high = np.quantile(sample, [0.25, 0.75], axis=0)
    # A single 1e300 has an infinite variance.
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = sample.std(axis=0, ddof=1) if len(sample) > 1 else np.zeros(sample.shape[1])
    scale: Floats = np.minimum(deviation, (high - low) / _NORMAL_QUARTILE_RANGE)
    # As in R: where the middle half is one value, the deviation …
    scale = np.where(scale > 0.0, scale, deviation)
    # … and where everything is one value, that value, or 1.
    constant = np.where(sample[0] == 0.0, 1.0, np.abs(sample[0]))
    return np.where(scale > 0.0, scale, constant)


def rule_of_thumb(
    scales: Floats,
    n: int,
    kernel: Kernel | SpaceKernel,
    undersmoothing: float = 0.0,
    rule: str = "nrd0",
) -> Floats:
    """Returns 0.9 · scale · n^(−1/(d+4)) · n^(−undersmoothing) for each coordinate, shape (d,).

    The factor 0.9 is that of R's "nrd0"; the normal reference rule varies by 15 % up to d = 4.

    Args:
        scales: shape (d,), of the draws.
        n: draws.
        kernel: whose bandwidth it is.
        undersmoothing: γ.
        rule: a name of `RULES`.

    Reference: Silverman (1986), "Density estimation for statistics and data analysis", (3.31);
        `bw.nrd0` of R.
    """
    rate = float(n) ** (-1.0 / (len(scales) + 4.0) - undersmoothing)
    return np.asarray(RULES[rule] * kernel.stretch * scales * rate, dtype=np.float64)


# --- binning and convolution ------------------------------------------------------------------


def bin_linearly(scaled: Floats, shape: tuple[int, ...]) -> Floats:
    """Divides every draw among the corners of its grid cell, and sums what each point gets.

    Args:
        scaled: shape (n, d), the draws in steps of the grid from its first point, none outside it.
        shape: of the grid, and of the result.
    """
    cells = np.minimum(scaled.astype(np.int64), np.array(shape) - 2)
    fractions = scaled - cells
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    lowest_corner = cells @ strides
    total = np.zeros(math.prod(shape))
    for corner in product((0, 1), repeat=len(shape)):
        weights = np.prod(np.where(corner, fractions, 1.0 - fractions), axis=1)
        total += np.bincount(lowest_corner + int(np.dot(corner, strides)), weights, len(total))
    return total.reshape(shape)


def convolve(values: Floats, weights: Floats) -> Floats:
    """Returns the full convolution along the last axis, with zeros beyond the ends, by the FFT."""
    size = values.shape[-1] + len(weights) - 1
    # The next power of 2.
    length = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(values, length) * np.fft.rfft(weights, length)
    return np.asarray(np.fft.irfft(spectrum, length)[..., :size], dtype=np.float64)
