"""Draws samples: chunks and their seeds, and where they run."""

from epsilometer.engine.chunks import Fingerprints, Folded, Journal, Phase, check_seed, chunk_rng
from epsilometer.engine.parcels import Deadline, OutOfTime
from epsilometer.engine.runners import Runner, SerialRunner, engine_name, open_runner
from epsilometer.engine.sampler import Chunk, NoProgress, Progress, Sampler, watched

__all__ = [
    "Chunk", "Deadline", "Fingerprints", "Folded", "Journal", "NoProgress", "OutOfTime", "Phase", "Progress", "Runner",
    "Sampler", "SerialRunner", "check_seed", "chunk_rng", "engine_name", "open_runner", "watched",
]  # fmt: skip
