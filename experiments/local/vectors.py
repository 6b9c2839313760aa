"""local/vectors: the MPL bound on vectors of two and three Laplace numbers (ours, not the paper's)."""

from __future__ import annotations

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.local.settings import BOUND, COVERED, SHARE
from epsilometer_experiments.options import Option, whole

DIMENSIONS, LEVELS = (2, 3), (0.7, 1.5)


def make_cases(settings: Settings) -> list[Case]:
    """Both dimensions at two levels."""
    expected = {SHARE: Target(0.5, "≥", source=BAR), COVERED: Rate(0.93, "≥", source=BAR)}
    return [
        Case(f"{d} coordinates ε={level:g}", {"dimension": d, "level": level}, expected)
        for d in DIMENSIONS
        for level in LEVELS
    ]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One bound with everything chosen from the draws."""
    level = case.parameters["level"]
    entry = em.zoo.laplace_vector(level, case.parameters["dimension"])
    found = em.local.mpl(entry, entry.worst_pair, n=settings["n"], N=settings["N"], seed=seed)
    return {
        BOUND: found.unclipped,
        SHARE: found.unclipped / level,
        COVERED: float(found.unclipped <= level),
    }


EXPERIMENT = Experiment(
    name="local/vectors",
    summary="the MPL bound on vectors of two and three Laplace numbers",
    runs=50,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("n", "draws per side in step 1", 100_000, whole),
        Option("N", "draws per side in step 2", 1_000_000, whole),
    ),
    quick=Quick(1),
)
