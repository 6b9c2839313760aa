"""What practice needs: the share of estimates within the precision, at the planned n and at smaller parts of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.methods.published.ldp.formulas import Cells, divergence
from epsilometer.outputs import Outputs
from epsilometer_experiments.experiment import PROMISED, Case, Numbers, Rate, Results, Settings
from epsilometer_experiments.options import Option, words
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = "share within γ"
ABOVE = "share above the truth"
FAILED = "share with an empty cell"
ESTIMATE = "estimate"
ERROR = "absolute error"
TRUTH = "truth"


def numbers(value: Any) -> tuple[float, ...]:
    """Numbers separated by commas."""
    return tuple(
        float(part) for part in (words(value) if isinstance(value, str | list | tuple) else [value])
    )


def options(
    precision: float, epsilons: Sequence[float], parts: Sequence[float]
) -> tuple[Option, ...]:
    """What both studies can be asked."""
    return (
        Option(
            "epsilon",
            "levels of the truncated Laplace distribution on [0, 1], at most 1.17",
            tuple(epsilons),
            numbers,
        ),
        Option("precision", "γ", precision, float),
        Option("confidence", "of the guarantee", 0.9, float),
        Option("parts", "n is the planned one divided by these", tuple(parts), numbers),
        Option(
            "published", "1: parts of the paper's n instead of the one with union bounds", 0, int
        ),
        Option("most", "cases with more samples per input than this are left out", 2e7, float),
    )


def _source(part: float) -> str:
    return PROMISED if part <= 1 else "paper: Section 2, practice needs less than the theory"


def make_cases(settings: Settings, order: float | None, sure_part: float) -> list[Case]:
    """One case per level and part of the planned n; up to `sure_part` the share must still be the confidence."""
    cases = []
    for epsilon in settings["epsilon"]:
        entry = em.zoo.truncated_laplace(epsilon)
        given = {
            "precision": settings["precision"],
            "confidence": settings["confidence"],
            "order": order,
        }
        planned = em.ldp.plan(
            domain=(0.0, 1.0),
            lipschitz=entry.lipschitz,
            as_published=bool(settings["published"]),
            **given,
        ).samples
        truth = entry.truth(em.RenyiDP, order=order) if order else epsilon
        for part in settings["parts"]:
            n = max(1, round(planned / part))
            if n > settings["most"]:
                continue
            parameters = {
                "epsilon": epsilon,
                "n": n,
                "part": part,
                "truth": truth,
                "planned": planned,
                **given,
            }
            expected = (
                {WITHIN: Rate(settings["confidence"], "≥", source=_source(part))}
                if part <= sure_part
                else {}
            )
            name = (
                f"epsilon={epsilon:g}" + (f" order={order:g}" if order else "") + f" n/{part:g}={n}"
            )
            cases.append(Case(name, parameters, expected))
    return cases


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One estimate; an empty cell is a failure, which is not within the precision."""
    given = case.parameters
    entry = em.zoo.truncated_laplace(given["epsilon"])
    keywords = {name: given[name] for name in ("precision", "confidence", "order")}
    try:
        value = em.ldp.estimate(entry, n=given["n"], seed=seed, **keywords).estimate
    except InputError:
        return {WITHIN: 0.0, FAILED: 1.0}
    error = value - given["truth"]
    shares = {WITHIN: float(abs(error) <= given["precision"]), FAILED: 0.0, ABOVE: float(error > 0)}
    return {**shares, ESTIMATE: value, ERROR: abs(error), TRUTH: given["truth"]}


def draw_shares(results: Results, stem: str) -> Iterator[tuple[str, Figure]]:
    """The share within γ against how far n is below the planned one, and the estimates against the truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    shares, estimates = figure.subplots(1, 2)
    for epsilon in dict.fromkeys(case.parameters["epsilon"] for case in results.cases):
        cases = [case for case in results.cases if case.parameters["epsilon"] == epsilon]
        parts = [case.parameters["part"] for case in cases]
        shares.plot(
            parts,
            [results.row(case.name, WITHIN).measured for case in cases],
            "o-",
            label=f"ε = {epsilon:g}",
        )
        for case in cases:
            found = [row for row in results.of(ESTIMATE) if row.case == case.name]
            for row in found:
                jitter = [case.parameters["part"]] * len(row.values)
                away = [value - case.parameters["truth"] for value in row.values]
                estimates.plot(jitter, away, ".", markersize=2, alpha=0.3, color="C0")
    shares.axhline(
        results.cases[0].parameters["confidence"], color="0.4", linestyle="--", label="confidence"
    )
    estimates.axhline(0, color="0.4", linestyle="--")
    for axes, label in ((shares, WITHIN), (estimates, "estimate − truth")):
        axes.set_xscale("log")
        axes.set_xlabel("planned n / n")
        axes.set_ylabel(label)
    legend_below(figure)
    yield stem, figure


def histogram_estimate(
    left: Outputs, right: Outputs, domain: tuple[float, float], cells: int, order: float | None
) -> float:
    """The estimate of two recorded samples, both directions; what lies outside the domain is ignored."""
    first, second = (Cells(domain, cells).count(side) for side in (left, right))
    return max(divergence(first, second, order), divergence(second, first, order))
