"""ldp/bias: the histogram estimate beside the certified bound of `events`, on the same samples.

The estimate is a maximum of noisy ratios, so it sits above the truth where many cells share the largest ratio (plain
Laplace noise: all cells on one side); a certified bound sits below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
from epsilometer.outputs import Numbers, Outputs
from epsilometer_experiments.experiment import (
    BAR,
    Case,
    Experiment,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.experiment import Numbers as Figures
from epsilometer_experiments.ldp.practice import histogram_estimate
from epsilometer_experiments.options import Option, whole
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOVE = "share of estimates above the truth"
HISTOGRAM = "histogram estimate"
EVENTS = "bound of events"
LEVEL = 1.0


def make_cases(settings: Settings) -> list[Case]:
    """Plain Laplace noise, cut to a central interval, and truncated Laplace noise."""
    shared = {"samples": settings["samples"]}
    return [
        Case(
            "plain laplace, 70 cells",
            {"entry": "laplace", "domain": (-3.0, 4.0), "cells": 70, **shared},
            _PLAIN,
        ),
        Case(
            "plain laplace, 14 cells",
            {"entry": "laplace", "domain": (-3.0, 4.0), "cells": 14, **shared},
        ),
        Case(
            "truncated laplace, 90 cells",
            {"entry": "truncated_laplace", "domain": (0.0, 1.0), "cells": 90, **shared},
        ),
        Case(
            "truncated laplace, 12 cells",
            {"entry": "truncated_laplace", "domain": (0.0, 1.0), "cells": 12, **shared},
        ),
    ]


# 10 of 10 runs at 5e5 samples: METHODS section 4 and issue 5 of our notes.
_PLAIN = {ABOVE: Target(1.0, "≥", source=BAR)}


def run_once(case: Case, seed: int, settings: Settings) -> Figures:
    """Both methods on the same draws; the histogram ignores what lies outside its interval."""
    entry = em.zoo.find(case.parameters["entry"], epsilon=LEVEL)
    pair, n = entry.worst_pair, case.parameters["samples"]
    left, right = (
        entry.mechanism.sample(pair.side(side), n, np.random.default_rng([seed, side]))
        for side in (0, 1)
    )
    estimate = histogram_estimate(
        left, right, case.parameters["domain"], case.parameters["cells"], None
    )
    bound = em.compare(_numbers(left), _numbers(right), em.PureDP, seed=seed).lower_bound
    return {ABOVE: float(estimate > LEVEL), HISTOGRAM: estimate, EVENTS: bound, "truth": LEVEL}


def _numbers(outputs: Outputs) -> object:
    """The outputs as one array."""
    (column,) = next(iter(outputs)).columns
    return column.values if isinstance(column, Numbers) else None


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Every estimate and every bound."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.5 * len(results.cases) + 1.4), layout="constrained")
    axes = figure.subplots()
    for place, case in enumerate(results.cases):
        for quantity, colour, shift in ((HISTOGRAM, "C1", -0.12), (EVENTS, "C0", 0.12)):
            values = results.row(case.name, quantity).values
            label = quantity if place == 0 else None
            axes.plot(
                values, [place + shift] * len(values), "|", color=colour, markersize=10, label=label
            )
    axes.axvline(LEVEL, color="0.4", linestyle="--", label="truth")
    axes.set_yticks(range(len(results.cases)), [case.name for case in results.cases])
    axes.invert_yaxis()
    axes.set_xlabel("ε")
    legend_below(figure)
    yield "bias", figure


EXPERIMENT = Experiment(
    name="ldp/bias",
    summary="the upward bias of the histogram estimate, beside the certified bound of events on the same samples",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per input", 500_000, whole),),
    draw=draw,
    quick=Quick(2),
)
