"""A pair of neighbouring datasets: what a claim of privacy speaks about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring datasets, whatever the mechanism takes as its input.

    Attributes:
        left: the dataset whose outputs have the law P.
        right: the dataset whose outputs have the law Q.
    """

    left: Any
    right: Any

    def side(self, index: int) -> Any:
        """0 is left, 1 is right."""
        return self.right if index else self.left
