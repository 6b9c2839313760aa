"""auditorium/table1: how often is a broken mechanism detected on a fixed pair, and a private one never?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.auditorium.draws_needed import draws_needed
from epsilometer_experiments.auditorium.published import detection_rate
from epsilometer_experiments.auditorium.settings import (
    AUTO,
    COLUMNS,
    EPSILONS,
    LEVEL,
    MECHANISMS,
    OUR_CONFIDENCE,
    PAPER_CONFIDENCE,
    PAPER_LEVEL,
    SIZES,
    Mechanism,
    applies,
    claim_for,
    floats,
    is_published,
    published_tester,
    tester_of,
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
from epsilometer_experiments.options import Option, wholes, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDED = "draws needed with the best event"
# Within three of ten detections (and halfway to the fourth, for the rounding of shares): ten runs that detect 7 times
# and ten that detect 10 times may well be of one tester.
_NEAR = 0.35


def detected_by(method: str) -> str:
    """The quantity of one column."""
    return f"detected by {method}" + (", 95 %" if method == AUTO else "")


def make_cases(settings: Settings) -> list[Case]:
    """Every mechanism at every ε and size."""
    return [
        _case(_mechanism(title), epsilon, samples, settings["method"])
        for title in settings["mechanism"] or MECHANISMS
        for epsilon in settings["epsilon"]
        for samples in settings["samples"]
    ]


def _mechanism(title: str) -> Mechanism:
    if title not in MECHANISMS:
        raise InputError(f"mechanism={title!r} is unknown; known are {', '.join(MECHANISMS)}")
    return MECHANISMS[title]


def _case(mechanism: Mechanism, epsilon: float, samples: int, methods: tuple[str, ...]) -> Case:
    needed = None if mechanism.private else _needed(mechanism, epsilon)
    expected: dict[str, Target] = {}
    for method in methods:
        if not applies(method, mechanism):
            continue
        rate = detection_rate(mechanism.title, epsilon, tester_of(method), samples)
        if mechanism.private:
            expected[detected_by(method)] = Rate(
                LEVEL if method == AUTO else PAPER_LEVEL, "≤", source=PROMISED
            )
        elif method == AUTO and needed is not None and needed <= samples:
            expected[detected_by(method)] = Target(1.0, "≥", source=EXACT)
        elif rate is not None:
            # Ours prove other things than the paper's testers and are not meant to agree; the published ones are.
            near = None if method == tester_of(method) else _NEAR
            expected[detected_by(method)] = Target(rate, "≈", near, "paper: Table 1")
    name = f"{mechanism.title} ε={epsilon:g} n={samples}"
    parameters = {"mechanism": mechanism, "epsilon": epsilon, "samples": samples, "needed": needed}
    return Case(name, parameters, expected)


@cache
def _needed(mechanism: Mechanism, epsilon: float) -> int | None:
    return draws_needed(mechanism.entry(epsilon), OUR_CONFIDENCE)


def _confidence(method: str) -> float:
    """The paper's own for its testers."""
    return OUR_CONFIDENCE if method == AUTO else PAPER_CONFIDENCE


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether each method refutes the claim, all with the same seed."""
    mechanism = case.parameters["mechanism"]
    entry = mechanism.entry(case.parameters["epsilon"])
    samples, needed = case.parameters["samples"], case.parameters["needed"]
    numbers = {
        detected_by(method): float(is_refuted(entry, method, samples, seed))
        for method in settings["method"]
        if applies(method, mechanism)
    }
    return numbers if needed is None else {**numbers, NEEDED: float(needed)}


def is_refuted(entry: ZooEntry, method: str, samples: int, seed: int) -> bool:
    """Whether a method refutes the claim on the worst pair; one that refuses the claim as hopeless does not.

    A published column is Algorithm 1 with one trial: the larger of both directions against the paper's threshold.
    """
    claim = claim_for(entry, method)
    if is_published(method):
        published = published_tester(method, claim)
        return em.auditorium.audit(
            entry.mechanism,
            entry.worst_pair,
            published.estimator,
            trials=1,
            samples=samples,
            threshold=published.threshold,
            failure=PAPER_LEVEL,
            seed=seed,
        ).is_refuted
    settings: dict[str, Any] = {
        "samples": samples,
        "seed": seed,
        "confidence": _confidence(method),
        "method": method,
    }
    try:
        return em.audit(entry, None, claim, **settings).is_refuted
    except InputError:
        return False


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The table as shades: a row per mechanism and ε, a column per method."""
    from matplotlib.figure import Figure

    quantities = [
        row for row in dict.fromkeys(row.quantity for row in results.rows) if row != NEEDED
    ]
    measured = {(row.case, row.quantity): row.measured for row in results.rows}
    # A tester that a mechanism has no column for leaves a white cell.
    shares = [
        [measured.get((case.name, quantity), math.nan) for quantity in quantities]
        for case in results.cases
    ]
    figure = Figure(
        figsize=(1.4 * len(quantities) + 3, 0.28 * len(shares) + 1.6), layout="constrained"
    )
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for place, row in enumerate(shares):
        for column, share in enumerate(row):
            axes.text(
                column,
                place,
                "–" if math.isnan(share) else f"{share:.2g}",
                ha="center",
                va="center",
                color="w" if share > 0.5 else "0.2",
            )
    axes.set_xticks(
        range(len(quantities)), [quantity.removeprefix("detected by ") for quantity in quantities]
    )
    axes.set_yticks(range(len(shares)), [case.name for case in results.cases])
    axes.xaxis.tick_top()
    yield "table1", figure


