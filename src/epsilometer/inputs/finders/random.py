"""Pairs drawn at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer.inputs.finders.base import DomainFinder


class Random(DomainFinder):
    """Tries pairs at random, each independently of the others.

    Not evenly: a tenth of the draws of every number lies at each end of its interval, since that is where many
    mechanisms leak most.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        trials: the most pairs to try.
        samples: draws per side to look at a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "random"

    def _next_point(self, number: int) -> NDArray[np.float64]:
        return self._rng(number).random(len(self.neighbours.coordinates))
