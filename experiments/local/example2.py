"""local/example2: an algorithm that leaks with probability e^−k, which no sampling finds once k is large.

A(x) = 0 for every x but one, x0, where it is 1 with probability e^−k. It keeps no ε at all, yet (0, e^−k)-privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
)
from epsilometer_experiments.options import Option, whole, wholes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEN, MPL, EVENTS = (
    "the rare output was drawn",
    "MPL finds a loss above .1",
    "events refutes ε = .1",
)
CLAIM = 0.1


@dataclass(frozen=True)
class Matches:
    """Says 1 with probability e^−k if the dataset is the target."""

    k: int

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        rare = rng.random(n) < math.exp(-self.k)
        return np.asarray(rare & (dataset == 1), dtype=np.int64)


def make_cases(settings: Settings) -> list[Case]:
    """From a leak that anyone sees to one that nobody sees."""
    n = settings["samples"]
    return [
        Case(
            f"k={k}",
            {"k": k},
            {SEEN: Rate(-math.expm1(n * math.log1p(-math.exp(-k))), source=EXACT)},
        )
        for k in settings["k"]
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether the output was seen at all, and whether each method then finds the loss."""
    mechanism, n = em.from_batch(Matches(case.parameters["k"])), settings["samples"]
    seen = bool(Matches(case.parameters["k"])(1, n, np.random.default_rng(seed)).any())
    bound = em.local.mpl(
        mechanism, [em.Pair(1, 0)], n=n // 2, N=n // 2, kind="discrete", seed=seed
    ).lower_bound
    events = em.audit(
        mechanism, em.Pair(1, 0), em.PureDP(CLAIM), samples=n, seed=seed, method="events"
    )
    return {SEEN: float(seen), MPL: float(bound > CLAIM), EVENTS: float(events.is_refuted)}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Shares of the runs against k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    ks = [case.parameters["k"] for case in results.cases]
    for marker, quantity in zip("osD", (SEEN, MPL, EVENTS), strict=True):
        axes.plot(
            ks,
            [row.measured for row in results.of(quantity)],
            marker + "-",
            fillstyle="none",
            label=quantity,
        )
    truths = [row.target.value for row in results.of(SEEN) if row.target]
    axes.plot(ks, truths, color="0.4", linestyle="--", label="1 − (1 − e^−k)^n")
    axes.set_xlabel("k: the algorithm leaks with probability e^−k")
    axes.set_ylabel("share of runs")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    yield "example2", figure


EXPERIMENT = Experiment(
    name="local/example2",
    summary="Example 2: a leak with probability e^-k, which sampling cannot find once k is large",
    runs=100,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side", 20_000, whole),
        Option("k", "separated by commas", (2, 4, 6, 8, 10, 12, 14), wholes),
    ),
    draw=draw,
    quick=Quick(10),
)
