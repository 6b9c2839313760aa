"""local/figure5: the data-centric level of one dataset is about half of the global one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import epsilometer as em
from epsilometer_experiments.experiment import (
    EXACT,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.ldp.practice import numbers
from epsilometer_experiments.local.figure4 import draw_distribution
from epsilometer_experiments.local.settings import BOUND, CONFIDENCE, COVERED
from epsilometer_experiments.options import Option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 1.5
ESTIMATE = "estimate"
EXPLORED = "estimate of step 1"
# Exact levels of the two datasets.
TRUTHS = {"report noisy max at 0^6": 0.742604, "continuous noisy max at (½,½,½)": 0.75}


def make_cases(settings: Settings) -> list[Case]:
    """Both versions of noisy max."""
    return [
        Case(
            name,
            {"truth": truth},
            {
                ESTIMATE: Target(truth, "≈", 0.05 * truth, EXACT),
                BOUND: Target(LEVEL / 2, "≈", source="paper: Section V, about ε/2"),
                COVERED: Rate(CONFIDENCE, "≥", source=PROMISED),
            },
        )
        for name, truth in TRUTHS.items()
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One bound over all neighbours."""
    if case.name.startswith("report"):
        neighbours = [list(bits) for bits in product((0, 1), repeat=6)]
        found = em.local.data_centric(
            em.zoo.report_noisy_max(LEVEL), [0] * 6, neighbours, floor=1e-3, seed=seed
        )
    else:
        grid = [list(point) for point in product((0.0, 0.5, 1.0), repeat=3)]
        entry = em.zoo.noisy_max_value(LEVEL)
        # The paper sets C = [−1, 1] for this algorithm. Below 0 draws are few, so that [0, 1] gives a larger bound.
        found = em.local.data_centric(
            entry, [0.5] * 3, grid, region=settings["region"], floor=1e-3, seed=seed
        )
    covered = float(found.unclipped <= case.parameters["truth"])
    return {
        ESTIMATE: found.estimate,
        EXPLORED: found.explored,
        BOUND: found.unclipped,
        COVERED: covered,
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The distribution of the bound next to the global level."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3), layout="constrained")
    for case, axes in zip(
        results.cases, figure.subplots(1, len(results.cases), squeeze=False).ravel(), strict=True
    ):
        axes.set_title(case.name, fontsize="medium")
        draw_distribution(axes, results.row(case.name, BOUND).values, LEVEL, colour="C4")
        axes.axvline(case.parameters["truth"], color="C4", linestyle=":", linewidth=0.8)
        axes.axhline(CONFIDENCE, color="C3", linewidth=0.8)
    figure.supxlabel("lower bound LB (dashed: the global ε; dotted: the level of this dataset)")
    figure.supylabel("share of runs")
    yield "figure5", figure


EXPERIMENT = Experiment(
    name="local/figure5",
    summary="the data-centric level of one dataset, against 64 and 27 neighbours",
    runs=20,
    cases=make_cases,
    run_once=run_once,
    options=(Option("region", "C = low,high for the continuous noisy max", (-1.0, 1.0), numbers),),
    draw=draw,
    quick=Quick(1),
)
