"""renyi/appendixF: a lower floor for shuffled randomized response, and the same mechanism seen through its counts.

The floor of Appendix F is garbled in the text that we have ("τ = 5 × 10%"): 5·10⁻⁶ is inferred from it, as n = 5·10⁶ is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import (
    EARLIER,
    Case,
    Experiment,
    Numbers,
    Quick,
    Results,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole
from epsilometer_experiments.renyi.algorithms import (
    ALGORITHMS,
    COUNTS,
    ORDERS,
    PUBLISHED_N,
    Algorithm,
    bounds_of,
    numbers_of,
    ratio_name,
)
from epsilometer_experiments.renyi.drawing import violins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inferred: the printed figure is garbled.
INFERRED_FLOOR = 5e-6
# (case, algorithm, floor): the paper's settings, its improved ones as we infer them, and what needs no tuning.
_SETTINGS: dict[str, tuple[Algorithm, float]] = {
    "vectors, floor 1e-5": (ALGORITHMS["shuffled response"], 1e-5),
    "vectors, floor 5e-6 (inferred)": (ALGORITHMS["shuffled response"], INFERRED_FLOOR),
    "counts, floor 1e-5": (COUNTS, 1e-5),
}


def make_cases(settings: Settings) -> list[Case]:
    """Published settings, improved ones, and counts."""
    return [Case(name, {}, _expected(name, settings["n"])) for name in _SETTINGS]


def _expected(name: str, n: int) -> dict[str, Target]:
    algorithm, floor = _SETTINGS[name]
    if n != PUBLISHED_N or floor != 1e-5 or algorithm.tightness is None:
        return {}
    return {
        ratio_name(order): Target(mean, "≈", 0.01, EARLIER)
        for order, mean in zip(ORDERS, algorithm.tightness, strict=True)
    }


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """The three bounds of one sample."""
    algorithm, floor = _SETTINGS[case.name]
    entry = algorithm.make()
    return numbers_of(entry, bounds_of(entry, settings["n"], seed, floor))


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Violins of all settings."""
    yield "appendixF", violins(results, [case.name for case in results.cases])


EXPERIMENT = Experiment(
    name="renyi/appendixF",
    summary="shuffled randomized response with a better floor: less bias than the paper's common settings",
    runs=30,
    cases=make_cases,
    run_once=run_once,
    options=(Option("n", "draws per side", PUBLISHED_N, whole),),
    draw=draw,
    quick=Quick(1, {"n": 500_000}),
)
