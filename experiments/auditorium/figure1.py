"""auditorium/figure1: CPU time of one trial against the number of draws, on NonDPLaplace1."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

import epsilometer as em
from epsilometer_experiments.auditorium.settings import AUTO, PAPER_CONFIDENCE, SIZES, TESTERS
from epsilometer_experiments.experiment import (
    RELEASED_PROGRAM,
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

# The released program's wall seconds for both directions, as we measured them on a quiet machine of two cores.
MEASURED = {
    "poisson-histogram": {50_000: 0.008, 500_000: 0.04},
    "hockey-stick": {50_000: 9.5, 500_000: 37.0},
    "renyi-variational": {50_000: 9.7, 500_000: 60.0},
    "mmd": {50_000: 1.6, 500_000: 16.0},
}
# What ours may take of that; the histogram is as cheap as drawing, and no bar is set for it.
_SHARE = 1 / 5
_CLAIM = 0.01
DRAWING = "CPU seconds of drawing"


def seconds_of(method: str) -> str:
    """The quantity of one curve."""
    return f"CPU seconds of {method}"


def make_cases(settings: Settings) -> list[Case]:
    """One case per number of draws."""
    return [
        Case(f"n={samples}", {"samples": samples}, _expected(samples))
        for samples in settings["samples"]
    ]


def _expected(samples: int) -> dict[str, Target]:
    bars = {
        method: times[samples] * _SHARE for method, times in MEASURED.items() if samples in times
    }
    bars.pop("poisson-histogram", None)
    return {
        seconds_of(method): Target(bar, "≤", source=RELEASED_PROGRAM)
        for method, bar in bars.items()
    }


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The CPU time of drawing both sides, and of an audit with each method, which draws too."""
    entry, samples = em.zoo.nondp_laplace1(_CLAIM), case.parameters["samples"]
    began = time.process_time()
    for side in (0, 1):
        entry.mechanism.sample(
            entry.worst_pair.side(side), samples, np.random.default_rng([seed, side])
        )
    numbers = {DRAWING: time.process_time() - began}
    for method in settings["method"]:
        load(method)
        began = time.process_time()
        em.audit(
            entry,
            None,
            entry.claim,
            samples=samples,
            seed=seed,
            method=method,
            confidence=PAPER_CONFIDENCE,
        )
        numbers[seconds_of(method)] = time.process_time() - began
    return numbers


@cache
def load(method: str) -> None:
    """Imports what a method needs, once and outside the measured time."""
    entry = em.zoo.nondp_laplace1(_CLAIM)
    em.audit(entry, None, entry.claim, samples=2_000, seed=0, method=method)


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """A curve per method, with the released program's times."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    sizes = [case.parameters["samples"] for case in results.cases]
    quantities = dict.fromkeys(row.quantity for row in results.rows)
    for number, quantity in enumerate(quantities):
        means = [results.row(case.name, quantity).measured for case in results.cases]
        axes.plot(
            sizes, means, "o-", color=f"C{number}", label=quantity.removeprefix("CPU seconds of ")
        )
        released = MEASURED.get(quantity.removeprefix("CPU seconds of "), {})
        axes.plot(list(released), list(released.values()), "x", color=f"C{number}")
    axes.plot([], [], "x", color="0.4", label="the released program, wall")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("draws per side")
    axes.set_ylabel("seconds")
    legend_below(figure)
    yield "figure1", figure


EXPERIMENT = Experiment(
    name="auditorium/figure1",
    summary="CPU time of one trial against n, next to the released DP-Auditorium",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side, separated by commas", SIZES, wholes),
        Option("method", f"some of: {', '.join((AUTO, *TESTERS))}", (AUTO, *TESTERS), words),
    ),
    draw=draw,
    parallel=False,
    quick=Quick(1, {"samples": "5e4"}),
)
