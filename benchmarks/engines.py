"""What engines cost per chunk, and what a second local worker gains where the mechanism waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from statistics import median
from typing import Any

from numpy.random import Generator

import epsilometer as em
from benchmarks.effort import Effort
from benchmarks.kinds import audit
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.timing import interleaved, wall_times
from epsilometer.engine import Runner, open_runner

_CHUNKS = 1000
_CALLS = 4000
_CALL_SECONDS = 1e-3
# A chunk of a mechanism of a millisecond takes 256 ms: the target is 2 % of it.
_OVERHEAD_TARGET = 5.0
_GAIN_TARGET = 1.7


def waiting_number(dataset: float, rng: Generator) -> float:
    """One noisy number after a millisecond of waiting, as for a service."""
    time.sleep(_CALL_SECONDS)
    return float(rng.laplace(dataset))


def measure_engines(effort: Effort) -> list[Measurement]:
    """The cost of a chunk on engines that can be started here, and the gain of a second local worker."""
    return [*_overheads(effort), _gain(effort)]


def _overheads(effort: Effort) -> list[Measurement]:
    found = [_overhead("2 local workers", open_runner(2), effort, _OVERHEAD_TARGET)]
    with _dask_cluster() as address:
        found.append(_overhead("Dask with 2 workers", open_runner(1, address), effort, None))
    return found


def _overhead(name: str, runner: Runner, effort: Effort, target: float | None) -> Measurement:
    """Milliseconds by the clock per chunk that has nothing to do, once the workers are warm."""
    chunks = effort.draws(_CHUNKS)
    with closing(runner):
        _run_nothing(runner, 50, 0)
        (timings,) = interleaved(min(effort.repeats, 5), partial(_run_nothing, runner, chunks))
    milliseconds = [1e3 * seconds / chunks for seconds in wall_times(timings)]
    detail = f"{chunks} chunks without work, by the clock, workers warm"
    return of_repeats(
        "engines",
        f"cost of a chunk: {name}",
        milliseconds,
        "ms",
        "≤",
        effort.target(target),
        detail,
    )


def _run_nothing(runner: Runner, chunks: int, number: int) -> None:
    for _ in runner.map(int, range(chunks)):
        pass


def _gain(effort: Effort) -> Measurement:
    """Two workers against one where both wait most of the time; `benchmarks.workers` has those that compute."""
    calls, mechanism = effort.draws(_CALLS), em.from_callable(waiting_number)
    _audit_with(mechanism, min(calls, 1000), 2, 0)  # starts the workers
    actions: list[Callable[[int], Any]] = [
        partial(_audit_with, mechanism, calls, jobs) for jobs in (1, 2)
    ]
    alone, together = (wall_times(each) for each in interleaved(min(effort.repeats, 3), *actions))
    detail = f"2 × {calls} calls: one worker {median(alone):.3g} s, two {median(together):.3g} s, by the clock"
    name = "gain of a second worker: 1 ms of waiting per call"
    return of_repeats(
        "engines", name, ratios(alone, together), "×", "≥", effort.target(_GAIN_TARGET), detail
    )


def _audit_with(mechanism: Any, calls: int, jobs: int, seed: int) -> em.AuditResult:
    return audit(mechanism, calls, seed, jobs=jobs)


@contextmanager
def _dask_cluster() -> Iterator[str]:
    from distributed import LocalCluster

    cluster = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
    )
    try:
        yield str(cluster.scheduler_address)
    finally:
        cluster.close()
