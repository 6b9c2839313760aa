"""The band of Gaussian noise: how near it comes to the exact curve, and how often it misses it."""

from __future__ import annotations

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

_DELTAS = (1e-5, 1e-3, 1e-2, 1e-1)
_BARS = {1e-5: 3.1, 1e-3: 2.78, 1e-2: 2.2, 1e-1: 1.12}
_SAMPLES = Option("samples", "draws per input", 1_000_000, whole)
_FEW = Option("samples", "draws per input", 5_000, whole)


def _cases(settings: Settings) -> list[Case]:
    expected: dict[str, Target] = {
        f"ε({delta:g})": Target(bar, "≥", source=BAR) for delta, bar in _BARS.items()
    }
    return [Case("Gaussian σ = 1", expected=expected | {"μ": Target(0.985, "≥", source=BAR)})]


def _gaussian(dataset: float, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(dataset, 1.0, n)


def _profile(seed: int, settings: Settings) -> em.Profile:
    return em.profile(em.from_batch(_gaussian), (0.0, 1.0), samples=settings["samples"], seed=seed)


def run_power(case: Case, seed: int, settings: Settings) -> Numbers:
    """One profile."""
    found = _profile(seed, settings)
    return {f"ε({delta:g})": found.epsilon(delta) for delta in _DELTAS} | {"μ": found.mu}


def _coverage_cases(settings: Settings) -> list[Case]:
    return [Case("Gaussian σ = 1", expected={"misses": Rate(0.05, "≤", source=PROMISED)})]


def run_coverage(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether any point of the band lies above the true trade-off curve, at any δ."""
    truth = em.GaussianDP(1.0)
    band = _profile(seed, settings).band
    above = [
        p > truth.max_power(q) + 1e-12 for p, q in zip(band.p_lower, band.q_upper, strict=True)
    ]
    return {"misses": float(any(above))}


EXPERIMENTS = (
    Experiment(
        "beyond/profile",
        "the privacy profile of Gaussian noise",
        10,
        _cases,
        run_power,
        (_SAMPLES,),
    ),
    Experiment(
        "beyond/profile-coverage",
        "how often its band misses",
        400,
        _coverage_cases,
        run_coverage,
        (_FEW,),
    ),
)
