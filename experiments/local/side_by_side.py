"""local/side_by_side: the local approach and the certified event on the same draws (ours, not the paper's)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Quick, Results, Settings
from epsilometer_experiments.options import Option, whole
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("events", "local")
ENTRIES: dict[str, ZooEntry] = {
    "Laplace ε = .2": em.zoo.laplace(0.2),
    "Laplace ε = 1.5": em.zoo.laplace(1.5),
    "continuous noisy max ε = .7": em.zoo.noisy_max_value(0.7),
    "exponential ε = 1.5": em.zoo.exponential(1.5),
    "report noisy max ε = 1.5": em.zoo.report_noisy_max(1.5),
    "SVT2 ε = .7": em.zoo.svt2(0.7),
    "SVT6 ε = .7": em.zoo.svt6(0.7),
    "SVT5 ε = .7": em.zoo.svt5(0.7),
    "Laplace vector, 3 coordinates, ε = 1.5": em.zoo.laplace_vector(1.5, 3),
}


def make_cases(settings: Settings) -> list[Case]:
    """Every entry on its worst pair."""
    return [Case(name, {"truth": entry.truth(em.PureDP)}) for name, entry in ENTRIES.items()]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Both bounds from one pair of samples."""
    entry, samples = ENTRIES[case.name], settings["samples"]
    streams = np.random.SeedSequence(seed).spawn(2)
    left, right = (
        entry.mechanism.sample(entry.worst_pair.side(side), samples, np.random.default_rng(stream))
        for side, stream in enumerate(streams)
    )
    found = {
        method: em.compare(
            left, right, em.PureDP, method=method, seed=seed
        ).lower_bound  # both split them alike
        for method in METHODS
    }
    truth = case.parameters["truth"]
    above = {f"{method} above the truth": float(bound > truth) for method, bound in found.items()}
    return {**found, **above}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Mean bounds as shares of the truth, or of the larger bound where it is infinite."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for place, case in enumerate(results.cases):
        bounds = [results.row(case.name, method).measured for method in METHODS]
        unit = case.parameters["truth"] if np.isfinite(case.parameters["truth"]) else max(bounds)
        for colour, method, bound in zip(("C0", "C1"), METHODS, bounds, strict=True):
            axes.plot(bound / unit, place, "o", color=colour, label=method if place == 0 else None)
    axes.set_yticks(range(len(results.cases)), [case.name for case in results.cases])
    axes.invert_yaxis()
    axes.axvline(1, color="0.4", linestyle="--")
    axes.set_xlabel("mean lower bound / truth (/ larger bound where it is infinite)")
    legend_below(figure)
    yield "side_by_side", figure


EXPERIMENT = Experiment(
    name="local/side_by_side",
    summary="the methods events and local on the same draws",
    runs=20,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per side", 100_000, whole),),
    draw=draw,
    quick=Quick(1, {"samples": 20_000}),
)
