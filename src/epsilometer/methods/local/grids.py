"""Kernel densities on a grid over a box, from binned draws: one pass over the sample, then one FFT per axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.local.densities import Limits
from epsilometer.methods.local.kernels import Kernel

Floats = NDArray[np.float64]

# Steps per bandwidth, and the fewest and most steps across the box, by number of dimensions. In one dimension a
# sixteenth of a bandwidth locates the maximum of a smooth function; in more, the grid must fit the memory.
_STEPS = {1: (16, 64, 16384), 2: (6, 16, 160), 3: (3, 8, 40), 4: (2, 6, 18)}


@dataclass(frozen=True, slots=True)
class Grid:
    """Evenly spaced places in a box, both ends included, and a margin around it for the draws that matter there.

    Attributes:
        low: shape (d,), the box.
        high: shape (d,).
        steps: shape (d,), steps across the box.
        margin: shape (d,), steps outside on each side.
    """

    low: Floats
    high: Floats
    steps: NDArray[np.int64]
    margin: NDArray[np.int64]

    @classmethod
    def over(cls, low: Floats, high: Floats, bandwidths: Floats, kernel: Kernel) -> Grid:
        """A grid fine enough for the given bandwidths, shape (sides, d)."""
        per_bandwidth, fewest, most = _STEPS[len(low)]
        gaussian = bandwidths / kernel.stretch
        wanted = np.ceil(per_bandwidth * (high - low) / gaussian.min(axis=0))
        steps = np.clip(wanted, fewest, most).astype(np.int64)
        widest = bandwidths.max(axis=0) * kernel.reach * steps / (high - low)
        # A margin beyond this only matters when the box is a speck in one bandwidth; the density is flat there.
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

    def density(self, rows: Floats, h: Floats, kernel: Kernel, limits: Limits | None = None) -> Floats:
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


def reflected(rows: Floats, limits: Limits) -> Floats:
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
