"""Draws samples: chunks and their seeds, and where they run."""

from epsilometer.engine.fingerprints import Fingerprints
from epsilometer.engine.folding import Folded
from epsilometer.engine.journal import Journal, NoJournal
from epsilometer.engine.runners import Runner, SerialRunner, open_runner
from epsilometer.engine.sampler import Chunk, NoProgress, Progress, Sampler, watched
from epsilometer.engine.seeds import Phase, check_seed, chunk_rng

__all__ = [
    "Chunk",
    "Fingerprints",
    "Folded",
    "Journal",
    "NoJournal",
    "NoProgress",
    "Phase",
    "Progress",
    "Runner",
    "Sampler",
    "SerialRunner",
    "check_seed",
    "chunk_rng",
    "open_runner",
    "watched",
]
