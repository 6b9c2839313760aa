"""A finder of your own with rounds and shrinking: histograms that differ by one in one cell.

`em.finders.RoundFinder` proposes many pairs at once. The audit screens them with a few draws each,
reports the scores, asks for simpler pairs of what looks like a leak, and certifies the simplest.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import epsilometer as em


class GridOfCounts(em.finders.RoundFinder):
    name = "grid-of-counts"
    relation = "one more in one cell"

    def __init__(self, cells: int, largest: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.cells = cells
        self.largest = largest

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "cells": self.cells, "largest": self.largest}

    def next_round(self, number: int) -> list[em.finders.PairCandidate]:
        """Round 0 has all histograms of zeros and ones, round 1 those with a two, and so on."""
        if number >= self.largest:
            return []
        histograms = product(range(number + 2), repeat=self.cells)
        return [self.candidate(counts) for counts in histograms if max(counts) == number + 1]

    def candidate(self, counts: tuple[int, ...]) -> em.finders.PairCandidate:
        """The first cell that is not empty has one more on the right."""
        cell = next(place for place, count in enumerate(counts) if count > 0)
        left = [count - (place == cell) for place, count in enumerate(counts)]
        note = f"cell {cell} of {self.cells}"
        pair = em.Pair(left, list(counts), note=note)
        return em.finders.PairCandidate(pair, family="counts", recipe=counts)

    def simpler(self, candidate: em.finders.PairCandidate) -> Iterator[em.finders.PairCandidate]:
        """One of the counts halved, the largest first."""
        counts: tuple[int, ...] = candidate.recipe
        for cell in sorted(range(self.cells), key=lambda place: -counts[place]):
            halved = (*counts[:cell], counts[cell] // 2, *counts[cell + 1 :])
            if any(halved) and halved != counts:
                yield self.candidate(halved)
