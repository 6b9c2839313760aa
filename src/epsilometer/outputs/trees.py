"""A score made of small trees, as plain arrays that our own code evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.coding import CodedColumn
from epsilometer.outputs.columns import Column

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TreeScore:
    """The sum of trees that ask the same question of every output at one level ("oblivious" trees).

    Attributes:
        codings: the coded columns.
        features: shape (trees, depth), which coding a level asks about.
        thresholds: shape (trees, depth), the answer is yes from this code on.
        leaves: shape (trees, 2^depth), the value for each row of answers, the first question being the highest bit.
    """

    codings: tuple[CodedColumn, ...]
    features: Integers
    thresholds: Integers
    leaves: Floats

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return tuple(coding.column for coding in self.codings)

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        return self.of_codes([coding.codes(columns) for coding in self.codings])

    def of_codes(self, codes: Sequence[NDArray[np.int32]]) -> Floats:
        """The score of rows that are coded already, shape (n,)."""
        total = np.zeros(len(codes[0]))
        for features, thresholds, leaves in zip(self.features, self.thresholds, self.leaves, strict=True):
            leaf = np.zeros(len(total), dtype=np.int32)
            for feature, threshold in zip(features, thresholds, strict=True):
                leaf += leaf
                leaf += codes[feature] >= threshold
            total += leaves[leaf]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "kind": "trees",
            "codings": [coding.to_dict() for coding in self.codings],
            "features": self.features.tolist(),
            "thresholds": self.thresholds.tolist(),
            "leaves": self.leaves.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TreeScore:
        """The inverse of `to_dict`."""
        codings = tuple(CodedColumn.from_dict(coding) for coding in data["codings"])
        features, thresholds = (np.array(data[name], dtype=np.int64) for name in ("features", "thresholds"))
        leaves = np.array(data["leaves"], dtype=np.float64)
        fits = features.ndim == 2 and thresholds.shape == features.shape
        if not codings or not fits or leaves.shape != (len(features), 1 << features.shape[1]):
            raise ValueError("the trees of a score do not fit together")
        if features.min(initial=0) < 0 or features.max(initial=0) >= len(codings) or not np.isfinite(leaves).all():
            raise ValueError("a tree of a score asks about a column that does not exist, or has an infinite leaf")
        return cls(codings, features, thresholds, leaves)
