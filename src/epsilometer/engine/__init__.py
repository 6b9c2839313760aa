"""Draws samples: chunks and their seeds, and where they run."""

from epsilometer.engine.chunks import Fingerprints, Folded, Journal, Phase, check_seed, chunk_rng
from epsilometer.engine.runners import Runner, SerialRunner, open_runner
from epsilometer.engine.sampler import Chunk, NoProgress, Progress, Sampler, watched

__all__ = [
    "Chunk", "Fingerprints", "Folded", "Journal", "NoProgress", "Phase", "Progress", "Runner",
    "Sampler", "SerialRunner", "check_seed", "chunk_rng", "open_runner", "watched",
]  # fmt: skip
