"""Draws samples: chunks and their seeds, and where they run."""

from epsilometer.engine.deadlines import Deadline, OutOfTime
from epsilometer.engine.drawing import Chunk
from epsilometer.engine.fingerprints import Fingerprints
from epsilometer.engine.folding import Folded
from epsilometer.engine.journal import Journal
from epsilometer.engine.progress import NoProgress, Progress, progress_scope
from epsilometer.engine.runners import (
    Runner,
    SerialRunner,
    engine_name,
    limit_workers,
    open_helpful_runner,
    open_runner,
)
from epsilometer.engine.sampler import Sampler
from epsilometer.engine.seeds import Phase, check_seed, chunk_rng

__all__ = [
    "Chunk",
    "Deadline",
    "Fingerprints",
    "Folded",
    "Journal",
    "NoProgress",
    "OutOfTime",
    "Phase",
    "Progress",
    "Runner",
    "Sampler",
    "SerialRunner",
    "check_seed",
    "chunk_rng",
    "engine_name",
    "limit_workers",
    "open_helpful_runner",
    "open_runner",
    "progress_scope",
]
