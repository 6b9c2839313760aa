"""Chunks of draws: their seeds, their fingerprints, their totals, and what a journal remembers of them."""

import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from epsilometer.bounds import Counts
from epsilometer.errors import InputError
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.outputs import Labels, Outputs


class Phase(IntEnum):
    """What draws are for. Two phases never share a stream, so proofs rest on draws that chose nothing."""

    EXPLORE = 0
    TRAIN = 1
    CERTIFY = 2
    REPLAY = 3
    LOOK = 4


def fresh_seed() -> int:
    """A seed from the system's entropy, to be recorded with the result."""
    return secrets.randbits(63)


def check_seed(seed: int | None) -> int:
    """The given seed, or a fresh one for None."""
    if seed is None:
        return fresh_seed()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            f"seed={seed!r} must be a whole number of at least 0, or None for a fresh one"
        )
    return int(seed)


def chunk_rng(seed: int, phase: int, pair: int, side: int, chunk: int) -> np.random.Generator:
    """The generator of one chunk: the same on any number of workers, on any engine."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(phase, pair, side, chunk)))


# The constants of SeedSequence, whose streams NumPy promises never to change: how words are mixed
# into its pool, and how the pool becomes a state.
_INTO = (0x43B0D7E5, 0x931E8875)
_OUT_OF = (0x8B51F9DD, 0x58F38DED)
_MIX_LEFT = np.uint32(0xCA01F9DD)
_MIX_RIGHT = np.uint32(0x4973F715)
_HALF_WORD = np.uint32(16)
# Fewer generators than this are made one by one.
_FEW_CHUNKS = 5


class ChunkSeed(ISpawnableSeedSequence):
    """The SeedSequence of a chunk, made when more is asked of it than the words that seed a generator."""

    def __init__(self, seed: int, key: tuple[int, ...], words: NDArray[np.uint64]) -> None:
        self._seed = seed
        self._key = key
        self._words = words

    @cached_property
    def _whole(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self._seed, spawn_key=self._key)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """As SeedSequence has it."""
        return (
            self._words
            if (n_words, dtype) == (4, np.uint64)
            else self._whole.generate_state(n_words, dtype)
        )

    def spawn(self, n_children: int) -> list[Any]:
        """As SeedSequence has it."""
        return list(self._whole.spawn(n_children))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __reduce__(self) -> Any:
        return self._whole.__reduce__()


def chunk_rngs(
    seed: int, phase: int, pair: int, chunks: Sequence[tuple[int, int]]
) -> list[np.random.Generator]:
    """The same generators for many chunks, given by side and number: all at once takes a third of the time."""
    places = np.array(chunks, dtype=np.uint64).T
    low = places[1] & np.uint64(0xFFFFFFFF)
    high = places[1] >> np.uint64(32)
    if len(chunks) < _FEW_CHUNKS or (high.any() and not high.all()):  # keys of different lengths
        keys = ((phase, pair, *each) for each in chunks)
        return [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)) for key in keys]
    before = np.random.SeedSequence(seed, spawn_key=(phase, pair))
    pool = np.tile(before.pool, (len(chunks), 1))
    # Every word so far was mixed into all four of the pool, and each of these into the other three.
    mixed = 4 * sum(max(1, -(-each.bit_length() // 32)) for each in (seed >> 96, phase, pair)) + 12
    for word in (places[0], low, high)[: 3 if high.any() else 2]:
        factors = _factors(*_INTO, mixed)
        mixed = mixed + 4
        more = (word.astype(np.uint32)[:, None] ^ factors[:4]) * factors[1:5]
        pool = _MIX_LEFT * pool - _MIX_RIGHT * (more ^ more >> _HALF_WORD)
        pool ^= pool >> _HALF_WORD
    factors = _factors(*_OUT_OF, 0)
    state = (np.tile(pool, 2) ^ factors[:8]) * factors[1:]
    words = (state ^ state >> _HALF_WORD).astype("<u4").view("<u8").astype(np.uint64)
    seeds = (
        ChunkSeed(seed, (phase, pair, *each), row) for each, row in zip(chunks, words, strict=True)
    )
    return [np.random.Generator(np.random.PCG64(each)) for each in seeds]


@lru_cache(maxsize=64)
def _factors(first: int, factor: int, skip: int) -> NDArray[np.uint32]:
    """Nine of the numbers that SeedSequence multiplies words with, each a power of a factor."""
    powers = (first * pow(factor, skip + place, 1 << 32) for place in range(9))
    return np.array([each & 0xFFFFFFFF for each in powers], dtype=np.uint32)


# The two sides of an audit are drawn in at least this many turns. If a distribution changes while
# it is drawn, both sides see the same change, up to one turn. Turns of fewer outputs than the
# second number cost more than they help.
TURNS = 64
FEWEST_PER_TURN = 64
Hashes = NDArray[np.uint64]

# Outputs at the head of a chunk that are remembered: enough to recognise a repetition, cheap to
# hash. With many chunks, fewer of each are enough. That makes 1 MB per side.
HEAD = 128
SHORT_HEAD = 8
LONG_HEADS = 512
MOST_ROWS = 1 << 17
# An odd constant that scatters bits (the golden ratio), and the multipliers of the finaliser of
# splitmix64.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT = np.uint64(31)


def row_hashes(outputs: Outputs) -> Hashes:
    """A number per output: equal outputs, equal numbers; every bit of it is as good as a coin."""
    hashes = np.empty(outputs.size, dtype=np.uint64)
    for block in outputs.blocks:
        columns = [
            _label_bits(each) if isinstance(each, Labels) else each.values for each in block.columns
        ]
        rows: list[Hashes] = [
            np.ascontiguousarray(each).view(np.uint64)
            if each.dtype.itemsize == 8
            else each.astype(np.uint64)
            for each in columns or [np.zeros(block.size, dtype=np.uint64)]
        ]
        # A row of bits per column, all mixed at once: there may be thousands of columns.
        bits: Hashes = (np.stack(rows) if len(rows) > 1 else rows[0][None]) + _by_place(
            block.shape, len(rows)
        )
        for shift, factor in _MIX:
            bits ^= bits >> shift
            bits *= factor
        bits ^= bits >> _LAST_SHIFT
        found: Hashes = bits.sum(axis=0, dtype=np.uint64) if len(bits) > 1 else bits[0]
        if block.rows is None:
            return found
        hashes[block.rows] = found
    return hashes


@lru_cache(maxsize=64)
def _by_place(shape: str, n_columns: int) -> Hashes:
    """What is added to the bits of each column: equal values in other places, or of other shapes, differ."""
    places = np.arange(1, n_columns + 1, dtype=np.uint64)[:, None]
    return _GOLDEN * places + np.uint64(zlib.crc32(shape.encode(errors="replace")))


def _label_bits(column: Labels) -> Hashes:
    # a table may hold many more labels than there are rows
    used, place = np.unique(column.codes, return_inverse=True)
    table = [zlib.crc32(column.labels[code].encode(errors="replace")) for code in used.tolist()]
    return np.array(table, dtype=np.uint64)[place.ravel()]


def fingerprint(outputs: Outputs) -> bytes:
    """The numbers of the first outputs of a chunk, in order."""
    return row_hashes(outputs.take(slice(0, HEAD)) if outputs.size > HEAD else outputs).tobytes()


@dataclass(slots=True, eq=False)
class Fingerprints:
    """The heads of one side's chunks, in the order in which they were drawn.

    Attributes:
        chunks: how many were added. Beyond `MOST_ROWS` outputs no more are remembered: a frozen
            seed, or a generator copied to every worker, repeats the first draws.
        heads: those that are remembered, the oldest first.
        rows: the outputs in them.
    """

    chunks: int = 0
    heads: list[Hashes] = field(default_factory=list)
    rows: int = 0

    def add(self, fingerprint: bytes) -> None:
        """One more chunk."""
        wanted = min(HEAD if self.chunks < LONG_HEADS else SHORT_HEAD, MOST_ROWS - self.rows)
        self.chunks += 1
        head = np.frombuffer(fingerprint, dtype=np.uint64)[:wanted]
        if len(head):
            self.heads.append(head)
            self.rows += len(head)

    def copy(self) -> "Fingerprints":
        """A copy, for further chunks that do not belong here."""
        return Fingerprints(self.chunks, list(self.heads), self.rows)

    def to_bytes(self) -> bytes:
        """Plain bytes; `from_bytes` is the inverse."""
        sizes = np.array([self.chunks, len(self.heads), *map(len, self.heads)], dtype="<u8")
        return b"".join([sizes.tobytes(), *(head.astype("<u8").tobytes() for head in self.heads)])

    @classmethod
    def from_bytes(cls, content: bytes) -> "Fingerprints":
        """The inverse of `to_bytes`."""
        numbers = np.frombuffer(content, dtype="<u8").astype(np.uint64)
        n = int(numbers[1])
        ends = np.cumsum(numbers[2 : 2 + n]).astype(np.int64)
        rows = numbers[2 + n :]
        return cls(int(numbers[0]), np.split(rows, ends[:-1]) if n else [], len(rows))


def recorded_fingerprints(outputs: Outputs) -> Fingerprints:
    """Of outputs that were recorded, cut into chunks of which every output is remembered, as long as there is room."""
    prints = Fingerprints()
    for start in range(0, min(len(outputs), MOST_ROWS), HEAD):
        prints.add(fingerprint(outputs.take(slice(start, start + HEAD))))
    return prints


# Counts are kept in at most this many pieces of neighbouring chunks: enough to see a drift of any
# shape.
MOST_PIECES = 1 << 12


@dataclass(slots=True)
class Pieces:
    """Counts of neighbouring chunks, in order. When there are too many pieces, neighbours are merged.

    Which chunks share a piece depends only on how many chunks there are.

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
        if self.filled:
            self.counts[-1] += counts
        else:
            self.counts.append(counts)
        self.filled = (self.filled + 1) % self.width
        if len(self.counts) == MOST_PIECES and not self.filled:
            self.counts = [
                first + second
                for first, second in zip(self.counts[::2], self.counts[1::2], strict=True)
            ]
            self.width *= 2


