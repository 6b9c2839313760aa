"""Floored density estimates: Algorithms 1 (TKDE) and 2 (TDDE), at given places or on a grid.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach".
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.methods.published.local import kernels
from epsilometer.methods.published.local.kernels import (
    BandwidthChoice,
    KernelChoice,
    SpaceKernel,
)
from epsilometer.methods.published.local.options import (
    Box,
    Options,
    check_bandwidth,
    check_floor,
    per_coordinate,
)

# At the chosen floor the relative variance of an estimate is 1 over this: 20 draws of an outcome.
DRAWS_AT_FLOOR = 20.0
# In several dimensions the maximum is over many more places, and noise wins below 200 draws
# (measured on vectors of 3 Laplace numbers, ε = .7, n = 2e5: .84 of the truth with 200, .61 with
# 20).
DRAWS_AT_FLOOR_OF_VECTORS = 200.0
# That floor of vectors stays below this fraction of the greatest density.
_HIGHEST_FLOOR_OF_VECTORS = 0.1
# Kernel values computed at a time: 2^18 doubles stay in the cache.
_ROWS_AT_ONCE = 1 << 18
# Steps of a grid's margin at most. A larger margin matters only when the box is tiny next to a
# bandwidth; the density is flat there.
_WIDEST_MARGIN = 40_000
# Points of a grid with its margin at most, 2^25: a quarter of a GiB. In several dimensions a box
# that is small next to a bandwidth has few places and an immense margin; then sums over the draws
# themselves take less time and memory.
_MOST_GRID_POINTS = 1 << 25


def tkde(  # noqa: PLR0917  # researchers call it as the paper writes it
    sample: ArrayLike,
    t: ArrayLike,
    bandwidth: BandwidthChoice = None,
    kernel: KernelChoice = "gaussian",
    floor: float | None = None,
    support: tuple[object, object] | None = None,
    kernel_shape: str = "product",
) -> Floats:
    """Returns the truncated kernel density estimate: max(f̃(t), τ).

    Args:
        sample: shape (n,) or (n, d).
        t: where; a number or shape (m,) for one dimension, shape (d,) or (m, d) for more.
        bandwidth: h: a number or one per coordinate; "nrd0" (Silverman's rule of thumb, also None)
            or "nrd" (Scott's); or a function from the sample to either.
        kernel: "gaussian", "epanechnikov", "biweight", "laplace", "silverman", or any function K(u)
            that integrates to 1.
        floor: τ. None: the density at which the estimate has a relative variance of 1/20.
        support: ends (low, high) at which the density is reflected, None for an open end.
        kernel_shape: in several dimensions, "product" for ∏K(u_i), "spherical" for c·K(|u|).

    Returns:
        Shape (m,); shape () for a single place.

    Reference: Askin, Kutta, Dette (2022), Algorithm 1.
    """
    options = Options(
        kernel=kernel,
        kernel_shape=kernel_shape,
        support=support,
        bandwidth=bandwidth,
        floor=floor,
    )
    rows = as_rows("sample", sample)
    places = as_places(t, rows.shape[1])
    checked_kernel = options.space_kernel(rows.shape[1])
    h = bandwidth_of("bandwidth", bandwidth, rows, checked_kernel)
    limits = checked_support(options, rows)
    densities = kernel_density(rows, places.points, h, checked_kernel, limits)
    if floor is None:
        floor = kernel_floor(len(rows), h, checked_kernel)
    floored: Floats = np.maximum(densities, floor)
    return floored[0] if places.is_single else floored


def tdde(sample: object, t: object, floor: float | None = None) -> Floats:
    """Returns the truncated relative frequency: max(#{i: X_i = t}/n, τ).

    Args:
        sample: n outcomes: numbers or texts of shape (n,), or rows of shape (n, d).
        t: an outcome, or an array of m of them.
        floor: τ. None: 20/n.

    Returns:
        Shape (m,); shape () for a single outcome.

    Reference: Askin, Kutta, Dette (2022), Algorithm 2.
    """
    check_floor(floor)
    outcomes = np.asarray(sample)
    if outcomes.ndim not in (1, 2) or not len(outcomes):
        raise InputError(
            f"sample has shape {outcomes.shape}; it must be (n,) or (n, d) with n at least 1"
        )
    wanted = np.asarray(t)
    is_single = wanted.ndim == outcomes.ndim - 1
    several = wanted[None] if is_single else wanted
    if several.ndim != outcomes.ndim or several.shape[1:] != outcomes.shape[1:]:
        raise InputError(
            f"t has shape {wanted.shape}, which does not fit a sample of shape {outcomes.shape}"
        )
    frequencies = np.array(
        [_equals(outcomes, outcome).mean() for outcome in several], dtype=np.float64
    )
    if floor is None:
        floor = DRAWS_AT_FLOOR / len(outcomes)
    floored: Floats = np.maximum(frequencies, floor)
    return floored[0] if is_single else floored


def _equals(outcomes: NDArray[Any], wanted: Any) -> Booleans:
    """Tells which outcomes are the wanted one, shape (n,); NaN equals NaN."""
    same: Booleans = np.asarray(outcomes == wanted, dtype=np.bool_)
    if outcomes.dtype.kind == "f":
        same = same | (np.isnan(outcomes) & np.isnan(np.asarray(wanted, dtype=np.float64)))
    if outcomes.ndim == 1:
        return same
    return np.asarray(same.all(axis=1), dtype=np.bool_)


# --- kernel densities at given places ---------------------------------------------------------


def kernel_density(
    rows: Floats, places: Floats, h: Floats, kernel: SpaceKernel, limits: Box | None = None
) -> Floats:
    """Returns the plain kernel density estimate, shape (m,), without floor.

    Args:
        rows: shape (n, d); rows that are not finite count as far away.
        places: shape (m, d).
        h: shape (d,), the bandwidth.
        kernel: the kernel.
        limits: ends of the support, at which the density is reflected.
    """
    if not len(rows):
        return np.zeros(len(places))
    means: Floats = np.array(
        [kernel_values(rows, place, h, kernel, limits).mean() for place in places]
    )
    return means / float(np.prod(h))


def kernel_values(
    rows: Floats, place: Floats, h: Floats, kernel: SpaceKernel, limits: Box | None = None
) -> Floats:
    """Returns K((place − row)/h) of every row, reflections included; shape (n,).

    Args:
        rows: shape (n, d).
        place: shape (d,).
        h: shape (d,), the bandwidth.
        kernel: the kernel.
        limits: ends of the support.
    """
    values: Floats = np.empty(len(rows))
    # 1e300 is far away, and NaN nowhere.
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            values[part] = _kernel_values_of_part(rows[part], place, h, kernel, limits)
    values[np.isnan(values)] = 0.0
    return values


def _kernel_values_of_part(
    rows: Floats, place: Floats, h: Floats, kernel: SpaceKernel, limits: Box | None
) -> Floats:
    """Returns what `kernel_values` does, for as many rows as fit the cache."""
    # For each coordinate the scaled differences to the draws and to their mirror images.
    differences: list[list[Floats]] = []
    for axis in range(rows.shape[1]):
        column = rows[:, axis]
        images = [column, *(2.0 * end - column for end in _finite_ends(limits, axis))]
        differences.append([(place[axis] - image) / h[axis] for image in images])
    if kernel.is_spherical:
        total = np.zeros(len(rows))
        for images_of_axes in product(*differences):
            squares = [difference**2 for difference in images_of_axes]
            total += kernel.at_distance(np.sqrt(np.sum(squares, axis=0)))
        return total
    values = np.ones(len(rows))
    for of_axis in differences:
        factors = [kernel.profile.evaluate(difference) for difference in of_axis]
        values *= np.sum(factors, axis=0)
    return values


def _finite_ends(limits: Box | None, axis: int) -> list[float]:
    """Returns the ends of the support along an axis at which densities are reflected."""
    if limits is None:
        return []
    ends = (float(limits.low[axis]), float(limits.high[axis]))
    return [end for end in ends if np.isfinite(end)]


def bandwidth_of(
    name: str,
    given: BandwidthChoice,
    rows: Floats,
    kernel: SpaceKernel,
    undersmoothing: float = 0.0,
) -> Floats:
    """Returns the given bandwidth, or that of the rule; shape (d,).

    Args:
        name: of the setting, for error texts.
        given: as the user gave it.
        rows: shape (n, d), the draws.
        kernel: the kernel.
        undersmoothing: γ, a factor n^(−γ) on a bandwidth that the draws choose.
    """
    if callable(given):
        shrunk = kernels.own_bandwidth(name, given, rows) * len(rows) ** -undersmoothing
        return np.asarray(shrunk, dtype=np.float64)
    if given is None or isinstance(given, str):
        scales = kernels.robust_scales(rows)
        return kernels.rule_of_thumb(scales, len(rows), kernel, undersmoothing, given or "nrd0")
    check_bandwidth(name, given)
    return per_coordinate(name, np.atleast_1d(np.asarray(given, dtype=np.float64)), rows.shape[1])


def kernel_floor(n: int, h: Floats, kernel: SpaceKernel, peak: float = 0.0) -> float:
    """Returns the density at which an estimate from n draws has a relative variance of 1/20.

    In several dimensions 1/200, but not above a tenth of the greatest density, `peak`, if it is
    known.
    """
    one_draw = float(kernel.roughness / (n * np.prod(h)))
    floor = DRAWS_AT_FLOOR * one_draw
    if len(h) == 1:
        return floor
    of_vectors = min(DRAWS_AT_FLOOR_OF_VECTORS * one_draw, _HIGHEST_FLOOR_OF_VECTORS * peak)
    return max(floor, of_vectors)


class Places(NamedTuple):
    """Places at which a density is wanted.

    Attributes:
        points: shape (m, d).
        is_single: whether a single place was given, not an array of one.
    """

    points: Floats
    is_single: bool


def as_places(t: ArrayLike, d: int) -> Places:
    """Returns places of d coordinates, as a user gives them."""
    points: Floats = np.asarray(t, dtype=np.float64)
    is_single = points.ndim == (0 if d == 1 else 1)
    if is_single:
        points = points.reshape(1, -1)
    elif d == 1 and points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != d:
        raise InputError(f"t has shape {np.shape(t)}, the sample has {d} coordinates")
    return Places(points, is_single)


def as_rows(name: str, sample: ArrayLike) -> Floats:
    """Returns draws, finite or not, as shape (n, d)."""
    try:
        values: Floats = np.asarray(sample, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be numbers for a kernel density; for other outcomes use tdde"
        ) from None
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or not rows.size:
        raise InputError(
            f"{name} has shape {values.shape}; it must be (n,) or (n, d) with n ≥ 1 and d ≥ 1"
        )
    return rows


def checked_support(options: Options, *samples: Floats) -> Box | None:
    """Returns the support in which densities are reflected, None for the whole space.

    Args:
        options: settings.
        *samples: the draws, shape (n, d) each; those that are not finite count as far away.

    Raises:
        InputError: draws lie outside the support, where none can; reflection would count them
            twice.
    """
    limits = options.support_box(samples[0].shape[1])
    if limits is None:
        return None
    n_outside = sum(_n_outside(rows, limits) for rows in samples)
    if n_outside:
        n = sum(len(rows) for rows in samples)
        raise InputError(
            f"{n_outside} of {n} outputs lie outside support={options.support!r}, where none can; "
            "correct it, or leave it out"
        )
    return limits


def _n_outside(rows: Floats, limits: Box) -> int:
    finite = rows[np.isfinite(rows).all(axis=1)]
    is_inside = (finite >= limits.low) & (finite <= limits.high)
    return int(np.count_nonzero(~is_inside.all(axis=1)))


# --- kernel densities on a grid ---------------------------------------------------------------


class GridResolution(NamedTuple):
    """How fine a grid is.

    Attributes:
        per_bandwidth: steps per bandwidth.
        fewest: steps across the box at least.
        most: steps across the box at most.
    """

    per_bandwidth: int
    fewest: int
    most: int


# A grid of more dimensions would not fit the memory.
MOST_GRID_DIMENSIONS = 4
# By number of dimensions. In one dimension a sixteenth of a bandwidth locates the maximum of a
# smooth function; in more, the grid must fit the memory.
_RESOLUTIONS = {
    1: GridResolution(per_bandwidth=16, fewest=64, most=16384),
    2: GridResolution(per_bandwidth=6, fewest=16, most=160),
    3: GridResolution(per_bandwidth=3, fewest=8, most=40),
    4: GridResolution(per_bandwidth=2, fewest=6, most=18),
}


@dataclass(frozen=True, slots=True)
class MarginGrid:
    """Evenly spaced places in a box, both ends included, with a margin for draws near the box.

    Attributes:
        low: shape (d,), lower ends of the box.
        high: shape (d,), upper ends.
        steps: shape (d,), steps across the box.
        margin: shape (d,), steps outside on each side.
    """

    low: Floats
    high: Floats
    steps: Integers
    margin: Integers

    @classmethod
    def over(
        cls, low: Floats, high: Floats, bandwidths: Floats, kernel: SpaceKernel
    ) -> "MarginGrid":
        """Returns a grid fine enough for the given bandwidths, shape (sides, d)."""
        resolution = _RESOLUTIONS[len(low)]
        finest = (bandwidths / kernel.stretch).min(axis=0)
        wanted = np.ceil(resolution.per_bandwidth * (high - low) / finest)
        steps = np.clip(wanted, resolution.fewest, resolution.most).astype(np.int64)
        reach = bandwidths.max(axis=0) * kernel.reach * steps / (high - low)
        margin = np.minimum(np.ceil(reach) + 1, _WIDEST_MARGIN).astype(np.int64)
        return cls(low=low, high=high, steps=steps, margin=margin)

    @property
    def step(self) -> Floats:
        """Distance between neighbouring places, shape (d,)."""
        return (self.high - self.low) / self.steps

    def places(self) -> Floats:
        """Returns all places inside the box, shape (m, d), the last axis varying fastest."""
        axes = [
            np.linspace(low, high, int(n_steps) + 1)
            for low, high, n_steps in zip(self.low, self.high, self.steps, strict=True)
        ]
        coordinates = np.meshgrid(*axes, indexing="ij")
        return np.stack([coordinate.ravel() for coordinate in coordinates], axis=1)

    def density(
        self, rows: Floats, h: Floats, kernel: SpaceKernel, limits: Box | None = None
    ) -> Floats:
        """Returns the kernel density at all places, shape (m,), without floor.

        Args:
            rows: shape (n, d).
            h: shape (d,), the bandwidth.
            kernel: the kernel.
            limits: ends of the support, at which the density is reflected.
        """
        sizes = self.steps + 2 * self.margin + 1
        if math.prod(sizes.tolist()) > _MOST_GRID_POINTS:
            return kernel_density(rows, self.places(), h, kernel, limits)
        draws = rows if limits is None else reflected(rows, limits)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (draws - self.low) / self.step + self.margin
            is_near = np.all((scaled >= 0) & (scaled < sizes - 1), axis=1)
        values = kernels.bin_linearly(scaled[is_near], tuple(sizes.tolist()))
        if not len(rows):
            return np.zeros(math.prod((self.steps + 1).tolist()))
        if kernel.is_spherical:
            smoothed = self._smoothed_spherically(values, h, kernel)
        else:
            smoothed = self._smoothed_by_axes(values, h, kernel)
        return np.asarray(np.maximum(smoothed.ravel(), 0.0) / len(rows))

    def _offsets(self, h: Floats) -> list[Floats]:
        """Returns the places of the kernel's weights along each axis, in bandwidths."""
        reaches = self.margin.tolist()
        return [
            np.arange(-reach, reach + 1) * self.step[axis] / h[axis]
            for axis, reach in enumerate(reaches)
        ]

    def _smoothed_by_axes(self, counts: Floats, h: Floats, kernel: SpaceKernel) -> Floats:
        """Smooths binned draws with a product kernel, one axis after the other."""
        values = counts
        for axis, offsets in enumerate(self._offsets(h)):
            weights = kernel.profile.evaluate(offsets) / h[axis]
            full = kernels.convolve(np.moveaxis(values, axis, -1), weights)
            # The part that the weights cover fully.
            covered = full[..., len(offsets) - 1 : counts.shape[axis]]
            values = np.moveaxis(covered, -1, axis)
        return values

    def _smoothed_spherically(self, counts: Floats, h: Floats, kernel: SpaceKernel) -> Floats:
        """Smooths binned draws with a spherical kernel, all axes at once."""
        from scipy.signal import fftconvolve  # slow to import, and rarely needed

        offsets = np.stack(np.meshgrid(*self._offsets(h), indexing="ij"), axis=-1)
        weights = kernel.evaluate(offsets) / float(np.prod(h))
        return np.asarray(fftconvolve(counts, weights, mode="valid"), dtype=np.float64)


def reflected(rows: Floats, limits: Box) -> Floats:
    """Returns the draws, shape (n, d), and their mirror images at the ends of the support."""
    copies = rows
    for axis in range(rows.shape[1]):
        images = [copies]
        for end in _finite_ends(limits, axis):
            image = copies.copy()
            image[:, axis] = 2.0 * end - image[:, axis]
            images.append(image)
        copies = np.concatenate(images) if len(images) > 1 else copies
    return copies
