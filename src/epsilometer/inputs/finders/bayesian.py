"""Pairs where a model of the scores so far expects the most."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Coordinate
from epsilometer.inputs.domains.base import Domain
from epsilometer.inputs.finders.base import DomainFinder, Told

Floats = NDArray[np.float64]
SURROGATES = ("gaussian-process", "tree")
# Trials at random before there is a model: as many as coordinates, but not fewer than this, nor more than a third of
# all, if there are many coordinates. (Rare leak, mean trials of 40 searches: 17 with as many as coordinates, 22 with 4
# more, 24 with 8 more.)
_FIRST_TRIALS = 4
# Every so many trials the model is not asked: it may be sure of a hill that is not the highest.
_LOOK_AROUND = 7


class Surrogate(Protocol):
    """Proposes a point from earlier trials."""

    def next_point(self, told: list[Told], coordinates: tuple[Coordinate, ...], rng: np.random.Generator) -> Floats:
        """A point of shape (coordinates,)."""


class Bayesian(DomainFinder):
    """Tries pairs where a model of the scores so far expects the greatest improvement.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        surrogate: the model: "gaussian-process" (our own), or "tree" (tree-structured Parzen estimators of the package
            optuna, an extra).
        trials: the most pairs to try.
        samples: draws per side to look at a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "bayesian"

    def __init__(
        self,
        domain: Domain,
        relation: str | None = None,
        *,
        surrogate: str = "gaussian-process",
        trials: int = 50,
        samples: int = 20_000,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        super().__init__(
            domain, relation, trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation
        )
        self.surrogate = surrogate
        self._model = open_surrogate(surrogate)
        self.first_trials = max(_FIRST_TRIALS, min(len(self.neighbours.coordinates), self.trials // 3))

    def describe(self) -> dict[str, Any]:
        """The settings, with the model."""
        return {**super().describe(), "surrogate": self.surrogate}

    def _next_point(self, number: int) -> Floats:
        coordinates, rng = self.neighbours.coordinates, self._rng(number)
        scored = {each.score for each in self._told if each.score is not None}
        has_model = number >= self.first_trials and len(scored) > 1
        if not has_model or number % _LOOK_AROUND == 0:
            return rng.random(len(coordinates))
        return self._model.next_point(self._told, coordinates, rng)


def open_surrogate(name: str) -> Surrogate:
    """The model of that name; a MissingExtraError if its package is not installed."""
    if name == "gaussian-process":
        from epsilometer.inputs.finders.improvement import GreatestImprovement

        return GreatestImprovement()
    if name == "tree":
        from epsilometer.inputs.finders.trees import ParzenTrees

        return ParzenTrees()
    raise InputError(f"surrogate={name!r} is unknown; known are {', '.join(map(repr, SURROGATES))}")
