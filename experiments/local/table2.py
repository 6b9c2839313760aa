"""local/table2: CPU seconds of one MPL bound, sampling included, next to the authors' R code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import (
    BAR,
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.local.settings import ALGORITHMS
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 1.5
CPU = "CPU seconds"
FASTER = "times faster than the paper"
# What one bound may cost: (a)–(d), and the SVTs with their larger samples.
_LIMITS = {letter: 0.5 if letter in "abcd" else 3.0 for letter in ALGORITHMS}


def make_cases(settings: Settings) -> list[Case]:
    """All eight algorithms."""
    return [
        Case(
            f"({letter}) {algorithm.title}",
            {"letter": letter, "paper": algorithm.seconds},
            {
                CPU: Target(_LIMITS[letter], "≤", source=BAR),
                FASTER: Target(1.0, "≥", source="paper: Table II"),
            },
        )
        for letter, algorithm in ALGORITHMS.items()
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One timed bound."""
    began = time.process_time()
    ALGORITHMS[case.parameters["letter"]].bound(LEVEL, seed)
    seconds = time.process_time() - began
    return {CPU: seconds, FASTER: case.parameters["paper"] / seconds}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Both times per algorithm, on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    places = range(len(results.cases))
    axes.plot(
        [case.parameters["paper"] for case in results.cases],
        places,
        "o",
        color="0.5",
        label="paper (R)",
    )
    axes.plot(
        [row.measured for row in results.of(CPU)], places, "o", color="C0", label="Epsilometer"
    )
    axes.set_yticks(places, [case.name for case in results.cases])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("seconds per bound")
    legend_below(figure)
    yield "table2", figure


EXPERIMENT = Experiment(
    name="local/table2",
    summary="CPU seconds of one MPL bound next to the paper's Table II",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    draw=draw,
    parallel=False,
    quick=Quick(1),
)
