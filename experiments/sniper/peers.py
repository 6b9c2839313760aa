"""sniper/peers: three earlier tools and ours on the same mechanisms and pairs, half a million draws per input."""

from __future__ import annotations

import math
from typing import Any

import epsilometer as em
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Quick, Settings
from epsilometer_experiments.options import Option, whole, words
from epsilometer_experiments.self.measuring import entry_of

DRAWS, CONFIDENCE = 500_000, 0.9
TRUTH, SNIPER, STATDP, SIEGE, OURS = "truth", "DP-Sniper", "StatDP", "Delta-Siege", "ours"
_NONE = math.nan

_X_SHAPE = ([1.0] * 5 + [0.0] * 5, [0.0] * 5 + [1.0] * 5)
_HALVES = ([1.0] * 10, [2.0] * 5 + [0.0] * 5)
# By mechanism, its pair (None for the zoo's own) and ε: the truth on that pair, and each tool's bound in one run of its
# published code; for DP-Sniper the better of its two classifiers. StatDP and Delta-Siege could not do some of them. The
# pair of SVT5 was not noted; on this one we prove less than on others.
_FIGURES: dict[str, tuple[Any, dict[str, tuple[float, float, float, float]]]] = {
    "laplace": (
        None,
        {
            "0.2": (0.2, 0.171, 0.19, 0.194),
            "0.7": (0.7, 0.686, 0.68, 0.692),
            "1.5": (1.5, 1.459, _NONE, 1.487),
        },
    ),
    "report_noisy_max": (
        None,
        {
            "0.2": (0.196, 0.131, 0.17, 0.175),
            "0.7": (0.693, 0.633, 0.68, 0.673),
            "1.5": (1.492, 1.448, 1.43, 1.461),
        },
    ),
    "noisy_max_value": (None, {"0.6": (0.6, 0.546, 0.53, 0.551), "1.5": (1.5, 1.421, 1.47, 1.452)}),
    "svt1": (
        _HALVES,
        {
            "0.2": (0.177, 0.058, _NONE, 0.131),
            "0.7": (0.632, 0.589, 0.54, 0.560),
            "1.5": (1.383, 1.274, 1.24, 1.303),
        },
    ),
    "svt3": (
        _X_SHAPE,
        {
            "0.2": (0.592, 0.120, _NONE, _NONE),
            "0.7": (1.898, 1.119, 1.26, _NONE),
            "1.5": (3.75, 2.036, 2.01, _NONE),
        },
    ),
    "svt4": (
        _X_SHAPE,
        {
            "0.2": (0.343, 0.280, 0.22, 0.284),
            "0.7": (1.179, 1.142, 1.12, 1.117),
            "1.5": (2.416, 2.185, 2.37, 2.364),
        },
    ),
    "svt5": (
        _X_SHAPE,
        {
            "0.2": (math.inf, 1.71, _NONE, 8.27),
            "0.7": (math.inf, 2.73, 7.86, 9.41),
            "1.5": (math.inf, 3.28, _NONE, 10.0),
        },
    ),
    "svt6": (
        _X_SHAPE,
        {
            "0.2": (0.828, 0.485, 0.42, 0.474),
            "0.7": (2.857, 1.695, 2.03, 2.074),
            "1.5": (5.905, 2.875, 4.24, 4.394),
        },
    ),
}


def make_cases(settings: Settings) -> list[Case]:
    """Every mechanism at every ε, or the chosen mechanisms."""
    return [
        Case(f"{name}?epsilon={epsilon}", {"pair": pair, "figures": figures})
        for name, (pair, by_epsilon) in _FIGURES.items()
        for epsilon, figures in by_epsilon.items()
        if not settings["only"] or name in settings["only"]
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Our bound beside theirs."""
    entry, draws = entry_of(case.name), settings["draws"]
    found = em.measure(
        entry, case.parameters["pair"], em.PureDP, samples=draws, seed=seed, confidence=CONFIDENCE
    )
    theirs = zip((TRUTH, SNIPER, STATDP, SIEGE), case.parameters["figures"], strict=True)
    return {
        **{name: bound for name, bound in theirs if not math.isnan(bound)},
        OURS: found.lower_bound,
    }


EXPERIMENT = Experiment(
    name="sniper/peers",
    summary="DP-Sniper, StatDP, Delta-Siege and ours on the same pairs, half a million draws each",
    runs=5,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("only", "mechanisms such as svt1,svt6; by default all", (), words),
        Option("draws", "draws per side", DRAWS, whole),
    ),
    wide=True,
    quick=Quick(1, {"draws": "1e4"}),
)
