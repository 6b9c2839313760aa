"""Two samples as densities at the same points: relative frequencies, or kernel estimates.

Reference: Kutta, Askin, Dunsche (2024), "Lower bounds for Rényi differential privacy in a black-box
    setting", (9) and (10); the plug-in bandwidth is that of `dpik` of R's package KernSmooth.
"""

import math
from collections.abc import Sequence
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
# the standard error.
UNDERSMOOTHING = 1.1
# Points of the grid per axis, by number of dimensions; 1000 as published.
GRID_POINTS = {1: 1000, 2: 256}
# Distance of the quartiles of the normal distribution, in standard deviations.
_NORMAL_QUARTILE_RANGE = 1.349
# Draws that are binned at a time: their temporary arrays fit the cache.
_ROWS_AT_ONCE = 1 << 15
# A range whose square, or that of its inverse, overflows has no even grid.
_EXTREME_RANGE = 1e150


@dataclass(frozen=True, slots=True)
class Densities:
    """Two estimated densities.

    Attributes:
        p: shape (k,), of the left outputs.
        q: shape (k,), of the right ones.
        width: what one point stands for: 1 for probabilities, else the length or area of a grid
            cell; shape (k,) where point masses stand beside densities.
        sizes: draws behind p and q.
        unit: the scale of the outputs (its product over the axes), 1 for probabilities: densities
            are in 1/unit.
    """

    p: Floats
    q: Floats
    width: float | Floats
    sizes: tuple[int, int]
    unit: float = 1.0

    @classmethod
    def of_counts(cls, left: Array, right: Array) -> "Densities":
        """Returns relative frequencies from counts of the same outputs, shape (k,) each."""
        n_left = int(left.sum())
        n_right = int(right.sum())
        return cls(p=left / n_left, q=right / n_right, width=1.0, sizes=(n_left, n_right))

    @classmethod
    def joined(cls, parts: "Sequence[Densities]") -> "Densities":
        """Returns the densities of a mixed distribution from those of its parts.

        Each part is measured in its own unit, so that one floor serves point masses and densities
        of any scale.

        Args:
            parts: with the same sizes, those of all draws.
        """
        widths = [
            np.broadcast_to(np.asarray(part.width) / part.unit, part.p.shape) for part in parts
        ]
        return cls(
            p=np.concatenate([part.p * part.unit for part in parts]),
            q=np.concatenate([part.q * part.unit for part in parts]),
            width=np.concatenate(widths),
            sizes=parts[0].sizes,
        )


