"""The papers' methods as one would first write them with NumPy: the yardstick of ours, not a part of the library.

Each follows its paper line by line, without binning, caching or chunks.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

# Points at which a kernel density is evaluated, and draws handled at a time so that the table fits into memory.
GRID = 800
_ROWS = 2000


def rule_of_thumb(sample: Floats) -> float:
    """R's bw.nrd0."""
    low, high = np.quantile(sample, [0.25, 0.75])
    return float(0.9 * min(sample.std(ddof=1), (high - low) / 1.34) * len(sample) ** -0.2)


def kernel_density(sample: Floats, places: Floats, width: float) -> Floats:
    """The Gaussian kernel density at each place, as the sum over all draws."""
    total = np.zeros(len(places))
    for start in range(0, len(sample), _ROWS):
        distance = (places[None, :] - sample[start : start + _ROWS, None]) / width
        total += np.exp(-0.5 * distance**2).sum(axis=0)
    return total / (math.sqrt(2.0 * math.pi) * len(sample) * width)


def maximum_power_loss(
    training: tuple[Floats, Floats],
    fresh: tuple[Floats, Floats],
    region: tuple[float, float],
    floor: float,
) -> float:
    """The lower bound of the local approach: where the loss looks greatest, its estimate on fresh draws minus its cost.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy", Algorithms 3 and 4.
    """
    places = np.linspace(*region, GRID)
    left, right = (
        np.maximum(kernel_density(side, places, rule_of_thumb(side)), floor) for side in training
    )
    here = places[[int(np.argmax(np.abs(np.log(left / right))))]]
    width = min(rule_of_thumb(side) for side in fresh)
    f, g = (float(np.maximum(kernel_density(side, here, width), floor)[0]) for side in fresh)
    deviation = math.sqrt((1.0 / f + 1.0 / g) / (2.0 * math.sqrt(math.pi)))
    return abs(math.log(f / g)) + float(ndtri(0.05)) * deviation / math.sqrt(len(fresh[0]) * width)


def floored_renyi(left: Floats, right: Floats, order: float, floor: float) -> float:
    """The estimated Rényi divergence with a soft floor, from kernel densities on an even grid.

    Reference: Kutta, Askin, Dunsche, "Lower bounds for Rényi differential privacy in a black-box setting", (14).
    """
    both = np.concatenate([left, right])
    places = np.linspace(both.min(), both.max(), GRID)
    p, q = (kernel_density(side, places, rule_of_thumb(side)) for side in (left, right))
    raised = np.logaddexp(q / floor, 1.0) * floor
    return math.log(float((p**order * raised ** (1.0 - order)).sum() * (places[1] - places[0]))) / (
        order - 1.0
    )


def histogram_ratio(left: Floats, right: Floats, domain: tuple[float, float], cells: int) -> float:
    """The greatest log-ratio of two histograms of even cells, left over right (Algorithm 1 of the histogram paper)."""
    first, second = (np.histogram(side, cells, domain)[0] for side in (left, right))
    return float(np.log(first / second).max())
