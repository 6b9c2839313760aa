"""self/coverage: how often is a lower bound above the truth? At most as often as its confidence allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer.errors import InputError
from epsilometer_experiments.experiment import (
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Rate,
    Results,
    Settings,
)
from epsilometer_experiments.options import Option, whole
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

ABOVE = "share above the truth"
LEVEL = 0.05
ENTRIES = (
    "laplace?epsilon=.7",
    "report_noisy_max?epsilon=1.5",
    "noisy_max_value?epsilon=1.5",
    "exponential?epsilon=1.5",
    "svt1?epsilon=.7",
    "svt4?epsilon=.7",
    "randomized_response?epsilon=1",
    "clamped_laplace?epsilon=1",
)


def make_cases(settings: Settings) -> list[Case]:
    """One case per zoo entry, with its exact truth."""
    return [_case(spec, settings) for spec in settings["entry"] or ENTRIES]


def _case(spec: str, settings: Settings) -> Case:
    truth = truth_of(entry_of(spec), settings["claim"])
    if truth is None:
        raise InputError(
            f"entry={spec!r}: the truth of this notion is not known, so coverage cannot be counted"
        )
    return Case(
        spec,
        {"truth": truth, "samples": settings["samples"]},
        {ABOVE: Rate(LEVEL, "≤", source=PROMISED)},
    )


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether one bound is above the truth, and the bound."""
    bound = measure_entry(case.name, case.parameters["samples"], seed, settings)
    return {ABOVE: float(bound > case.parameters["truth"]), "bound": bound}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The share of bounds above the truth with the range that chance gives to a true 5 %."""
    from matplotlib.figure import Figure

    rows = results.of(ABOVE)
    figure = Figure(figsize=(7, 0.4 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    axes.axvspan(0, _likely(len(rows[0].values)), color="0.93", label="99 % range of a true 5 %")
    axes.axvline(LEVEL, color="0.4", linestyle="--", label="promised at most")
    axes.plot([row.measured for row in rows], places, "o", color="C0", label="measured")
    axes.set_yticks(list(places), [row.case for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"{ABOVE}, {len(rows[0].values)} runs each")
    legend_below(figure)
    yield "coverage", figure


def _likely(runs: int) -> float:
    """The share that a true probability of 5 % exceeds in at most 1 of 100 experiments."""
    from scipy.special import bdtr

    hits = next(k for k in range(runs + 1) if bdtr(k, runs, LEVEL) >= 0.99)
    return hits / runs


EXPERIMENT = Experiment(
    name="self/coverage",
    summary="how often a certified 95 % bound is above the truth: at most 5 %, on private and broken mechanisms",
    runs=400,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per side", 10_000, whole), ENTRY, METHOD, CLAIM),
    draw=draw,
)
