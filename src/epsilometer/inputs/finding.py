"""What a finder is: it is asked for a pair of neighbouring inputs, and told how much that pair promised.

By itself, because every audit asks whether its inputs are one, and few need the finders that we have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from epsilometer.inputs.pairs import Pair


@runtime_checkable
class Finder(Protocol):
    """Proposes pairs of inputs, one trial after the other. It never sees the mechanism.

    What is asked next must depend on nothing but the finder's own settings and what it was told so far: an interrupted
    search asks again.

    Attributes:
        trials: the most pairs that it proposes.
        samples: draws per side with which a trial looks at its pair.
        stop_at_refutation: whether the search ends at the first refutation, or tries every pair for the largest bound.
    """

    trials: int
    samples: int
    stop_at_refutation: bool

    def ask(self) -> Pair | None:
        """The next pair to try, the same until it is told about; None when there is none left."""

    def tell(self, score: float | None) -> None:
        """What the pair promised: a number, 0.0 included, the more the better; None if there is nothing to tell."""

    def state(self) -> dict[str, Any]:
        """What it was told so far, as plain data for JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state of a finder with the same settings."""

    def describe(self) -> dict[str, Any]:
        """Its settings, as plain data for the result."""
