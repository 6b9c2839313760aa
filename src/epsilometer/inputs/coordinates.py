"""What a search may choose, as numbers in [0, 1].

A finder knows nothing but points of a unit cube; a domain turns them into datasets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A tenth of each coordinate stands for the lower end of its interval, a tenth for the upper one: the worst inputs of
# sums, means and counts lie at the ends, where points of a continuum never are.
ENDS = 0.1
# Shares of a signed coordinate: full steps down and up, no step, and what lies between.
_FULL, _NONE = 0.25, 0.2


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One thing that a search chooses.

    Attributes:
        levels: how many different values there are; None for a continuum.
        ordered: whether neighbouring levels are alike.
        signed: whether it stands for a step down, none, or up, instead of a value between two ends.
    """

    levels: int | None = None
    ordered: bool = True
    signed: bool = False

    def places(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where numbers of [0, 1] lie for a model: apart if and only if they stand for different values."""
        if not self.ordered:
            assert self.levels is not None  # names can be counted
            return np.minimum(np.floor(u * self.levels), self.levels - 1.0)
        if self.signed:
            return np.array([0.5 + 0.5 * signed_step(float(each)) for each in u])
        return np.clip((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0, 1.0)

    def grid(self, most: int) -> NDArray[np.float64]:
        """At most so many points that stand for different values, both ends among them; unordered levels all count."""
        if not self.ordered:
            assert self.levels is not None  # names can be counted
            return (np.arange(self.levels) + 0.5) / self.levels
        count = most if self.levels is None else min(most, self.levels)
        return np.linspace(ENDS, 1.0 - ENDS, count) if count > 1 else np.array([0.5])


def level_of(u: float, levels: int) -> int:
    """Which of so many equal pieces of [0, 1] a number lies in."""
    return min(int(u * levels), levels - 1)


def within(u: float, low: float, high: float) -> float:
    """A number between low and high, with a share of u for each end."""
    inside = min(max((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0), 1.0)
    return high if inside == 1.0 else low + inside * (high - low)


def whole_within(u: float, low: int, high: int) -> int:
    """A whole number between low and high."""
    return min(math.floor(within(u, low, high) + 0.5), high)


def signed_step(u: float) -> float:
    """A number between −1 and 1, with shares of u for −1, for 0 and for 1."""
    away = abs(u - 0.5) - 0.5 * _NONE
    size = min(max(away / (0.5 - 0.5 * _NONE - _FULL), 0.0), 1.0)
    return math.copysign(size, u - 0.5)
