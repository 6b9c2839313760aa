"""Draws a loss function: both laws above, the loss below, its greatest place marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epsilometer.errors import InputError
from epsilometer.report.figures import INK, LEFT, MUTED, RIGHT, SIZE, TONES, page_svg, styled
from epsilometer.report.loss_plot_data import LossPanel, loss_panel
from epsilometer.report.showing import figure as short
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Outcomes with names are written along the axis only while they fit.
_MOST_NAMES = 12


def plot_loss(result: AuditResult) -> Figure:
    """The figure of a result's loss function.

    Raises:
        InputError: the outputs are not one-dimensional, or an old result does not hold their counts.
    """
    panel = loss_panel(result)
    if panel is None:
        raise InputError(
            "this result holds no loss function: it is kept for audits whose outputs are single numbers or names"
        )
    return draw_loss(panel, result.verdict)


def loss_svg(panel: LossPanel, verdict: Verdict | None) -> str:
    """The picture as an SVG element for a page."""
    return page_svg(draw_loss(panel, verdict), panel.description, "LossPanel")


def draw_loss(panel: LossPanel, verdict: Verdict | None) -> Figure:
    """Densities or probabilities above, the loss below."""
    from matplotlib.figure import Figure

    with styled():
        picture = Figure(figsize=SIZE, layout="constrained")
        above, below = picture.subplots(2, 1, sharex=True)
        _draw_laws(panel, above)
        _draw_losses(panel, below, TONES[verdict])
    return picture


def _draw_laws(panel: LossPanel, axes: Axes) -> None:
    if len(panel.points):
        axes.plot(panel.points, panel.left, color=LEFT, label="left input")
        axes.plot(panel.points, panel.right, color=RIGHT, label="right input")
        axes.set_ylabel("density")
    if len(panel.atoms):
        shares = axes.twinx() if len(panel.points) else axes
        shift = 0.12 * _spacing(panel)
        shares.vlines(panel.atom_places - shift, 0.0, panel.left_atoms, color=LEFT, linewidth=3, label="left input")
        shares.vlines(panel.atom_places + shift, 0.0, panel.right_atoms, color=RIGHT, linewidth=3, label="right input")
        shares.set_ylim(bottom=0.0)
        shares.set_ylabel("probability")
    axes.set_ylim(0.0, 1.35 * axes.get_ylim()[1])  # room for the legend
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="best", fontsize=11)


def _draw_losses(panel: LossPanel, axes: Axes, tone: str) -> None:
    axes.plot(panel.points, panel.loss, color=tone)
    axes.plot(panel.atom_places, panel.atom_loss, "o", color=tone, markersize=5)
    if panel.location is not None:
        axes.axvline(panel.location, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.axhline(panel.estimate, color=INK, linestyle=(0, (1, 2)), linewidth=1.2)
        words = f"at the mark: {short(panel.estimate)}"
        axes.annotate(
            words, (0.98, panel.estimate), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=11
        )
    axes.set(xlabel="output", ylabel="loss")
    highest = np.concatenate([panel.loss, panel.atom_loss, [panel.estimate]])
    axes.set_ylim(0.0, 1.3 * float(np.nanmax(highest)) or 1.0)
    if not len(panel.points) and len(panel.atoms) <= _MOST_NAMES:
        axes.set_xticks(panel.atom_places, panel.atoms)


def _spacing(panel: LossPanel) -> float:
    if len(panel.points):
        return float(panel.points[-1] - panel.points[0]) / 40.0
    return float(np.diff(panel.atom_places).min()) if len(panel.atom_places) > 1 else 1.0
