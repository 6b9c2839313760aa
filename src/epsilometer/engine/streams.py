"""The random numbers that a method draws itself, apart from all draws of the mechanism.

Every stream follows from the seed of the audit, so that workers, engines, checkpoints and restarts
agree. A constant
seed would not do: a certificate whose coins always fall the same way keeps no promise about its
failure probability.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from epsilometer.engine.chunks import Phase, fresh_seed

# Spawn keys begin with (phase, pair, side). Sides 0 and 1 are the two inputs, and 2 decides whose
# turn it is and couples looks, so that no chunk of any mechanism is drawn from side 3.
_SIDE_OF_METHODS = 3


class Purpose(IntEnum):
    """What a method's own random numbers are for; numbers that choose a proposal never take part in its proof."""

    LEARN = 0
    PROVE = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """Where the random numbers of one proposal come from.

    Attributes:
        seed: of the audit.
        phase: of the draws that prove: a replay has another stream than the audit that it repeats.
        pair: number of the pair in the audit; a pair that is certified twice has two numbers.
    """

    seed: int
    phase: Phase = Phase.CERTIFY
    pair: int = 0

    @classmethod
    def fresh(cls) -> "Stream":
        """A stream from the system's entropy, for a task outside an audit."""
        return cls(fresh_seed())

    def rng(self, purpose: Purpose) -> np.random.Generator:
        """The generator for a purpose, always from its beginning: the same call gives the same numbers."""
        key = (int(self.phase), self.pair, _SIDE_OF_METHODS, int(purpose))
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
