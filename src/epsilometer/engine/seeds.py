"""Random streams that belong to pieces of work, not to workers."""

from __future__ import annotations

import secrets
from enum import IntEnum

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


def order_rng(seed: int, pair: int, side: int) -> np.random.Generator:
    """The generator that shuffles the training draws of one side: a stream that no chunk has."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(Phase.TRAIN, pair, side, 0, 0)))
