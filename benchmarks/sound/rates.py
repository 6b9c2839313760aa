"""Rates at the boundary: every entry × claim × kind of output, at two confidences.

Low confidences on purpose: a bound that is wrong in 30 % of the runs instead of 20 % shows in few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.sound.boundaries import BOUNDARIES, Boundary
from benchmarks.sound.cases import Rate
from benchmarks.sound.entries import ENTRIES, Entry, Setting
from benchmarks.sound.outputs import KINDS

CONFIDENCES = (0.5, 0.8)


def cases() -> Iterator[Rate]:
    """One row per entry, claim, kind of output and confidence."""
    for entry, applicable in ENTRIES.items():
        for boundary in BOUNDARIES:
            for kind in KINDS:
                if not applicable.applies(boundary.name, kind):
                    continue
                for confidence in CONFIDENCES:
                    yield Rate(
                        part="rates",
                        name=f"{entry} · {boundary.name} · {kind} · {confidence:.0%}",
                        allowed=round(1.0 - confidence, 9),
                        run=partial(_run, applicable.run, boundary, kind, confidence),
                        pools={"entry": entry, "claim": boundary.name, "outputs": kind},
                    )


def _run(entry: Entry, boundary: Boundary, kind: str, confidence: float, seed: int) -> bool:
    return entry(Setting.at(boundary, kind, confidence, seed))
