"""What `epsilometer verify` makes of honest and of forged results: the former hold, the latter never do.

Honest results are those of `benchmarks.honest_results`, forgeries those of `benchmarks.forgeries`; a kind that is
added there is in this table. What no file can betray without its draws (`forgeries.UNKNOWABLE`) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import epsilometer as em
from benchmarks.forgeries import FORGERIES, forge
from benchmarks.honest_results import Kind, kinds, stored
from benchmarks.sound.cases import Figure, Worked

# Kinds of honest results per row: a few dozen forgeries of each take some seconds together.
_KINDS_PER_ROW = 10


def cases() -> Iterator[Figure]:
    """Two rows per group of kinds."""
    every = kinds()
    for first in range(0, len(every), _KINDS_PER_ROW):
        group = every[first : first + _KINDS_PER_ROW]
        span = f"{group[0].name} to {group[-1].name}"
        yield Figure(
            "tampering", f"honest results turned down, {span}", partial(_turned_down, group)
        )
        yield Figure("tampering", f"forged results that hold, {span}", partial(_accepted, group))


def _turned_down(group: list[Kind], seed: int) -> Worked:
    """The number of honest results that are not answered as they must be."""
    wrong = [
        kind.name for kind in group if em.verify(stored(kind.make(seed))).holds is not kind.holds
    ]
    return Worked(len(wrong), 0, f"{len(group)} results; wrong: {', '.join(wrong) or 'none'}")


def _accepted(group: list[Kind], seed: int) -> Worked:
    """The number of forgeries that hold: every kind of forgery on every result of this group to which it applies."""
    rng = np.random.default_rng(seed)
    tried = 0
    accepted = []
    for kind in group:
        document = stored(kind.make(seed))
        for name, change in FORGERIES.items():
            forged = forge(document, change, rng)
            if forged is None:
                continue
            tried += 1
            if em.verify(forged).holds:
                accepted.append(f"{name} of {kind.name}")
    return Worked(len(accepted), 0, f"{tried} forgeries; accepted: {', '.join(accepted) or 'none'}")
