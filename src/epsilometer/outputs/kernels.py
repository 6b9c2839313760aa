"""A score that is a function of a Gaussian kernel's space, as plain arrays that our own code evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding

Floats = NDArray[np.float64]
# Rows that are evaluated at a time: their distances to all landmarks fit the cache.
_PIECE = 1024


def gaussian_kernel(left: Floats, right: Floats) -> Floats:
    """e^(−‖x − y‖²/2) for all pairs of points, shape (n, m)."""
    distances = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * (left @ right.T)
    return np.asarray(np.exp(-0.5 * np.maximum(distances, 0.0)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class KernelScore:
    """f(output) = Σ weight·kernel(output, landmark).

    Attributes:
        embedding: turns outputs into points.
        bandwidth: of the kernel, in the units of the embedding.
        landmarks: shape (k, dimensions).
        weights: shape (k,).
    """

    embedding: Embedding
    bandwidth: float
    landmarks: Floats
    weights: Floats

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.embedding.columns

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        points = self.embedding.points(columns) / self.bandwidth
        landmarks = self.landmarks / self.bandwidth
        pieces = [
            gaussian_kernel(points[start : start + _PIECE], landmarks) @ self.weights
            for start in range(0, len(points), _PIECE)
        ]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "kind": "kernel",
            "axes": self.embedding.to_list(),
            "bandwidth": self.bandwidth,
            "landmarks": self.landmarks.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KernelScore:
        """The inverse of `to_dict`."""
        landmarks, weights = (np.array(data[name], dtype=np.float64) for name in ("landmarks", "weights"))
        bandwidth = float(data["bandwidth"])
        if landmarks.ndim != 2 or weights.shape != (len(landmarks),) or not 0.0 < bandwidth < np.inf:
            raise ValueError("a kernel score needs one weight per landmark and a positive bandwidth")
        if not (np.isfinite(landmarks).all() and np.isfinite(weights).all()):
            raise ValueError("a kernel score has an infinite number")
        return cls(Embedding.from_list(data["axes"]).check(landmarks.shape[1]), bandwidth, landmarks, weights)
