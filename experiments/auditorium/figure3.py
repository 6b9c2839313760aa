"""auditorium/figure3: what more draws bring: a larger certified divergence, and fewer trials to a violation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import epsilometer as em
from epsilometer_experiments.auditorium.settings import (
    AUTO,
    MECHANISMS,
    PAPER_CONFIDENCE,
    PAPER_LEVEL,
    SIZES,
)
from epsilometer_experiments.auditorium.table2 import TRIALS, search
from epsilometer_experiments.experiment import (
    EXACT,
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, wholes, words
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1.0
DIVERGENCE = "certified hockey-stick divergence"
TRIALS_TAKEN = "trials of the Bayesian finder"
# The same by the paper's own tester: its estimate, and Algorithm 1 as printed.
PUBLISHED = "hockey-stick/published"
ESTIMATE = "estimate by hockey-stick/published"
PUBLISHED_TRIALS = "trials of the Bayesian finder with hockey-stick/published"
QUANTITIES = (DIVERGENCE, ESTIMATE, TRIALS_TAKEN, PUBLISHED_TRIALS)
# A tenth of the paper's smallest as well, where trials are still needed.
_DEFAULT_SIZES = (5_000, *SIZES)


def make_cases(settings: Settings) -> list[Case]:
    """The given mechanisms at every size; the true divergence on the known pair stands beside the bound."""
    return [
        Case(
            f"{title} n={samples}",
            {"mechanism": MECHANISMS[title], "samples": samples},
            {quantity: Target(_truth(title), source=EXACT) for quantity in (DIVERGENCE, ESTIMATE)},
        )
        for title in settings["mechanism"]
        for samples in settings["samples"]
    ]


def _truth(title: str) -> float:
    truth = MECHANISMS[title].entry(EPSILON).truth(em.ApproxDP, epsilon=EPSILON)
    assert truth is not None  # known for all of them
    return truth


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The certified divergence at the claimed ε on the known pair, and the trials of one search."""
    mechanism, samples = case.parameters["mechanism"], case.parameters["samples"]
    entry = mechanism.entry(EPSILON)
    bound = em.measure(
        entry,
        None,
        em.ApproxDP,
        epsilon=EPSILON,
        samples=samples,
        seed=seed,
        confidence=PAPER_CONFIDENCE,
    )
    searching = {**settings, "samples": samples, "epsilon": EPSILON}
    trials = search(mechanism, "Bayesian", AUTO, PAPER_CONFIDENCE, seed, searching)
    published = em.auditorium.audit(
        entry.mechanism,
        entry.worst_pair,
        em.auditorium.estimators.HockeyStick(EPSILON),
        trials=1,
        samples=samples,
        threshold=0.0,
        failure=PAPER_LEVEL,
        seed=seed,
    )
    published_trials = search(mechanism, "Bayesian", PUBLISHED, PAPER_CONFIDENCE, seed, searching)
    return {
        DIVERGENCE: bound.lower_bound,
        ESTIMATE: published.trials[0].estimate,
        TRIALS_TAKEN: float(trials),
        PUBLISHED_TRIALS: float(published_trials),
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Each against the number of draws, ours on the left and the paper's tester on the right of each pair."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, quantity in zip(figure.subplots(2, 2).ravel(), QUANTITIES, strict=True):
        titles = dict.fromkeys(case.parameters["mechanism"].title for case in results.cases)
        for number, title in enumerate(titles):
            cases = [case for case in results.cases if case.parameters["mechanism"].title == title]
            rows = [results.row(case.name, quantity) for case in cases]
            sizes = [case.parameters["samples"] for case in cases]
            errors = [row.standard_error or 0.0 for row in rows]
            axes.errorbar(
                sizes,
                [row.measured for row in rows],
                errors,
                fmt="o-",
                color=f"C{number}",
                label=title,
            )
            if quantity in (DIVERGENCE, ESTIMATE) and rows[0].target:
                axes.axhline(rows[0].target.value, color=f"C{number}", linestyle=":")
        axes.set_xscale("log")
        axes.set_xlabel("draws per side")
        axes.set_ylabel(quantity)
    legend_below(figure)
    yield "figure3", figure


EXPERIMENT = Experiment(
    name="auditorium/figure3",
    summary="certified divergence and trials to a violation against the number of draws",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side, separated by commas", _DEFAULT_SIZES, wholes),
        Option("mechanism", f"some of: {', '.join(MECHANISMS)}", ("SVT4", "NonDPGaussian2"), words),
        TRIALS,
    ),
    draw=draw,
    quick=Quick(1),
)
