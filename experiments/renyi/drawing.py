"""The paper's violin plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epsilometer_experiments.experiment import Results
from epsilometer_experiments.renyi.algorithms import ORDERS, held_name, ratio_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4


def violins(results: Results, names: Sequence[str]) -> Figure:
    """One panel per case: a violin per order, the truth as a line, the share above it below each violin."""
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(2.9 * columns, 2.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        _panel(axes, results, name)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    return figure


def _panel(axes: Axes, results: Results, name: str) -> None:
    values = [results.row(name, ratio_name(order)).values for order in ORDERS]
    places = range(len(ORDERS))
    if len(values[0]) > 1:
        axes.violinplot(values, list(places), showextrema=False)
    for place, column in zip(places, values, strict=True):
        ordered = sorted(column)
        low, middle, high = (ordered[int(part * (len(ordered) - 1))] for part in (0.25, 0.5, 0.75))
        axes.plot([place, place], [low, high], color="0.2", linewidth=2)
        axes.plot(place, middle, "o", color="0.2", markersize=4)
    axes.axhline(1.0, color="C3", linewidth=1)
    above = [1.0 - results.row(name, held_name(order)).measured for order in ORDERS]
    labels = [
        f"order {order}\n{share:.1%} above" for order, share in zip(ORDERS, above, strict=True)
    ]
    axes.set_xticks(list(places), labels, fontsize=8)
    axes.set_title(name, fontsize=10)
    axes.set_ylabel("bound / truth", fontsize=8)
