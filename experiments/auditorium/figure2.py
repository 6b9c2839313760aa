"""auditorium/figure2: ScaledGD, whose noise is s times what its accountant believes.

The paper shows the estimates of its own tester; that column stands beside our certificates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import epsilometer as em
from epsilometer_experiments.auditorium.settings import (
    AUTO,
    LEVEL,
    ORDER,
    PAPER_LEVEL,
    floats,
    is_published,
    published_tester,
)
from epsilometer_experiments.experiment import (
    EXACT,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole, words
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = tuple(step / 10 for step in range(3, 11))
# "The tester catches the bug for s ≤ 0.6."
PAPER_CATCHES = 0.6
PUBLISHED = "renyi-variational/published"


def bound_of(method: str) -> str:
    """A quantity: the certified divergence, or the estimate of the published tester."""
    return f"{'estimate' if is_published(method) else 'bound'} by {method}"


def caught_by(method: str) -> str:
    """A quantity: whether the claim is refuted."""
    return f"caught by {method}"


def make_cases(settings: Settings) -> list[Case]:
    """One case per factor s; the truth stands beside every bound."""
    return [_case(scale, settings["method"]) for scale in settings["scale"]]


def _case(scale: float, methods: tuple[str, ...]) -> Case:
    entry = em.zoo.scaled_gd(scale=scale, order=ORDER)
    truth = entry.truth()
    assert truth is not None  # a Gaussian's divergences are closed forms
    expected: dict[str, Target] = {
        bound_of(method): Target(truth, source=EXACT) for method in methods
    }
    if scale <= PAPER_CATCHES:
        expected |= {
            caught_by(method): Target(1.0, "≥", source="paper: Figure 2") for method in methods
        }
    if entry.keeps_claim:
        expected |= {
            caught_by(method): Rate(
                PAPER_LEVEL if is_published(method) else LEVEL, "≤", source=PROMISED
            )
            for method in methods
        }
    return Case(
        f"s={scale:g}", {"scale": scale, "truth": truth, "claim": entry.claim.value}, expected
    )


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One certified bound or estimate of each method, and whether it exceeds the claim."""
    entry = em.zoo.scaled_gd(scale=case.parameters["scale"], order=ORDER)
    numbers = {}
    for method in settings["method"]:
        if is_published(method):
            published = published_tester(method, entry.claim)
            found = em.auditorium.audit(
                entry.mechanism,
                entry.worst_pair,
                published.estimator,
                trials=1,
                samples=settings["samples"],
                threshold=published.threshold,
                failure=PAPER_LEVEL,
                seed=seed,
            )
            numbers[bound_of(method)] = found.trials[0].estimate
            numbers[caught_by(method)] = float(found.is_refuted)
            continue
        result = em.audit(
            entry, None, entry.claim, samples=settings["samples"], seed=seed, method=method
        )
        numbers[bound_of(method)] = result.lower_bound
        numbers[caught_by(method)] = float(result.is_refuted)
    return numbers


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """True and certified divergence against s."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    scales = [case.parameters["scale"] for case in results.cases]
    axes.plot(
        scales, [case.parameters["truth"] for case in results.cases], color="0.2", label="truth"
    )
    axes.axhline(results.cases[0].parameters["claim"], color="C3", linestyle="--", label="claim")
    quantities = dict.fromkeys(
        row.quantity for row in results.rows if row.quantity.startswith(("bound", "estimate"))
    )
    for number, quantity in enumerate(quantities):
        means = [results.row(case.name, quantity).measured for case in results.cases]
        axes.plot(scales, means, "o", color=f"C{number}", label=quantity)
    axes.set_yscale("log")
    axes.set_xlabel("noise as a share of what is accounted for")
    axes.set_ylabel(f"Rényi divergence of order {ORDER:g}")
    legend_below(figure)
    yield "figure2", figure


EXPERIMENT = Experiment(
    name="auditorium/figure2",
    summary="ScaledGD: true, certified and estimated Rényi divergence against the factor on the noise",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side", 50_000, whole),
        Option("scale", "factors on the noise, separated by commas", SCALES, floats),
        Option("method", "methods for Rényi claims", (AUTO, "renyi-variational", PUBLISHED), words),
    ),
    draw=draw,
    quick=Quick(1),
)
