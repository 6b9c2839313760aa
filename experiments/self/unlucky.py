"""self/unlucky: how often is a true claim refuted when the draws are awkward? At most as the confidence allows.

Two families. Distributions that drift while they are drawn: at any moment both sides keep the claim, but left and right
are never drawn at the same moment. And whole numbers that no double holds, which are read digit by digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import epsilometer as em
from epsilometer.arrays import Floats
from epsilometer_experiments.experiment import (
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Settings,
)
from epsilometer_experiments.options import Option, wholes

REFUTED = "share refuted"
INCONCLUSIVE = "share inconclusive"
LEVEL = 0.05

# (shift, scale) of the noise at each moment, from 0 at the first draw to 1 at the last; in units of the first scale.
Path = Callable[[Floats], tuple[Floats, Floats]]
PATHS: dict[str, Path] = {
    "mean moves by 0.5": lambda t: (0.5 * t, np.ones_like(t)),
    "mean moves by 0.7": lambda t: (0.7 * t, np.ones_like(t)),
    "mean moves by 1": lambda t: (t, np.ones_like(t)),
    "mean moves by 3": lambda t: (3.0 * t, np.ones_like(t)),
    "mean jumps by 1": lambda t: (np.where(t > 0.45, 1.0, 0.0), np.ones_like(t)),
    "mean swings by 1": lambda t: (np.sin(4.0 * math.pi * t), np.ones_like(t)),
    "scale doubles": lambda t: (np.zeros_like(t), 1.0 + t),
}


@dataclass
class Drifting:
    """Laplace noise that moves along a path while it is drawn, whichever side is drawn.

    Its scale never shrinks below 1, so that inputs at distance ε keep ε-differential privacy at any moment.
    """

    path: str
    total: int
    sensitivity: float
    drawn: int = field(default=0)

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> Floats:
        """The next n outputs."""
        moments = (self.drawn + np.arange(n)) / self.total
        self.drawn += n
        shift, scale = PATHS[self.path](moments)
        return np.asarray(self.sensitivity * x + shift + rng.laplace(scale=scale))


@dataclass(frozen=True)
class LongNumbers:
    """Two-sided geometric noise around a whole number beyond 2^53, with exactly ε = 1."""

    base: int
    scale: int

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """n outputs."""
        stop = -math.expm1(-1.0 / self.scale)
        noise = rng.geometric(stop, n) - rng.geometric(stop, n)
        return np.asarray(self.base + self.scale * x + noise)


def make_cases(settings: Settings) -> list[Case]:
    """Every path on equal and on tightly private sides, with and without early stopping; long numbers."""
    cases = []
    for n in settings["samples"]:
        for path in PATHS:
            for sensitivity, claim, sides in (
                (0.0, 0.5, "equal sides"),
                (1.0, 1.0, "a tight claim"),
            ):
                for stop_early in (False, True):
                    about = {"path": path, "sensitivity": sensitivity, "claim": claim}
                    cases.append(_case(f"{path}, {sides}", n, stop_early, about))
        for base, scale in ((2**60 + 77, 40), (17 * 10**17, 500), (-(2**62), 3)):
            for stop_early in (False, True):
                about = {"base": base, "scale": scale, "claim": 1.0}
                cases.append(_case(f"{base} with noise of {scale}", n, stop_early, about))
    return cases


def _case(name: str, n: int, stop_early: bool, about: dict[str, object]) -> Case:
    full = f"{name}, n={n}{', early stop' if stop_early else ''}"
    return Case(
        full,
        {**about, "n": n, "stop_early": stop_early},
        {REFUTED: Rate(LEVEL, "≤", source=PROMISED)},
    )


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The verdict of one audit."""
    about = case.parameters
    drifting = (
        Drifting(about["path"], 2 * about["n"], about["sensitivity"]) if "path" in about else None
    )
    mechanism = em.from_batch(drifting or LongNumbers(about["base"], about["scale"]))
    claim, wants = (
        em.PureDP(about["claim"]),
        {"samples": about["n"], "stop_early": about["stop_early"]},
    )
    result = em.audit(mechanism, em.Pair(0, 1), claim, seed=seed, **wants)
    return {
        REFUTED: float(result.is_refuted),
        INCONCLUSIVE: float(result.verdict is em.Verdict.INCONCLUSIVE),
    }


EXPERIMENT = Experiment(
    name="self/unlucky",
    summary="how often true claims are refuted where draws drift or are whole numbers beyond 2^53: at most 5 %",
    runs=400,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per side, separated by commas", (2000, 10_000), wholes),),
    quick=Quick(runs=2, options={"samples": (1000,)}),
)
