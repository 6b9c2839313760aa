"""The type of a family: a mechanism, a pair, and the exact log-likelihood ratio of every output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

import epsilometer as em
from epsilometer.arrays import Floats
from epsilometer.mechanisms import Mechanism

# f(dataset, n, rng) -> n outputs: an array of shape (n,) or (n, columns), or a list of Python values.
Draw = Callable[[Any, int, Generator], Any]
# f(dataset, outputs) -> logarithms of densities or probabilities, shape (n,).
LogDensity = Callable[[Any, Any], Floats]

DEFAULT_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Family:
    """A mechanism whose likelihood ratio is known for every output.

    Attributes:
        name: as printed.
        group: "invented", "texts" or "reported".
        description: what it releases and what leaks, in one sentence.
        draw: draws outputs of one dataset.
        log_density: log density of outputs under one dataset. A part that both datasets share may be
            left out. Where one dataset gives some outputs with positive probability and the other
            spreads the same outputs over a continuum, the latter is −inf.
        pair: the two neighbouring datasets.
        truth: the largest |log ratio|; inf where it is not bounded.
        claim: what an engineer would have promised, as ε; None where nothing depends on it.
        draws: per side, in the table.
    """

    name: str
    group: str
    description: str
    draw: Draw
    log_density: LogDensity
    pair: em.Pair
    truth: float
    claim: float | None = None
    draws: int = DEFAULT_DRAWS

    @property
    def mechanism(self) -> Mechanism:
        """For audits."""
        return em.from_batch(self.draw, name=self.name)

    def log_ratio(self, outputs: Any) -> Floats:
        """ln(p_left/p_right) of outputs as `draw` returns them, shape (n,); ±inf is allowed.

        Exact for noise of real numbers: what the last bits of floating-point sums reveal is not counted.
        """
        left = np.asarray(self.log_density(self.pair.left, outputs), dtype=float)
        right = np.asarray(self.log_density(self.pair.right, outputs), dtype=float)
        return left - right
