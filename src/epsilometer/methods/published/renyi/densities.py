"""Two samples as densities at the same points: relative frequencies, or kernel estimates with the plug-in bandwidth."""

import math
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Array, Floats
from epsilometer.claims.base import check_at_least, check_positive
from epsilometer.errors import InputError
from epsilometer.methods.published.local import kernels
from epsilometer.methods.published.local.kernels import (
    KERNELS,
    RULES,
    BandwidthChoice,
    Kernel,
    KernelChoice,
)

# The published experiments raise the bandwidth to this power, so that the bias vanishes faster than
# the spread.
UNDERSMOOTHING = 1.1
# Distance of the quartiles of the normal distribution, in standard deviations.
_QUARTILES = 1.349


def spread_of(counts: Floats, spacing: float) -> float:
    """The smaller of the standard deviation and the scaled distance of the quartiles."""
    total = counts.sum()
    place = np.arange(len(counts)) * spacing
    mean = counts @ place / total
    deviation = math.sqrt(max(counts @ (place - mean) ** 2 / total, 0.0))
    low, high = np.interp([0.25, 0.75], np.cumsum(counts) / total, place)
    quartiles = float(high - low) / _QUARTILES
    return min(deviation, quartiles) if quartiles > 0.0 else deviation


def plug_in_bandwidth(counts: Floats, spacing: float) -> float:
    """The bandwidth that minimises the estimated mean integrated squared error.

    Args:
        counts: shape (k,), draws binned linearly to an even grid.
        spacing: distance between grid points.
    """
    n = float(counts.sum())
    spread = spread_of(counts, spacing)
    if not spread > 0.0:
        return spacing
    step = spacing / spread
    first = (2.0 * math.sqrt(2.0) ** 9 / (7.0 * n)) ** (1.0 / 9.0)
    sixth = _derivative_functional(counts, step, 6, first)
    if sixth < 0.0:
        second = (-3.0 * math.sqrt(2.0 / math.pi) / (sixth * n)) ** (1.0 / 7.0)
        fourth = _derivative_functional(counts, step, 4, second)
        if fourth > 0.0:
            return float(spread * (4.0 * math.pi) ** -0.1 * (1.0 / (fourth * n)) ** 0.2)
    return float(1.06 * spread * n**-0.2)  # the normal reference rule; only rounding can lead here


def undersmoothed(bandwidth: float, spread: float, power: float = UNDERSMOOTHING) -> float:
    """The bandwidth raised to a power, in units of the spread: a change of units then changes nothing else."""
    return bandwidth if not spread > 0.0 else spread * (bandwidth / spread) ** power


