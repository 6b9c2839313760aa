"""ldp/renyi-impossibility: without assumptions a Rényi divergence cannot be estimated either.

One would think that an output of tiny probability does not matter, because the divergence is an average. It does: an
output with probabilities p and q adds p^α·q^(1−α) to that average, which grows without bound as q → 0, however small p
is. Two mechanisms with the same samples then have divergences 0 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.ldp.practice import numbers
from epsilometer_experiments.options import Option

SAME, WRONG = "share of runs with the same samples", "share of runs wrong about one by more than γ"
TRUTH = "true divergence with the rare output"


@dataclass(frozen=True)
class RareOutput:
    """A fair coin, but for the output 2 that the input 1 has with probability p and the input 0 with probability q.

    Attributes:
        p: of the input 1.
        q: of the input 0.
    """

    p: float
    q: float

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs; equal generators give equal outputs wherever the rare one did not happen."""
        chance, coin = rng.random(n), rng.integers(0, 2, n)
        return np.where(chance < (self.p if dataset == 1 else self.q), 2, coin)

    def divergence(self, order: float) -> float:
        """D_order of the input 1 from the input 0, exactly."""
        if self.p == self.q == 0.0:
            return 0.0
        rare = order * math.log(self.p) + (1.0 - order) * math.log(self.q)
        rest = order * math.log1p(-self.p) + (1.0 - order) * math.log1p(-self.q)
        return float(np.logaddexp(rare, rest)) / (order - 1.0)


def rare_output(n: int, order: float, divergence: float, chance: float) -> RareOutput:
    """One that 2n draws show with probability at most `chance`, and that has the given divergence."""
    p = chance / (2.0 * n)
    rest = order * math.log1p(-p)
    # p^α·q^(1−α) + (1−p)^α = e^((α−1)·D), up to q next to 1.
    wanted = math.expm1((order - 1.0) * divergence - rest) if divergence else 0.0
    log_term = math.log(wanted) + rest
    return RareOutput(p, math.exp((order * math.log(p) - log_term) / (order - 1.0)))


def make_cases(settings: Settings) -> list[Case]:
    """Larger and larger samples, each with a rare output of its own."""
    expected = {
        SAME: Rate(1 - settings["chance"], "≥", source=EXACT),
        WRONG: Rate(1 - settings["chance"], "≥", source="paper: Section 2, impossibility for LRDP"),
        TRUTH: Target(settings["divergence"], "≈", 1e-6, EXACT),
    }
    return [Case(f"n={int(n)}", {"n": int(n)}, expected) for n in settings["samples"]]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Both mechanisms on the same random numbers, and the plug-in estimate of each."""
    n, order = case.parameters["n"], settings["order"]
    rare = rare_output(n, order, settings["divergence"], settings["chance"])
    plain = RareOutput(0.0, 0.0)
    draws = {
        each: [each(side, n, np.random.default_rng([seed, side])) for side in (1, 0)]
        for each in (plain, rare)
    }
    same = all(np.array_equal(a, b) for a, b in zip(draws[plain], draws[rare], strict=True))
    found = {
        each: em.renyi.lower_bound(left, right, order, 50 / n).estimate
        for each, (left, right) in draws.items()
    }
    wrong = any(
        abs(value - each.divergence(order)) > settings["precision"] for each, value in found.items()
    )
    return {
        SAME: float(same),
        WRONG: float(wrong),
        TRUTH: rare.divergence(order),
        "estimate with the rare output": found[rare],
        "estimate without it": found[plain],
    }


EXPERIMENT = Experiment(
    name="ldp/renyi-impossibility",
    summary="two mechanisms with the same samples in 99 % of the runs, and Rényi divergences 0 and 10",
    runs=100,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per input", (1e3, 1e4, 1e5, 1e6), numbers),
        Option("order", "of the divergence", 2.0, float),
        Option("divergence", "of the mechanism with the rare output", 10.0, float),
        Option("chance", "that a run shows the rare output", 0.01, float),
        Option("precision", "γ that no estimator can promise", 1.0, float),
    ),
    quick=Quick(20, {"samples": "1e3,1e5"}),
)
