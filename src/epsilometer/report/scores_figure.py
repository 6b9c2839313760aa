"""Membership scores in pictures and as a page: curves as plain arrays, and what draws them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.report import figures
from epsilometer.report.canary_page import render_canary_page
from epsilometer.report.formatting import (
    figure,
    figure_down,
    figure_up,
    percent,
    plain,
)
from epsilometer.report.wording import ReportRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epsilometer.auditing.score_audit import ScoreAudit

# Inches.
_SIZE = (9.0, 3.8)
_CERTIFIED_COLOUR = "#0b6b69"
_OBSERVED_COLOUR = "#59616b"
# On a page the colours of verdicts are all the same, so that the claim needs another one.
_CLAIM_COLOUR = figures.INK
# Corners of an observed curve that are drawn at the most; an eye sees no more.
_MAX_CORNERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCurves:
    """What the two pictures show.

    Attributes:
        observed_fpr: shape (k,), false-positive rates of the thresholds, ascending.
        observed_tpr: shape (k,), true-positive rates of the same thresholds.
        fpr: shape (j,), where the certified curves are drawn.
        tpr_lower: shape (j,), certified true-positive rates.
        power: shape (j,), certified power of the best attack at this type-I error, in the worse
            direction: 1 minus the trade-off curve.
        claimed_power: shape (j,), what the claim allows; None without a claim.
    """

    observed_fpr: Floats
    observed_tpr: Floats
    fpr: Floats
    tpr_lower: Floats
    power: Floats
    claimed_power: Floats | None


def score_curves(audit: "ScoreAudit", claim: Claim | None = None) -> ScoreCurves:
    """Returns the data of both pictures."""
    thresholds = np.unique(np.concatenate([audit.in_scores, audit.out_scores]))[::-1]
    step = max(1, len(thresholds) // _MAX_CORNERS)
    thresholds = thresholds[::step]
    fpr = np.linspace(0.0, 1.0, 201)
    claimed = None if claim is None else np.asarray(claim.max_power(fpr), dtype=np.float64)
    return ScoreCurves(
        observed_fpr=_rates(audit.out_scores, thresholds),
        observed_tpr=_rates(audit.in_scores, thresholds),
        fpr=fpr,
        tpr_lower=np.array([audit.tpr_lower(float(rate)) for rate in fpr]),
        power=np.array([audit.profile.power(float(rate)) for rate in fpr]),
        claimed_power=claimed,
    )


def _rates(ascending: Floats, thresholds: Floats) -> Floats:
    """The fraction of scores at or above each threshold, from 0 to 1."""
    n_at_least = len(ascending) - np.searchsorted(ascending, thresholds, side="left")
    return np.concatenate([[0.0], n_at_least / len(ascending), [1.0]])


def draw_scores(audit: "ScoreAudit", claim: Claim | None = None) -> "Figure":
    """Returns a figure with the ROC curve on the left and the trade-off curve on the right."""
    from matplotlib.figure import Figure

    curves = score_curves(audit, claim)
    drawing = Figure(figsize=_SIZE, layout="constrained")
    roc_axes, tradeoff_axes = drawing.subplots(1, 2)
    label = f"certified, {percent(audit.confidence)} for all points together"

    roc_axes.plot(
        curves.observed_fpr,
        curves.observed_tpr,
        color=_OBSERVED_COLOUR,
        linewidth=0.9,
        label=f"observed, AUROC {figure(audit.auroc)}",
    )
    roc_axes.fill_between(
        curves.fpr, curves.tpr_lower, color=_CERTIFIED_COLOUR, alpha=0.15, linewidth=0
    )
    roc_axes.plot(curves.fpr, curves.tpr_lower, color=_CERTIFIED_COLOUR, label=label)
    roc_axes.plot([0, 1], [0, 1], color=_OBSERVED_COLOUR, linewidth=0.5)
    roc_axes.set(xlabel="false-positive rate", ylabel="true-positive rate")

    # The trade-off curve lies below the band: no attack is as bad as what is above it.
    tradeoff_axes.fill_between(
        curves.fpr, 1.0 - curves.power, 1.0, color=_CERTIFIED_COLOUR, alpha=0.15, linewidth=0
    )
    tradeoff_axes.plot(curves.fpr, 1.0 - curves.power, color=_CERTIFIED_COLOUR)
    tradeoff_axes.plot([0, 1], [1, 0], color=_OBSERVED_COLOUR, linewidth=0.5)
    tradeoff_axes.set(xlabel="type-I error", ylabel="type-II error at most")

    if claim is not None and curves.claimed_power is not None:
        label = f"{plain(claim.describe())} allows"
        style = {"color": _CLAIM_COLOUR, "linestyle": "--"}
        roc_axes.plot(curves.fpr, curves.claimed_power, label=label, **style)
        tradeoff_axes.plot(curves.fpr, 1.0 - curves.claimed_power, **style)
    roc_axes.legend(frameon=False, fontsize="small", loc="lower right")
    for axes in (roc_axes, tradeoff_axes):
        _fit_to_rates(axes)
    return drawing


def _fit_to_rates(axes: "Axes") -> None:
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))


def render_scores(
    audit: "ScoreAudit", claim: Claim | None = None, delta: float | None = None
) -> str:
    """Returns a page that needs nothing else: the claim, the curves, the figures, and the data."""
    from epsilometer.auditing.profile import SHOWN_DELTAS

    with figures.styled():
        drawn = draw_scores(audit, claim)
    picture = figures.page_svg(drawn, "ROC curve, and trade-off curve", "scores")
    lower, upper = audit.auroc_interval
    readings = [
        ReportRow(f"ε at δ = {delta:g} is at least", figure_down(audit.profile.epsilon(delta)))
        for delta in SHOWN_DELTAS
    ]
    readings += [
        ReportRow("μ is at least", figure_down(audit.profile.mu)),
        ReportRow("AUROC, observed", figure(audit.auroc)),
        ReportRow("AUROC is at least", figure_down(lower)),
        ReportRow("AUROC is at most", figure_up(upper)),
    ]
    return render_canary_page(
        "scores.html.j2", audit, claim, delta, picture=picture, readings=readings
    )
