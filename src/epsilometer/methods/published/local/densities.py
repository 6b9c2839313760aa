"""Floored density estimates: Algorithms 1 (TKDE) and 2 (TDDE), at given places or on a grid."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.methods.published.local import kernels
from epsilometer.methods.published.local.kernels import BandwidthChoice, Kernel, KernelChoice
from epsilometer.methods.published.local.options import (
    Options,
    check_bandwidth,
    check_floor,
    per_coordinate,
)

# Steps per bandwidth, and the fewest and most steps across the box, by number of dimensions. In one
# dimension a sixteenth of a bandwidth locates the maximum of a smooth function; in more, the grid
# must fit the memory.
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
        wanted = np.ceil(per_bandwidth * (high - low) / (bandwidths / kernel.stretch).min(axis=0))
        steps = np.clip(wanted, fewest, most).astype(np.int64)
        widest = bandwidths.max(axis=0) * kernel.reach * steps / (high - low)
        # A larger margin matters only when the box is tiny next to a bandwidth; the density is flat
        # there.
        return cls(low, high, steps, np.minimum(np.ceil(widest) + 1, 40_000).astype(np.int64))

    @property
    def step(self) -> Floats:
        """Shape (d,)."""
        return (self.high - self.low) / self.steps

    def places(self) -> Floats:
        """All places inside the box, shape (m, d), the last axis varying fastest."""
        axes = [
            np.linspace(a, b, int(n) + 1)
            for a, b, n in zip(self.low, self.high, self.steps, strict=True)
        ]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def density(
        self, rows: Floats, h: Floats, kernel: Kernel, limits: "Limits | None" = None
    ) -> Floats:
        """The kernel density at all places, shape (m,), without floor.

        Args:
            rows: shape (n, d).
            h: shape (d,).
        """
        sizes = self.steps + 2 * self.margin + 1
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (
                (rows if limits is None else reflected(rows, limits)) - self.low
            ) / self.step + self.margin
            inside = np.all((scaled >= 0) & (scaled < sizes - 1), axis=1)
        values = kernels.bin_linearly(scaled[inside], tuple(sizes.tolist()))
        for axis in range(len(h)):
            reach = int(self.margin[axis])
            weights = (
                kernel.evaluate(np.arange(-reach, reach + 1) * self.step[axis] / h[axis]) / h[axis]
            )
            # The part that the weights cover fully.
            covered = kernels.convolve(np.moveaxis(values, axis, -1), weights)[
                ..., 2 * reach : sizes[axis]
            ]
            values = np.moveaxis(covered, -1, axis)
        return np.asarray(np.maximum(values.ravel(), 0.0) / len(rows))


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


Limits = tuple[Floats, Floats]

# At the chosen floor the relative variance of an estimate is 1 over this: 20 draws of an outcome.
DRAWS_AT_FLOOR = 20.0
# In several dimensions the maximum is over many more places, and noise wins below 200 draws
# (measured on vectors of 3 Laplace numbers, ε = .7, n = 2e5: .84 of the truth with 200, .61 with
# 20).
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
        bandwidth: h: a number or one per coordinate; "nrd0" (Silverman's rule of thumb, also None)
            or "nrd" (Scott's); or a function from the sample to either.
        kernel: "gaussian", "epanechnikov", "biweight", "laplace", "silverman", or any function K(u)
            that integrates to 1; the product of it in several dimensions.
        floor: τ. None: the density at which the estimate has a relative variance of 1/20.
        support: ends (low, high) at which the density is reflected, None for an open end.

    Returns:
        Shape (m,); shape () for a single place.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
        approach", Algorithm 1.
    """
    chosen = Options(kernel=kernel, support=support, bandwidth=bandwidth, floor=floor)
    rows = as_rows("sample", sample)
    places, single = as_places(t, rows.shape[1])
    shape = kernels.find_kernel(kernel)
    h = bandwidth_of("bandwidth", bandwidth, rows, shape)
    densities = kernel_density(rows, places, h, shape, chosen.limits(len(h)))
    floored: Floats = np.maximum(
        densities, kernel_floor(len(rows), h, shape) if floor is None else floor
    )
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
        raise InputError(
            f"sample has shape {outcomes.shape}; it must be (n,) or (n, d) with n at least 1"
        )
    wanted = np.asarray(t)
    single = wanted.ndim == outcomes.ndim - 1
    many = wanted[None] if single else wanted
    if many.ndim != outcomes.ndim or many.shape[1:] != outcomes.shape[1:]:
        raise InputError(
            f"t has shape {wanted.shape}, which does not fit a sample of shape {outcomes.shape}"
        )
    shares = np.array([_equal(outcomes, each).mean() for each in many], dtype=np.float64)
    floored: Floats = np.maximum(shares, DRAWS_AT_FLOOR / len(outcomes) if floor is None else floor)
    return floored[0] if single else floored


