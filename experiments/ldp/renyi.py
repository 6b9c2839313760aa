"""ldp/renyi: the same for the Rényi divergence, where the planned n is far more pessimistic still.

Reference: the paper's validation; it finds that about 1e5 times fewer samples suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import Case, Experiment, Quick, Results, Settings
from epsilometer_experiments.ldp import practice
from epsilometer_experiments.options import Option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = (1, 1e2, 1e3, 1e4, 3e4, 1e5, 3e5, 1e6, 1e7)


def make_cases(settings: Settings) -> list[Case]:
    """Levels of truncated Laplace noise, parts of n."""
    return practice.make_cases(settings, settings["order"], 1e3)


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Shares and errors."""
    return practice.draw_shares(results, "renyi")


EXPERIMENT = Experiment(
    name="ldp/renyi",
    summary="share of Rényi estimates within γ at ever smaller parts of the planned n (truncated Laplace)",
    runs=100,
    cases=make_cases,
    run_once=practice.run_once,
    options=(
        *practice.options(0.1, (0.2, 0.5), PARTS),
        Option("order", "of the divergence", 2.0, float),
    ),
    draw=draw,
    quick=Quick(5),
)
