"""Old import place of the seeds, fingerprints, totals and journals of chunks.

The code lives in `seeds`, `fingerprints`, `folding` and `journal`; this module only re-exports it
until all importers have moved.
"""

from epsilometer.engine.fingerprints import (
    Fingerprints,
    fingerprint,
    recorded_fingerprints,
    row_hashes,
)
from epsilometer.engine.folding import Folded, Pieces, TwoTallies
from epsilometer.engine.journal import Journal
from epsilometer.engine.seeds import Phase, check_seed, chunk_rng, fresh_seed

__all__ = [
    "Fingerprints",
    "Folded",
    "Journal",
    "Phase",
    "Pieces",
    "TwoTallies",
    "check_seed",
    "chunk_rng",
    "fingerprint",
    "fresh_seed",
    "recorded_fingerprints",
    "row_hashes",
]
