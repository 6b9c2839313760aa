"""local/mixed: bounds on mixed distributions, which the paper leaves out, beside those of `events`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import laplace

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
from epsilometer_experiments.local.settings import BOUND, CONFIDENCE, COVERED, SHARE
from epsilometer_experiments.options import Option, whole

EVENTS = "bound of events"
RENYI = "Rényi bound / truth, order 2"
RENYI_COVERED = "Rényi bound holds, order 2"
ENTRIES = ("clamped_laplace", "propose_test_release", "numerical_svt", "svt3")
ROUNDED = "Laplace noise, rounded to 0 within ±.5"
# Values nearer to 0 than this become 0, so that the density has a gap around it.
_REACH = 0.5


@dataclass(frozen=True)
class Law:
    """A mechanism with point masses beside a density.

    Attributes:
        mechanism: draws.
        pair: its inputs.
        level: its ε.
        divergence: its Rényi divergence of order 2.
    """

    mechanism: Any
    pair: em.Pair
    level: float
    divergence: float


def draw_rounded(centre: float, n: int, rng: np.random.Generator) -> Floats:
    """Laplace noise around the centre, 0 where it is near 0."""
    noisy = centre + rng.laplace(size=n)
    return np.where(np.abs(noisy) < _REACH, 0.0, noisy)


def _rounded_law() -> Law:
    """The loss is 1 wherever the density is; the divergence is the larger of both directions."""
    divergence = max(_rounded_divergence(0.0, 1.0), _rounded_divergence(1.0, 0.0))
    return Law(em.from_batch(draw_rounded), em.Pair(0.0, 1.0), 1.0, divergence)


def _rounded_divergence(centre: float, other: float) -> float:
    """Order 2: the integral of p²/q outside the gap, and the point mass."""
    p, q = laplace(centre), laplace(other)
    mass_p, mass_q = (law.cdf(_REACH) - law.cdf(-_REACH) for law in (p, q))
    pieces = ((-40.0, -_REACH), (_REACH, 1.0), (1.0, 40.0))
    outside = sum(quad(lambda t: p.pdf(t) ** 2 / q.pdf(t), low, high)[0] for low, high in pieces)
    return math.log(outside + mass_p**2 / mass_q)


def law_of(name: str) -> Law:
    """One of the laws by its name."""
    if name == ROUNDED:
        return _rounded_law()
    entry = em.zoo.find(name)
    divergence = entry.truth(em.RenyiDP, order=2.0)
    level = entry.truth()
    assert divergence is not None
    assert level is not None
    return Law(entry, entry.worst_pair, level, divergence)


def make_cases(settings: Settings) -> list[Case]:
    """The zoo's mechanisms with point masses beside densities, and one whose density has a gap."""
    promised = Rate(CONFIDENCE, "≥", source=PROMISED)
    expected = {COVERED: promised, RENYI_COVERED: promised}
    return [Case(name, {"law": law_of(name)}, expected) for name in (*ENTRIES, ROUNDED)]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """MPL, the floored Rényi bound, and `events` with as many draws."""
    law = case.parameters["law"]
    n, proof = settings["n"], settings["N"]
    bound = em.local.mpl(
        law.mechanism,
        [law.pair],
        n=n,
        N=proof,
        confidence=CONFIDENCE,
        select="bound",
        seed=seed,
    ).unclipped
    renyi = em.measure(
        law.mechanism,
        law.pair,
        em.RenyiDP,
        order=2.0,
        samples=n + proof,
        method="renyi-floored",
        seed=seed,
    ).lower_bound
    events = em.measure(
        law.mechanism, law.pair, em.PureDP, samples=n + proof, method="events", seed=seed
    )
    return {
        BOUND: bound,
        SHARE: bound / law.level,
        COVERED: float(bound <= law.level),
        EVENTS: events.lower_bound,
        RENYI: renyi / law.divergence,
        RENYI_COVERED: float(renyi <= law.divergence),
    }


EXPERIMENT = Experiment(
    name="local/mixed",
    summary="point masses beside densities: the local and the floored Rényi bound, beside events",
    runs=200,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("n", "draws per side of step 1", 20_000, whole),
        Option("N", "fresh draws per side of step 2", 50_000, whole),
    ),
    wide=True,
    quick=Quick(2),
)
