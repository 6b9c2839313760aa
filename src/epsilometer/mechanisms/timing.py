"""How long a mechanism takes per draw, from a few pilot draws."""

import time
from typing import Any

import numpy as np

from epsilometer.inputs import as_pairs
from epsilometer.mechanisms.functions import as_audit_target

# A mechanism is timed for at most about this long.
_PILOT_SECONDS = 0.2


def seconds_per_draw(mechanism: object, dataset: Any = None) -> float:
    """Times a few pilot draws, which are discarded.

    Args:
        mechanism: anything that `audit` takes.
        dataset: the input to run it on; None for the left one of a zoo entry's worst pair.
    """
    target = as_audit_target(mechanism)
    if dataset is None and target.worst_pair is not None:
        dataset = as_pairs(target.worst_pair)[0].left
    timed = target.mechanism
    rng = np.random.default_rng()
    n = 1
    while True:
        began = time.perf_counter()
        timed.sample(dataset, n, rng)
        seconds = time.perf_counter() - began
        if seconds > _PILOT_SECONDS / 4 or n >= timed.chunk_size:
            return seconds / n
        n = min(2 * n, timed.chunk_size)
