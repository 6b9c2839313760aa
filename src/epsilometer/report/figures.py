"""Draws the panels with matplotlib.

As a figure for notebooks, and as SVG that follows the colours of the page.
"""

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_choice
from epsilometer.errors import InputError
from epsilometer.one_line import cut
from epsilometer.report import panels
from epsilometer.report.formatting import figure as short
from epsilometer.report.loss_panel import LossPanel, loss_panel
from epsilometer.report.outputs_svg import LEFT, RIGHT
from epsilometer.result import AuditResult, Verdict
from epsilometer.storage.writing import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# In inches of 72 dots: two pictures fit side by side in a report, one fills a phone.
_WIDTH = 5.0
_HEIGHT = 3.6
# The light colours of the page. In SVG each is replaced by the variable of its name, so that a dark
# page recolours it.
INK = "#1b1e23"
MUTED = "#59616b"
LINE = "#e0e0db"
CARD = "#ffffff"
TONES = {
    Verdict.REFUTED: "#b3261e",
    Verdict.NOT_REFUTED: "#0b6b69",
    Verdict.INCONCLUSIVE: "#8a5a00",
    None: "#3a4db0",
}
_VARIABLES = {
    CARD: "--card",
    INK: "--ink",
    MUTED: "--muted",
    LINE: "--line",
    LEFT: "--left",
    RIGHT: "--right",
    TONES[Verdict.REFUTED]: "--tone",
    TONES[Verdict.NOT_REFUTED]: "--tone",
    TONES[Verdict.INCONCLUSIVE]: "--tone",
    TONES[None]: "--tone",
}
# Any: matplotlib types it as a dict of some 300 literal names.
_STYLE: Any = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": False,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12.0,
    "legend.edgecolor": "none",
    "legend.facecolor": CARD,
    "legend.framealpha": 0.75,
    "legend.labelcolor": INK,
    "lines.linewidth": 2.0,
    "savefig.facecolor": "none",
    # Keeps text as text: smaller, searchable, in the page's font.
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.color": MUTED,
    "ytick.labelcolor": MUTED,
}
# Lengths of dashes and gaps, in widths of the line.
_DASHED = (0, (4, 3))
_DOTTED = (0, (1, 2))
# Points.
_SMALL_FONT = 11
# What pictures can be saved as.
_FILE_ENDINGS = (".svg", ".png", ".pdf")
# How dark the event, and what the claim forbids, are shaded.
_SHADE = 0.14
# Names of outcomes are written along the axis only while they fit.
_MAX_OUTCOME_NAMES = 12
# Bars of repeated outcomes stand this fraction of their distance left and right of their place.
_OUTCOME_SHIFT = 0.12


def styled() -> AbstractContextManager[None]:
    """Returns a context in which pictures are drawn in the style of the reports."""
    from matplotlib import rc_context

    return rc_context(_STYLE)


def plot(result: AuditResult, kind: str | None = None) -> "Figure":
    """Returns the pictures of a result in one figure, one below the other.

    Args:
        result: what to draw.
        kind: only one of them: "outputs", "trade-off", "profile", "search" or "wealth".
    """
    if kind is not None:
        check_choice("kind", kind, _KINDS)
    candidates = [*panels.outputs_panels(result), *panels.panels(result)]
    chosen = [panel for panel in candidates if kind is None or isinstance(panel, _KINDS[kind])]
    if not chosen:
        wanted = "" if kind is None else f" for kind={kind!r}"
        raise InputError(f"this result holds nothing to draw{wanted}")
    return draw(chosen, TONES[result.verdict])


def draw(chosen: Sequence[panels.Panel], tone: str) -> "Figure":
    """Returns panels one below the other; several have titles."""
    from matplotlib.figure import Figure

    with styled():
        picture = Figure(figsize=(_WIDTH, _HEIGHT * len(chosen)), layout="constrained")
        for place, panel in enumerate(chosen, start=1):
            axes = picture.add_subplot(len(chosen), 1, place)
            if len(chosen) > 1:
                axes.set_title(panel.title, loc="left", fontsize=12, fontweight="bold")
            _DRAWINGS[type(panel)](panel, axes, tone)
    return picture


