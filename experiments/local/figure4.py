"""local/figure4: the distribution of the MPL bound on eight algorithms at three levels of privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import (
    EARLIER,
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
from epsilometer_experiments.local.settings import (
    ALGORITHMS,
    BOUND,
    CONFIDENCE,
    COVERED,
    LEVELS,
    SHARE,
    Algorithm,
)
from epsilometer_experiments.options import Option, words
from epsilometer_experiments.reporting import legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = dict(zip(LEVELS, ("C0", "C1", "C2"), strict=True))


def make_cases(settings: Settings) -> list[Case]:
    """The chosen algorithms at all levels."""
    chosen = [ALGORITHMS[letter] for letter in settings["algorithms"] if letter in ALGORITHMS]
    cases = [_case(algorithm, place) for algorithm in chosen for place in range(len(LEVELS))]
    if any(smoothing(settings).values()):
        # The figures to expect are those of the rule itself.
        return [replace(case, expected={}) for case in cases]
    return cases


def smoothing(settings: Settings) -> dict[str, float]:
    """The undersmoothing of both steps, as `mpl` takes it."""
    return {name: settings.get(name, 0.0) for name in ("search_undersmoothing", "undersmoothing")}


def _case(algorithm: Algorithm, place: int) -> Case:
    level, truth = LEVELS[place], algorithm.truths[place]
    share = algorithm.shares[place]
    if math.isinf(truth):
        expected: dict[str, Target] = {BOUND: Target(share, "≈", round(0.03 * share, 3), EARLIER)}
    else:
        covered = (
            Rate(algorithm.coverages[place], source=EARLIER)
            if algorithm.coverages
            else Rate(CONFIDENCE, "≥", source=PROMISED)
        )
        expected = {SHARE: Target(share, "≈", 0.03, EARLIER), COVERED: covered}
    name = f"({algorithm.letter}) {algorithm.title} ε0={level:g}"
    return Case(name, {"letter": algorithm.letter, "level": level, "truth": truth}, expected)


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One bound."""
    algorithm = ALGORITHMS[case.parameters["letter"]]
    bound = algorithm.bound(case.parameters["level"], seed, **smoothing(settings)).unclipped
    truth = case.parameters["truth"]
    if math.isinf(truth):
        return {BOUND: bound}
    return {BOUND: bound, SHARE: bound / truth, COVERED: float(bound <= truth)}


def draw(results: Results) -> Iterator[tuple[str, Figure]]:
    """The paper's panel of empirical distribution functions."""
    from matplotlib.figure import Figure

    letters = list(dict.fromkeys(case.parameters["letter"] for case in results.cases))
    columns = min(len(letters), 4)
    rows = math.ceil(len(letters) / columns)
    figure = Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for letter, axes in zip(letters, panels, strict=False):
        axes.set_title(f"({letter}) {ALGORITHMS[letter].title}", fontsize="medium")
        for case in results.cases:
            if case.parameters["letter"] == letter:
                draw_distribution(
                    axes, results.row(case.name, BOUND).values, case.parameters["level"]
                )
        axes.axhline(CONFIDENCE, color="C3", linewidth=0.8, label=f"confidence {CONFIDENCE:g}")
    for axes in panels[len(letters) :]:
        axes.set_axis_off()
    figure.supxlabel("lower bound LB (dashed: the targeted level)")
    figure.supylabel("share of runs")
    legend_below(figure, 4)
    yield "figure4", figure


def draw_distribution(
    axes: Axes, values: tuple[float, ...], level: float, colour: str | None = None
) -> None:
    """An empirical distribution function and the level that was aimed at."""
    colour = colour or COLOURS[level]
    ordered = sorted(values)
    heights = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(
        [ordered[0], *ordered], [0.0, *heights], where="post", color=colour, label=f"ε0 = {level:g}"
    )
    axes.axvline(level, color=colour, linestyle="--", linewidth=0.8, label=f"targeted {level:g}")


EXPERIMENT = Experiment(
    name="local/figure4",
    summary="the MPL bound on eight algorithms at ε0 = .2, .7, 1.5: distribution, mean and coverage",
    runs=100,
    cases=make_cases,
    run_once=run_once,
    options=(
        Option("algorithms", "letters a to h, separated by commas", tuple(ALGORITHMS), words),
        Option("search_undersmoothing", "γ of step 1; (C3) asks for at least 2/15", 0.0, float),
        Option("undersmoothing", "γ of step 2; (C4) asks for more than 2/15", 0.0, float),
    ),
    draw=draw,
    quick=Quick(2),
)
