"""What a second worker process gains."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from numpy.random import Generator

import epsilometer as em
from benchmarks.effort import Effort, short
from benchmarks.kinds import audit, noisy_number
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.timing import interleaved, wall_times
from epsilometer.mechanisms import Mechanism

_SLOW_CALLS = 4000
_BATCH_DRAWS = 20_000_000
_CALL_SECONDS = 1e-3


def slow_number(dataset: float, rng: Generator) -> float:
    """One noisy number after a millisecond of work that only a processor can do."""
    ready = time.perf_counter() + _CALL_SECONDS
    while time.perf_counter() < ready:
        pass
    return float(rng.laplace(dataset))


def measure_workers(effort: Effort) -> list[Measurement]:
    """Two workers against one, by the clock, once the workers are warm."""
    slow, batch = effort.draws(_SLOW_CALLS), effort.draws(_BATCH_DRAWS)
    return [
        _gain(f"2 × {slow} calls of 1 ms", em.from_callable(slow_number), slow, effort, 1.7),
        _gain(
            f"2 × {short(batch)} vectorised draws", em.from_batch(noisy_number), batch, effort, None
        ),
    ]


def _gain(
    name: str, mechanism: Mechanism, n: int, effort: Effort, target: float | None
) -> Measurement:
    actions: list[Callable[[int], Any]] = [
        partial(_with_jobs, mechanism, n, jobs) for jobs in (1, 2)
    ]
    _with_jobs(mechanism, min(n, 2000), 2, 0)  # starts the workers
    alone, together = (wall_times(each) for each in interleaved(min(effort.repeats, 5), *actions))
    detail = f"one worker {median(alone):.3g} s, two {median(together):.3g} s, by the clock"
    return of_repeats(
        "workers",
        f"gain of a second worker: {name}",
        ratios(alone, together),
        "×",
        "≥",
        effort.target(target),
        detail,
    )


def _with_jobs(mechanism: Mechanism, n: int, jobs: int, seed: int) -> em.AuditResult:
    return audit(mechanism, n, seed, jobs=jobs)
