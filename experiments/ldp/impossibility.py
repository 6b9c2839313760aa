"""ldp/impossibility: Theorem 1 made visible. Two mechanisms, the same samples, ε = 0 and ε = 10.

Whatever an estimator does with n draws per input, it does the same on both mechanisms unless one of the draws falls
into the short interval where they differ; so it is wrong about at least one of them. The interval is chosen after n,
and its density is as far from Lipschitz as it gets: a two-sided interval needs an assumption that rules it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer_experiments.experiment import (
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.ldp.practice import histogram_estimate, numbers
from epsilometer_experiments.options import Option
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAME = "share of runs with the same samples"
WRONG = "share of runs wrong about one by more than γ"
_CELLS = 10


@dataclass(frozen=True)
class HiddenSpike:
    """Uniform on [0, 1] for every input, but for a spike of mass `mass` on [0, width] for the input 1.

    With width = mass/(e^ε − 1 + mass) the largest log ratio is exactly ε. mass = 0 is the mechanism without spike, and
    equal generators give it the same outputs wherever the spike was not hit.
    """

    mass: float
    width: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.float64]:
        """Draw n outputs."""
        coin, place = rng.random(n), rng.random(n)
        return np.where((coin < self.mass) & (dataset == 1), place * self.width, place)

    @property
    def epsilon(self) -> float:
        """The true level, sup of the log ratio."""
        return math.log(1 - self.mass + self.mass / self.width) if self.mass else 0.0


def hidden_spike(n: int, epsilon: float, chance: float) -> HiddenSpike:
    """A spike that n draws hit with probability at most `chance`."""
    mass = chance / n
    return HiddenSpike(mass, mass / (math.expm1(epsilon) + mass))


def make_cases(settings: Settings) -> list[Case]:
    """Larger and larger samples, each with a spike of its own."""
    chance = settings["chance"]
    expected = {
        SAME: Rate(1 - chance, "≥", source=EXACT),
        WRONG: Rate(1 - chance, "≥", source="paper: Theorem 1"),
        "true ε with spike": Target(10.0, "≈", 1e-6, EXACT),
    }
    if settings["epsilon"] != 10.0:
        expected.pop("true ε with spike")
    return [Case(f"n={int(n)}", {"n": int(n)}, expected) for n in settings["samples"]]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Both mechanisms on the same random numbers, and the histogram estimate of each."""
    from epsilometer.outputs import read_outputs

    n, precision = case.parameters["n"], settings["precision"]
    spike = hidden_spike(n, settings["epsilon"], settings["chance"])
    plain = HiddenSpike(0.0, 1.0)
    draws = {
        mechanism: [mechanism(side, n, np.random.default_rng([seed, side])) for side in (1, 0)]
        for mechanism in (plain, spike)
    }
    same = all(np.array_equal(a, b) for a, b in zip(draws[plain], draws[spike], strict=True))
    estimates = {
        mechanism: histogram_estimate(
            read_outputs(left), read_outputs(right), (0.0, 1.0), _CELLS, None
        )
        for mechanism, (left, right) in draws.items()
    }
    wrong = any(
        abs(value - mechanism.epsilon) > precision for mechanism, value in estimates.items()
    )
    return {
        SAME: float(same),
        WRONG: float(wrong),
        "true ε without spike": plain.epsilon,
        "true ε with spike": spike.epsilon,
        "estimate without spike": estimates[plain],
        "estimate with spike": estimates[spike],
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """True levels and estimates against n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    sizes = [case.parameters["n"] for case in results.cases]
    for which, colour in (("with spike", "C3"), ("without spike", "C0")):
        axes.plot(
            sizes,
            [row.measured for row in results.of(f"true ε {which}")],
            "--",
            color=colour,
            label=f"true ε, {which}",
        )
        found = [row.measured for row in results.of(f"estimate {which}")]
        axes.plot(
            sizes,
            found,
            "o" if which == "without spike" else "x",
            color=colour,
            label=f"estimate, {which}",
        )
    axes.set_xscale("log")
    axes.set_xlabel("samples per input, the spike chosen after them")
    axes.set_ylabel("ε")
    legend_below(figure)
    yield "impossibility", figure


EXPERIMENT = Experiment(
    name="ldp/impossibility",
    summary="Theorem 1: two mechanisms with the same samples in 99 % of the runs, and ε = 0 against ε = 10",
    runs=100,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per input", (1e3, 1e4, 1e5, 1e6), numbers),
        Option("epsilon", "the level of the mechanism with the spike", 10.0, float),
        Option("chance", "that a run hits the spike", 0.01, float),
        Option("precision", "γ that no estimator can promise", 1.0, float),
    ),
    draw=draw,
    quick=Quick(20, {"samples": "1e3,1e5"}),
)
