"""A score made by a small neural network, as plain arrays that NumPy evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding

Floats = NDArray[np.float64]
# Rows that are evaluated at a time: their hidden layers fit the cache.
_PIECE = 4096


@dataclass(frozen=True, slots=True)
class NetworkScore:
    """Dense layers with tanh between them; the last has one unit and is bent into ±bound.

    Attributes:
        embedding: turns outputs into points.
        weights: one matrix per layer, shape (inputs, units).
        biases: one vector per layer, shape (units,).
        bound: C, no score is larger in size.
    """

    embedding: Embedding
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    bound: float

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.embedding.columns

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        points = self.embedding.points(columns)
        pieces = [self._of_points(points[start : start + _PIECE]) for start in range(0, len(points), _PIECE)]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def _of_points(self, points: Floats) -> Floats:
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            points = np.tanh(points @ weights + biases)
        last = points @ self.weights[-1] + self.biases[-1]
        return np.asarray(self.bound * np.tanh(last[:, 0] / self.bound), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "kind": "network",
            "axes": self.embedding.to_list(),
            "weights": [layer.tolist() for layer in self.weights],
            "biases": [layer.tolist() for layer in self.biases],
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> NetworkScore:
        """The inverse of `to_dict`."""
        weights = tuple(np.array(layer, dtype=np.float64) for layer in data["weights"])
        biases = tuple(np.array(layer, dtype=np.float64) for layer in data["biases"])
        chained = all(a.shape[1] == b.shape[0] for a, b in pairwise(weights))
        fits = [layer.shape == (each.shape[1],) for each, layer in zip(weights, biases, strict=True)]
        bound = float(data["bound"])
        if not weights or not chained or not all(fits) or weights[-1].shape[1] != 1 or not 0.0 < bound < np.inf:
            raise ValueError("the layers of a network do not fit together")
        if not all(np.isfinite(layer).all() for layer in (*weights, *biases)):
            raise ValueError("a network has an infinite weight")
        return cls(Embedding.from_list(data["axes"]).check(len(weights[0])), weights, biases, bound)
