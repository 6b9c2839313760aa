"""Fingerprints: what is remembered of every chunk, so that repeated draws are noticed.

An output is hashed to 64 bits; the fingerprint of a chunk is the hashes of its first outputs. The
health checks look for outputs that repeat where independent draws would not.
"""

import zlib
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs import Block, Labels, Outputs

Hashes = NDArray[np.uint64]

# Outputs at the head of a chunk that are remembered: enough to recognise a repetition, cheap to
# hash.
HEAD = 128
# The same for later chunks: where there are many, fewer outputs of each are enough.
SHORT_HEAD = 8
# Chunks of a side that are remembered with a head of full length.
LONG_HEADS = 512
# Outputs of a side that are remembered in all: 1 MB of hashes.
MOST_ROWS = 1 << 17

# An odd constant that scatters bits: 2^64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Shifts and multipliers of the finaliser of splitmix64.
_MIXING_ROUNDS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT = np.uint64(31)


def row_hashes(outputs: Outputs) -> Hashes:
    """Returns a hash per output, of shape (n,).

    Equal outputs have equal hashes, and every bit of a hash is as good as a fair coin.
    """
    hashes = np.empty(outputs.size, dtype=np.uint64)
    for block in outputs.blocks:
        block_hashes = _block_hashes(block)
        if block.rows is None:  # the block holds all outputs
            return block_hashes
        hashes[block.rows] = block_hashes
    return hashes


def _block_hashes(block: Block) -> Hashes:
    rows: list[Hashes] = []
    for column in block.columns:
        values = _label_bits(column) if isinstance(column, Labels) else column.values
        if values.dtype.itemsize == 8:
            rows.append(np.ascontiguousarray(values).view(np.uint64))
        else:
            rows.append(values.astype(np.uint64))
    if not rows:
        rows.append(np.zeros(block.size, dtype=np.uint64))
    # A row of bits per column, all mixed at once: there may be thousands of columns.
    stacked = np.stack(rows) if len(rows) > 1 else rows[0][None]
    bits: Hashes = stacked + _column_offsets(block.shape, len(rows))
    for shift, factor in _MIXING_ROUNDS:
        bits ^= bits >> shift
        bits *= factor
    bits ^= bits >> _LAST_SHIFT
    if len(bits) == 1:
        first_row: Hashes = bits[0]
        return first_row
    total: Hashes = bits.sum(axis=0, dtype=np.uint64)
    return total


@lru_cache(maxsize=64)
def _column_offsets(shape: str, n_columns: int) -> Hashes:
    """Returns what is added to the bits of each column, of shape (n_columns, 1).

    So equal values in other columns, or in outputs of another shape, have different hashes.
    """
    positions = np.arange(1, n_columns + 1, dtype=np.uint64)[:, None]
    return _GOLDEN * positions + np.uint64(zlib.crc32(shape.encode(errors="replace")))


def _label_bits(column: Labels) -> Hashes:
    """Returns a checksum of each output's label."""
    # Only labels that occur: a table may hold many more of them than there are rows.
    used_codes, position = np.unique(column.codes, return_inverse=True)
    checksums = [
        zlib.crc32(column.labels[code].encode(errors="replace")) for code in used_codes.tolist()
    ]
    return np.array(checksums, dtype=np.uint64)[position.ravel()]


def fingerprint(outputs: Outputs) -> bytes:
    """Returns the hashes of the first outputs of a chunk, in order, as bytes."""
    head = outputs.take(slice(0, HEAD)) if outputs.size > HEAD else outputs
    return row_hashes(head).tobytes()


@dataclass(slots=True, eq=False)
class Fingerprints:
    """The heads of one side's chunks, in the order in which they were drawn.

    Attributes:
        chunks: how many were added. Beyond `MOST_ROWS` outputs no more are remembered: a frozen
            seed, or a generator copied to every worker, repeats the first draws.
        heads: the hashes of those that are remembered, the oldest first.
        rows: the number of outputs in them.
    """

    chunks: int = 0
    heads: list[Hashes] = field(default_factory=list)
    rows: int = 0

    def add(self, fingerprint: bytes) -> None:
        """Adds the fingerprint of one more chunk."""
        longest = HEAD if self.chunks < LONG_HEADS else SHORT_HEAD
        n_remembered = min(longest, MOST_ROWS - self.rows)
        self.chunks += 1
        head = np.frombuffer(fingerprint, dtype=np.uint64)[:n_remembered]
        if len(head):
            self.heads.append(head)
            self.rows += len(head)

    def copy(self) -> "Fingerprints":
        """Returns a copy, for further chunks that do not belong here."""
        return Fingerprints(chunks=self.chunks, heads=list(self.heads), rows=self.rows)

    def to_bytes(self) -> bytes:
        """Returns plain bytes; `from_bytes` is the inverse."""
        head_sizes = [len(head) for head in self.heads]
        sizes = np.array([self.chunks, len(self.heads), *head_sizes], dtype="<u8")
        contents = [head.astype("<u8").tobytes() for head in self.heads]
        return b"".join([sizes.tobytes(), *contents])

    @classmethod
    def from_bytes(cls, content: bytes) -> "Fingerprints":
        """Restores what `to_bytes` returned."""
        numbers = np.frombuffer(content, dtype="<u8").astype(np.uint64)
        n_chunks = int(numbers[0])
        n_heads = int(numbers[1])
        head_sizes = numbers[2 : 2 + n_heads]
        rows = numbers[2 + n_heads :]
        heads = []
        if n_heads:
            ends = np.cumsum(head_sizes).astype(np.int64)
            heads = np.split(rows, ends[:-1])
        return cls(chunks=n_chunks, heads=heads, rows=len(rows))


def recorded_fingerprints(outputs: Outputs) -> Fingerprints:
    """Returns the fingerprints of recorded outputs, as if they were short chunks.

    Every output is remembered, as long as there is room.
    """
    fingerprints = Fingerprints()
    for start in range(0, min(len(outputs), MOST_ROWS), HEAD):
        fingerprints.add(fingerprint(outputs.take(slice(start, start + HEAD))))
    return fingerprints
