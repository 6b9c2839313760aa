"""sniper/table: what DP-Sniper published, what we certify on its mechanisms, and what the best event would give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import epsilometer as em
from epsilometer.zoo.sniper import SNIPER_NAMES
from epsilometer_experiments.experiment import (
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole, words
from epsilometer_experiments.sniper.oracle import oracle_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Its certified lower bounds: the better one of its two classifiers, on pairs that it searched for.
PUBLISHED = {
    "LaplaceMechanism": 0.0976,
    "TruncatedGeometricMechanism": 0.1156,
    "NoisyHist1": 0.0978,
    "NoisyHist2": 4.602,
    "ReportNoisyMax1": 0.0925,
    "ReportNoisyMax2": 0.0979,
    "ReportNoisyMax3": 0.2488,
    "ReportNoisyMax4": 0.3534,
    "SparseVectorTechnique1": 0.0858,
    "SparseVectorTechnique2": 0.0859,
    "SparseVectorTechnique3": 0.1822,
    "SparseVectorTechnique4": 0.1696,
    "SparseVectorTechnique5": 1.761,
    "SparseVectorTechnique6": 0.2720,
    "Rappor": 0.3008,
    "OneTimeRappor": 0.5999,
    "LaplaceParallel": 0.0350,
    "SVT34Parallel": 0.2616,
    "PrefixSum": 0.5774,
    "NumericalSVT": 0.0345,
}
# Draws per side of each of its stages, and the confidence of its bounds.
DRAWS, CONFIDENCE = 10_700_000, 0.9
_SOURCE = "paper: DP-Sniper's evaluation"
FAILURE_PROBABILITY = round(1.0 - CONFIDENCE, 12)
# With a tenth of its draws, and with as many.
ORACLE, THEIRS, TENTH, SAME = "oracle, a tenth", "published", "ours, a tenth", "ours, as many"
SAME_ORACLE = "oracle, as many"


def make_cases(settings: Settings) -> list[Case]:
    """Every mechanism, or the chosen ones."""
    chosen = settings["only"] or SNIPER_NAMES
    return [
        Case(
            em.zoo.sniper(mechanism=name).name,
            {},
            {SAME: Target(PUBLISHED[name], "≥", source=_SOURCE)},
        )
        for name in chosen
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Both bounds beside the figures that they are compared with; these are the same in every run."""
    entry, draws = em.zoo.find(case.name), settings["draws"]
    sizes = {ORACLE: draws // 10, SAME_ORACLE: draws} if settings["same"] else {ORACLE: draws // 10}
    oracles = {
        name: bound
        for name, n in sizes.items()
        if (bound := oracle_bound(entry.distributions, n, FAILURE_PROBABILITY)) is not None
    }
    ours = {
        name: em.measure(
            entry, None, em.PureDP, samples=n, seed=seed, confidence=CONFIDENCE
        ).lower_bound
        for name, n in zip((TENTH, SAME), sizes.values(), strict=False)
    }
    found = {**oracles, THEIRS: PUBLISHED[case.name], **ours}
    return {
        name: found[name] for name in (ORACLE, THEIRS, TENTH, SAME_ORACLE, SAME) if name in found
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """All figures as shares of the oracle at a tenth of the draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for quantity, mark in ((THEIRS, "x"), (TENTH, "o"), (SAME, "s")):
        rows = results.of(quantity)
        shares = [row.measured / results.row(row.case, ORACLE).measured for row in rows]
        axes.plot(shares, [row.case for row in rows], mark, label=quantity)
    axes.invert_yaxis()
    axes.axvline(1, color="0.4", linestyle="--")
    axes.set_xlabel("mean lower bound / oracle with a tenth of the draws")
    axes.legend()
    yield "table", figure


EXPERIMENT = Experiment(
    name="sniper/table",
    summary="DP-Sniper's twenty mechanisms: the oracle, what it published, and our bounds",
    runs=3,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("only", "mechanisms such as PrefixSum,Rappor; by default all", (), words),
        Option("draws", "draws per side that count as many", DRAWS, whole),
        Option(
            "same",
            "0 leaves out the audits with as many draws, which take most of the time",
            1,
            int,
        ),
    ),
    draw=draw,
    wide=True,
    quick=Quick(1, {"draws": "1e5", "same": "0"}),
)
