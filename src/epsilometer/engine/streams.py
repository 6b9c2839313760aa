"""The random numbers that a method draws itself, apart from all draws of the mechanism.

Every stream follows from the seed of the audit, so that workers, engines, checkpoints and restarts
agree. A constant seed would not do: the failure probability of a randomised certificate holds only
if its random numbers differ from audit to audit.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from epsilometer.engine.seeds import Phase, fresh_seed

# Spawn keys begin with (phase, pair, side). Sides 0 and 1 are the two inputs; 2 decides which side
# is drawn first and couples screening runs. So no chunk of any mechanism is drawn from side 3.
_SIDE_OF_METHODS = 3


class Purpose(IntEnum):
    """The purpose of a method's own random numbers.

    Numbers that choose a proposal never take part in certifying it.
    """

    LEARN = 0
    PROVE = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """Where the random numbers of one proposal come from.

    Attributes:
        seed: of the audit.
        phase: of the draws that certify: a replay has another stream than the audit that it
            repeats.
        pair: number of the pair in the audit; a pair that is certified twice has two numbers.
    """

    seed: int
    phase: Phase = Phase.CERTIFY
    pair: int = 0

    @classmethod
    def fresh(cls) -> "Stream":
        """Returns a stream from the system's entropy, for a task outside an audit."""
        return cls(fresh_seed())

    def rng(self, purpose: Purpose) -> np.random.Generator:
        """Returns the generator for a purpose, always from its beginning.

        The same call gives the same numbers.
        """
        key = (int(self.phase), self.pair, _SIDE_OF_METHODS, int(purpose))
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
