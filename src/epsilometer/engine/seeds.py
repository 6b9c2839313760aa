"""Seeds: which random stream every chunk of draws comes from.

A chunk owns its stream, a worker does not. The stream follows from the seed of the audit, the
phase, the pair, the side and the number of the chunk, so an audit has the same result on any number
of workers and on any engine.
"""

import secrets
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from epsilometer.errors import InputError


class Phase(IntEnum):
    """The purpose of some draws.

    Two phases never share a stream, so a certificate rests on draws that chose nothing.
    """

    EXPLORE = 0
    TRAIN = 1
    CERTIFY = 2
    REPLAY = 3
    SCREEN = 4


def fresh_seed() -> int:
    """Returns a seed from the system's entropy, to be recorded with the result."""
    return secrets.randbits(63)


def check_seed(seed: int | None) -> int:
    """Returns the given seed, or a fresh one for None.

    Raises:
        InputError: if it is not a whole number of at least 0.
    """
    if seed is None:
        return fresh_seed()
    is_whole_number = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_whole_number or seed < 0:
        raise InputError(
            f"seed={seed!r} must be a whole number of at least 0, or None for a fresh one"
        )
    return int(seed)


def chunk_rng(seed: int, phase: int, pair: int, side: int, chunk: int) -> np.random.Generator:
    """Returns the generator of one chunk: the same on any number of workers, on any engine."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(phase, pair, side, chunk)))


# The constants of SeedSequence, whose streams NumPy promises never to change.
# The first hash constant, and its multiplier, for mixing words into the pool.
_POOL_HASH_START = 0x43B0D7E5
_POOL_HASH_MULTIPLIER = 0x931E8875
# The first hash constant, and its multiplier, for turning the pool into a state.
_STATE_HASH_START = 0x8B51F9DD
_STATE_HASH_MULTIPLIER = 0x58F38DED
# The multipliers of the two words that are mixed with each other.
_MIX_LEFT = np.uint32(0xCA01F9DD)
_MIX_RIGHT = np.uint32(0x4973F715)
# Bits by which a word is shifted and combined with itself: half of a 32-bit word.
_HALF_WORD = np.uint32(16)
# Words of 32 bits in the pool of a SeedSequence.
_POOL_WORDS = 4
# Hash steps for filling the pool: each of its four words is mixed into the other three.
_POOL_MIXING_STEPS = 12
# Fewer generators than this are made one by one: all at once takes longer.
_MIN_CHUNKS_AT_ONCE = 5


class ChunkSeed(ISpawnableSeedSequence):
    """The SeedSequence of a chunk, of which only the words that seed a generator are computed.

    The sequence itself is made when somebody asks for more.
    """

    def __init__(self, seed: int, key: tuple[int, ...], words: NDArray[np.uint64]) -> None:
        self._seed = seed
        self._key = key
        self._words = words

    @cached_property
    def _sequence(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self._seed, spawn_key=self._key)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Returns the same words as `SeedSequence.generate_state`."""
        is_for_generator = n_words == 4 and dtype == np.uint64
        if is_for_generator:
            return self._words
        return self._sequence.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        """Returns the same children as `SeedSequence.spawn`."""
        return list(self._sequence.spawn(n_children))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sequence, name)

    def __reduce__(self) -> Any:
        return self._sequence.__reduce__()


def chunk_rngs(
    seed: int, phase: int, pair: int, chunks: Sequence[tuple[int, int]]
) -> list[np.random.Generator]:
    """Returns the generators of many chunks, the same as `chunk_rng` makes.

    All chunks go through the hash of SeedSequence together, which takes a third of the time.

    Args:
        chunks: side and number of each chunk.
    """
    sides_and_numbers = np.array(chunks, dtype=np.uint64).T
    sides = sides_and_numbers[0]
    numbers = sides_and_numbers[1]
    low_words = numbers & np.uint64(0xFFFFFFFF)
    high_words = numbers >> np.uint64(32)
    has_high_words = bool(high_words.any())
    have_equal_lengths = not has_high_words or bool(high_words.all())
    if len(chunks) < _MIN_CHUNKS_AT_ONCE or not have_equal_lengths:
        return [chunk_rng(seed, phase, pair, side, number) for side, number in chunks]

    # The pool after the words that all chunks share.
    shared = np.random.SeedSequence(seed, spawn_key=(phase, pair))
    pool = np.tile(shared.pool, (len(chunks), 1))
    # The hash constant changes with every step, so the steps so far are counted: each word beyond
    # those that fill the pool was mixed into all four words of the pool.
    shared_words = _count_words(seed >> 96) + _count_words(phase) + _count_words(pair)
    steps = _POOL_WORDS * shared_words + _POOL_MIXING_STEPS
    key_words = [sides, low_words]
    if has_high_words:
        key_words.append(high_words)
    for word in key_words:
        constants = _hash_constants(_POOL_HASH_START, _POOL_HASH_MULTIPLIER, steps)
        steps = steps + _POOL_WORDS
        hashed = (word.astype(np.uint32)[:, None] ^ constants[:4]) * constants[1:5]
        pool = _MIX_LEFT * pool - _MIX_RIGHT * (hashed ^ hashed >> _HALF_WORD)
        pool ^= pool >> _HALF_WORD

    constants = _hash_constants(_STATE_HASH_START, _STATE_HASH_MULTIPLIER, 0)
    state = (np.tile(pool, 2) ^ constants[:8]) * constants[1:]
    words = (state ^ state >> _HALF_WORD).astype("<u4").view("<u8").astype(np.uint64)
    generators = []
    for (side, number), row in zip(chunks, words, strict=True):
        chunk_seed = ChunkSeed(seed, (phase, pair, side, number), row)
        generators.append(np.random.Generator(np.random.PCG64(chunk_seed)))
    return generators


def _count_words(value: int) -> int:
    """Returns how many words of 32 bits SeedSequence makes of a number: one, even of 0."""
    return max(1, -(-value.bit_length() // 32))


@lru_cache(maxsize=64)
def _hash_constants(start: int, multiplier: int, skip: int) -> NDArray[np.uint32]:
    """Returns nine successive hash constants of SeedSequence, after those of `skip` steps."""
    powers = [pow(multiplier, step, 1 << 32) for step in range(skip, skip + 9)]
    constants = [start * power & 0xFFFFFFFF for power in powers]
    return np.array(constants, dtype=np.uint32)
