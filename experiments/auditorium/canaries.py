"""auditorium/canaries: random canaries on the unit sphere (Section 5) against other random ones.

A sum of vectors whose norms are clipped to 1, with Gaussian noise. A canary on the sphere has the full norm whatever
its direction, so each one attains the greatest divergence; one drawn from the ball or from a cube does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS, SIGMA = 64, 1.0
NORM, MU = "norm of the canary", "certified μ"


def on_sphere(rng: np.random.Generator, d: int) -> np.ndarray:
    """Uniform on the unit sphere."""
    direction = rng.normal(size=d)
    return np.asarray(direction / np.linalg.norm(direction))


def in_cube(rng: np.random.Generator, d: int) -> np.ndarray:
    """Uniform in the largest cube inside the unit ball: norm √(1/3) on average."""
    return rng.uniform(-1.0, 1.0, d) / math.sqrt(d)


def in_ball(rng: np.random.Generator, d: int) -> np.ndarray:
    """Any direction, and any norm between 0 and 1."""
    return on_sphere(rng, d) * rng.random()


@dataclass(frozen=True)
class ClippedSum:
    """Sum of the dataset's vectors, clipped to norm 1, plus noise, as seen along the canary (its best statistic).

    Attributes:
        canary: whose presence is asked about.
    """

    canary: tuple[float, ...]

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs; the dataset is whether the canary is in it."""
        direction = np.array(self.canary) / np.linalg.norm(self.canary)
        total = (
            np.array(self.canary)
            * min(1.0, 1.0 / float(np.linalg.norm(self.canary)))
            * float(dataset)
        )
        return float(total @ direction) + rng.normal(0.0, SIGMA, n)


CANARIES: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float]] = {
    "on the unit sphere": (on_sphere, 1.0),
    "in the ball, any norm": (in_ball, 0.5),
    "in a cube": (in_cube, math.sqrt(1 / 3)),
}


def make_cases(settings: Settings) -> list[Case]:
    """Three ways to draw a canary; the truth is that of the greatest norm, 1/σ."""
    cases = []
    for name, (_, norm) in CANARIES.items():
        expected = {NORM: Target(norm, source=EXACT)}
        if name == "on the unit sphere":
            expected = {
                NORM: Target(norm, "≈", 1e-9, EXACT),
                MU: Target(0.95 / SIGMA, "≥", source=BAR),
            }
        cases.append(Case(name, {}, expected))
    return cases


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One random canary, and what it proves."""
    canary = CANARIES[case.name][0](np.random.default_rng(seed), DIMENSIONS)
    mechanism = em.from_batch(ClippedSum(tuple(canary)))
    found = em.measure(
        mechanism, em.Pair(0, 1), em.GaussianDP, samples=settings["samples"], seed=seed
    )
    return {NORM: float(np.linalg.norm(canary)), MU: found.lower_bound}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """What each canary proved, with the truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2.8), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(results.of(MU)):
        axes.plot(row.values, [place] * len(row.values), "o", fillstyle="none", color="C0")
    axes.axvline(
        1.0 / SIGMA, color="C3", linestyle="--", label="the truth of the worst canary, 1/σ"
    )
    axes.set_yticks(range(len(results.cases)), [case.name for case in results.cases])
    axes.set_xlabel("certified μ, one mark per random canary")
    figure.legend(loc="outside lower center", frameon=False)
    yield "canaries", figure


EXPERIMENT = Experiment(
    name="auditorium/canaries",
    summary="random canaries on the unit sphere attain the greatest divergence, others do not",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per side", 50_000, whole),),
    draw=draw,
    quick=Quick(5),
)