def plot_loss(result: AuditResult) -> "Figure":
    """Returns the figure of a result's loss function.

    Raises:
        InputError: the outputs are not one-dimensional, or an old result does not hold their
            counts.
    """
    panel = loss_panel(result)
    if panel is None:
        raise InputError(
            "this result holds no loss function: "
            "it is kept for audits whose outputs are single numbers or names"
        )
    return draw_loss(panel, result.verdict)


def draw_loss(panel: LossPanel, verdict: Verdict | None) -> "Figure":
    """Returns densities or probabilities above, the loss below."""
    from matplotlib.figure import Figure

    with styled():
        picture = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        above, below = picture.subplots(2, 1, sharex=True)
        _draw_distributions(panel, above)
        _draw_losses(panel, below, TONES[verdict])
    return picture


def panel_svg(panel: panels.Panel, verdict: Verdict | None) -> str:
    """Returns one panel as an SVG element for a page."""
    if isinstance(panel, LossPanel):
        picture = draw_loss(panel, verdict)
    else:
        picture = draw([panel], TONES[verdict])
    return page_svg(picture, panel.description, type(panel).__name__)


def page_svg(picture: "Figure", description: str, salt: str) -> str:
    """Returns a figure as an SVG element that follows the page and is the same in every run.

    It has no fixed colours, and no ids that could clash with another picture's.

    Args:
        picture: what to write.
        description: what it shows, for readers who cannot see it.
        salt: makes ids differ from those of other pictures on the page.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with rc_context({**_STYLE, "svg.hashsalt": salt}):
        picture.savefig(file, format="svg", metadata=nothing)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    # Its style would apply to the whole page; nobody needs its metadata and comments.
    superfluous = r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->\n?"
    text = re.sub(superfluous, "", text, flags=re.DOTALL)
    text = text.replace("xlink:href", "href")
    text = _without_unused_ids(text)
    text = re.sub(r"font-family: [^;\"]*; ", "", text)
    for colour, name in _VARIABLES.items():
        text = text.replace(colour, f"var({name})")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0]
    label = f'role="img" aria-label="{escape(description)}"'
    head = f'<svg class="plot" viewBox="0 0 {width} {height}" {label}>'
    body = text[text.index(">") + 1 :]
    return re.sub(r"\n\s*", "\n", head + body).strip()


def _without_unused_ids(svg: str) -> str:
    linked = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))

    def kept_if_linked(attribute: re.Match[str]) -> str:
        return attribute.group() if attribute.group(1) in linked else ""

    return re.sub(r' id="([^"]*)"', kept_if_linked, svg)


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes the picture, the same bytes every time."""
    ending = path.suffix.lower()
    if ending not in _FILE_ENDINGS:
        raise InputError(f"path={str(path)!r} must end in {', '.join(_FILE_ENDINGS)}")
    import matplotlib

    # Any: matplotlib types it as a dict of some 300 literal names.
    reproducible: Any = {"svg.hashsalt": "epsilometer", "svg.fonttype": "path"}
    metadata = {"Date": None} if ending == ".svg" else None
    with writing(path) as file, matplotlib.rc_context(reproducible):
        figure.savefig(file, format=ending.removeprefix("."), metadata=metadata)


def _draw_outputs(panel: panels.OutputsPanel, axes: "Axes", tone: str) -> None:
    if panel.is_histogram:
        places = (panel.edges[1:] + panel.edges[:-1]) / 2.0
        widths = np.diff(panel.edges)
    else:
        places = np.arange(len(panel.bins), dtype=np.float64)
        widths = np.full(len(places), 0.8)
    for place, width, inside in zip(places, widths, panel.inside, strict=True):
        start = place - width / 2
        end = place + width / 2
        axes.axvspan(start, end, color=INK, alpha=_SHADE * float(inside), linewidth=0)
    if panel.is_histogram:
        axes.stairs(panel.left, panel.edges, color=LEFT, fill=True, alpha=0.45, label="left input")
        axes.stairs(
            panel.right, panel.edges, color=RIGHT, fill=True, alpha=0.45, label="right input"
        )
    else:
        axes.bar(places - 0.2, panel.left, 0.4, color=LEFT, label="left input")
        axes.bar(places + 0.2, panel.right, 0.4, color=RIGHT, label="right input")
        axes.set_xticks(places, [cut(value, 10) for value in panel.bins])
    axes.set(xlabel=panel.name, ylabel="share of draws")
    axes.legend(loc="best", fontsize=_SMALL_FONT)


