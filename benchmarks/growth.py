"""How an audit's time grows with the number of candidate pairs and with the number of different outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import epsilometer as em
from benchmarks.effort import Effort
from benchmarks.kinds import noisy_number
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.timing import interleaved, processor_times

_DRAWS = 200_000
PAIRS = (1, 4, 16, 64)
OUTPUTS = (2, 16, 128, 1024, 4096)


def measure_growth(effort: Effort) -> list[Measurement]:
    """Both, each relative to its smallest case in the same repeat."""
    return [*_with_pairs(effort), *_with_outputs(effort)]


def noisy_choice(dataset: tuple[int, float], n: int, rng: Generator) -> NDArray[np.int64]:
    """One of k whole numbers, all about equally likely; the first is likelier on the right."""
    k, lean = dataset
    chosen = rng.integers(0, k, n)
    chosen[rng.random(n) < lean / k] = 0
    return chosen


def _with_pairs(effort: Effort) -> list[Measurement]:
    mechanism, n = em.from_batch(noisy_number), effort.draws(_DRAWS)
    pairs = [em.Pair(0.0, (number + 1) / max(PAIRS)) for number in range(max(PAIRS))]

    def search(count: int, seed: int) -> None:
        em.audit(mechanism, pairs[-count:], em.PureDP(1.0), samples=max(n, 400 * count), seed=seed)

    return _relative(effort, "pairs", PAIRS, search)


def _with_outputs(effort: Effort) -> list[Measurement]:
    mechanism, n = em.from_batch(noisy_choice), effort.draws(_DRAWS)

    def judge(k: int, seed: int) -> None:
        em.audit(mechanism, ((k, 0.0), (k, 0.5)), em.PureDP(1.0), samples=n, seed=seed)

    return _relative(effort, "different outputs", OUTPUTS, judge)


def _relative(
    effort: Effort, what: str, cases: tuple[int, ...], run: Callable[[int, int], None]
) -> list[Measurement]:
    actions = [partial(run, case) for case in cases]
    actions[0](0)  # loads all code
    timings = [processor_times(each) for each in interleaved(effort.repeats, *actions)]
    smallest = timings[0]
    detail = f"the audit with {cases[0]} takes {median(smallest) * 1e3:.0f} ms"
    return [
        of_repeats(
            "growth", f"{case} {what} / {cases[0]}", ratios(seconds, smallest), "×", detail=detail
        )
        for case, seconds in zip(cases[1:], timings[1:], strict=True)
    ]
