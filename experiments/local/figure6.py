"""local/figure6: the mean squared error of the estimated loss against the number of draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import epsilometer as em
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Results, Settings, Target
from epsilometer_experiments.options import Option, wholes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 1.5
ERROR = "mean squared error"
ESTIMATE = "estimate"
# The entry, the pair, the region, and the paper's words about n = 5000: errors below this share of ε.
ALGORITHMS = {
    "continuous noisy max": (em.zoo.noisy_max_value, em.Pair([0.0] * 3, [1.0] * 3), (-1, 1), 0.04),
    "exponential mechanism": (em.zoo.exponential, em.Pair(1.0, 2.0), (0, 2), 0.005),
}


def make_cases(settings: Settings) -> list[Case]:
    """Both algorithms at every size."""
    return [
        Case(
            f"{name} n={n}",
            {"algorithm": name, "n": n},
            {ERROR: Target(share * LEVEL * (0.5 if n >= 20_000 else 1.0), "≤")} if n in (5_000, 20_000) else {},
        )
        for name, (*_, share) in ALGORITHMS.items()
        for n in settings["sizes"]
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One estimate and its squared error."""
    make, pair, region, _ = ALGORITHMS[case.parameters["algorithm"]]
    found = em.local.dpl(make(LEVEL), pair, n=case.parameters["n"], region=region, floor=1e-3, seed=seed)
    return {ERROR: (found.estimate - LEVEL) ** 2, ESTIMATE: found.estimate}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """One panel per algorithm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3), layout="constrained")
    for name, axes in zip(ALGORITHMS, figure.subplots(1, 2), strict=True):
        rows = [(case.parameters["n"], results.row(case.name, ERROR)) for case in _of(results, name)]
        axes.errorbar([n for n, _ in rows], [r.measured for _, r in rows], [r.standard_error or 0 for _, r in rows])
        axes.set_title(name, fontsize="medium")
        axes.set_ylim(bottom=0)
    figure.supxlabel("draws per side n")
    figure.supylabel("mean squared error")
    yield "figure6", figure


def _of(results: Results, name: str) -> list[Case]:
    return [case for case in results.cases if case.parameters["algorithm"] == name]


EXPERIMENT = Experiment(
    name="local/figure6",
    summary="mean squared error of the estimated loss at ε = 1.5 against n",
    runs=1000,
    cases=make_cases,
    run_once=run_once,
    options=(Option("sizes", "draws per side, separated by commas", (1000, 2000, 5000, 10_000, 20_000), wholes),),
    draw=draw,
)
