"""local/figure2: densities and loss functions of randomized response, the Laplace and the Gaussian mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import epsilometer as em
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Results, Settings, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
DRAWS = 100_000
ESTIMATE = "estimated loss"


@dataclass(frozen=True)
class Panel:
    """One column of the figure.

    Attributes:
        entry: the mechanism, on its worst pair.
        log_density: of an output given the centre; None for outcomes.
        region: where to look.
        truth: the greatest loss in the region.
    """

    entry: ZooEntry
    log_density: Callable[[Any], Any] | None
    region: tuple[float, float] | None
    truth: float

    def loss(self, seed: int) -> em.local.LossFunction:
        """Estimated from draws."""
        pair = self.entry.worst_pair
        return em.local.dpl(self.entry, pair, n=DRAWS, region=self.region, floor=1e-4, seed=seed).loss


def _laplace(x: Floats) -> Floats:
    return np.asarray(-np.abs(x) - np.log(2.0), dtype=np.float64)


def _gaussian(x: Floats) -> Floats:
    return np.asarray(-0.5 * x * x - 0.5 * np.log(2.0 * np.pi), dtype=np.float64)


PANELS = {
    "randomized response": Panel(em.zoo.randomized_response(1.0), None, None, 1.0),
    "Laplace mechanism": Panel(em.zoo.laplace(1.0), _laplace, (-3.0, 4.0), 1.0),
    "Gaussian mechanism": Panel(em.zoo.gaussian(), _gaussian, (-2.0, 3.0), 2.5),
}


def make_cases(settings: Settings) -> list[Case]:
    """The three mechanisms."""
    return [Case(name, {}, {ESTIMATE: Target(panel.truth, "≈", 0.15)}) for name, panel in PANELS.items()]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The greatest estimated loss in the region."""
    return {ESTIMATE: PANELS[case.name].loss(seed).estimate}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Densities above, losses below; truth as lines, estimates dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots(2, len(PANELS), sharex="col", squeeze=False)
    for column, (name, panel) in enumerate(PANELS.items()):
        loss = panel.loss(int(results.settings["seed"]))
        axes[0, column].set_title(name, fontsize="medium")
        _draw_panel(axes[0, column], axes[1, column], panel, loss)
    axes[0, 0].set_ylabel("densities")
    axes[1, 0].set_ylabel("loss")
    yield "figure2", figure


def _draw_panel(above: Axes, below: Axes, panel: Panel, loss: em.local.LossFunction) -> None:
    if panel.log_density is None:
        places = np.arange(len(loss.left_density))
        above.bar(places - 0.2, loss.left_density, 0.4, color="C0")
        above.bar(places + 0.2, loss.right_density, 0.4, color="C1")
        below.bar(places, loss.loss, 0.4, color="C3")
        below.set_xticks(places, [str(loss.points[place]) for place in places])
        return
    t = loss.points
    left, right = panel.log_density(t), panel.log_density(t - 1.0)
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
)
