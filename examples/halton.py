"""A finder of your own: pairs of inputs from the Halton sequence, which covers a domain more evenly than chance.

A finder is asked for a pair and told how much that pair promised. `em.finders.DomainFinder` does all but choose the
next point of the unit cube: every point stands for a pair of neighbours of the domain.
"""

from scipy.stats import qmc

import epsilometer as em


class Halton(em.finders.DomainFinder):
    name = "halton"

    def next_point(self, number):
        sequence = qmc.Halton(len(self.neighbours.coordinates), scramble=False)
        sequence.fast_forward(number + 1)  # its first point is a corner
        return sequence.random()[0]


def noisy_sum(values, n, rng):
    """Noise for values in [0, 1/2]: ε = 1 there, but ε = 2 on [0, 1]."""
    return sum(values) + rng.laplace(scale=0.5, size=n)
