"""How near the certified bound comes to the truth, and to the bound of one who knows the best event in advance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product

import numpy as np

import epsilometer as em
from benchmarks.effort import Effort, short
from benchmarks.measurement import Measurement
from benchmarks.plots import draw_power
from epsilometer.engine import open_runner
from epsilometer_experiments.self.measuring import entry_of
from epsilometer_experiments.self.power import REQUIRED
from epsilometer_experiments.sniper.oracle import oracle_bound

SIZES = (10_000, 100_000, 1_000_000)
ENTRIES = (
    *(spec for spec, _, _ in REQUIRED),
    "svt1?epsilon=.7",
    "geometric",
    "numerical_svt?epsilon=.7",
)


@dataclass(frozen=True, slots=True)
class PowerRow:
    """One line of the power table.

    Attributes:
        entry: of the zoo.
        n: draws per side in all.
        bounds: certified, one per seed.
        truth: None where it is not known, inf where the loss is.
        oracle: the mean bound of the best event; None where the distributions are not known exactly.
    """

    entry: str
    n: int
    bounds: tuple[float, ...]
    truth: float | None
    oracle: float | None

    @property
    def mean(self) -> float:
        """The mean certified bound."""
        return float(np.mean(self.bounds))

    @property
    def half_width(self) -> float:
        """Half of the normal 95 % interval of the mean; nan for a single run."""
        if len(self.bounds) < 2:
            return math.nan
        return float(1.96 * np.std(self.bounds, ddof=1) / math.sqrt(len(self.bounds)))


def measure_power(effort: Effort) -> list[Measurement]:
    """Certified bounds of the zoo, at every size."""
    rows = power_rows(effort, ENTRIES)
    draw_power(rows, effort.out / "power_by_draws.svg")
    least = {(spec, n): value for spec, n, value in REQUIRED}
    return [
        measurement
        for row in rows
        for measurement in _measurements(row, least.get((row.entry, row.n)))
    ]


def power_rows(effort: Effort, entries: Sequence[str]) -> list[PowerRow]:
    """The whole table; every seed of every line is a task of its own."""
    required = {(spec, n) for spec, n, _ in REQUIRED if spec in entries}
    cases = sorted({(spec, effort.draws(n)) for spec, n in {*product(entries, SIZES), *required}})
    tasks = [(spec, n, seed) for spec, n in cases for seed in range(effort.runs)]
    with closing(open_runner(effort.jobs)) as workers:
        found = dict(zip(tasks, workers.map(_certified, tasks), strict=True))
        by_case = [
            (*case, tuple(found[*case, seed] for seed in range(effort.runs))) for case in cases
        ]
        return list(workers.map(_row, by_case))


def _certified(task: tuple[str, int, int]) -> float:
    spec, n, seed = task
    return em.measure(entry_of(spec), None, em.PureDP, samples=n, seed=seed).lower_bound


def _row(case: tuple[str, int, tuple[float, ...]]) -> PowerRow:
    spec, n, bounds = case
    entry = entry_of(spec)
    return PowerRow(spec, n, bounds, entry.truth(em.PureDP), oracle_bound(entry.distributions, n))


def _measurements(row: PowerRow, least: float | None) -> list[Measurement]:
    name = f"{row.entry} at {short(row.n)}"
    truth = "not known" if row.truth is None else f"{row.truth:.4g}"
    oracle = "not known" if row.oracle is None else f"{row.oracle:.4g}"
    detail = (
        f"± {row.half_width:.2g} (95 %, {len(row.bounds)} seeds); truth {truth}, oracle {oracle}"
    )
    bound = Measurement("power", name, row.mean, "ε", "≥", least, detail, row.bounds)
    if not row.oracle:
        return [bound]
    shares = tuple(value / row.oracle for value in row.bounds)
    return [
        bound,
        Measurement(
            "power", f"{name} / oracle", float(np.mean(shares)), "×", "≥", None, "", shares
        ),
    ]
