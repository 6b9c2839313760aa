"""auditorium/table2: how many pairs of datasets are tried before a violation is found?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.errors import InputError
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.auditorium.published import fewest_trials, mean_trials
from epsilometer_experiments.auditorium.settings import (
    AUTO,
    COLUMNS,
    MEANS,
    MECHANISMS,
    OUR_CONFIDENCE,
    PAPER_CONFIDENCE,
    Mechanism,
    claim_for,
    options_of,
    tester_of,
)
from epsilometer_experiments.experiment import (
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole, words
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 0.01
FINDERS = ("Random", "Bayesian", "Grid")


def trials_with(method: str, confidence: float = PAPER_CONFIDENCE) -> str:
    """The quantity of one column."""
    return f"trials with {method}, {'95 %' if confidence == OUR_CONFIDENCE else '2/3'}"


def make_cases(settings: Settings) -> list[Case]:
    """Every mechanism with every finder."""
    return [
        _case(MECHANISMS[title], finder, settings["method"])
        for title in settings["mechanism"] or [mechanism.title for mechanism in MEANS]
        for finder in settings["finder"]
    ]


def _case(mechanism: Mechanism, finder: str, methods: tuple[str, ...]) -> Case:
    expected: dict[str, Target] = {}
    for method in methods:
        published = mean_trials(mechanism.title, finder, tester_of(method))
        if published is not None:
            expected[trials_with(method)] = Target(published, source="paper: Table 2")
    best = fewest_trials(mechanism.title)
    if best is not None:
        # Of the grid nothing is asked: a grid of a few values has pairs of equal ones, on which nothing leaks.
        expected[trials_with(AUTO)] = Target(
            best, "≈" if finder == "Grid" else "≤", source="paper: Table 2"
        )
    return Case(f"{mechanism.title} {finder}", {"mechanism": mechanism, "finder": finder}, expected)


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The trials of one search with each method; `auto` also at 95 %."""
    mechanism, finder = case.parameters["mechanism"], case.parameters["finder"]
    columns = [(method, PAPER_CONFIDENCE) for method in settings["method"]]
    if AUTO in settings["method"]:
        columns.insert(1, (AUTO, OUR_CONFIDENCE))
    return {
        trials_with(method, confidence): float(
            search(mechanism, finder, method, confidence, seed, settings)
        )
        for method, confidence in columns
    }


def search(
    mechanism: Mechanism, finder: str, method: str, confidence: float, seed: int, settings: Settings
) -> int:
    """Pairs tried until the claim was refuted; the most allowed if it never was, or the method refuses the claim.

    A trial may draw as much as the paper's: one half looks at the pair, the other half certifies it if it is promising.
    """
    entry = mechanism.entry(settings.get("epsilon", EPSILON))
    look, trials = settings["samples"] // 2, int(settings["trials"])
    made = getattr(em.finders, finder)(
        *domain_of(mechanism), trials=trials, samples=look, seed=seed
    )
    claim, fresh, options = claim_for(entry, method), settings["samples"] - look, options_of(method)
    common = {"samples": fresh, "seed": seed, "confidence": confidence}
    try:
        if options is not None:
            return _first_above(entry, made, claim, tester_of(method), options, trials, common)
        result = em.audit(entry.mechanism, made, claim, method=method, **common)
    except InputError:
        return trials
    return len(result.findings[0].details["search"]) if result.is_refuted else trials


def _first_above(
    entry: ZooEntry,
    finder: Any,
    claim: Claim,
    tester: str,
    options: Any,
    trials: int,
    common: dict[str, Any],
) -> int:
    """Algorithm 1 as it is printed: each pair in turn, until an estimate is above the claim.

    It spends its failure probability anew in each trial, which is one reason why ours looks first and certifies once.
    """
    for trial in range(1, trials + 1):
        pair = finder.ask()
        if pair is None:
            break
        settings = {**common, "seed": common["seed"] + trial}
        found = em.audit(entry.mechanism, pair, claim, method=tester, options=options, **settings)
        if found.lower_bound > found.claim.value:
            return trial
        finder.tell(found.lower_bound)
    return trials


def domain_of(mechanism: Mechanism) -> tuple[Any, str]:
    """The datasets and which are neighbours: two values of which one is missing, or ten answers that all may move."""
    if mechanism.answers:
        return em.domains.Queries(10, low=0.0, high=2.0), "linf"
    return em.domains.Vector(2, low=-1.0, high=1.0), "add-remove"


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Mean trials per mechanism and finder, one mark per method."""
    from matplotlib.figure import Figure

    quantities = list(dict.fromkeys(row.quantity for row in results.rows))
    figure = Figure(figsize=(7, 0.35 * len(results.cases) + 1.6), layout="constrained")
    axes = figure.subplots()
    places = range(len(results.cases))
    for number, quantity in enumerate(quantities):
        means = [results.row(case.name, quantity).measured for case in results.cases]
        axes.plot(
            means,
            places,
            "osD^vx"[number % 6],
            fillstyle="none",
            label=quantity.removeprefix("trials with "),
        )
    axes.set_xscale("log")
    axes.set_yticks(list(places), [case.name for case in results.cases])
    axes.invert_yaxis()
    axes.set_xlabel("mean trials to the first refutation")
    legend_below(figure)
    yield "table2", figure


TRIALS = Option("trials", "the most pairs that a search may try", 50, whole)

EXPERIMENT = Experiment(
    name="auditorium/table2",
    summary="trials to the first violation for three finders, next to DP-Auditorium's",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side and trial", 500_000, whole),
        TRIALS,
        Option(
            "mechanism", f"some of: {', '.join(MECHANISMS)}; by default the four means", (), words
        ),
        Option("finder", f"some of: {', '.join(FINDERS)}", FINDERS, words),
        Option("method", f"some of: {', '.join(COLUMNS)}", COLUMNS, words),
    ),
    draw=draw,
    quick=Quick(1, {"samples": 20_000, "trials": 5, "mechanism": "NonDPLaplace1,NonDPLaplace2"}),
)
