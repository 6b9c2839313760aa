"""local/mixed: bounds on mixed distributions, which the paper leaves out, beside those of `events`."""

from __future__ import annotations

import epsilometer as em
from epsilometer_experiments.experiment import (
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Settings,
)
from epsilometer_experiments.local.settings import BOUND, CONFIDENCE, COVERED, SHARE
from epsilometer_experiments.options import Option, whole

EVENTS = "bound of events"
RENYI = "Rényi bound / truth, order 2"
RENYI_COVERED = "Rényi bound holds, order 2"
LAWS = ("clamped_laplace", "propose_test_release", "numerical_svt", "svt3")


def make_cases(settings: Settings) -> list[Case]:
    """The zoo's mechanisms with point masses beside densities."""
    promised = Rate(CONFIDENCE, "≥", source=PROMISED)
    return [
        Case(
            name, {"truth": em.zoo.find(name).truth()}, {COVERED: promised, RENYI_COVERED: promised}
        )
        for name in LAWS
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """MPL, the floored Rényi bound, and `events` with as many draws."""
    entry = em.zoo.find(case.name)
    truth = case.parameters["truth"]
    n, proof = settings["n"], settings["N"]
    bound = em.local.mpl(
        entry, [entry.worst_pair], n=n, N=proof, confidence=CONFIDENCE, select="bound", seed=seed
    ).unclipped
    renyi = em.measure(
        entry, None, em.RenyiDP, order=2.0, samples=n + proof, method="renyi-floored", seed=seed
    ).lower_bound
    renyi_truth = entry.truth(em.RenyiDP, order=2.0)
    assert renyi_truth is not None
    events = em.measure(entry, None, em.PureDP, samples=n + proof, method="events", seed=seed)
    return {
        BOUND: bound,
        SHARE: bound / truth,
        COVERED: float(bound <= truth),
        EVENTS: events.lower_bound,
        RENYI: renyi / renyi_truth,
        RENYI_COVERED: float(renyi <= renyi_truth),
    }


EXPERIMENT = Experiment(
    name="local/mixed",
    summary="point masses beside densities: the local and the floored Rényi bound, beside events",
    runs=200,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("n", "draws per side of step 1", 20_000, whole),
        Option("N", "fresh draws per side of step 2", 50_000, whole),
    ),
    wide=True,
    quick=Quick(2),
)
