"""renyi/table1: the time for one sample and its bounds, next to the authors' code."""

from __future__ import annotations

import resource
import time

from epsilometer_experiments.experiment import (
    BAR,
    Case,
    Experiment,
    Numbers,
    Quick,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole
from epsilometer_experiments.renyi.algorithms import (
    ALGORITHMS,
    PUBLISHED_FLOOR,
    PUBLISHED_N,
    bounds_of,
)

SECONDS, MEMORY = "CPU seconds for three orders", "peak memory of the process, MB"
PUBLISHED = "the authors' R code, seconds for one order"
MOST_SECONDS, MOST_MEMORY = 6.0, 600.0


def make_cases(settings: Settings) -> list[Case]:
    """One case per algorithm."""
    expected = {
        SECONDS: Target(MOST_SECONDS, "≤", source=BAR),
        MEMORY: Target(MOST_MEMORY, "≤", source=BAR),
    }
    return [Case(name, {}, expected if settings["n"] <= PUBLISHED_N else {}) for name in ALGORITHMS]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Samples both sides and bounds three orders."""
    algorithm = ALGORITHMS[case.name]
    began = time.process_time()
    bounds_of(algorithm.make(), settings["n"], seed, PUBLISHED_FLOOR)
    seconds = time.process_time() - began
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {SECONDS: seconds, MEMORY: megabytes, PUBLISHED: 60.0 * algorithm.minutes}


EXPERIMENT = Experiment(
    name="renyi/table1",
    summary="CPU time and memory of floored Rényi bounds, sampling included, next to the authors' minutes",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(Option("n", "draws per side", PUBLISHED_N, whole),),
    parallel=False,
    quick=Quick(1, {"n": 500_000}),
)
