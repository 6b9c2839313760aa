"""What the chunks of one side add up to, in bounded memory however many there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from epsilometer.bounds import Counts
from epsilometer.engine.fingerprints import Fingerprints

# Counts are kept in at most so many pieces of neighbouring chunks: enough to see a drift of any shape.
MOST_PIECES = 1 << 12


@dataclass(slots=True)
class Pieces:
    """Counts of neighbouring chunks, in order. When there are too many pieces, neighbours are put together.

    Which chunks share a piece depends on nothing but their number.

    Attributes:
        counts: of each piece; the last one may still grow.
        width: chunks per piece.
        filled: chunks in the last piece; 0 when it is complete.
    """

    counts: list[Counts] = field(default_factory=list)
    width: int = 1
    filled: int = 0

    def add(self, counts: Counts) -> None:
        """The counts of the next chunk."""
        own = Counts(counts.hits, counts.trials)  # a tally may carry more than the counts of one event
        if self.filled:
            self.counts[-1] += own
        else:
            self.counts.append(own)
        self.filled = (self.filled + 1) % self.width
        if len(self.counts) == MOST_PIECES and not self.filled:
            pairs = zip(self.counts[::2], self.counts[1::2], strict=True)
            self.counts = [first + second for first, second in pairs]
            self.width *= 2


@dataclass(slots=True)
class Folded:
    """The chunks of one side so far.

    Attributes:
        chunks: how many.
        size: their outputs.
        total: what they were reduced to, added with +; None before the first.
        pieces: for reductions to the counts of an event, these in order; empty for others.
        fingerprints: of these chunks, and of earlier draws of the same side.
        is_whole: False while a chunk is being added. What an interruption leaves half done must not be stored.
    """

    chunks: int = 0
    size: int = 0
    total: Any = None
    pieces: Pieces = field(default_factory=Pieces)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    is_whole: bool = True

    def add(self, value: Any, size: int, fingerprint: bytes) -> None:
        """One more chunk: what it was reduced to, its outputs, and its fingerprint."""
        self.is_whole = False
        self.total = value if self.chunks == 0 else self.total + value
        if isinstance(value, Counts):
            self.pieces.add(value)
        self.fingerprints.add(fingerprint)
        self.chunks += 1
        self.size += size
        self.is_whole = True
