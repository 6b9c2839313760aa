"""Random streams that belong to pieces of work, not to workers."""

from __future__ import annotations

import secrets
from enum import IntEnum
from functools import lru_cache

import numpy as np

from epsilometer.errors import InputError


class Phase(IntEnum):
    """What draws are for. Two phases never share a stream, so what is proved rests on draws that chose nothing."""

    EXPLORE = 0
    TRAIN = 1
    CERTIFY = 2
    REPLAY = 3


def fresh_seed() -> int:
    """A seed from the system's entropy, to be recorded with the result."""
    return secrets.randbits(63)


def check_seed(seed: int | None) -> int:
    """The given seed, or a fresh one for None."""
    if seed is None:
        return fresh_seed()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed={seed!r} must be a whole number of at least 0, or None for a fresh one")
    return int(seed)


def chunk_rng(seed: int, phase: int, pair: int, side: int, chunk: int) -> np.random.Generator:
    """The generator of one chunk: the same on any number of workers, on any engine."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(phase, pair, side, chunk)))


# An audit has its two sides drawn in so many turns at least. Where a law moves while it is drawn, both sides see the
# same of it, up to a turn. Turns of fewer outputs than that cost more than they help.
TURNS, FEWEST_PER_TURN = 64, 64
# Coins that are tossed at a time, because tossing one costs as much.
_COINS = 64


def turn_of(seed: int, phase: int, pair: int, block: int) -> tuple[int, int]:
    """Which side of a block is drawn first and which second: left and right by the toss of a coin of its own.

    A fixed order would be in step with whatever changes at the same pace.
    """
    coin = _coins(seed, phase, pair, block // _COINS)[block % _COINS]
    return coin, 1 - coin


@lru_cache(maxsize=64)
def _coins(seed: int, phase: int, pair: int, number: int) -> list[int]:
    """From a stream that no chunk has: there is no third side."""
    words = np.random.SeedSequence(seed, spawn_key=(phase, pair, 2, number)).generate_state(_COINS)
    return [int(word) & 1 for word in words]


def order_rng(seed: int, pair: int, side: int) -> np.random.Generator:
    """The generator that shuffles the training draws of one side: a stream that no chunk has."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(Phase.TRAIN, pair, side, 0, 0)))
