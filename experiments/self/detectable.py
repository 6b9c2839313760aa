"""self/detectable: a result that does not refute says what it would have refuted with 90 % power. Would it?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer_experiments.experiment import BAR, Case, Experiment, Numbers, Quick, Rate, Settings
from epsilometer_experiments.options import Option, whole

REFUTED = "share refuted at the stated value"
STATED, VALUE = "a value is stated", "stated value"


@dataclass(frozen=True)
class Family:
    """Mechanisms of one kind, whose true value in the claim's parameter is `value`."""

    kind: str
    value: float

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """n outputs."""
        return np.asarray(_DRAW[self.kind](self.value, x, n, rng))


def _response(epsilon: float, x: int, n: int, rng: np.random.Generator) -> np.ndarray:
    truthful = rng.random(n) < 1.0 / (1.0 + math.exp(-epsilon))
    return np.where(truthful, "ab"[x], "ba"[x])


def _geometric(epsilon: float, x: int, n: int, rng: np.random.Generator) -> np.ndarray:
    stop = -math.expm1(-epsilon)
    return np.asarray(x + rng.geometric(stop, n) - rng.geometric(stop, n))


def _normal(mu: float, x: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.normal(mu * x, size=n))


_DELTA = 1e-3


def _mu_of(epsilon: float) -> float:
    """The mean shift of unit Gaussian noise that has exactly this ε at δ."""

    def excess(mu: float) -> float:
        return float(
            norm.cdf(mu / 2 - epsilon / mu)
            - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
            - _DELTA
        )

    return float(brentq(excess, 1e-3, 40.0))


_DRAW: dict[str, Callable[[float, int, int, np.random.Generator], np.ndarray]] = {
    "Laplace": lambda value, x, n, rng: rng.laplace(x, 1.0 / value, n),
    "randomized response": _response,
    "geometric": _geometric,
    "vectors": lambda value, x, n, rng: rng.laplace([0, 0, x, 0], 1.0 / value, (n, 4)),
    "Gaussian, (ε, δ)": lambda value, x, n, rng: _normal(_mu_of(value), x, n, rng),
    "Gaussian DP": _normal,
    "Rényi of order 2": lambda value, x, n, rng: _normal(math.sqrt(value), x, n, rng),
}
_CLAIMS: dict[str, Claim] = {
    "Gaussian, (ε, δ)": em.ApproxDP(1.0, _DELTA),
    "Gaussian DP": em.GaussianDP(1.0),
    "Rényi of order 2": em.RenyiDP(2.0, 1.0),
}
SIZES = {
    "Laplace": (200, 20_000),
    "randomized response": (100, 5000),
    "geometric": (500, 5000),
    "vectors": (1000, 20_000),
    "Gaussian, (ε, δ)": (2000, 20_000),
    "Gaussian DP": (500, 5000),
    "Rényi of order 2": (500, 5000),
}


def make_cases(settings: Settings) -> list[Case]:
    """Every kind at two sizes."""
    return [
        Case(f"{kind}, n={n}", {"kind": kind, "n": n}, {REFUTED: Rate(0.85, "≥", source=BAR)})
        for kind, sizes in SIZES.items()
        for n in sizes[: settings["sizes"]]
    ]


def _audit(kind: str, value: float, n: int, seed: int) -> em.AuditResult:
    claim = _CLAIMS.get(kind, em.PureDP(1.0))
    return em.audit(em.from_batch(Family(kind, value)), em.Pair(0, 1), claim, samples=n, seed=seed)


@cache
def stated(kind: str, n: int, looks: int) -> float:
    """The median of what some audits of a true claim state; NaN where most of them say nothing."""
    results = [_audit(kind, 1.0, n, 10_000 + seed) for seed in range(looks)]
    open_ones = [each for each in results if each.verdict is em.Verdict.NOT_REFUTED]
    values = [
        each.detectable
        for each in open_ones
        if each.detectable is not None and math.isfinite(each.detectable)
    ]
    return float(np.median(values)) if 2 * len(values) > len(open_ones) else math.nan


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether one audit at the stated value refutes; without a statement there is nothing to try."""
    kind, n = case.parameters["kind"], case.parameters["n"]
    value = stated(kind, n, settings["looks"])
    if math.isnan(value):
        return {STATED: 0.0}
    return {REFUTED: float(_audit(kind, value, n, seed).is_refuted), STATED: 1.0, VALUE: value}


EXPERIMENT = Experiment(
    name="self/detectable",
    summary="audits at the value that a result says it would have refuted with 90 % power: at least 85 % refute",
    runs=200,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option(
            "looks", "audits of a true claim per case, whose median statement is tried", 5, whole
        ),
        Option("sizes", "how many of the two sizes per kind", 2, whole),
    ),
    quick=Quick(runs=2, options={"looks": 1, "sizes": 1}),
)
