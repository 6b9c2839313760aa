"""Draws samples: chunks and their seeds, and where they run."""

from epsilometer.engine.runners import Runner, SerialRunner, open_runner
from epsilometer.engine.sampler import Chunk, NoProgress, Progress, Sampler
from epsilometer.engine.seeds import Phase, check_seed, chunk_rng

__all__ = [
    "Chunk",
    "NoProgress",
    "Phase",
    "Progress",
    "Runner",
    "Sampler",
    "SerialRunner",
    "check_seed",
    "chunk_rng",
    "open_runner",
]
