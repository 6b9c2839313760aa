"""Kernels: how far a draw speaks for its neighbourhood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError

Floats = NDArray[np.float64]


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