@dataclass(frozen=True, slots=True)
class TwoTallies:
    """The reduced outputs for a finding that decides, and for another one beside it."""

    deciding: Any
    beside: Any

    def __add__(self, other: "TwoTallies") -> "TwoTallies":
        return TwoTallies(self.deciding + other.deciding, self.beside + other.beside)


@dataclass(slots=True)
class Folded:
    """The chunks of one side so far.

    Attributes:
        chunks: how many.
        size: their outputs.
        total: their reduced values, added with +; None before the first.
        pieces: for reductions to the counts of an event, these in order; empty for others.
        fingerprints: of these chunks, and of earlier draws of the same side.
        is_whole: False while a chunk is being added. A half-added chunk must not be stored.
    """

    chunks: int = 0
    size: int = 0
    total: Any = None
    pieces: Pieces = field(default_factory=Pieces)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    is_whole: bool = True

    def add(self, value: Any, size: int, fingerprint: bytes) -> None:
        """Adds a chunk: its reduced value, its number of outputs, and its fingerprint."""
        self.is_whole = False
        self.total = value if self.chunks == 0 else self.total + value
        deciding = value.deciding if isinstance(value, TwoTallies) else value
        if isinstance(deciding, Counts):
            self.pieces.add(deciding)
        self.fingerprints.add(fingerprint)
        self.chunks += 1
        self.size += size
        self.is_whole = True


