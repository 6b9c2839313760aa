"""ldp/laplace: estimated against true ε of truncated Laplace noise, and how far below the planned n practice may go.

Reference: the paper's validation; it finds that about 400 times fewer samples than (5) asks for suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import Case, Experiment, Quick, Results, Settings
from epsilometer_experiments.ldp import practice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = (1, 10, 50, 100, 200, 300, 400, 600, 1000)


def make_cases(settings: Settings) -> list[Case]:
    """Levels of truncated Laplace noise, parts of n."""
    return practice.make_cases(settings, None, 200)


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """Shares and errors."""
    return practice.draw_shares(results, "laplace")


EXPERIMENT = Experiment(
    name="ldp/laplace",
    summary="share of ε estimates within γ at the planned n and at ever smaller parts of it (truncated Laplace)",
    runs=200,
    cases=make_cases,
    run_once=practice.run_once,
    options=practice.options(0.5, (0.2, 0.52, 1.0), PARTS),
    draw=draw,
    quick=Quick(5),
)
