"""ldp/samples: the samples that the guarantee takes, against precision, confidence, Lipschitz constant and interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import epsilometer as em
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
from epsilometer_experiments.options import Option
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = "samples as published"
UNION = "samples with union bounds"
# C·(b − a)² = .667: a truncated Laplace distribution of ε ≈ .52.
BASE: dict[str, float] = {"precision": 0.5, "confidence": 0.9, "lipschitz": 0.667, "length": 1.0}
SWEEPS: dict[str, tuple[float, ...]] = {
    "precision": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    "confidence": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
    "lipschitz": (0.1, 0.3, 0.667, 1.0, 1.5, 1.9),
    "length": (0.25, 0.5, 1.0, 1.3, 1.6, 1.7),
}
LABELS = {
    "precision": "precision γ",
    "confidence": "confidence",
    "lipschitz": "C",
    "length": "|Z| = b − a",
}
# METHODS section 4 of our notes.
KNOWN = {PUBLISHED: Target(99_654, "≈", 0, EXACT), UNION: Target(158_179, "≈", 0, EXACT)}


def make_cases(settings: Settings) -> list[Case]:
    """The base, and one parameter changed at a time."""
    order = settings["order"] or None
    cases = [Case("base", {**BASE, "order": order, "sweep": "base"}, {} if order else KNOWN)]
    for name, values in SWEEPS.items():
        for value in values:
            parameters: dict[str, Any] = {**BASE, name: value, "order": order, "sweep": name}
            cases.append(Case(f"{name}={value:g}", parameters))
    return cases


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The plan with and without the union bounds. Nothing is drawn."""
    given = case.parameters
    keywords = {name: given[name] for name in ("precision", "confidence", "lipschitz", "order")}
    plans = [
        em.ldp.plan(domain=(0.0, given["length"]), as_published=published, **keywords)
        for published in (True, False)
    ]
    return {
        PUBLISHED: plans[0].samples,
        UNION: plans[1].samples,
        "cells": plans[0].to_dict()["cells"],
    }


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """One panel per parameter."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    panels = figure.subplots(1, len(SWEEPS), sharey=True)
    for axes, name in zip(panels, SWEEPS, strict=True):
        cases = [case for case in results.cases if case.parameters["sweep"] == name]
        places = [case.parameters[name] for case in cases]
        for quantity, style in ((PUBLISHED, "o--"), (UNION, "o-")):
            axes.plot(
                places,
                [results.row(case.name, quantity).measured for case in cases],
                style,
                label=quantity,
            )
        axes.set_yscale("log")
        axes.set_xscale("log" if name in ("precision", "lipschitz") else "linear")
        axes.set_xlabel(LABELS[name])
    panels[0].set_ylabel("n per input")
    legend_below(figure)
    yield "samples", figure


EXPERIMENT = Experiment(
    name="ldp/samples",
    summary="samples that a two-sided guarantee takes, against precision, confidence, C and the length of the interval",
    runs=1,
    cases=make_cases,
    run_once=run_once,
    options=(Option("order", "a Rényi order; 0 for pure ε", 0.0, float),),
    draw=draw,
    quick=Quick(1),
)
