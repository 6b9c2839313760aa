"""What the chunks of one side add up to, in bounded memory however many there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from epsilometer.bounds import Counts

# Fingerprints of so many chunks of a side are remembered, 6 MB of them. A frozen seed repeats early chunks.
MOST_FINGERPRINTS = 1 << 16
# Counts are kept in at most so many pieces of neighbouring chunks: enough to see a drift of any shape.
MOST_PIECES = 1 << 12


class Fingerprints:
    """Recognises chunks that repeat an earlier one.

    Attributes:
        total: fingerprints that were added.
        repeats: those that were known already. Beyond `MOST_FINGERPRINTS` distinct ones no further is remembered.
    """

    def __init__(self, known: Iterable[bytes] = ()) -> None:
        self._known: dict[bytes, None] = {}  # in order, so that it is stored alike every time
        self.total = self.repeats = 0
        for fingerprint in known:
            self.add(fingerprint)

    def add(self, fingerprint: bytes) -> None:
        """One more chunk."""
        self.total += 1
        if fingerprint in self._known:
            self.repeats += 1
        elif len(self._known) < MOST_FINGERPRINTS:
            self._known[fingerprint] = None

    def known(self) -> tuple[bytes, ...]:
        """The distinct ones that are remembered, the oldest first."""
        return tuple(self._known)

    def copy(self) -> Fingerprints:
        """Another set of the same ones, for further chunks that do not belong here."""
        return self.restored(self._known, self.total, self.repeats)

    @classmethod
    def restored(cls, known: Iterable[bytes], total: int, repeats: int) -> Fingerprints:
        """The inverse of `known`, `total` and `repeats`."""
        restored = cls(known)
        restored.total, restored.repeats = total, repeats
        return restored


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
        if size > 1:  # one output repeats by chance
            self.fingerprints.add(fingerprint)
        self.chunks += 1
        self.size += size
        self.is_whole = True
