"""local/figure1: the Laplace density and its kernel estimate from 200 draws, for several kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
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
from epsilometer_experiments.options import Option, whole, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's: 200 draws of centred Laplace noise, a Gaussian kernel.
DRAWS = 200
KERNELS = ("gaussian", "epanechnikov", "laplace", "silverman")
PLACES = np.linspace(-5.0, 5.0, 401)
ERROR = "integrated squared error"
# Far below the roughness of the density itself, ∫f² = 1/4: the estimate follows the density.
_SMALL = 0.03


def density(t: np.ndarray) -> np.ndarray:
    """The true density."""
    return np.asarray(0.5 * np.exp(-np.abs(t)))


def estimate(kernel: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The draws, and the estimate at `PLACES`."""
    draws = np.random.default_rng(seed).laplace(size=n)
    return draws, np.asarray(em.local.tkde(draws, PLACES, kernel=kernel, floor=1e-6))


def make_cases(settings: Settings) -> list[Case]:
    """One case per kernel."""
    return [
        Case(kernel, {}, {ERROR: Target(_SMALL, "≤", source=BAR)}) for kernel in settings["kernels"]
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """How far the estimate is from the density."""
    _, found = estimate(case.name, settings["n"], seed)
    step = float(PLACES[1] - PLACES[0])
    return {ERROR: float(((found - density(PLACES)) ** 2).sum() * step)}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The paper's picture: density, estimate, and the draws on the axis; one panel per kernel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(results.cases), 3.4), layout="constrained")
    panels = figure.subplots(1, len(results.cases), sharey=True, squeeze=False)[0]
    for axes, case in zip(panels, results.cases, strict=True):
        draws, found = estimate(
            case.name, int(results.settings["options"]["n"]), int(results.settings["seed"])
        )
        axes.plot(PLACES, density(PLACES), color="skyblue", label="Laplace density")
        axes.plot(PLACES, found, color="C3", label="kernel estimate")
        axes.plot(
            draws, np.zeros(len(draws)), "|", color="darkblue", label=f"the {len(draws)} draws"
        )
        axes.set_title(f"{case.name} kernel", fontsize="medium")
        axes.set_xlim(-5, 5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    yield "figure1", figure


EXPERIMENT = Experiment(
    name="local/figure1",
    summary="the Laplace density and its kernel estimate from 200 draws, for several kernels",
    runs=100,
    cases=make_cases,
    run_once=run_once,
    options=(Option("n", "draws", DRAWS, whole), Option("kernels", "their names", KERNELS, words)),
    draw=draw,
    quick=Quick(20),
)
