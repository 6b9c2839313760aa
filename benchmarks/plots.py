"""Pictures of the measurements, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.power import PowerRow


def draw_ratios(measured: Sequence[Measurement], path: Path) -> bool:
    """Every ratio of a group with its repeats and its target; False if there is none to draw."""
    shown = [each for each in measured if each.unit == "×"]
    if not shown:
        return False
    figure = _figure(10.0, 0.35 * len(shown) + 1.3)
    axes = figure.subplots()
    for place, each in enumerate(shown):
        axes.plot(each.values, [place] * len(each.values), "|", color="0.6", markersize=9)
        axes.plot(each.value, place, "o", color="C0")
        if each.target is not None:
            axes.plot(
                each.target,
                place,
                ">" if each.relation == "≥" else "<",
                color="C3",
                fillstyle="none",
            )
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [each.name for each in shown])
    axes.invert_yaxis()
    axes.set_xlabel("ratio (circles: medians, strokes: repeats, triangles: targets)")
    _save(figure, path)
    return True


def draw_power(rows: Sequence[PowerRow], path: Path) -> None:
    """The mean bound over the draws for every entry, with its interval, the oracle's and the truth."""
    entries = list(dict.fromkeys(row.entry for row in rows))
    figure = _figure(12.0, 2.6 * -(-len(entries) // 4))
    panels = figure.subplots(-(-len(entries) // 4), 4, squeeze=False).ravel()
    for axes, entry in zip(panels, entries, strict=False):
        _draw_entry(axes, entry, [row for row in rows if row.entry == entry])
    for axes in panels[len(entries) :]:
        axes.set_axis_off()
    panels[0].legend(frameon=False, fontsize=7)
    _save(figure, path)


def _draw_entry(axes: Any, entry: str, rows: Sequence[PowerRow]) -> None:
    sizes = [row.n for row in rows]
    spread = [0.0 if len(row.bounds) < 2 else row.half_width for row in rows]
    axes.errorbar(
        sizes,
        [row.mean for row in rows],
        yerr=spread,
        fmt="o-",
        color="C0",
        label="certified, mean",
    )
    known = [(row.n, row.oracle) for row in rows if row.oracle is not None]
    if known:
        axes.plot(
            *zip(*known, strict=True),
            "d--",
            color="C2",
            fillstyle="none",
            label="best event known in advance",
        )
    truth = rows[0].truth
    if truth is not None and truth < float("inf"):
        axes.axhline(truth, color="0.4", linewidth=0.8, label="truth")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_title(entry, fontsize=8)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    import matplotlib

    # The same picture for the same figures: no date, no random names inside.
    with matplotlib.rc_context({"svg.hashsalt": "epsilometer", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
