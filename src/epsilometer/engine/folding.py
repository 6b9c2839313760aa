"""Folding: the running totals of one side's chunks.

The draws that certify are too many to be kept. Every chunk is reduced where it is drawn, and the
reduced values are added up here, with what the health checks need to know of each chunk.
"""

from dataclasses import dataclass, field
from typing import Any

from epsilometer.bounds import Counts
from epsilometer.engine.fingerprints import Fingerprints

# Counts are kept in at most this many groups of neighbouring chunks: enough to see a drift of any
# shape.
MOST_GROUPS = 1 << 12


@dataclass(slots=True)
class ChunkGroups:
    """Counts of groups of neighbouring chunks, in order, for the check for drift.

    When there are too many groups, neighbouring ones are merged. Which chunks share a group depends
    only on how many chunks there are.

    Attributes:
        counts: of each group; the last one may still grow.
        width: chunks per group.
        filled: chunks in the last group; 0 when it is complete.
    """

    counts: list[Counts] = field(default_factory=list)
    width: int = 1
    filled: int = 0

    def add(self, counts: Counts) -> None:
        """Adds the counts of the next chunk."""
        if self.filled:
            self.counts[-1] += counts
        else:
            self.counts.append(counts)
        self.filled = (self.filled + 1) % self.width
        is_complete = self.filled == 0
        if is_complete and len(self.counts) == MOST_GROUPS:
            evens = self.counts[::2]
            odds = self.counts[1::2]
            self.counts = [first + second for first, second in zip(evens, odds, strict=True)]
            self.width *= 2


@dataclass(frozen=True, slots=True)
class TwoTallies:
    """The reduced outputs for the finding that decides, and for a secondary one.

    Attributes:
        deciding: the tally of the finding that decides.
        secondary: the tally of the secondary finding.
    """

    deciding: Any
    secondary: Any

    def __add__(self, other: "TwoTallies") -> "TwoTallies":
        return TwoTallies(
            deciding=self.deciding + other.deciding,
            secondary=self.secondary + other.secondary,
        )


@dataclass(slots=True)
class Folded:
    """The total of one side's chunks so far.

    Attributes:
        chunks: how many chunks.
        size: how many outputs they hold.
        total: their reduced values, added with +; None before the first.
        groups: for reductions to the counts of an event, these in order; empty for others.
        fingerprints: of these chunks, and of earlier draws of the same side.
        is_whole: False while a chunk is being added. A half-added chunk must not be stored.
    """

    chunks: int = 0
    size: int = 0
    total: Any = None
    groups: ChunkGroups = field(default_factory=ChunkGroups)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    is_whole: bool = True

    def add(self, value: Any, size: int, fingerprint: bytes) -> None:
        """Adds a chunk.

        Args:
            value: its reduced outputs.
            size: its number of outputs.
            fingerprint: of its outputs.
        """
        self.is_whole = False
        self.total = value if self.chunks == 0 else self.total + value
        deciding = value.deciding if isinstance(value, TwoTallies) else value
        if isinstance(deciding, Counts):
            self.groups.add(deciding)
        self.fingerprints.add(fingerprint)
        self.chunks += 1
        self.size += size
        self.is_whole = True