# --- kernel estimates on a grid ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How densities are estimated from counts on a grid.

    Attributes:
        power: to which the bandwidth of a rule is raised, in units of the scale of the draws.
        kernel: its name, or a function K(u).
        bandwidth: None or "dpik" for the plug-in rule, "nrd0" or "nrd" for the normal reference
            rules; a number, or a function from the draws of one coordinate to a number, is taken as
            it is.
    """

    power: float = UNDERSMOOTHING
    kernel: KernelChoice = "gaussian"
    bandwidth: BandwidthChoice = None

    def __post_init__(self) -> None:
        # 1 keeps the bandwidth of the rule.
        check_at_least("undersmoothing", self.power, 1.0)
        kernels.find_kernel(self.kernel)
        if self.bandwidth is None or callable(self.bandwidth):
            return
        if not isinstance(self.bandwidth, str):
            check_positive("bandwidth", self.bandwidth)
        elif self.bandwidth not in ("dpik", *RULES):
            raise InputError(
                f"bandwidth={self.bandwidth!r} must be one of dpik, {', '.join(RULES)}, a number "
                "or a function"
            )

    def width(self, counts: Floats, spacing: float, dimensions: int) -> float:
        """Returns the bandwidth for draws that were binned linearly to an even grid.

        Args:
            counts: shape (k,), of one coordinate.
            spacing: distance between grid points.
            dimensions: of the outputs.
        """
        if callable(self.bandwidth):
            draws = np.repeat(np.arange(len(counts)) * spacing, np.rint(counts).astype(np.int64))
            return float(kernels.own_bandwidth("bandwidth", self.bandwidth, draws[:, None])[0])
        if self.bandwidth is not None and not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        scale = robust_scale(counts, spacing)
        n = float(counts.sum())
        if self.bandwidth in RULES:
            by_rule = RULES[self.bandwidth] * scale * n ** (-1.0 / (dimensions + 4.0))
        elif dimensions == 1:
            by_rule = plug_in_bandwidth(counts, spacing)
        else:
            # Plug-in rules for two dimensions couple the axes; the normal reference rule does not.
            by_rule = scale * n ** (-1.0 / 6.0)
        stretch = kernels.find_kernel(self.kernel).stretch
        return undersmoothed(stretch * by_rule, scale, self.power)


@dataclass(frozen=True, slots=True)
class EvenGrid:
    """An even grid in one or two dimensions.

    Attributes:
        box: lowest and highest point of each axis.
    """

    box: tuple[tuple[float, float], ...]

    @property
    def points(self) -> int:
        """Number of points per axis."""
        return GRID_POINTS[len(self.box)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with a number for each point."""
        return (self.points,) * len(self.box)

    @property
    def spacings(self) -> tuple[float, ...]:
        """Distance between neighbouring points, per axis."""
        return tuple((high - low) / (self.points - 1) for low, high in self.box)

    def count(self, values: Floats) -> Floats:
        """Bins draws linearly: each is shared among its neighbours on the grid.

        Args:
            values: shape (n, d); those outside the box count at its ends.

        Returns:
            Shape (points,)·d.
        """
        lowest = [low for low, _ in self.box]
        # A grid of a single point has no spacing: everything is at its first point.
        steps = [spacing or 1.0 for spacing in self.spacings]
        total = np.zeros(self.shape)
        for start in range(0, len(values), _ROWS_AT_ONCE):
            scaled = (values[start : start + _ROWS_AT_ONCE] - lowest) / steps
            total += kernels.bin_linearly(np.clip(scaled, 0.0, self.points - 1), self.shape)
        return total

    def densities(
        self,
        left: Floats,
        right: Floats,
        smoothing: Smoothing,
        sizes: tuple[int, int] | None = None,
    ) -> Densities:
        """Returns kernel estimates from the binned counts of both sides.

        Args:
            left: counts, shape (points,)·d.
            right: likewise.
            smoothing: kernel and bandwidth.
            sizes: all draws of each side, when some are not numbers and have no place on the grid.
        """
        if sizes is None:
            sizes = (round(float(left.sum())), round(float(right.sum())))
        n_left, n_right = sizes
        area = math.prod(self.spacings)
        p = self._smoothed(left, smoothing) / area
        q = self._smoothed(right, smoothing) / area
        scales = [
            robust_scale(_marginal(left + right, axis), spacing)
            for axis, spacing in enumerate(self.spacings)
        ]
        return Densities(
            p=p.ravel() / n_left,
            q=q.ravel() / n_right,
            width=area,
            sizes=sizes,
            unit=math.prod(scales),
        )

    def _smoothed(self, counts: Floats, smoothing: Smoothing) -> Floats:
        """Smooths counts along each axis with the bandwidth of that axis."""
        kernel = kernels.find_kernel(smoothing.kernel)
        smoothed = counts
        if not counts.any():
            return smoothed
        for axis, spacing in enumerate(self.spacings):
            bandwidth = smoothing.width(_marginal(counts, axis), spacing, len(self.box))
            along_axis = np.moveaxis(smoothed, axis, -1)
            smoothed = np.moveaxis(smooth(along_axis, spacing, bandwidth, kernel), -1, axis)
        return smoothed


def grid_over(left: Floats, right: Floats, margin: float = 0.0) -> EvenGrid:
    """Returns the grid over the range of both samples.

    Args:
        left: shape (n, d).
        right: shape (m, d).
        margin: fraction of the range by which it is widened on each side.
    """
    box: list[tuple[float, float]] = []
    # One side may be empty, where point masses stand beside the density of the other.
    for column in np.concatenate([left, right]).T:
        low = float(column.min())
        high = float(column.max())
        if not high > low:
            raise InputError(
                "all outputs of both sides are one number: there is no density to compare"
            )
        if not 1.0 / _EXTREME_RANGE < high / 2 - low / 2 < _EXTREME_RANGE:
            raise InputError(
                f"the outputs range from {low:g} to {high:g}, too far or too near for a density; "
                "use auto"
            )
        box.append((low - margin * (high - low), high + margin * (high - low)))
    return EvenGrid(tuple(box))


