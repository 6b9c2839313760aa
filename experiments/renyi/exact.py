"""renyi/exact: exact Rényi bounds (method auto): their mean, and how often they are above the truth."""

from __future__ import annotations

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole, words
from epsilometer_experiments.self.measuring import entry_of

BOUND, ABOVE = "mean certified bound", "share above the truth"
# (zoo entry, order, draws per side in all, least mean).
REQUIRED = (
    ("gaussian?sigma=1", 1.5, 100_000, 0.70),
    ("gaussian?sigma=1", 2.0, 100_000, 0.90),
    ("gaussian?sigma=1", 5.0, 100_000, 1.6),
    ("laplace?epsilon=1", 2.0, 100_000, 0.59),
    ("laplace?epsilon=1", 7.0, 100_000, 0.86),
    ("gaussian?sigma=1", 2.0, 1_000_000, 0.965),
    ("randomized_responses?epsilon=1.5", 2.0, 1_000_000, 1.28),
    # The claim of the first two is false and must be refuted; their claimed level is 1.
    ("scaled_gd?scale=.5", 2.0, 100_000, 1.0),
    ("scaled_gd?scale=.7", 2.0, 100_000, 1.0),
    ("scaled_gd?scale=.9", 2.0, 100_000, None),
    ("scaled_gd?scale=1", 2.0, 100_000, None),
)


def make_cases(settings: Settings) -> list[Case]:
    """What must be reached; with `samples` the same list at that size, without bars."""
    size = settings["samples"]
    cases = {}
    for spec, order, n, least in REQUIRED:
        if settings["entry"] and not spec.startswith(settings["entry"]):
            continue
        name = f"{spec} order={order:g} n={size or n}"
        expected: dict[str, Target] = {ABOVE: Rate(0.05, "≤", source=PROMISED)}
        if least is not None and not size:
            expected[BOUND] = Target(least, "≥", source=BAR)
        cases[name] = Case(name, {"entry": spec, "order": order, "samples": size or n}, expected)
    return list(cases.values())


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One certified bound."""
    entry, order = entry_of(case.parameters["entry"]), case.parameters["order"]
    truth = entry.truth(em.RenyiDP, order=order)
    samples = case.parameters["samples"]
    bound = em.measure(
        entry, None, em.RenyiDP, order=order, samples=samples, seed=seed, method=settings["method"]
    )
    numbers = {
        BOUND: bound.lower_bound,
        ABOVE: float(truth is not None and bound.lower_bound > truth),
    }
    if isinstance(entry.claim, em.RenyiDP):
        numbers["share refuted"] = float(bound.lower_bound > entry.claim.value)
    return numbers


EXPERIMENT = Experiment(
    name="renyi/exact",
    summary="exact Rényi bounds: means with what must be reached, and how often they are above the truth",
    runs=20,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("samples", "draws per side, for all cases", 0, whole),
        Option("entry", "only entries that begin with one of these words", (), words),
        Option("method", "a name of `epsilometer methods`", "auto"),
    ),
)
