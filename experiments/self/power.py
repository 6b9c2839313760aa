"""self/power: how near the truth is the certified bound? Means over seeds on each mechanism's known worst pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import (
    BAR,
    EARLIER,
    Case,
    Experiment,
    Numbers,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, wholes
from epsilometer_experiments.reporting import legend_below
from epsilometer_experiments.self.measuring import (
    CLAIM,
    ENTRY,
    METHOD,
    entry_of,
    measure_entry,
    truth_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND = "mean certified bound"
DEFAULT_SAMPLES = 100_000
# What must be reached: (entry, samples per side in all, least mean).
REQUIRED = (
    ("laplace?epsilon=.7", 100_000, 0.67),
    ("laplace?epsilon=1.5", 100_000, 1.46),
    ("exponential?epsilon=1.5", 100_000, 1.46),
    ("report_noisy_max?epsilon=1.5", 100_000, 1.43),
    ("svt5?epsilon=.7", 100_000, 8.5),
    ("svt6?epsilon=.7", 100_000, 1.9),
    ("svt3?epsilon=1.5", 200_000, 3.2),
    ("clamped_laplace?epsilon=1", 100_000, 0.97),
    ("randomized_response?epsilon=1", 100_000, 0.97),
    ("laplace_vector?epsilon=1.5", 100_000, 1.28),
)
# Means of the prototype behind METHODS section 1, to come near or above.
PROTOTYPE = (
    ("laplace?epsilon=.7", {10_000: 0.652, 100_000: 0.679, 1_000_000: 0.694}),
    ("laplace?epsilon=1.5", {10_000: 1.416, 100_000: 1.481, 1_000_000: 1.491}),
    ("noisy_max_value?epsilon=.7", {10_000: 0.617, 100_000: 0.670, 1_000_000: 0.692}),
    ("exponential?epsilon=1.5", {10_000: 1.424, 100_000: 1.476, 1_000_000: 1.492}),
    ("svt1?epsilon=.7", {10_000: 0.179, 100_000: 0.533, 1_000_000: 0.645}),
    ("svt6?epsilon=.7", {10_000: 1.195, 100_000: 1.993, 1_000_000: 2.351}),
    ("svt5?epsilon=.7", {10_000: 6.62, 100_000: 8.90, 1_000_000: 11.22}),
    ("svt3?epsilon=1.5", {20_000: 2.28, 200_000: 3.62, 1_000_000: 4.45}),
    ("numerical_svt?epsilon=.7", {20_000: 0.23, 200_000: 0.33, 1_000_000: 0.63}),
)


def make_cases(settings: Settings) -> list[Case]:
    """What must be reached; or, with `samples`, the prototype's list at those sizes; or the given entries."""
    chosen: tuple[int, ...] = settings["samples"]
    if settings["entry"]:
        sizes = chosen or (DEFAULT_SAMPLES,)
        return [
            _case(spec, n, _known(spec, n), settings) for spec in settings["entry"] for n in sizes
        ]
    if not chosen:
        return [
            _case(spec, n, Target(least, "≥", source=BAR), settings) for spec, n, least in REQUIRED
        ]
    return [
        _case(spec, n, Target(means[n], source=EARLIER), settings)
        for spec, means in PROTOTYPE
        for n in chosen
        if n in means
    ]


def _known(spec: str, samples: int) -> Target | None:
    required = [
        Target(least, "≥", source=BAR)
        for entry, n, least in REQUIRED
        if (entry, n) == (spec, samples)
    ]
    prototype = [
        Target(means[samples], source=EARLIER)
        for entry, means in PROTOTYPE
        if entry == spec and samples in means
    ]
    return next(iter(required + prototype), None)


def _case(spec: str, samples: int, target: Target | None, settings: Settings) -> Case:
    parameters = {
        "entry": spec,
        "samples": samples,
        "truth": truth_of(entry_of(spec), settings["claim"]),
    }
    # A known figure is one of pure ε.
    expected = {BOUND: target} if target and not settings["claim"] else {}
    return Case(f"{spec} n={samples}", parameters, expected)


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One certified bound."""
    return {
        BOUND: measure_entry(case.parameters["entry"], case.parameters["samples"], seed, settings)
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Every bound as a share of the truth, or of the largest bound where the truth is infinite."""
    from matplotlib.figure import Figure

    rows = results.of(BOUND)
    figure = Figure(figsize=(7, 0.4 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, (case, row) in enumerate(zip(results.cases, rows, strict=True)):
        unit = _unit(case.parameters["truth"], row.values)
        axes.plot(
            [value / unit for value in row.values],
            [place] * len(row.values),
            "|",
            color="C0",
            markersize=10,
        )
        axes.plot(row.measured / unit, place, "o", color="C0", label="mean" if place == 0 else None)
        if row.target:
            label = "expected" if place == 0 else None
            axes.plot(
                row.target.value / unit, place, "d", color="C3", fillstyle="none", label=label
            )
    axes.axvline(1, color="0.4", linestyle="--", label="truth (largest bound where it is infinite)")
    axes.set_yticks(range(len(rows)), [case.name for case in results.cases])
    axes.invert_yaxis()
    axes.set_xlabel("certified lower bound / truth")
    legend_below(figure)
    yield "power", figure


def _unit(truth: float | None, values: tuple[float, ...]) -> float:
    if truth is not None and 0 < truth < math.inf:
        return truth
    return max(values) or 1.0


EXPERIMENT = Experiment(
    name="self/power",
    summary="how near the truth the certified bound is: means over seeds at 1e5 draws, with what must be reached",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side, separated by commas; 1e4,1e6", (), wholes),
        ENTRY,
        METHOD,
        CLAIM,
    ),
    draw=draw,
)
