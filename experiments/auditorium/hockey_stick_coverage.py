"""auditorium/hockey-stick-coverage: how often is the published hockey-stick bound above the truth, at many sizes?

One size would not do: the parts of the mixture that the bound looks at have random sizes, and where these were drawn
from a constant seed, audits of some sizes were wrong far more often than promised and audits of others never were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
from epsilometer_experiments.auditorium.settings import OUR_CONFIDENCE, PAPER_CONFIDENCE, floats
from epsilometer_experiments.experiment import (
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
)
from epsilometer_experiments.options import Option, wholes
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOVE = "share above the truth"
SIZES = tuple(int(size) for size in np.geomspace(500, 10_000, 12))
EPSILONS = (0.1, 0.5, 1.0)
CONFIDENCES = (PAPER_CONFIDENCE, OUR_CONFIDENCE)


@dataclass(frozen=True)
class RandomizedResponse:
    """The input, or with probability 1/(1 + e^ε) its opposite.

    Attributes:
        epsilon: its exact level.
    """

    epsilon: float

    def __call__(self, dataset: bool, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n answers at once, which the zoo's own draws one after the other."""
        return np.asarray((rng.random(n) * (1.0 + math.exp(self.epsilon)) < 1.0) != dataset)


def make_cases(settings: Settings) -> list[Case]:
    """Every size, ε and confidence."""
    return [
        Case(
            f"n={samples} ε={epsilon:g} {confidence:.3g}",
            {"samples": samples, "epsilon": epsilon, "confidence": confidence},
            {ABOVE: Rate(1.0 - confidence, "≤", source=PROMISED)},
        )
        for samples in settings["samples"]
        for epsilon in settings["epsilon"]
        for confidence in settings["confidence"]
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether one audit refutes the claim of randomized response, which is exactly true."""
    epsilon = case.parameters["epsilon"]
    result = em.audit(
        em.from_batch(RandomizedResponse(epsilon)),
        em.Pair(False, True),
        em.PureDP(epsilon),
        samples=case.parameters["samples"],
        seed=seed,
        confidence=case.parameters["confidence"],
        method="hockey-stick",
        options=em.auditorium.hockey_stick.Options(certificate="published"),
    )
    return {ABOVE: float(result.is_refuted)}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The share against the size, with what is promised."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for number, confidence in enumerate(CONFIDENCES):
        axes.axhline(1.0 - confidence, color=f"C{number}", linestyle="--")
        for marker, epsilon in zip("osD", EPSILONS, strict=True):
            cases = [
                case
                for case in results.cases
                if (case.parameters["epsilon"], case.parameters["confidence"])
                == (epsilon, confidence)
            ]
            sizes = [case.parameters["samples"] for case in cases]
            shares = [results.row(case.name, ABOVE).measured for case in cases]
            label = f"ε = {epsilon:g}, {confidence:.3g}"
            axes.plot(sizes, shares, marker, fillstyle="none", color=f"C{number}", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("draws per side")
    axes.set_ylabel("share of bounds above the truth")
    legend_below(figure)
    yield "hockey-stick-coverage", figure


EXPERIMENT = Experiment(
    name="auditorium/hockey-stick-coverage",
    summary="how often the published hockey-stick bound is above the truth, at twelve sizes",
    runs=400,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side, separated by commas", SIZES, wholes),
        Option("epsilon", "of randomized response, separated by commas", EPSILONS, floats),
        Option("confidence", "separated by commas", CONFIDENCES, floats),
    ),
    draw=draw,
    quick=Quick(5),
)
