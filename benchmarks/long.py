"""An audit of a billion draws: its time next to drawing them, and its memory."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.effort import Effort, short
from benchmarks.kinds import SCALAR, audit
from benchmarks.measurement import Measurement
from benchmarks.memory import peak_growth

# Draws per side; a billion in all.
_DRAWS = 500_000_000
# After so many draws of the audit as many are drawn alone: both see the same state of the machine.
_SLICE = 1 << 23
_MOST_TIME, _MOST_MEGABYTES = 1.6, 500.0


class DrawingBeside:
    """A progress that draws as many outputs as the audit, for nothing, and takes the time.

    Attributes:
        slices: the processor's seconds of each slice: of the audit, and of drawing alone.
    """

    def __init__(self, chunk_size: int) -> None:
        self.slices: list[tuple[float, float]] = []
        self._chunk_size = chunk_size
        self._rng = np.random.default_rng(0)
        self._waiting = 0
        self._began = time.process_time()

    def advance(self, n: int) -> None:
        """n more outputs of the audit."""
        self._waiting += n
        if self._waiting >= _SLICE:
            self.end()

    def end(self) -> None:
        """Draws alone what the audit drew since the last time."""
        audited = time.process_time()
        for start in range(0, self._waiting, self._chunk_size):
            SCALAR.function(0.0, min(self._chunk_size, self._waiting - start), self._rng)
        drawn = time.process_time()
        self.slices.append((audited - self._began, drawn - audited))
        self._waiting, self._began = 0, drawn


def measure_long(effort: Effort) -> list[Measurement]:
    """One audit each for time and memory: a billion draws repeat themselves often enough."""
    n = effort.draws(_DRAWS)
    mechanism = SCALAR.mechanism()
    beside = DrawingBeside(mechanism.chunk_size)
    audit(mechanism, n, 0, progress=beside)
    audited, drawn = (sum(times) for times in zip(*beside.slices, strict=True))
    detail = f"audit {audited:.3g} s, drawing alone {drawn:.3g} s, of the processor, in turn"
    growth = peak_growth(n) / 1e6
    return [
        Measurement(
            "long",
            f"audit of 2 × {short(n)} scalars / drawing them",
            audited / drawn,
            "×",
            "≤",
            effort.target(_MOST_TIME),
            detail,
        ),
        Measurement(
            "long",
            f"memory of an audit of 2 × {short(n)} scalars",
            growth,
            "MB",
            "≤",
            effort.target(_MOST_MEGABYTES),
        ),
    ]
