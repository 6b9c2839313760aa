"""Early stopping: draws to a refutation, and how often a claim that just holds is refuted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole

_PAIRS = Option("pairs", "the most pairs of draws", 20_000, whole)


@dataclass(frozen=True)
class AddLaplace:
    """A number with Laplace noise of a scale."""

    scale: float

    def __call__(self, dataset: float, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        return rng.laplace(dataset, self.scale, n)


def _speed_cases(settings: Settings) -> list[Case]:
    return [
        Case("SVT5, claim .7", {"svt5": True, "claim": 0.7}, _bar(120.0)),
        Case("half the noise, claim .7", {"scale": 1 / 1.4, "claim": 0.7}, _bar(300.0)),
        Case("half the noise, claim .2", {"scale": 1 / 0.4, "claim": 0.2}, _bar(1200.0)),
    ]


def _bar(pairs: float) -> dict[str, Target]:
    return {"pairs of draws": Target(pairs, "≤", source=BAR)}


def _audit(case: Case, seed: int, pairs: int) -> em.AuditResult:
    if case.parameters.get("svt5"):
        entry = em.zoo.svt5(epsilon=case.parameters["claim"])
        return em.audit(
            entry,
            None,
            em.PureDP(case.parameters["claim"]),
            samples=pairs,
            seed=seed,
            stop_early=True,
        )
    noise = em.from_batch(AddLaplace(case.parameters["scale"]))
    claim = em.PureDP(case.parameters["claim"])
    return em.audit(noise, (0.0, 1.0), claim, samples=pairs, seed=seed, stop_early=True)


def run_speed(case: Case, seed: int, settings: Settings) -> Numbers:
    """One audit of a broken mechanism, pilot included."""
    result = _audit(case, seed, settings["pairs"])
    return {"pairs of draws": float(result.samples_used[0]), "refuted": float(result.is_refuted)}


def _size_cases(settings: Settings) -> list[Case]:
    expected = {"refuted": Rate(0.05, "≤", source=PROMISED)}
    return [Case("Laplace at its claim .7", {"scale": 1 / 0.7, "claim": 0.7}, expected)]


def run_size(case: Case, seed: int, settings: Settings) -> Numbers:
    """One audit of a mechanism that keeps its claim with nothing to spare."""
    return {"refuted": float(_audit(case, seed, settings["pairs"]).is_refuted)}


EXPERIMENTS = (
    Experiment(
        "beyond/sequential", "draws to a refutation", 100, _speed_cases, run_speed, (_PAIRS,)
    ),
    Experiment(
        "beyond/sequential-size", "false refutations", 1000, _size_cases, run_size, (_PAIRS,)
    ),
)
