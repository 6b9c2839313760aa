"""An audit of one training run as a picture and as a page: its numbers, and what draws them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.report import figures
from epsilometer.report.canary_page import render_canary_page
from epsilometer.report.formatting import figure_down
from epsilometer.report.wording import ReportRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from epsilometer.auditing.one_run_audit import OneRunAudit

# Inches.
_SIZE = (9.0, 3.8)
_OBSERVED_COLOUR = "#0b6b69"
# On a page the colours of verdicts are all the same, so that the claim needs another one.
_CLAIM_COLOUR = figures.INK
_CHANCE_COLOUR = "#59616b"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunCurves:
    """What the picture shows.

    Attributes:
        numbers: shape (k,), numbers of guesses.
        right_shares: shape (k,), the observed shares of right ones.
        decisive_numbers: shape (j,), the numbers of guesses that decide about the claim.
        needed_shares: shape (j,), the shares that would refute it; nan where none would.
    """

    numbers: Floats
    right_shares: Floats
    decisive_numbers: Floats
    needed_shares: Floats


def one_run_curves(audit: "OneRunAudit", claim: Claim | None = None) -> OneRunCurves:
    """Returns the data of the picture."""
    per_rank = 2 if audit.guess == "both" else 1
    numbers = per_rank * np.arange(1.0, len(audit.right) + 1.0)
    needed = [] if claim is None else list(audit.needed(claim))
    shares = [count.v / count.r if count.v <= count.r else np.nan for count in needed]
    return OneRunCurves(
        numbers=numbers,
        right_shares=audit.right / numbers,
        decisive_numbers=np.array([float(count.r) for count in needed]),
        needed_shares=np.array(shares, dtype=np.float64),
    )


def draw_one_run(audit: "OneRunAudit", claim: Claim | None = None) -> "Figure":
    """Returns a figure of the share of right guesses over the number of guesses."""
    from matplotlib.figure import Figure

    curves = one_run_curves(audit, claim)
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.plot(curves.numbers, curves.right_shares, color=_OBSERVED_COLOUR, label="observed")
    if claim is not None:
        axes.plot(
            curves.decisive_numbers,
            curves.needed_shares,
            color=_CLAIM_COLOUR,
            linestyle="none",
            marker="v",
            label=f"would refute {claim.describe()}",
        )
    axes.axhline(0.5, color=_CHANCE_COLOUR, linewidth=0.7)
    axes.set(xscale="log", xlabel="guesses, the surest first", ylabel="share of right guesses")
    axes.set(ylim=(None, 1.02))
    axes.legend(frameon=False, fontsize="small")
    return figure


def render_one_run(
    audit: "OneRunAudit", claim: Claim | None = None, delta: float | None = None
) -> str:
    """Returns a page that needs nothing else: the claim, the guesses, the figures, and the data."""
    from epsilometer.auditing.one_run_audit import SHOWN_DELTAS

    with figures.styled():
        drawn = draw_one_run(audit, claim)
    picture = figures.page_svg(drawn, "share of right guesses", "guesses")
    readings = [
        ReportRow(f"ε at δ = {delta:g} is at least", figure_down(audit.epsilon(delta)))
        for delta in SHOWN_DELTAS
    ]
    readings.append(ReportRow("μ is at least", figure_down(audit.mu)))
    return render_canary_page(
        "one_run.html.j2", audit, claim, delta, picture=picture, readings=readings
    )