# Phase, number of the pair, side.
Stream = tuple[int, int, int]


class Journal:
    """Remembers chunks of outputs, and the totals of a proof's chunks. This one remembers nothing.

    Attributes:
        is_kept: whether anything is remembered at all.
    """

    is_kept = False

    def sizes(self, stream: Stream) -> dict[int, int]:
        """How many outputs of which chunks are remembered; of one that was interrupted, those that were finished."""
        return {}

    def recall(self, stream: Stream, chunk: int) -> tuple[Outputs, bytes] | None:
        """The outputs of a chunk and their fingerprint; None if it was not drawn before."""
        return None

    def keep(self, stream: Stream, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""

    def note_incidents(self, stream: Stream, chunk: int, incidents: Incidents) -> None:
        """Remembers what happened while a chunk was drawn; to be called before the chunk itself is remembered."""

    def incidents(self, stream: Stream) -> dict[int, Incidents]:
        """What happened while chunks were drawn, by the number of the chunk."""
        return {}

    def recognise(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that the proposal is the one from before the interruption.

        Args:
            number: of the pair.
            examples: its tallies of the draws that it was learned from, left and right.
        """

    def resume(self, stream: Stream, example: Any) -> Folded | None:
        """The total of the first chunks of a stream; None if the stream is unknown.

        Args:
            example: other reduced outputs of this side, to restore types that the file does not
                hold.
        """
        return None

    def save(self, stream: Stream, folded: Folded) -> None:
        """Remembers the total of a stream's chunks so far, replacing the one before."""

    def told(self, name: str) -> str | None:
        """What was told under a name; None if nothing was."""
        return None

    def tell(self, name: str, text: str) -> None:
        """Remembers a text, such as what some looks saw."""

    def stored_state(self) -> bytes | None:
        """The state of an audit that may stop early; None if nothing is remembered."""
        return None

    def store_state(self, state: bytes) -> None:
        """Remembers the state of an audit that may stop early."""

    def tell_now(self, name: str, text: str) -> None:
        """Remembers a text, and writes everything to disk before it returns."""
