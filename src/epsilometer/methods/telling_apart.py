"""How much better one way of cutting outputs tells two laws apart than another.

The logistic loss is a mean over all draws, so that it compares scores with little chance: the bound to expect is a
matter of few rare outputs, and the luckiest of several candidates looks best.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs import Outputs, Partition

Floats = NDArray[np.float64]
Sides = tuple[Outputs, Outputs]

# Draws per side that are compared: their chance is small enough.
_MOST_ROWS = 40_000


def advantage(one: Partition, other: Partition, draws: Sides) -> float:
    """By how many standard errors the loss of `one` is smaller than that of `other`, on the same draws.

    Args:
        one: cells.
        other: other cells of the same outputs.
        draws: left and right outputs that did not shape `one`.
    """
    first = (draws[0].take(slice(0, _MOST_ROWS)), draws[1].take(slice(0, _MOST_ROWS)))
    differences = [theirs - ours for ours, theirs in zip(_losses(one, first), _losses(other, first), strict=True)]
    error = math.sqrt(sum(float(each.var()) / max(len(each), 1) for each in differences))
    return sum(float(each.mean()) for each in differences) / error if error > 0.0 else 0.0


def _losses(partition: Partition, draws: Sides) -> tuple[Floats, Floats]:
    """The logistic loss of every second draw, with log-ratios of cells from the others."""
    cells = [partition.index(side) for side in draws]
    counts = [np.bincount(side[::2], minlength=partition.n_cells) + 1.0 for side in cells]
    ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    left, right = (ratio[side[1::2]] for side in cells)
    return np.logaddexp(0.0, -left), np.logaddexp(0.0, right)
