"""What is remembered of the draws to recognise those that repeat: a number per output, of the head of every chunk."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs import Labels, Outputs
from epsilometer.outputs.columns import Column

Hashes = NDArray[np.uint64]

# So many outputs at the head of a chunk are remembered: enough to recognise a repetition, cheap to hash. Once there are
# many chunks, fewer of each will do. All in all 1 MB per side.
HEAD, SHORT_HEAD, LONG_HEADS = 128, 8, 512
MOST_ROWS = 1 << 17
# An odd constant that scatters bits (the golden ratio), and the multipliers of the finaliser of splitmix64.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


def row_hashes(outputs: Outputs) -> Hashes:
    """A number per output: equal outputs, equal numbers; every bit of it is as good as a coin."""
    hashes = np.empty(len(outputs), dtype=np.uint64)
    for block in outputs:
        total = _shape_bits(block.shape)
        for column in block.columns:
            total = _mixed(total * _GOLDEN + _column_bits(column))
        hashes[slice(None) if block.rows is None else block.rows] = total
    return hashes


@lru_cache(maxsize=4096)
def _shape_bits(shape: str) -> Hashes:
    """Of shape (1,), so that it is spread over the rows."""
    return _mixed(np.array([zlib.crc32(shape.encode(errors="replace"))], dtype=np.uint64))


def _column_bits(column: Column) -> Hashes:
    if isinstance(column, Labels):
        used, place = np.unique(column.codes, return_inverse=True)  # a table may hold many more than there are rows
        table = [zlib.crc32(column.labels[code].encode(errors="replace")) for code in used.tolist()]
        return np.array(table, dtype=np.uint64)[place.ravel()]
    values = np.ascontiguousarray(column.values)
    return values.astype(np.uint64) if values.dtype.itemsize != 8 else values.view(np.uint64)


def _mixed(bits: Hashes) -> Hashes:
    for shift, factor in _MIX:
        bits = (bits ^ (bits >> shift)) * factor
    return bits ^ (bits >> _LAST_SHIFT)


def fingerprint(outputs: Outputs) -> bytes:
    """The numbers of the first outputs of a chunk, in order."""
    return row_hashes(outputs.take(slice(0, HEAD)) if len(outputs) > HEAD else outputs).tobytes()


class Fingerprints:
    """The heads of the chunks of one side, in the order in which they were drawn.

    Attributes:
        chunks: how many were added. Beyond `MOST_ROWS` outputs no further one is remembered: a frozen seed, or a
            generator that every worker has a copy of, repeats the first draws.
    """

    def __init__(self) -> None:
        self._heads: list[Hashes] = []
        self._rows = self.chunks = 0

    def add(self, fingerprint: bytes) -> None:
        """One more chunk."""
        wanted = min(HEAD if self.chunks < LONG_HEADS else SHORT_HEAD, MOST_ROWS - self._rows)
        self.chunks += 1
        head = np.frombuffer(fingerprint, dtype=np.uint64)[:wanted]
        if len(head):
            self._heads.append(head)
            self._rows += len(head)

    def heads(self) -> list[Hashes]:
        """Those that are remembered, the oldest first."""
        return list(self._heads)

    def copy(self) -> Fingerprints:
        """Another memory of the same ones, for further chunks that do not belong here."""
        copied = Fingerprints()
        copied._heads, copied._rows, copied.chunks = list(self._heads), self._rows, self.chunks
        return copied

    def to_bytes(self) -> bytes:
        """Plain bytes; `from_bytes` is the inverse."""
        sizes = np.array([self.chunks, len(self._heads), *map(len, self._heads)], dtype="<u8")
        return b"".join([sizes.tobytes(), *(head.astype("<u8").tobytes() for head in self._heads)])

    @classmethod
    def from_bytes(cls, content: bytes) -> Fingerprints:
        """The inverse of `to_bytes`."""
        numbers = np.frombuffer(content, dtype="<u8").astype(np.uint64)
        restored, n = cls(), int(numbers[1])
        ends = 2 + n + np.cumsum(numbers[2 : 2 + n]).astype(np.int64)
        restored._heads = np.split(numbers[2 + n :], ends[:-1] - 2 - n) if n else []
        restored.chunks, restored._rows = int(numbers[0]), len(numbers) - 2 - n
        return restored
