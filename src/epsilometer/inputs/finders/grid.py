"""Pairs on a regular grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.inputs.checking import check_whole
from epsilometer.inputs.domains.base import Domain
from epsilometer.inputs.finders.base import DomainFinder


class Grid(DomainFinder):
    """Tries every combination of some values per coordinate, once.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        levels: values per number, both ends among them; None takes as many as fit into the trials, at least 2. Of
            unordered choices all are tried.
        shuffled: whether to go through the grid in a mixed order, so that a part of it is spread over the whole;
            otherwise the last coordinate changes fastest.
        trials: the most pairs to try.
        samples: draws per side to look at a pair.
        seed: of the mixed order; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "grid"

    def __init__(
        self,
        domain: Domain,
        relation: str | None = None,
        *,
        levels: int | None = None,
        shuffled: bool = True,
        trials: int = 50,
        samples: int = 20_000,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        super().__init__(
            domain, relation, trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation
        )
        self.shuffled = bool(shuffled)
        self.levels = self._most_levels() if levels is None else check_whole("levels", levels, 2, " to have two ends")
        self._axes = [coordinate.grid(self.levels) for coordinate in self.neighbours.coordinates]
        self.size = math.prod(len(axis) for axis in self._axes)
        self.trials = min(self.trials, self.size)

    def describe(self) -> dict[str, Any]:
        """The settings, with those of the grid."""
        return {**super().describe(), "levels": self.levels, "shuffled": self.shuffled}

    def _most_levels(self) -> int:
        """The finest grid that the trials can go through, but not coarser than the two ends."""
        levels = 2
        while self._size_with(levels + 1) <= self.trials and self._size_with(levels + 1) > self._size_with(levels):
            levels += 1
        return levels

    def _size_with(self, levels: int) -> int:
        return math.prod(len(coordinate.grid(levels)) for coordinate in self.neighbours.coordinates)

    def _next_point(self, number: int) -> NDArray[np.float64]:
        place = self._mixed(number) if self.shuffled else number
        point = np.empty(len(self._axes))
        for axis in reversed(range(len(self._axes))):
            place, index = divmod(place, len(self._axes[axis]))
            point[axis] = self._axes[axis][index]
        return point

    def _mixed(self, number: int) -> int:
        """A permutation of the whole grid that needs no list of it: a step without common divisor with its size."""
        rng = np.random.default_rng(self.seed)
        # Near the golden section of the size, so that any first few places are spread evenly.
        step, start = max(1, int(0.618 * self.size)), int(rng.random() * self.size)
        while math.gcd(step, self.size) > 1:
            step += 1
        return (start + number * step) % self.size