def kernel_density(
    rows: Floats, places: Floats, h: Floats, kernel: Kernel, limits: Limits | None = None
) -> Floats:
    """The plain kernel density estimate, shape (m,), without floor; rows that are not finite count as far away.

    Args:
        rows: shape (n, d).
        places: shape (m, d).
        h: shape (d,).
        limits: of the support, each of shape (d,).
    """
    if not len(rows):
        return np.zeros(len(places))
    means: Floats = np.array(
        [kernel_values(rows, place, h, kernel, limits).mean() for place in places]
    )
    return means / float(np.prod(h))


def kernel_values(
    rows: Floats, place: Floats, h: Floats, kernel: Kernel, limits: Limits | None = None
) -> Floats:
    """K((place − row)/h) of every row, reflections included; shape (n,)."""
    values: Floats = np.ones(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):  # 1e300 is far away, and nan nowhere
        for j, start in product(range(rows.shape[1]), range(0, len(rows), _IN_FLIGHT)):
            part = slice(start, start + _IN_FLIGHT)
            column = rows[part, j]
            factor = kernel.evaluate((place[j] - column) / h[j])
            for end in () if limits is None else (limits[0][j], limits[1][j]):
                if np.isfinite(end):
                    factor += kernel.evaluate((place[j] - (2.0 * end - column)) / h[j])
            values[part] *= factor
    values[np.isnan(values)] = 0.0
    return values


def bandwidth_of(name: str, given: BandwidthChoice, rows: Floats, kernel: Kernel) -> Floats:
    """The given bandwidth, or that of the rule; shape (d,)."""
    if callable(given):
        return kernels.own_bandwidth(name, given, rows)
    if given is None or isinstance(given, str):
        return kernels.rule_of_thumb(kernels.spreads(rows), len(rows), kernel, rule=given or "nrd0")
    check_bandwidth(name, given)
    return per_coordinate(name, np.atleast_1d(np.asarray(given, dtype=np.float64)), rows.shape[1])


def kernel_floor(n: int, h: Floats, kernel: Kernel, peak: float = 0.0) -> float:
    """The density at which an estimate from n draws has a relative variance of 1/20.

    In several dimensions 1/200, but not above a tenth of the greatest density, `peak`, if it is
    known.
    """
    one_draw = float(kernel.roughness ** len(h) / (n * np.prod(h)))
    if len(h) == 1:
        return DRAWS_AT_FLOOR * one_draw
    return max(DRAWS_AT_FLOOR * one_draw, min(DRAWS_AT_FLOOR_OF_VECTORS * one_draw, 0.1 * peak))


def as_rows(name: str, sample: ArrayLike) -> Floats:
    """Draws as shape (n, d), finite or not."""
    try:
        values: Floats = np.asarray(sample, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be numbers for a kernel density; for other outcomes use tdde"
        ) from None
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or not len(rows) or not 1 <= rows.shape[1] <= 4:
        raise InputError(
            f"{name} has shape {values.shape}; it must be (n,) or (n, d) with n ≥ 1 and d ≤ 4"
        )
    return rows


def as_places(t: ArrayLike, d: int) -> tuple[Floats, bool]:
    """Places as shape (m, d), and whether there is only one."""
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
