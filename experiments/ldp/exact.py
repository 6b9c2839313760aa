"""ldp/exact: how often the exact interval holds the truth, and how long it is beside the plan's.

Two laws of the zoo and two of our own: wedges, whose densities have the slope C everywhere, so that the Lipschitz term is
used up, and waves with C = 6, beyond what the paper's plan takes (C < 2), whose period fits no cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import quad

import epsilometer as em
from epsilometer.arrays import Floats
from epsilometer.mechanisms import as_mechanism
from epsilometer.methods.published.ldp.formulas import Cells, LipschitzDensities, Smoothness
from epsilometer.methods.published.ldp.intervals import cells_for, exact_interval
from epsilometer_experiments.experiment import (
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
)
from epsilometer_experiments.ldp.practice import numbers
from epsilometer_experiments.options import Option, wholes
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COVERED = "holds the truth"
HALF_WIDTH = "half of its length"
UNBOUNDED = "share without an upper end"
LOWER = "lower end"
UPPER = "upper end"
PLANNED = "draws planned for ± that half"
TRUTH = "truth"
WEDGE_SLOPE = 1.2
WAVE_SLOPE = 6.0
# Three waves on [0, 1]: the height of a quarter of a period at that slope.
_WAVES = 3
_HEIGHT = WAVE_SLOPE / (4 * _WAVES)


def wedge_density(z: Floats, sign: int) -> Floats:
    """A straight line through (½, 1)."""
    return 1.0 + sign * WEDGE_SLOPE * (z - 0.5)


def wave_density(z: Floats, sign: int) -> Floats:
    """Three triangular waves around 1."""
    phase = np.mod(_WAVES * z, 1.0)
    return 1.0 + sign * _HEIGHT * (1.0 - 4.0 * np.abs(phase - 0.5))


def draw_wedge(sign: int, n: int, rng: np.random.Generator) -> Floats:
    """n draws of a wedge."""
    return _by_rejection(wedge_density, sign, 1.0 + WEDGE_SLOPE / 2.0, n, rng)


def draw_waves(sign: int, n: int, rng: np.random.Generator) -> Floats:
    """n draws of waves."""
    return _by_rejection(wave_density, sign, 1.0 + _HEIGHT, n, rng)


def _by_rejection(
    density: Callable[[Floats, int], Floats],
    sign: int,
    peak: float,
    n: int,
    rng: np.random.Generator,
) -> Floats:
    """n draws of a density on [0, 1] that is at most `peak`."""
    kept = np.empty(0)
    while len(kept) < n:
        places = rng.random(2 * n)
        is_kept = peak * rng.random(2 * n) < density(places, sign)
        kept = np.concatenate([kept, places[is_kept]])
    return kept[:n]


@dataclass(frozen=True)
class Law:
    """A pair of distributions on [0, 1] with a known Lipschitz constant.

    Attributes:
        mechanism: draws.
        pair: its inputs.
        lipschitz: C.
        level: ε* of left from right.
        divergence: its Rényi divergence at an order.
    """

    mechanism: Any
    pair: em.Pair
    lipschitz: float
    level: float
    divergence: Callable[[float], float]


@cache
def truth_of(name: str, order: float | None) -> float:
    """What the interval should hold."""
    found = law(name)
    return found.level if order is None else found.divergence(order)


def _of_zoo(entry: Any) -> Law:
    return Law(
        entry,
        entry.worst_pair,
        entry.lipschitz,
        entry.truth(),
        lambda order: entry.truth(em.RenyiDP, order=order),
    )


def _of_density(
    draw: Callable[..., Floats],
    density: Callable[[Floats, int], Floats],
    slope: float,
    height: float,
) -> Law:
    def divergence(order: float) -> float:
        def integrand(z: float) -> float:
            p = density(np.array([z]), 1).item()
            q = density(np.array([z]), -1).item()
            return float(p**order * q ** (1 - order))

        corners = [k / (4 * _WAVES) for k in range(1, 4 * _WAVES)]
        integral, _ = quad(integrand, 0.0, 1.0, points=corners)
        return math.log(integral) / (order - 1)

    level = math.log((1.0 + height) / (1.0 - height))
    return Law(em.from_batch(draw), em.Pair(1, -1), slope, level, divergence)


@cache
def law(name: str) -> Law:
    """One of the laws by its name."""
    if name == "truncated laplace .52":
        return _of_zoo(em.zoo.truncated_laplace(0.52))
    if name == "truncated laplace 1":
        return _of_zoo(em.zoo.truncated_laplace(1.0))
    if name == "truncated gaussian 1":
        return _of_zoo(em.zoo.truncated_gaussian(1.0))
    if name == "wedges":
        return _of_density(draw_wedge, wedge_density, WEDGE_SLOPE, WEDGE_SLOPE / 2.0)
    return _of_density(draw_waves, wave_density, WAVE_SLOPE, _HEIGHT)


LAWS = ("truncated laplace .52", "truncated laplace 1", "truncated gaussian 1", "wedges", "waves")


def make_cases(settings: Settings) -> list[Case]:
    """Every law at every n; pure and, with an order, Rényi."""
    orders: list[float | None] = [None, *settings["orders"]]
    return [
        Case(
            f"{name}, {'ε' if order is None else f'order {order:g}'}, n={n}",
            {"law": name, "order": order, "n": n, "confidence": settings["confidence"]},
            {COVERED: Rate(settings["confidence"], "≥", source=PROMISED)},
        )
        for name in LAWS
        for order in orders
        for n in settings["sizes"]
    ]


@cache
def n_cells(name: str, n: int, confidence: float) -> int:
    """The number of cells that `em.ldp.estimate` takes."""
    return cells_for(LipschitzDensities((0.0, 1.0), law(name).lipschitz), n, confidence)


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One interval, as `em.ldp.estimate` makes it, from one batch of draws per input."""
    given = case.parameters
    chosen = law(given["law"])
    assumption = LipschitzDensities((0.0, 1.0), chosen.lipschitz)
    cells = Cells((0.0, 1.0), n_cells(given["law"], given["n"], given["confidence"]))
    source = as_mechanism(chosen.mechanism)
    left, right = (
        cells.count(
            source.sample(chosen.pair.side(side), given["n"], np.random.default_rng([seed, side]))
        )
        for side in (0, 1)
    )
    found = exact_interval(left, right, assumption, given["confidence"], given["order"])
    truth = truth_of(given["law"], given["order"])
    measured = {
        COVERED: float(found.low <= truth <= found.high),
        TRUTH: truth,
        LOWER: found.low,
        "cells": float(cells.number),
        UNBOUNDED: float(math.isinf(found.high)),
    }
    if math.isfinite(found.high):
        half = (found.high - found.low) / 2.0
        measured |= {UPPER: found.high, HALF_WIDTH: half}
        if chosen.lipschitz < 2.0:
            smoothness = Smoothness((0.0, 1.0), chosen.lipschitz)
            plan = em.ldp.plan_pair(smoothness, half, given["confidence"], given["order"])
            measured[PLANNED] = float(plan.samples)
    return measured


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Half the length against n, for ε."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4), layout="constrained")
    axes = figure.subplots()
    for name in LAWS:
        measured = {row.case: row.measured for row in results.of(HALF_WIDTH)}
        cases = [
            case
            for case in results.cases
            if case.parameters["law"] == name
            and case.parameters["order"] is None
            and case.name in measured
        ]
        sizes = [case.parameters["n"] for case in cases]
        axes.plot(sizes, [measured[case.name] for case in cases], "o-", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("draws per input n")
    axes.set_ylabel("half of the interval's length")
    legend_below(figure)
    yield "exact", figure


EXPERIMENT = Experiment(
    name="ldp/exact",
    summary="coverage and length of the exact two-sided interval for Lipschitz densities, at any n",
    runs=1000,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("sizes", "draws per input, separated by commas", (300, 1000, 10_000), wholes),
        Option("orders", "Rényi orders beside ε, separated by commas", (2.0,), numbers),
        Option("confidence", "of the interval", 0.9, float),
    ),
    draw=draw,
    wide=True,
    quick=Quick(20),
)
