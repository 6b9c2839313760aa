"""local/figure2: densities and loss functions of randomized response, the Laplace and the Gaussian mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
DRAWS = 100_000
ESTIMATE = "estimated loss"
# Read off the axes of the paper's figure: ten answers of which the true one has probability .2, a Laplace density of
# height .1 and a Gaussian one of height .05, both moved by 5.
ANSWERS, RESPONSE_LEVEL = 10, 0.8
SCALE, SIGMA, SHIFT = 5.0, 8.0, 5.0


@dataclass(frozen=True)
class Panel:
    """One column of the figure.

    Attributes:
        sample: draws n outputs for a dataset.
        pair: the two datasets.
        log_density: of an output given the centre; of each answer given the true one.
        region: where to look; None for all answers.
        truth: the greatest loss in the region.
    """

    sample: Callable[[Any, int, Generator], Any]
    pair: em.Pair
    log_density: Callable[[Any, Any], Any]
    region: tuple[float, float] | None
    truth: float

    def loss(self, seed: int) -> em.local.LossFunction:
        """Estimated from draws."""
        mechanism = em.from_batch(self.sample)
        return em.local.dpl(
            mechanism, self.pair, n=DRAWS, region=self.region, floor=1e-4, seed=seed
        ).loss


def _answer(dataset: int, n: int, rng: Generator) -> NDArray[np.int64]:
    """Randomized response: the true one of ten answers with probability e^ε/(e^ε + 9), else any other."""
    honest = rng.random(n) < math.exp(RESPONSE_LEVEL) / (math.exp(RESPONSE_LEVEL) + ANSWERS - 1)
    other = (dataset + rng.integers(1, ANSWERS, n) - 1) % ANSWERS + 1
    return np.where(honest, dataset, other)


def _answer_density(answers: Floats, truth: int) -> Floats:
    weights = np.where(np.asarray(answers) == truth, RESPONSE_LEVEL, 0.0)
    return np.asarray(weights - math.log(math.exp(RESPONSE_LEVEL) + ANSWERS - 1), dtype=np.float64)


def _laplace(x: Floats, centre: float) -> Floats:
    return np.asarray(-np.abs(x - centre) / SCALE - math.log(2.0 * SCALE), dtype=np.float64)


def _gaussian(x: Floats, centre: float) -> Floats:
    return np.asarray(
        -0.5 * ((x - centre) / SIGMA) ** 2 - math.log(SIGMA * math.sqrt(2.0 * math.pi)),
        dtype=np.float64,
    )


def _add_laplace(dataset: float, n: int, rng: Generator) -> Floats:
    return dataset + rng.laplace(0.0, SCALE, n)


def _add_gaussian(dataset: float, n: int, rng: Generator) -> Floats:
    return dataset + rng.normal(0.0, SIGMA, n)


_PAIR = em.Pair(0.0, SHIFT)
PANELS = {
    "randomized response": Panel(_answer, em.Pair(3, 8), _answer_density, None, RESPONSE_LEVEL),
    "Laplace mechanism": Panel(_add_laplace, _PAIR, _laplace, (-10.0, 15.0), SHIFT / SCALE),
    "Gaussian mechanism": Panel(
        _add_gaussian, _PAIR, _gaussian, (-16.0, 21.0), (21 - SHIFT / 2) * SHIFT / SIGMA**2
    ),
}


def make_cases(settings: Settings) -> list[Case]:
    """The three mechanisms."""
    return [
        Case(name, {}, {ESTIMATE: Target(panel.truth, "≈", 0.15, EXACT)})
        for name, panel in PANELS.items()
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The greatest estimated loss in the region."""
    return {ESTIMATE: PANELS[case.name].loss(seed).estimate}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Densities above, losses below, as in the paper; truth as lines, estimates dashed."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots(2, len(PANELS), sharex="col", squeeze=False)
    for column, (name, panel) in enumerate(PANELS.items()):
        loss = panel.loss(int(results.settings["seed"]))
        axes[0, column].set_title(name, fontsize="medium")
        _draw_panel(axes[0, column], axes[1, column], panel, loss)
    axes[0, 0].set_ylabel("densities")
    axes[1, 0].set_ylabel("loss")
    marks = (("C0", "density of x"), ("C1", "density of x'"), ("C3", "loss"))
    handles = [Line2D([], [], color=colour, label=label) for colour, label in marks]
    handles.append(Line2D([], [], color="0.3", linestyle="--", label="estimated"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    yield "figure2", figure


def _draw_panel(above: Axes, below: Axes, panel: Panel, loss: em.local.LossFunction) -> None:
    if panel.region is None:
        answers = np.array([float(loss.points[place]) for place in range(len(loss.left_density))])
        left, right = (
            panel.log_density(answers, side) for side in (panel.pair.left, panel.pair.right)
        )
        for sides, offset, colour in ((left, -0.2, "C0"), (right, 0.2, "C1")):
            above.bar(answers + offset, np.exp(sides), 0.4, color=colour)
        above.plot(answers - 0.2, loss.left_density, "_", color="0.3")
        above.plot(answers + 0.2, loss.right_density, "_", color="0.3")
        above.set_ylim(bottom=0.05)
        below.bar(answers, np.abs(left - right), 0.6, color="C3")
        below.plot(answers, loss.loss, "_", color="0.3")
        return
    t = loss.points
    left, right = (panel.log_density(t, side) for side in (panel.pair.left, panel.pair.right))
    above.plot(t, np.exp(left), color="C0")
    above.plot(t, np.exp(right), color="C1")
    above.plot(t, loss.left_density, color="C0", linestyle="--", linewidth=0.8)
    above.plot(t, loss.right_density, color="C1", linestyle="--", linewidth=0.8)
    below.plot(t, np.abs(left - right), color="C3")
    below.plot(t, loss.loss, color="C3", linestyle="--", linewidth=0.8)


EXPERIMENT = Experiment(
    name="local/figure2",
    summary="densities and loss functions of randomized response, the Laplace and the Gaussian mechanism",
    runs=5,
    cases=make_cases,
    run_once=run_once,
    draw=draw,
    quick=Quick(1),
)
