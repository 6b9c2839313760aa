"""A finder of your own: pairs of inputs from the Halton sequence, more even than chance.

A finder is asked for a pair and told how much that pair promised. `em.finders.DomainFinder` does
all but choose the next point of the unit cube: every point stands for a pair of neighbours of the
domain.
"""

import numpy as np
from scipy.stats import qmc  # type: ignore[import-untyped]

import epsilometer as em


class Halton(em.finders.DomainFinder):
    name = "halton"

    def next_point(self, number: int) -> list[float]:
        sequence = qmc.Halton(len(self.neighbours.coordinates), scramble=False)
        sequence.fast_forward(number + 1)  # its first point is a corner
        point: list[float] = sequence.random()[0].tolist()
        return point


def noisy_sum(values: list[float], n: int, rng: np.random.Generator) -> np.ndarray:
    """Noise for values in [0, 1/2]: ε = 1 there, but ε = 2 on [0, 1]."""
    return sum(values) + rng.laplace(scale=0.5, size=n)