def _draw_trade_off(panel: panels.TradeOffPanel, axes: "Axes", tone: str) -> None:
    if panel.claimed is not None:
        axes.fill_between(panel.q, panel.claimed, 1.0, color=MUTED, alpha=_SHADE, linewidth=0)
        axes.plot(panel.q, panel.claimed, color=INK, label="claimed: at most")
    axes.plot(panel.q, panel.certified, color=tone, label="certified: at least")
    q = [corner.q for corner in panel.corners]
    p = [corner.p for corner in panel.corners]
    axes.plot(q, p, "o", color=tone, markersize=5 if len(q) == 1 else 3)
    observed = panel.observed
    axes.plot(observed.q, observed.p, "D", color=RIGHT, markersize=5, label="observed")
    if panel.is_log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_log_ticks(axes.xaxis)
        _plain_log_ticks(axes.yaxis)
        axes.set_ylim(max(float(panel.certified.min()), 1e-12), 1.05)
        axes.set_xlim(float(panel.q[0]), 1.0)
    else:
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
    axes.set(xlabel="probability under the other input", ylabel="probability under one input")
    axes.legend(loc="lower right", fontsize=_SMALL_FONT)
    if panel.claimed is not None:
        _mark_forbidden(axes, "left")


def _draw_profile(panel: panels.ProfilePanel, axes: "Axes", tone: str) -> None:
    if panel.claimed is not None:
        drawn = np.maximum(panel.claimed, panel.min_delta)
        axes.fill_between(panel.epsilon, drawn, 1.0, color=MUTED, alpha=_SHADE, lw=0)
        claimed = _ending_at(panel.claimed, panel.min_delta)
        axes.plot(panel.epsilon, claimed, color=INK, label="claimed: at most")
    certified = _ending_at(panel.certified, panel.min_delta)
    axes.plot(panel.epsilon, certified, color=tone, label="certified: at least")
    axes.set_yscale("log")
    _plain_log_ticks(axes.yaxis)
    axes.set(xlim=(0.0, float(panel.epsilon[-1])), ylim=(panel.min_delta, 1.0))
    axes.set(xlabel="ε", ylabel="δ")
    axes.legend(loc="lower left", fontsize=_SMALL_FONT)
    if panel.claimed is not None:
        _mark_forbidden(axes, "right")


def _draw_search(panel: panels.SearchPanel, axes: "Axes", tone: str) -> None:
    trials = np.arange(1, len(panel.scores) + 1)
    scores = _with_nan(panel.scores)
    axes.plot(trials, scores, "o", color=LEFT, markersize=4, alpha=0.75, label="trial")
    axes.step(trials, panel.best, where="post", color=tone, label="best so far")
    certified = _with_nan(panel.certified)
    is_certified = np.isfinite(certified)
    if is_certified.any():
        axes.plot(
            trials[is_certified],
            certified[is_certified],
            "D",
            color=RIGHT,
            markersize=6,
            label="certified",
        )
    if panel.claimed is not None:
        axes.axhline(panel.claimed, color=INK, linestyle=_DASHED, linewidth=1.4, label="claim")
    axes.set(xlabel="trial", ylabel=panel.label)
    axes.locator_params(axis="x", integer=True)
    axes.margins(y=0.12)
    axes.legend(loc="best", fontsize=_SMALL_FONT)


def _with_nan(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values])


def _draw_wealth(panel: panels.WealthPanel, axes: "Axes", tone: str) -> None:
    axes.plot(panel.draws, panel.wealth, color=tone, label="evidence")
    axes.axhline(
        panel.needed, color=INK, linestyle=_DASHED, linewidth=1.4, label="refutes the claim"
    )
    if min(panel.wealth) > 0.0:
        axes.set_yscale("log")
        _plain_log_ticks(axes.yaxis)
    axes.set(xlabel="draws per input", ylabel="evidence against the claim")
    axes.legend(loc="best", fontsize=_SMALL_FONT)


_DRAWINGS: "dict[type[panels.Panel], Callable[[Any, Axes, str], None]]" = {
    panels.OutputsPanel: _draw_outputs,
    panels.TradeOffPanel: _draw_trade_off,
    panels.ProfilePanel: _draw_profile,
    panels.SearchPanel: _draw_search,
    panels.WealthPanel: _draw_wealth,
}
_KINDS: dict[str, type[panels.Panel]] = {
    "outputs": panels.OutputsPanel,
    "trade-off": panels.TradeOffPanel,
    "profile": panels.ProfilePanel,
    "search": panels.SearchPanel,
    "wealth": panels.WealthPanel,
}


