"""Floored density estimates: Algorithms 1 (TKDE) and 2 (TDDE), at given places or on a grid."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.methods.published.local.kernels import (
    BandwidthChoice,
    Kernel,
    KernelChoice,
    find_kernel,
    own_bandwidth,
    rule_of_thumb,
    spreads,
)
from epsilometer.methods.published.local.options import Options, check_bandwidth, check_floor, per_coordinate

# Steps per bandwidth, and the fewest and most steps across the box, by number of dimensions. In one dimension a
# sixteenth of a bandwidth locates the maximum of a smooth function; in more, the grid must fit the memory.
_STEPS = {1: (16, 64, 16384), 2: (6, 16, 160), 3: (3, 8, 40), 4: (2, 6, 18)}


@dataclass(frozen=True, slots=True)
class MarginGrid:
    """Evenly spaced places in a box, both ends included, and a margin around it for the draws that matter there.

    Attributes:
        low: shape (d,), the box.
        high: shape (d,).
        steps: shape (d,), steps across the box.
        margin: shape (d,), steps outside on each side.
    """

    low: Floats
    high: Floats
    steps: Integers
    margin: Integers

    @classmethod
    def over(cls, low: Floats, high: Floats, bandwidths: Floats, kernel: Kernel) -> "MarginGrid":
        """A grid fine enough for the given bandwidths, shape (sides, d)."""
        per_bandwidth, fewest, most = _STEPS[len(low)]
        gaussian = bandwidths / kernel.stretch
        wanted = np.ceil(per_bandwidth * (high - low) / gaussian.min(axis=0))
        steps = np.clip(wanted, fewest, most).astype(np.int64)
        widest = bandwidths.max(axis=0) * kernel.reach * steps / (high - low)
        # A larger margin matters only when the box is tiny next to a bandwidth; the density is flat there.
        return cls(low, high, steps, np.minimum(np.ceil(widest) + 1, 40_000).astype(np.int64))

    @property
    def step(self) -> Floats:
        """Shape (d,)."""
        return (self.high - self.low) / self.steps

    @property
    def axes(self) -> list[Floats]:
        """The places along each axis, inside the box."""
        return [np.linspace(a, b, int(steps) + 1) for a, b, steps in zip(self.low, self.high, self.steps, strict=True)]

    def places(self) -> Floats:
        """All places, shape (m, d), the last axis varying fastest."""
        return np.stack([axis.ravel() for axis in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    def density(self, rows: Floats, h: Floats, kernel: Kernel, limits: "Limits | None" = None) -> Floats:
        """The kernel density at all places, shape (m,), without floor.

        Args:
            rows: shape (n, d).
            h: shape (d,).
        """
        values = self._bin(rows if limits is None else reflected(rows, limits))
        for axis in range(len(h)):
            reach = int(self.margin[axis])
            weights = kernel.evaluate(np.arange(-reach, reach + 1) * self.step[axis] / h[axis]) / h[axis]
            values = _convolve(values, weights, axis)
        densities: Floats = np.maximum(values.ravel(), 0.0) / len(rows)
        return densities

    def _bin(self, rows: Floats) -> Floats:
        """Linear binning: each draw is shared among the corners of its cell. Shape: steps + 2·margin + 1 each."""
        shape = tuple(int(size) for size in self.steps + 2 * self.margin + 1)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (rows - self.low) / self.step + self.margin
            inside = np.all((scaled >= 0) & (scaled < np.array(shape) - 1), axis=1)
        if not inside.all():
            scaled = scaled[inside]
        cell = scaled.astype(np.int64)
        share = scaled - cell
        strides = np.array([int(np.prod(shape[j + 1 :])) for j in range(len(shape))])
        first = cell @ strides if len(shape) > 1 else cell[:, 0]
        total = np.zeros(int(np.prod(shape)))
        for corner in product((0, 1), repeat=len(shape)):
            weight = np.prod(np.where(corner, share, 1.0 - share), axis=1) if len(shape) > 1 else share[:, 0]
            if len(shape) == 1 and not corner[0]:
                weight = 1.0 - weight
            total += np.bincount(first + int(np.dot(corner, strides)), weight, len(total))
        return total.reshape(shape)


def reflected(rows: Floats, limits: "Limits") -> Floats:
    """The draws and their mirror images at the ends of the support."""
    copies = rows
    for j in range(rows.shape[1]):
        images = [copies]
        for end in (limits[0][j], limits[1][j]):
            if np.isfinite(end):
                image = copies.copy()
                image[:, j] = 2.0 * end - image[:, j]
                images.append(image)
        copies = np.concatenate(images) if len(images) > 1 else copies
    return copies


def _convolve(values: Floats, weights: Floats, axis: int) -> Floats:
    """The part of the convolution along one axis that the weights cover fully."""
    size = values.shape[axis]
    length = 1 << int(np.ceil(np.log2(size + len(weights))))
    along = [1] * values.ndim
    along[axis] = -1
    spectrum = np.fft.rfft(values, length, axis=axis) * np.fft.rfft(weights, length).reshape(along)
    whole = np.fft.irfft(spectrum, length, axis=axis)
    keep = [slice(None)] * values.ndim
    keep[axis] = slice(len(weights) - 1, size)
    result: Floats = whole[tuple(keep)]
    return result


Limits = tuple[Floats, Floats]

# At the chosen floor the relative variance of an estimate is 1 over this: 20 draws of an outcome.
DRAWS_AT_FLOOR = 20.0
# In several dimensions the maximum is over many more places, and noise wins below 200 draws (measured on
# vectors of 3 Laplace numbers, ε = .7, n = 2e5: .84 of the truth with 200, .61 with 20).
DRAWS_AT_FLOOR_OF_VECTORS = 200.0
# Kernel values computed at a time: 2^18 doubles stay in the cache.
_IN_FLIGHT = 1 << 18


def tkde(
    sample: ArrayLike,
    t: ArrayLike,
    bandwidth: BandwidthChoice = None,
    kernel: KernelChoice = "gaussian",
    floor: float | None = None,
    support: tuple[object, object] | None = None,
) -> Floats:
    """The truncated kernel density estimate: max(f̃(t), τ).

    Args:
        sample: shape (n,) or (n, d), d ≤ 4.
        t: where; a number or shape (m,) for one dimension, shape (d,) or (m, d) for more.
        bandwidth: h: a number or one per coordinate; "nrd0" (Silverman's rule of thumb, also None) or "nrd" (Scott's);
            or a function from the sample to either.
        kernel: "gaussian", "epanechnikov", "biweight", "laplace", "silverman", or any function K(u) that integrates to
            1; the product of it in several dimensions.
        floor: τ. None: the density at which the estimate has a relative variance of 1/20.
        support: ends (low, high) at which the density is reflected, None for an open end.

    Returns:
        Shape (m,); shape () for a single place.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local approach",
        Algorithm 1.
    """
    chosen = Options(kernel=kernel, support=support, bandwidth=bandwidth, floor=floor)
    rows = as_rows("sample", sample)
    d = rows.shape[1]
    places, single = _as_places(t, d)
    shape = find_kernel(kernel)
    h = bandwidth_of("bandwidth", bandwidth, rows, shape)
    limits = chosen.limits()
    densities = kernel_density(rows, places, h, shape, None if limits is None else limits_in(limits, d))
    least = floor if floor is not None else kernel_floor(len(rows), h, shape)
    floored: Floats = np.maximum(densities, least)
    return floored[0] if single else floored


def tdde(sample: object, t: object, floor: float | None = None) -> Floats:
    """The truncated relative frequency: max(#{i: X_i = t}/n, τ).

    Args:
        sample: n outcomes: numbers or texts of shape (n,), or rows of shape (n, d).
        t: an outcome, or an array of m of them.
        floor: τ. None: 20/n.

    Returns:
        Shape (m,); shape () for a single outcome.

    Reference: as for `tkde`, Algorithm 2.
    """
    check_floor(floor)
    outcomes = np.asarray(sample)
    if outcomes.ndim not in (1, 2) or not len(outcomes):
        raise InputError(f"sample has shape {outcomes.shape}; it must be (n,) or (n, d) with n at least 1")
    wanted = np.asarray(t)
    single = wanted.ndim == outcomes.ndim - 1
    many = wanted[None] if single else wanted
    if many.ndim != outcomes.ndim or many.shape[1:] != outcomes.shape[1:]:
        raise InputError(f"t has shape {wanted.shape}, which does not fit a sample of shape {outcomes.shape}")
    shares = [_equal(outcomes, each).mean() for each in many]
    least = DRAWS_AT_FLOOR / len(outcomes) if floor is None else floor
    floored: Floats = np.maximum(np.array(shares, dtype=np.float64), least)
    return floored[0] if single else floored


def kernel_density(rows: Floats, places: Floats, h: Floats, kernel: Kernel, limits: Limits | None = None) -> Floats:
    """The plain kernel density estimate, shape (m,), without floor; rows that are not finite count as far away.

    Args:
        rows: shape (n, d).
        places: shape (m, d).
        h: shape (d,).
        limits: of the support, each of shape (d,).
    """
    if not len(rows):
        return np.zeros(len(places))
    means: Floats = np.array([kernel_values(rows, place, h, kernel, limits).mean() for place in places])
    return means / float(np.prod(h))


def kernel_values(rows: Floats, place: Floats, h: Floats, kernel: Kernel, limits: Limits | None = None) -> Floats:
    """K((place − row)/h) of every row, reflections included; shape (n,)."""
    product: Floats = np.ones(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):  # 1e300 is far away, and nan nowhere
        _multiply_kernels(product, rows, place, h, kernel, limits)
    product[np.isnan(product)] = 0.0
    return product


def _multiply_kernels(
    product: Floats, rows: Floats, place: Floats, h: Floats, kernel: Kernel, limits: Limits | None
) -> None:
    for j in range(rows.shape[1]):
        for start in range(0, len(rows), _IN_FLIGHT):
            part = slice(start, start + _IN_FLIGHT)
            column = rows[part, j]
            factor = kernel.evaluate((place[j] - column) / h[j])
            for end in () if limits is None else (limits[0][j], limits[1][j]):
                if np.isfinite(end):
                    factor += kernel.evaluate((place[j] - (2.0 * end - column)) / h[j])
            product[part] *= factor


def bandwidth_of(name: str, given: BandwidthChoice, rows: Floats, kernel: Kernel) -> Floats:
    """The given bandwidth, or that of the rule; shape (d,)."""
    if callable(given):
        return own_bandwidth(name, given, rows)
    if given is None or isinstance(given, str):
        return rule_of_thumb(spreads(rows), len(rows), kernel, rule=given)
    check_bandwidth(name, given)
    return per_coordinate(name, np.atleast_1d(np.asarray(given, dtype=np.float64)), rows.shape[1])


def kernel_floor(n: int, h: Floats, kernel: Kernel, peak: float = 0.0) -> float:
    """The density at which an estimate from n draws has a relative variance of 1/20.

    In several dimensions 1/200, but not above a tenth of the greatest density, `peak`, if it is known.
    """
    one_draw = float(kernel.roughness ** len(h) / (n * np.prod(h)))
    if len(h) == 1:
        return DRAWS_AT_FLOOR * one_draw
    return max(DRAWS_AT_FLOOR * one_draw, min(DRAWS_AT_FLOOR_OF_VECTORS * one_draw, 0.1 * peak))


def limits_in(limits: Limits, d: int) -> Limits:
    """The support's ends, one per coordinate."""
    return per_coordinate("support", limits[0], d), per_coordinate("support", limits[1], d)


def as_rows(name: str, sample: ArrayLike) -> Floats:
    """Draws as shape (n, d), finite or not."""
    try:
        values: Floats = np.asarray(sample, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers for a kernel density; for other outcomes use tdde") from None
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or not len(rows) or not 1 <= rows.shape[1] <= 4:
        raise InputError(f"{name} has shape {values.shape}; it must be (n,) or (n, d) with n ≥ 1 and d ≤ 4")
    return rows


def _as_places(t: ArrayLike, d: int) -> tuple[Floats, bool]:
    places: Floats = np.asarray(t, dtype=np.float64)
    single = places.ndim == (0 if d == 1 else 1)
    if single:
        places = places.reshape(1, -1)
    elif d == 1 and places.ndim == 1:
        places = places[:, None]
    if places.ndim != 2 or places.shape[1] != d:
        raise InputError(f"t has shape {np.shape(t)}, the sample has {d} coordinates")
    return places, single


def _equal(outcomes: NDArray[Any], wanted: Any) -> Booleans:
    same: Booleans = np.asarray(outcomes == wanted, dtype=np.bool_)
    if outcomes.dtype.kind == "f":
        same = same | (np.isnan(outcomes) & np.isnan(np.asarray(wanted, dtype=np.float64)))
    return same if outcomes.ndim == 1 else np.asarray(same.all(axis=1), dtype=np.bool_)
