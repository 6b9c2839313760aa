"""local/figure3: true and estimated loss function of the Laplace mechanism, with the location of the maximum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL, DRAWS, REGION = 1.0, 20_000, (-3.0, 4.0)
ESTIMATE = "estimated loss"


def make_cases(settings: Settings) -> list[Case]:
    """The Laplace mechanism at ε = 1."""
    return [Case("Laplace mechanism", {}, {ESTIMATE: Target(LEVEL, "≈", 0.25, EXACT)})]


def _estimate(seed: int) -> em.local.DataSpecificLoss:
    return em.local.dpl(
        em.zoo.laplace(LEVEL), em.Pair(0.0, 1.0), n=DRAWS, region=REGION, floor=1e-3, seed=seed
    )


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One estimate; its maximum sits in a noisy tail, hence above the truth on average."""
    found = _estimate(seed)
    return {ESTIMATE: found.estimate, "location": found.location}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The paper's picture, for the experiment's own seed."""
    from matplotlib.figure import Figure

    found = _estimate(int(results.settings["seed"]))
    points = found.loss.points
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        points, LEVEL * np.abs(np.abs(points) - np.abs(points - 1.0)), color="C0", label="loss"
    )
    axes.plot(points, found.loss.loss, color="C3", label="estimated loss")
    axes.axvline(found.location, color="0.4", linestyle="--", label="location of its maximum")
    axes.axhline(found.estimate, color="0.4", linestyle=":", label="its maximum")
    axes.set_xlabel("output t")
    legend_below(figure)
    yield "figure3", figure


EXPERIMENT = Experiment(
    name="local/figure3",
    summary="true and estimated loss function of the Laplace mechanism",
    runs=20,
    cases=make_cases,
    run_once=run_once,
    draw=draw,
    quick=Quick(3),
    why={
        "estimated loss": "its maximum sits in a noisy tail of the region, above the truth on average"
    },
)