def _draw_distributions(panel: LossPanel, axes: "Axes") -> None:
    curve = panel.curve
    outcomes = panel.outcomes
    has_curve = len(curve.points) > 0
    if has_curve:
        axes.plot(curve.points, curve.left, color=LEFT, label="left input")
        axes.plot(curve.points, curve.right, color=RIGHT, label="right input")
        axes.set_ylabel("density")
    if outcomes.names:
        # Probabilities beside densities need an axis of their own.
        bars = axes.twinx() if has_curve else axes
        shift = _OUTCOME_SHIFT * _outcome_spacing(panel)
        left_positions = outcomes.positions - shift
        right_positions = outcomes.positions + shift
        bars.vlines(left_positions, 0.0, outcomes.left, color=LEFT, linewidth=3, label="left input")
        bars.vlines(
            right_positions, 0.0, outcomes.right, color=RIGHT, linewidth=3, label="right input"
        )
        bars.set_ylim(bottom=0.0)
        bars.set_ylabel("probability")
    axes.set_ylim(0.0, 1.35 * axes.get_ylim()[1])  # room for the legend
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="best", fontsize=_SMALL_FONT)


def _outcome_spacing(panel: LossPanel) -> float:
    """The distance on the axis within which the two bars of an outcome must stay."""
    points = panel.curve.points
    positions = panel.outcomes.positions
    if len(points):
        return float(points[-1] - points[0]) / 40.0
    return float(np.diff(positions).min()) if len(positions) > 1 else 1.0


def _draw_losses(panel: LossPanel, axes: "Axes", tone: str) -> None:
    curve = panel.curve
    outcomes = panel.outcomes
    lower_end = curve.loss - curve.band
    upper_end = curve.loss + curve.band
    axes.fill_between(curve.points, lower_end, upper_end, color=tone, alpha=0.2, lw=0)
    axes.plot(curve.points, curve.loss, color=tone)
    axes.plot(outcomes.positions, outcomes.loss, "o", color=tone, markersize=5)
    if panel.claimed is not None:
        axes.axhline(panel.claimed, color=INK, linestyle=_DASHED, linewidth=1.4)
        _annotate_height(axes, panel.claimed, "claimed")
    elif panel.mark.location is not None:
        axes.axvline(panel.mark.location, color=MUTED, linestyle=_DASHED, linewidth=1.2)
        axes.axhline(panel.mark.estimate, color=INK, linestyle=_DOTTED, linewidth=1.2)
        _annotate_height(axes, panel.mark.estimate, "at the mark")
    axes.set(xlabel="output", ylabel="loss")
    lines = [panel.mark.estimate, panel.claimed or 0.0]
    heights = np.concatenate([upper_end, outcomes.loss, lines])
    axes.set_ylim(0.0, 1.3 * float(np.nanmax(heights)) or 1.0)
    if not len(curve.points) and len(outcomes.names) <= _MAX_OUTCOME_NAMES:
        axes.set_xticks(outcomes.positions, outcomes.names)


def _annotate_height(axes: "Axes", height: float, name: str) -> None:
    axes.annotate(
        f"{name}: {short(height)}",
        (0.98, height),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=_SMALL_FONT,
    )


def _mark_forbidden(axes: "Axes", side: str) -> None:
    axes.text(
        0.03 if side == "left" else 0.97,
        0.94,
        "forbidden by the claim",
        transform=axes.transAxes,
        ha=side,
        va="top",
        fontsize=_SMALL_FONT,
        color=MUTED,
    )


def _ending_at(values: Floats, end: float) -> Floats:
    """Values for a logarithmic axis that ends there.

    The first value below the end is moved to it, so that the line comes down; the rest is nan.
    """
    is_below = values < end
    is_further_below = np.roll(is_below, 1) & is_below
    return np.where(is_below, np.where(is_further_below, np.nan, end), values)


def _plain_log_ticks(axis: Any) -> None:
    """Writes 0.01 and 1e-05 at powers of ten instead of 10⁻², so that no math text is needed."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
