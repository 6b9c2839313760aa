"""How long audits take, next to drawing the samples alone, and how long it takes to read plain Python values."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import epsilometer as em
from benchmarks.measurement import Measurement, median_ratio
from benchmarks.processes import run_fresh
from epsilometer.outputs import read_outputs

LARGE = 5_000_000
SMALL = 100_000
N_TUPLES = 200_000
N_FLOATS = 1_000_000
SCALE = 1.0

_FIRST_AUDIT = f"""
import time
import epsilometer as em
def noisy(dataset, n, rng):
    return rng.laplace(dataset, {SCALE}, n)
began = time.perf_counter()
em.audit(em.from_batch(noisy), (0.0, 1.0), em.PureDP(1.0), samples={SMALL}, seed=0)
print(time.perf_counter() - began)
"""


def noisy_number(dataset: float, n: int, rng: Generator) -> NDArray[np.float64]:
    """The Laplace mechanism as a batch."""
    return rng.laplace(dataset, SCALE, n)


def measure_speed(repeats: int) -> list[Measurement]:
    """All timings of this file."""
    return [*_large_audit(repeats), *_small_audit(repeats), *_reading(repeats)]


def draw_alone(n: int, chunk: int, seed: int) -> None:
    """What an audit of n draws per side must at least do."""
    rng = np.random.default_rng(seed)
    for dataset in (0.0, 1.0):
        for start in range(0, n, chunk):
            noisy_number(dataset, min(chunk, n - start), rng)


def _large_audit(repeats: int) -> list[Measurement]:
    mechanism = em.from_batch(noisy_number)
    audits, draws = [], []
    for seed in range(repeats):
        draws.append(_seconds(partial(draw_alone, LARGE, mechanism.chunk_size, seed)))
        audits.append(_seconds(partial(_audit, mechanism, LARGE, seed)))
    ratio = median_ratio(audits, draws)
    detail = f"audit {median(audits):.3f} s, drawing alone {median(draws):.3f} s, median of {repeats} interleaved"
    return [Measurement("speed", "audit of 2 × 5e6 scalars / drawing them", ratio, "×", "≤", 2.5, detail)]


def _small_audit(repeats: int) -> list[Measurement]:
    mechanism = em.from_batch(noisy_number)
    first = [run_fresh(_FIRST_AUDIT) for _ in range(repeats)]
    later = [_seconds(partial(_audit, mechanism, SMALL, seed)) for seed in range(repeats)]
    return [
        Measurement("speed", "audit of 2 × 1e5 scalars, first after import", median(first), "s", "≤", 0.5),
        Measurement("speed", "audit of 2 × 1e5 scalars, later ones", median(later), "s", "≤", 0.5),
    ]


def _reading(repeats: int) -> list[Measurement]:
    rng = np.random.default_rng(0)
    floats = rng.laplace(0.0, SCALE, (2, N_FLOATS)).tolist()
    # A label and a number, as a selection with its noisy value would be returned.
    tuples = [
        list(zip(rng.choice(["a", "b", "c"], N_TUPLES).tolist(), side[:N_TUPLES], strict=True)) for side in floats
    ]
    return [
        *_read("2 × 1e6 floats in lists", floats, repeats),
        *_read("2 × 2e5 tuples (text, float)", tuples, repeats),
    ]


def _read(name: str, sides: list[Any], repeats: int) -> list[Measurement]:
    """Reading next to one bare pass over the values, and the whole comparison."""
    passes, reads, compares = [], [], []
    for _ in range(repeats):
        passes.append(_seconds(lambda: [[type(value) for value in side] for side in sides]))
        reads.append(_seconds(lambda: [read_outputs(side) for side in sides]))
        compares.append(_seconds(lambda: em.compare(sides[0], sides[1], em.PureDP(1.0), seed=0)))
    bare = f"one bare Python pass over them {median(passes):.3f} s ({median_ratio(reads, passes):.1f}×)"
    return [
        Measurement("speed", f"reading {name}", median(reads), "s", detail=bare),
        Measurement("speed", f"comparing {name}, reading included", median(compares), "s"),
    ]


def _audit(mechanism: Any, samples: int, seed: int) -> None:
    em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples=samples, seed=seed)


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