def _marginal(counts: Floats, axis: int) -> Floats:
    """Returns counts of shape (points,)·d summed over all axes but one, shape (points,)."""
    rows = np.moveaxis(counts, axis, 0).reshape(len(counts), -1)
    return np.asarray(rows.sum(axis=1), dtype=np.float64)


def smooth(
    counts: Floats, spacing: float, bandwidth: float, kernel: Kernel = KERNELS["gaussian"]
) -> Floats:
    """Averages counts with a kernel along the last axis; what leaves the grid is lost.

    The kernel's weights sum to 1 whatever its width: a kernel narrower than the grid leaves a
    histogram.
    """
    size = counts.shape[-1]
    reach = min(int(kernel.reach * bandwidth / spacing), size - 1)
    if reach < 1:
        return counts.astype(np.float64)
    weights = kernel.evaluate(np.arange(-reach, reach + 1) * (spacing / bandwidth))
    full = kernels.convolve(counts, weights / weights.sum())
    return np.maximum(full[..., reach : reach + size], 0.0)


# --- bandwidths -------------------------------------------------------------------------------


def robust_scale(counts: Floats, spacing: float) -> float:
    """Returns the smaller of the standard deviation and the scaled distance of the quartiles.

    Args:
        counts: shape (k,), draws binned to an even grid.
        spacing: distance between grid points.
    """
    total = counts.sum()
    points = np.arange(len(counts)) * spacing
    mean = counts @ points / total
    deviation = math.sqrt(max(counts @ (points - mean) ** 2 / total, 0.0))
    low, high = np.interp([0.25, 0.75], np.cumsum(counts) / total, points)
    by_quartiles = float(high - low) / _NORMAL_QUARTILE_RANGE
    if by_quartiles > 0.0:
        return min(deviation, by_quartiles)
    return deviation


def plug_in_bandwidth(counts: Floats, spacing: float) -> float:
    """Returns the bandwidth that minimises the estimated mean integrated squared error.

    Args:
        counts: shape (k,), draws binned linearly to an even grid.
        spacing: distance between grid points.
    """
    n = float(counts.sum())
    scale = robust_scale(counts, spacing)
    if not scale > 0.0:
        return spacing
    step = spacing / scale
    pilot = (2.0 * math.sqrt(2.0) ** 9 / (7.0 * n)) ** (1.0 / 9.0)
    sixth = _derivative_functional(counts, step, 6, pilot)
    if sixth < 0.0:
        second_pilot = (-3.0 * math.sqrt(2.0 / math.pi) / (sixth * n)) ** (1.0 / 7.0)
        fourth = _derivative_functional(counts, step, 4, second_pilot)
        if fourth > 0.0:
            return float(scale * (4.0 * math.pi) ** -0.1 * (1.0 / (fourth * n)) ** 0.2)
    # The normal reference rule; only rounding can lead here.
    return float(1.06 * scale * n**-0.2)


def _derivative_functional(counts: Floats, step: float, degree: int, bandwidth: float) -> float:
    """Returns the estimate of ∫ f^(degree)·f, for draws in units of their scale."""
    n = counts.sum()
    reach = min(int((4.0 + degree) * bandwidth / step), len(counts) - 1)
    z = np.arange(-reach, reach + 1) * (step / bandwidth)
    hermite = np.polynomial.hermite_e.HermiteE.basis(degree)(z)
    derivative = hermite * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    full = kernels.convolve(counts, derivative / bandwidth ** (degree + 1))
    return float(counts @ full[reach : reach + len(counts)] / n**2)


def undersmoothed(bandwidth: float, scale: float, power: float = UNDERSMOOTHING) -> float:
    """Raises a bandwidth to a power, in units of the scale, so that the unit does not matter."""
    if scale > 0.0:
        return float(scale * (bandwidth / scale) ** power)
    return bandwidth
