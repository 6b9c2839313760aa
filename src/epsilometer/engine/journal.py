"""What an audit remembers of its draws, so that it can go on after an interruption."""

from __future__ import annotations

from typing import Any, Protocol

from epsilometer.engine.folding import Folded
from epsilometer.outputs import Outputs

# Phase, number of the pair, side.
Stream = tuple[int, int, int]


class Journal(Protocol):
    """Remembers chunks of outputs, and what the chunks of a proof add up to.

    Attributes:
        is_kept: whether anything is remembered at all.
    """

    is_kept: bool

    def recall(self, stream: Stream, chunk: int) -> tuple[Outputs, bytes] | None:
        """The outputs of a chunk and their fingerprint; None if it was not drawn before."""

    def keep(self, stream: Stream, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""

    def recognise(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that what is to be proved is what was to be proved before the interruption.

        Args:
            number: of the pair.
            examples: what its proof makes of the draws that it was learned from, left and right.
        """

    def resume(self, stream: Stream, example: Any) -> Folded | None:
        """What the first chunks of a stream add up to; None if nothing is known of it.

        Args:
            example: what other outputs of this side were reduced to, for the types that the file does not hold.
        """

    def save(self, stream: Stream, folded: Folded) -> None:
        """Remembers what the chunks of a stream add up to so far, in place of what it knew before."""


class NoJournal:
    """Remembers nothing."""

    is_kept = False

    def recall(self, stream: Stream, chunk: int) -> tuple[Outputs, bytes] | None:
        """Nothing."""
        return None

    def keep(self, stream: Stream, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Forgets it."""

    def recognise(self, number: int, examples: tuple[Any, Any]) -> None:
        """Nothing to compare with."""

    def resume(self, stream: Stream, example: Any) -> Folded | None:
        """Nothing."""
        return None

    def save(self, stream: Stream, folded: Folded) -> None:
        """Forgets it."""