def smooth(
    counts: Floats, spacing: float, bandwidth: float, kernel: Kernel = KERNELS["gaussian"]
) -> Floats:
    """Counts averaged with a kernel along the last axis; what leaves the grid is lost.

    The kernel's weights sum to 1 whatever its width: a kernel narrower than the grid leaves a
    histogram.
    """
    reach = min(int(kernel.reach * bandwidth / spacing), counts.shape[-1] - 1)
    if reach < 1:
        return counts.astype(np.float64)
    weights = kernel.evaluate(np.arange(-reach, reach + 1) * (spacing / bandwidth))
    return np.maximum(
        kernels.convolve(counts, weights / weights.sum())[..., reach : reach + counts.shape[-1]],
        0.0,
    )


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How densities are estimated from counts on a grid.

    Attributes:
        power: to which the bandwidth of a rule is raised, in units of the spread.
        kernel: its name, or a function K(u).
        bandwidth: None or "dpik" for the plug-in rule, "nrd0" or "nrd" for the normal reference
            rules; a number, or a function from the draws of one coordinate to a number, is taken as
            it is.
    """

    power: float = UNDERSMOOTHING
    kernel: KernelChoice = "gaussian"
    bandwidth: BandwidthChoice = None

    def __post_init__(self) -> None:
        check_at_least("undersmoothing", self.power, 1.0)  # 1 keeps the bandwidth of the rule
        kernels.find_kernel(self.kernel)
        given = self.bandwidth
        if isinstance(given, str) and given not in ("dpik", *RULES):
            raise InputError(
                f"bandwidth={given!r} must be one of dpik, {', '.join(RULES)}, a number or a function"
            )
        if given is not None and not callable(given) and not isinstance(given, str):
            check_positive("bandwidth", given)

    def width(self, counts: Floats, spacing: float, dimensions: int) -> float:
        """The bandwidth for draws that were binned linearly to an even grid, counts of shape (k,)."""
        if callable(self.bandwidth):
            draws = np.repeat(np.arange(len(counts)) * spacing, np.rint(counts).astype(np.int64))
            return float(kernels.own_bandwidth("bandwidth", self.bandwidth, draws[:, None])[0])
        if self.bandwidth is not None and not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        spread = spread_of(counts, spacing)
        n = float(counts.sum())
        if self.bandwidth in RULES:
            rule = RULES[self.bandwidth] * spread * n ** (-1.0 / (dimensions + 4.0))
        else:
            # Plug-in rules for two dimensions couple the axes; the normal reference rule does not.
            rule = (
                plug_in_bandwidth(counts, spacing)
                if dimensions == 1
                else spread * n ** (-1.0 / 6.0)
            )
        return undersmoothed(kernels.find_kernel(self.kernel).stretch * rule, spread, self.power)


def _derivative_functional(counts: Floats, step: float, degree: int, bandwidth: float) -> float:
    """The estimate of ∫ f^(degree)·f, for draws in units of their spread."""
    n = counts.sum()
    reach = min(int((4.0 + degree) * bandwidth / step), len(counts) - 1)
    z = np.arange(-reach, reach + 1) * (step / bandwidth)
    kernel = (
        np.polynomial.hermite_e.HermiteE.basis(degree)(z)
        * np.exp(-0.5 * z * z)
        / math.sqrt(2.0 * math.pi)
    )
    smoothed = kernels.convolve(counts, kernel / bandwidth ** (degree + 1))[
        reach : reach + len(counts)
    ]
    return float(counts @ smoothed / n**2)


Box = tuple[tuple[float, float], ...]

# Points of the grid in one dimension (as published) and per axis in two.
GRID_POINTS = {1: 1000, 2: 256}
# Draws that are binned at a time: their temporary arrays fit the cache.
_PIECE = 1 << 15
# A range whose square, or that of its inverse, overflows has no even grid.
_EXTREME = 1e150


@dataclass(frozen=True, slots=True)
class Densities:
    """Two estimated densities.

    Attributes:
        p: shape (k,), of the left outputs.
        q: shape (k,), of the right ones.
        width: what one point stands for: 1 for probabilities, else the length or area of a grid
            cell.
        sizes: draws behind p and q.
        unit: the spread of the outputs (its product over the axes), 1 for probabilities: densities
            are in 1/unit.
    """

    p: Floats
    q: Floats
    width: float
    sizes: tuple[int, int]
    unit: float = 1.0

    @classmethod
    def of_counts(cls, left: Array, right: Array) -> "Densities":
        """Relative frequencies from counts of the same outputs, shape (k,)."""
        sizes = int(left.sum()), int(right.sum())
        return cls(left / sizes[0], right / sizes[1], 1.0, sizes)


@dataclass(frozen=True, slots=True)
class EvenGrid:
    """An even grid in one or two dimensions.

    Attributes:
        box: lowest and highest point of each axis.
    """

    box: Box

    @property
    def points(self) -> int:
        """Per axis."""
        return GRID_POINTS[len(self.box)]

    @property
    def spacings(self) -> tuple[float, ...]:
        """Distance between neighbouring points, per axis."""
        return tuple((high - low) / (self.points - 1) for low, high in self.box)

    def count(self, values: Floats) -> Floats:
        """Draws of shape (n, d) shared linearly among their grid neighbours, shape (points,)·d; others at the ends."""
        shape = (self.points,) * len(self.box)
        low = [end for end, _ in self.box]
        # A grid of a single point has no spacing: everything is at its first point.
        steps = [spacing or 1.0 for spacing in self.spacings]
        total = np.zeros(shape)
        for start in range(0, len(values), _PIECE):
            scaled = (values[start : start + _PIECE] - low) / steps
            total += kernels.bin_linearly(np.clip(scaled, 0.0, self.points - 1), shape)
        return total

    def densities(
        self,
        left: Floats,
        right: Floats,
        smoothing: Smoothing,
        sizes: tuple[int, int] | None = None,
    ) -> Densities:
        """Kernel estimates from the binned counts of both sides.

        Args:
            left: counts, shape (points,)·d.
            right: likewise.
            smoothing: kernel and bandwidth.
            sizes: all draws of each side, when some are not numbers and have no place on the grid.
        """
        sizes = sizes or (round(float(left.sum())), round(float(right.sum())))
        area = math.prod(self.spacings)
        p, q = (self._kernel_estimate(counts, smoothing) / area for counts in (left, right))
        units = [
            spread_of(_marginal(left + right, axis), self.spacings[axis])
            for axis in range(len(self.box))
        ]
        return Densities(p.ravel() / sizes[0], q.ravel() / sizes[1], area, sizes, math.prod(units))

    def _kernel_estimate(self, counts: Floats, smoothing: Smoothing) -> Floats:
        smoothed = counts
        kernel = kernels.find_kernel(smoothing.kernel)
        for axis, spacing in enumerate(self.spacings):
            width = smoothing.width(_marginal(counts, axis), spacing, len(self.box))
            smoothed = np.moveaxis(
                smooth(np.moveaxis(smoothed, axis, -1), spacing, width, kernel), -1, axis
            )
        return smoothed


def grid_over(left: Floats, right: Floats, margin: float = 0.0) -> EvenGrid:
    """The grid over the range of both samples of shape (n, d), widened by a share of it on each side."""
    box = []
    for a, b in zip(left.T, right.T, strict=True):
        low = min(float(a.min()), float(b.min()))
        high = max(float(a.max()), float(b.max()))
        if not high > low:
            raise InputError(
                "all outputs of both sides are one number: there is no density to compare"
            )
        if not 1.0 / _EXTREME < high / 2 - low / 2 < _EXTREME:
            raise InputError(
                f"the outputs range from {low:g} to {high:g}, too far or too near for a density; use auto"
            )
        box.append((low - margin * (high - low), high + margin * (high - low)))
    return EvenGrid(tuple(box))


def _marginal(counts: Floats, axis: int) -> Floats:
    return np.asarray(
        np.moveaxis(counts, axis, 0).reshape(len(counts), -1).sum(axis=1), dtype=np.float64
    )