# Of the 56 numbers of the table at each size, the published testers give 47, 45 and 45 back (ten runs); these are the
# others. In all of them the divergence is there (computed exactly), and it is the paper's tester that does not see it.
_RANKS = (
    "the outputs reach 10^13 and more, because a noisy count may be 10^-12; our classifier looks at ranks and sees the "
    "true divergence of .14 to .17, a network on the raw numbers need not"
)
_REASONS = {
    (
        "NonDPLaplace2",
        0.01,
        "renyi-variational",
    ): "ours detects it in every run at every size; the paper's network does "
    "so less often the more draws it has, which the paper does not explain",
    ("NonDPLaplace2", 1.0, "hockey-stick"): _RANKS,
    ("NonDPGaussian2", 1.0, "hockey-stick"): _RANKS,
    ("NonDPGaussian2", 0.01, "hockey-stick"): _RANKS,
    (
        "NonDPGaussian2",
        0.01,
        "poisson-histogram",
    ): "the estimate lies at the threshold: .169 less the fitted η = .16 "
    "against δ = .01, so that some runs exceed it",
    (
        "NonDPGaussian1",
        0.01,
        "hockey-stick",
    ): "the true divergence is .32 against δ = .01 on our pair; the paper states "
    "neither its pair nor its Gaussian deviation (its program multiplies it by 3.1)",
    (
        "NonDPGaussian1",
        0.01,
        "mmd",
    ): "ours detects it in every run at every size; the paper's 4 of ten at n = 100 000 "
    "stand between 10 at n = 50 000 and 10 at 500 000",
    (
        "NonDPGaussian1",
        1.0,
        "renyi-variational",
    ): "the two deviations differ by a factor of 2, and the divergence of "
    "order 1.5 is infinite; why the paper's network did not see it is not known",
    (
        "SVT3",
        1.0,
        "hockey-stick",
    ): "the divergence is small; our classifier of cells and trees finds it in most runs, "
    "the paper's network did not",
    (
        "SVT5",
        0.01,
        "hockey-stick",
    ): "the divergence is small; ours finds it the more often the more draws it has, the "
    "paper's network does not",
    ("SVT5", 0.01, "renyi-variational"): "some answers are impossible on one side, as at ε = 1",
    (
        "SVT5",
        1.0,
        "renyi-variational",
    ): "some answers are impossible on one side, which free values on the answers show "
    "at once; the paper's network on the coded answers did not learn it",
}
_WHY = {
    f"{title} ε={epsilon:g} n={samples}: {detected_by(f'{tester}/published')}": reason
    for (title, epsilon, tester), reason in _REASONS.items()
    for samples in SIZES
}

EXPERIMENT = Experiment(
    name="auditorium/table1",
    summary="detection of DP-Auditorium's mechanisms by its testers and by auto, and of private ones",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option(
            "samples",
            "draws per side, separated by commas; the paper has 5e4,1e5,5e5",
            (50_000,),
            wholes,
        ),
        Option("epsilon", "the claims, separated by commas", EPSILONS, floats),
        Option("mechanism", f"some of: {', '.join(MECHANISMS)}", (), words),
        Option("method", f"some of: {', '.join(COLUMNS)}", COLUMNS, words),
    ),
    draw=draw,
    quick=Quick(1, {"samples": "5e4"}),
    why=_WHY,
)
