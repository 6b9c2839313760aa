"""How long audits take, next to drawing the samples alone, and how long it takes to read plain Python values."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np

import epsilometer as em
from benchmarks.effort import Effort, short
from benchmarks.kinds import KINDS, SCALAR, Kind, audit
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.processes import run_fresh
from benchmarks.timing import Seconds, interleaved, processor_times, timed, wall_times
from epsilometer.outputs import read_outputs

SMALL = 100_000
N_TUPLES = 200_000
N_FLOATS = 1_000_000
# Audits of one run that are faster than this are told by fixed costs, not by the draws.
_GROWTH_FROM = 100_000

_SMALL_AUDIT = """
import time
import epsilometer as em
def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)
began = time.process_time()
em.audit(em.from_batch(noisy), (0.0, 1.0), em.PureDP(1.0), samples={n}, seed=0)
print(time.process_time() - began)
"""
_FIRST_AUDIT = """
import time
import numpy as np
import epsilometer as em
def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)
mechanism = em.from_batch(noisy)
rng = np.random.default_rng(0)
began = time.process_time()
for dataset in (0.0, 1.0):
    for start in range(0, {n}, mechanism.chunk_size):
        noisy(dataset, min(mechanism.chunk_size, {n} - start), rng)
between = time.process_time()
em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples={n}, seed=0)
print((time.process_time() - between) / (between - began))
"""


def measure_speed(effort: Effort) -> list[Measurement]:
    """All timings of this file."""
    by_kind = [_over_drawing(kind, effort) for kind in KINDS]
    return [*by_kind, _first(effort), *_by_size(effort), *_reading(effort)]


def _over_drawing(kind: Kind, effort: Effort) -> Measurement:
    n = effort.draws(kind.draws)
    drawing, auditing = _both(kind, n, effort.repeats)
    name = f"audit of 2 × {short(n)} {kind.name} / drawing them"
    return of_repeats(
        "speed",
        name,
        _shares(auditing, drawing),
        "×",
        "≤",
        effort.target(kind.most),
        _detail(auditing, drawing),
    )


def _both(kind: Kind, n: int, repeats: int) -> tuple[list[Seconds], list[Seconds]]:
    """Drawing and auditing, interleaved, after a small audit that loads all code."""
    mechanism = kind.mechanism()
    audit(mechanism, min(n, 2000), 0)
    drawing, auditing = interleaved(
        repeats, partial(kind.draw_alone, n, mechanism.chunk_size), partial(audit, mechanism, n)
    )
    return drawing, auditing


def _shares(auditing: list[Seconds], drawing: list[Seconds]) -> list[float]:
    return ratios(processor_times(auditing), processor_times(drawing))


def _detail(auditing: list[Seconds], drawing: list[Seconds]) -> str:
    by_clock = median(ratios(wall_times(auditing), wall_times(drawing)))
    return (
        f"processor: audit {median(processor_times(auditing)):.3g} s, "
        f"drawing {median(processor_times(drawing)):.3g} s; "
        f"by the clock {by_clock:.2f}×; median of {len(drawing)} interleaved"
    )


def _first(effort: Effort) -> Measurement:
    """The first audit of a process, which loads the code of audits (but not NumPy and SciPy)."""
    n = effort.draws(SCALAR.draws)
    code = _FIRST_AUDIT.format(n=n)
    run_fresh(code)  # compiles our code
    values = [run_fresh(code) for _ in range(effort.repeats)]
    detail = "in a fresh process; includes loading our own code, once"
    return of_repeats(
        "speed", f"first audit of 2 × {short(n)} scalars / drawing them", values, "×", detail=detail
    )


def _by_size(effort: Effort) -> list[Measurement]:
    """The ratio for every number of draws, and how the audit's time grows with it."""
    found, times = [], []
    for n in effort.sizes:
        drawing, auditing = _both(SCALAR, n, effort.repeats_at(n))
        name = f"audit / drawing at {short(n)} draws per side"
        found.append(
            of_repeats(
                "speed", name, _shares(auditing, drawing), "×", detail=_detail(auditing, drawing)
            )
        )
        times.append(processor_times(auditing))
    grown = [
        (n, seconds) for n, seconds in zip(effort.sizes, times, strict=True) if n >= _GROWTH_FROM
    ]
    if len(grown) > 1:
        found.append(_growth(grown))
    return found


def _growth(grown: list[tuple[int, list[float]]]) -> Measurement:
    sizes, medians = [n for n, _ in grown], [median(seconds) for _, seconds in grown]
    steepest = float(np.max(np.diff(np.log(medians)) / np.diff(np.log(sizes))))
    repeats = min(len(seconds) for _, seconds in grown)
    values = [slope(sizes, [seconds[repeat] for _, seconds in grown]) for repeat in range(repeats)]
    detail = f"exponent of n from {short(sizes[0])} to {short(sizes[-1])}; steepest between two sizes {steepest:.2f}"
    return of_repeats(
        "speed", "growth of an audit with the draws", values, "slope", "≤", 1.1, detail
    )


def slope(sizes: list[int], seconds: list[float]) -> float:
    """The exponent of the power law through the timings, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _reading(effort: Effort) -> list[Measurement]:
    rng = np.random.default_rng(0)
    n_floats, n_tuples = effort.draws(N_FLOATS), effort.draws(N_TUPLES)
    floats = rng.laplace(0.0, 1.0, (2, n_floats)).tolist()
    # A label and a number, as a selection with its noisy value would be returned.
    tuples = [
        list(zip(rng.choice(["a", "b", "c"], n_tuples).tolist(), side[:n_tuples], strict=True))
        for side in floats
    ]
    return [
        *_read(f"2 × {short(n_floats)} floats in lists", floats, effort.repeats),
        *_read(f"2 × {short(n_tuples)} tuples (text, float)", tuples, effort.repeats),
    ]


def _read(name: str, sides: list[Any], repeats: int) -> list[Measurement]:
    """Reading next to one bare pass over the values, and the whole comparison."""
    passes, reads, compares = interleaved(
        repeats,
        lambda seed: [[type(value) for value in side] for side in sides],
        lambda seed: [read_outputs(side) for side in sides],
        lambda seed: em.compare(sides[0], sides[1], em.PureDP(1.0), seed=seed),
    )
    bare = processor_times(passes)
    return [
        of_repeats(
            "speed", f"reading {name} / a bare pass", ratios(processor_times(reads), bare), "×"
        ),
        of_repeats(
            "speed", f"comparing {name} / a bare pass", ratios(processor_times(compares), bare), "×"
        ),
    ]


def measure_small(effort: Effort) -> list[Measurement]:
    """The audit that most people run: seconds of the processor, the first with loading NumPy and SciPy."""
    n = effort.draws(SMALL)
    code = _SMALL_AUDIT.format(n=n)
    run_fresh(code)  # compiles our code
    first = [run_fresh(code) for _ in range(effort.repeats)]
    mechanism = SCALAR.mechanism()
    audit(mechanism, n, 0)
    later = [timed(partial(audit, mechanism, n), seed).processor for seed in range(effort.repeats)]
    return [
        of_repeats(
            "small", f"audit of 2 × {short(n)} scalars, first after import", first, "s", "≤", 0.5
        ),
        of_repeats("small", f"audit of 2 × {short(n)} scalars, later ones", later, "s", "≤", 0.5),
    ]
