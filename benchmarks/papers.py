"""The papers' methods in our version over the straightforward one, on the same draws."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np

import epsilometer as em
from benchmarks import plain
from benchmarks.effort import Effort
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.timing import interleaved, processor_times
from epsilometer.zoo import ZooEntry

_DRAWS = 100_000
_LDP_DRAWS = 2_000_000
_LDP_CELLS_AT = 0.5  # the precision that the number of cells is planned for
REGION, FLOOR = (-1.0, 2.0), 1e-3

Run = Callable[[int], object]


def measure_papers(effort: Effort) -> list[Measurement]:
    """Processor time of ours over plain; drawing is in both."""
    return [
        _against("local: MPL", effort, *local_runs(effort.draws(_DRAWS))),
        _against("floored Rényi", effort, *renyi_runs(effort.draws(_DRAWS))),
        _against("LDP histogram", effort, *histogram_runs(effort.draws(_LDP_DRAWS))),
    ]


def local_runs(n: int) -> tuple[Run, Run]:
    """MPL with n draws to choose the place and n to prove."""
    entry = em.zoo.laplace(1.0)

    def ours(seed: int) -> float:
        found = em.local.mpl(
            entry, entry.worst_pair, n=n, N=n, region=REGION, floor=FLOOR, seed=seed
        )
        return float(found.unclipped)

    def straightforward(seed: int) -> float:
        draws = [_draws(entry, side, n, seed + 10 * phase) for phase in (0, 1) for side in (0, 1)]
        return plain.maximum_power_loss((draws[0], draws[1]), (draws[2], draws[3]), REGION, FLOOR)

    return ours, straightforward


def renyi_runs(n: int) -> tuple[Run, Run]:
    """The floored divergence of order 2 between n and n draws."""
    entry = em.zoo.laplace(1.0)

    def ours(seed: int) -> float:
        left, right = (_draws(entry, side, n, seed) for side in (0, 1))
        return em.renyi.lower_bound(left, right, 2.0, floor=FLOOR).estimate

    def straightforward(seed: int) -> float:
        return plain.floored_renyi(_draws(entry, 0, n, seed), _draws(entry, 1, n, seed), 2.0, FLOOR)

    return ours, straightforward


def histogram_runs(n: int) -> tuple[Run, Run]:
    """The greatest ratio of two histograms of n draws each."""
    entry = em.zoo.truncated_laplace(0.8)
    settings = {"precision": _LDP_CELLS_AT, "n": n}
    cells = em.ldp.estimate(entry, **settings, seed=0).cells

    def ours(seed: int) -> float:
        return em.ldp.estimate(entry, **settings, seed=seed).estimate

    def straightforward(seed: int) -> float:
        left, right = (_draws(entry, side, n, seed) for side in (0, 1))
        return plain.histogram_ratio(left, right, entry.domain, cells)

    return ours, straightforward


def _draws(entry: ZooEntry, side: int, n: int, seed: int) -> plain.Floats:
    rng = np.random.default_rng([seed, side])
    return np.asarray(
        entry.mechanism.function(entry.worst_pair.side(side), n, rng), dtype=np.float64
    )


def _against(name: str, effort: Effort, ours: Run, straightforward: Run) -> Measurement:
    ours(0)  # loads all code
    found = [
        processor_times(each) for each in interleaved(min(effort.repeats, 5), ours, straightforward)
    ]
    detail = f"ours {median(found[0]) * 1e3:.0f} ms, the straightforward version {median(found[1]) * 1e3:.0f} ms"
    return of_repeats(
        "papers", f"{name} / straightforward version", ratios(*found), "×", detail=detail
    )
