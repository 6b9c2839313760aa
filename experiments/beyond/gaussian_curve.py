"""Gaussian noise that was calibrated for (ε, δ), audited along its whole curve."""

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

_SAMPLES = Option("samples", "draws per input", 500_000, whole)
_FEW = Option("samples", "draws per input", 20_000, whole)
# The ε of noise with σ = 1 at δ = 1e-5.
_EPSILON, _DELTA = 4.3771781, 1e-5


@dataclass(frozen=True)
class AddGaussian:
    """A number with Gaussian noise."""

    sigma: float

    def __call__(self, dataset: float, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        return rng.normal(dataset, self.sigma, n)


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One audit in μ."""
    claim = em.GaussianDP.from_approx(_EPSILON, _DELTA)
    mechanism = em.from_batch(AddGaussian(case.parameters["sigma"]))
    found = em.audit(mechanism, (0.0, 1.0), claim, samples=settings["samples"], seed=seed)
    return {
        "refuted": float(found.is_refuted),
        "ε at δ, if Gaussian": found.findings[1].lower_bound,
    }


def _too_little(settings: Settings) -> list[Case]:
    return [Case("noise × .95", {"sigma": 0.95}, {"refuted": Target(0.95, "≥", source=BAR)})]


def _right(settings: Settings) -> list[Case]:
    return [Case("the right noise", {"sigma": 1.0}, {"refuted": Rate(0.05, "≤", source=PROMISED)})]


EXPERIMENTS = (
    Experiment(
        "beyond/gaussian-curve",
        "too little noise along the curve",
        20,
        _too_little,
        run_once,
        (_SAMPLES,),
    ),
    Experiment("beyond/gaussian-curve-size", "the right noise", 200, _right, run_once, (_FEW,)),
)
