"""Draws the panels with matplotlib: as a figure for notebooks, as SVG that follows the colours of the page."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.claims.base import check_choice
from epsilometer.errors import InputError
from epsilometer.report import panels
from epsilometer.report.plot_data import LossPanel, loss_panel
from epsilometer.report.wording import cut, percent
from epsilometer.report.wording import figure as short
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# In inches of 72 dots: two pictures fit side by side in a report, one fills a phone.
SIZE = (5.0, 3.6)
# The light colours of the page. In SVG each is replaced by the variable of its name, so that a dark
# page recolours it.
INK, MUTED, LINE, LEFT, RIGHT = "#1b1e23", "#59616b", "#e0e0db", "#2c64c4", "#b4570f"
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
}
_VARIABLES |= dict.fromkeys(TONES.values(), "--tone")
_STYLE: Any = {  # Any: matplotlib types it as a dict of some 300 literal names
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), MUTED),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top", "axes.unicode_minus"), False),
    **dict.fromkeys(
        ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.edgecolor"), "none"
    ),
    **dict.fromkeys(("legend.labelcolor", "text.color"), INK),
    "svg.fonttype": "none",  # keep text as text: smaller, searchable, in the page's font
}
_STYLE |= {"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 12.0}
_STYLE |= {
    "axes.linewidth": 0.8,
    "legend.facecolor": CARD,
    "legend.framealpha": 0.75,
    "lines.linewidth": 2.0,
}


def styled() -> AbstractContextManager[None]:
    """The house style of pictures, to draw in."""
    from matplotlib import rc_context

    return rc_context(_STYLE)


def plot(result: AuditResult, kind: str | None = None) -> "Figure":
    """The pictures of a result in one figure, one below the other.

    Args:
        result: what to draw.
        kind: only one of them: "outputs", "trade-off", "profile", "search" or "wealth".
    """
    known = dict(
        zip(("outputs", "trade-off", "profile", "search", "wealth"), _DRAWINGS, strict=True)
    )
    if kind is not None:
        check_choice("kind", kind, known)
    every = [*panels.outputs_panels(result), *panels.panels(result)]
    chosen = [panel for panel in every if kind is None or isinstance(panel, known[kind])]
    if not chosen:
        raise InputError(
            f"this result holds nothing to draw{'' if kind is None else f' for kind={kind!r}'}"
        )
    return draw(chosen, TONES[result.verdict])


def draw(chosen: Sequence[panels.Panel], tone: str) -> "Figure":
    """Panels one below the other, with titles."""
    from matplotlib.figure import Figure

    with styled():
        picture = Figure(figsize=(SIZE[0], SIZE[1] * len(chosen)), layout="constrained")
        for place, panel in enumerate(chosen, start=1):
            axes = picture.add_subplot(len(chosen), 1, place)
            if len(chosen) > 1:
                axes.set_title(panel.title, loc="left", fontsize=12, fontweight="bold")
            _DRAWINGS[type(panel)](panel, axes, tone)
    return picture


def panel_svg(panel: panels.Panel, verdict: Verdict | None) -> str:
    """One panel as an SVG element for a page: no fixed colours, no ids that could clash with another picture's."""
    picture = (
        draw_loss(panel, verdict) if isinstance(panel, LossPanel) else draw([panel], TONES[verdict])
    )
    return page_svg(picture, panel.description, type(panel).__name__)


def page_svg(picture: "Figure", description: str, salt: str) -> str:
    """A figure as an SVG element that follows the page and is the same in every run.

    Args:
        picture: what to write.
        description: what it shows, for readers who cannot see it.
        salt: makes ids differ from those of other pictures on the page.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": salt}):
        picture.savefig(
            file,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = file.getvalue()
    text = text[text.index("<svg") :]
    # Its style would apply to the whole page; nobody needs its metadata and comments.
    text = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->\n?", "", text, flags=re.DOTALL
    )
    text = text.replace("xlink:href", "href")
    linked = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(
        r' id="([^"]*)"', lambda found: found.group() if found.group(1) in linked else "", text
    )
    text = re.sub(r"font-family: [^;\"]*; ", "", text)
    for colour, name in _VARIABLES.items():
        text = text.replace(colour, f"var({name})")
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0]
    head = f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(description)}">'
    return re.sub(r"\n\s*", "\n", head + text[text.index(">") + 1 :]).strip()


def outputs_svg(panel: panels.OutputsPanel) -> str:
    """The two distributions as an SVG element that fits any width and tells its values when hovered over.

    Without a script: each bin has a title, which browsers show; colours follow the page where it
    has any.
    """
    rows = _histogram_svg(panel) if len(panel.edges) else _bars_svg(panel)
    height = 190 if len(panel.edges) else 34 * len(panel.bins) + 4
    label = f'role="img" aria-label="{escape(panel.description)}"'
    return (
        f'<svg class="chart outputs" width="100%" height="{height}" {label}>{"".join(rows)}</svg>'
    )


def _hover(panel: panels.OutputsPanel, place: int) -> str:
    share = panel.inside[place]
    event = (
        "outside the event"
        if share < 0.01
        else f"{'' if share > 0.99 else f'{percent(share)} '}in the event"
    )
    shares = f"left {percent(panel.left[place])}, right {percent(panel.right[place])}"
    return f"<title>{escape(panel.name)} {escape(panel.bins[place])}: {shares}, {event}</title>"


def _coloured(panel: panels.OutputsPanel) -> tuple[tuple[np.ndarray, str], ...]:
    return (panel.left, f"var(--left,{LEFT})"), (panel.right, f"var(--right,{RIGHT})")


def _histogram_svg(panel: panels.OutputsPanel) -> Iterator[str]:
    width = 100.0 / len(panel.bins)
    top = max(float(panel.left.max()), float(panel.right.max()))
    for place in range(len(panel.bins)):
        x = f'x="{width * place:.3f}%" width="{width:.3f}%"'
        yield f"<g>{_hover(panel, place)}"
        shade = f'fill="var(--ink,currentColor)" opacity="{0.14 * panel.inside[place]:.3f}"'
        yield f'<rect {x} y="0" height="160" {shade}/>'
        for shares, colour in _coloured(panel):
            height = 150.0 * float(shares[place]) / top
            yield f'<rect {x} y="{160 - height:.1f}" height="{height:.1f}" fill="{colour}" opacity=".55"/>'
        yield "</g>"
    ends = [panel.bins[0].split(" to ")[0], panel.bins[-1].split(" to ")[1]]
    yield '<line x1="0" x2="100%" y1="160" y2="160" stroke="currentColor" opacity=".5"/>'
    yield f'<text class="axis" x="0" y="177">{escape(ends[0])}</text>'
    yield f'<text class="axis" x="50%" y="177" text-anchor="middle">{escape(panel.name)}</text>'
    yield f'<text class="axis" x="100%" y="177" text-anchor="end">{escape(ends[1])}</text>'


def _bars_svg(panel: panels.OutputsPanel) -> Iterator[str]:
    top = max(float(panel.left.max()), float(panel.right.max()))
    for place, value in enumerate(panel.bins):
        y = 34 * place
        yield f"<g>{_hover(panel, place)}"
        shade = f'fill="var(--ink,currentColor)" opacity="{0.14 * panel.inside[place]:.3f}"'
        yield f'<rect x="0" y="{y}" width="100%" height="32" {shade}/>'
        yield f'<text x="4" y="{y + 20}">{escape(cut(value, 22))}</text>'
        for row, (shares, colour) in enumerate(_coloured(panel)):
            share = float(shares[place])
            at = y + 3 + 14 * row
            yield f'<rect x="42%" y="{at}" width="{44.0 * share / top:.2f}%" height="12" fill="{colour}" opacity=".8"/>'
            yield f'<text class="axis" x="{42.5 + 44.0 * share / top:.2f}%" y="{at + 10}">{percent(share)}</text>'
        yield "</g>"


def _draw_outputs(panel: panels.OutputsPanel, axes: "Axes", tone: str) -> None:
    places = (
        np.arange(len(panel.bins))
        if not len(panel.edges)
        else (panel.edges[1:] + panel.edges[:-1]) / 2.0
    )
    widths = np.full(len(places), 0.8) if not len(panel.edges) else np.diff(panel.edges)
    for place, width, share in zip(places, widths, panel.inside, strict=True):
        axes.axvspan(
            place - width / 2, place + width / 2, color=INK, alpha=0.14 * float(share), linewidth=0
        )
    if len(panel.edges):
        for shares, colour, name in (
            (panel.left, LEFT, "left input"),
            (panel.right, RIGHT, "right input"),
        ):
            axes.stairs(shares, panel.edges, color=colour, fill=True, alpha=0.45, label=name)
    else:
        axes.bar(places - 0.2, panel.left, 0.4, color=LEFT, label="left input")
        axes.bar(places + 0.2, panel.right, 0.4, color=RIGHT, label="right input")
        axes.set_xticks(places, [cut(value, 10) for value in panel.bins])
    axes.set(xlabel=panel.name, ylabel="share of draws")
    axes.legend(loc="best", fontsize=11)


def _draw_trade_off(panel: panels.TradeOffPanel, axes: "Axes", tone: str) -> None:
    if panel.claimed is not None:
        axes.fill_between(panel.q, panel.claimed, 1.0, color=MUTED, alpha=0.14, linewidth=0)
        axes.plot(panel.q, panel.claimed, color=INK, label="claimed: at most")
    axes.plot(panel.q, panel.certified, color=tone, label="certified: at least")
    q, p = zip(*panel.corners, strict=True)
    axes.plot(q, p, "o", color=tone, markersize=5 if len(q) == 1 else 3)
    axes.plot(*panel.seen, "D", color=RIGHT, markersize=5, label="observed")
    if panel.is_log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_ticks(axes, "both")
        axes.set_ylim(max(float(panel.certified.min()), 1e-12), 1.05)
        axes.set_xlim(float(panel.q[0]), 1.0)
    else:
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
    axes.set(xlabel="probability under the other input", ylabel="probability under one input")
    axes.legend(loc="lower right", fontsize=11)
    _mark_forbidden(axes, panel.claimed is not None, "left")


def _draw_profile(panel: panels.ProfilePanel, axes: "Axes", tone: str) -> None:
    if panel.claimed is not None:
        axes.fill_between(
            panel.epsilon,
            np.maximum(panel.claimed, panel.least),
            1.0,
            color=MUTED,
            alpha=0.14,
            lw=0,
        )
        axes.plot(
            panel.epsilon, _above(panel.claimed, panel.least), color=INK, label="claimed: at most"
        )
    axes.plot(
        panel.epsilon, _above(panel.certified, panel.least), color=tone, label="certified: at least"
    )
    axes.set_yscale("log")
    _plain_ticks(axes, "y")
    axes.set(xlim=(0.0, float(panel.epsilon[-1])), ylim=(panel.least, 1.0), xlabel="ε", ylabel="δ")
    axes.legend(loc="lower left", fontsize=11)
    _mark_forbidden(axes, panel.claimed is not None, "right")


def _draw_search(panel: panels.SearchPanel, axes: "Axes", tone: str) -> None:
    trials = np.arange(1, len(panel.scores) + 1)
    scores = np.array([np.nan if score is None else score for score in panel.scores])
    axes.plot(trials, scores, "o", color=LEFT, markersize=4, alpha=0.75, label="trial")
    axes.step(trials, panel.best, where="post", color=tone, label="best so far")
    proved = [
        (trial, bound)
        for trial, bound in zip(trials, panel.certified, strict=True)
        if bound is not None
    ]
    if proved:
        axes.plot(*zip(*proved, strict=True), "D", color=RIGHT, markersize=6, label="certified")
    if panel.claimed is not None:
        axes.axhline(panel.claimed, color=INK, linestyle=(0, (4, 3)), linewidth=1.4, label="claim")
    axes.set(xlabel="trial", ylabel=panel.label)
    axes.locator_params(axis="x", integer=True)
    axes.margins(y=0.12)
    axes.legend(loc="best", fontsize=11)


def _draw_wealth(panel: panels.WealthPanel, axes: "Axes", tone: str) -> None:
    axes.plot(panel.draws, panel.wealth, color=tone, label="evidence")
    axes.axhline(
        panel.needed, color=INK, linestyle=(0, (4, 3)), linewidth=1.4, label="refutes the claim"
    )
    if min(panel.wealth) > 0.0:
        axes.set_yscale("log")
        _plain_ticks(axes, "y")
    axes.set(xlabel="draws per input", ylabel="evidence against the claim")
    axes.legend(loc="best", fontsize=11)


_DRAWINGS: "dict[type[panels.Panel], Callable[[Any, Axes, str], None]]" = {
    panels.OutputsPanel: _draw_outputs,
    panels.TradeOffPanel: _draw_trade_off,
    panels.ProfilePanel: _draw_profile,
    panels.SearchPanel: _draw_search,
    panels.WealthPanel: _draw_wealth,
}


def _mark_forbidden(axes: "Axes", is_claimed: bool, side: str) -> None:
    if is_claimed:
        place = 0.03 if side == "left" else 0.97
        words = "forbidden by the claim"
        axes.text(
            place,
            0.94,
            words,
            transform=axes.transAxes,
            ha=side,
            va="top",
            fontsize=11,
            color=MUTED,
        )


def _above(values: np.ndarray, least: float) -> np.ndarray:
    """Values for a logarithmic axis: the first one below its end is moved there, so that the line comes down."""
    below = values < least
    return np.where(below, np.where(np.roll(below, 1) & below, np.nan, least), values)


def _plain_ticks(axes: "Axes", which: str) -> None:
    """Numbers like 0.01 and 1e-05 at powers of ten instead of 10⁻², so that no math text is needed."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in ("x", "y") if which == "both" else (which,):
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axis.set_minor_formatter(NullFormatter())


# Names of outcomes are written along the axis only while they fit.
_MOST_NAMES = 12


def plot_loss(result: AuditResult) -> "Figure":
    """The figure of a result's loss function.

    Raises:
        InputError: the outputs are not one-dimensional, or an old result does not hold their
            counts.
    """
    if (panel := loss_panel(result)) is None:
        missing = "it is kept for audits whose outputs are single numbers or names"
        raise InputError(f"this result holds no loss function: {missing}")
    return draw_loss(panel, result.verdict)


def draw_loss(panel: LossPanel, verdict: Verdict | None) -> "Figure":
    """Densities or probabilities above, the loss below."""
    from matplotlib.figure import Figure

    with styled():
        picture = Figure(figsize=SIZE, layout="constrained")
        above, below = picture.subplots(2, 1, sharex=True)
        _draw_laws(panel, above)
        _draw_losses(panel, below, TONES[verdict])
    return picture


def _draw_laws(panel: LossPanel, axes: "Axes") -> None:
    if len(panel.points):
        axes.plot(panel.points, panel.left, color=LEFT, label="left input")
        axes.plot(panel.points, panel.right, color=RIGHT, label="right input")
        axes.set_ylabel("density")
    if len(panel.atoms):
        shares = axes.twinx() if len(panel.points) else axes
        if len(panel.points):
            spacing = float(panel.points[-1] - panel.points[0]) / 40.0
        else:
            spacing = float(np.diff(panel.atom_places).min()) if len(panel.atom_places) > 1 else 1.0
        shift = 0.12 * spacing
        shares.vlines(
            panel.atom_places - shift,
            0.0,
            panel.left_atoms,
            color=LEFT,
            linewidth=3,
            label="left input",
        )
        shares.vlines(
            panel.atom_places + shift,
            0.0,
            panel.right_atoms,
            color=RIGHT,
            linewidth=3,
            label="right input",
        )
        shares.set_ylim(bottom=0.0)
        shares.set_ylabel("probability")
    axes.set_ylim(0.0, 1.35 * axes.get_ylim()[1])  # room for the legend
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="best", fontsize=11)


def _draw_losses(panel: LossPanel, axes: "Axes", tone: str) -> None:
    axes.fill_between(
        panel.points,
        panel.loss - panel.spread,
        panel.loss + panel.spread,
        color=tone,
        alpha=0.2,
        lw=0,
    )
    axes.plot(panel.points, panel.loss, color=tone)
    axes.plot(panel.atom_places, panel.atom_loss, "o", color=tone, markersize=5)
    if panel.claimed is not None:
        axes.axhline(panel.claimed, color=INK, linestyle=(0, (4, 3)), linewidth=1.4)
    elif panel.location is not None:
        axes.axvline(panel.location, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.axhline(panel.estimate, color=INK, linestyle=(0, (1, 2)), linewidth=1.2)
    if panel.claimed is not None or panel.location is not None:
        height, what = (
            (panel.estimate, "at the mark") if panel.claimed is None else (panel.claimed, "claimed")
        )
        text = f"{what}: {short(height)}"
        where = ("axes fraction", "data")
        axes.annotate(text, (0.98, height), xycoords=where, ha="right", va="bottom", fontsize=11)
    axes.set(xlabel="output", ylabel="loss")
    highest = np.concatenate(
        [panel.loss + panel.spread, panel.atom_loss, [panel.estimate, panel.claimed or 0.0]]
    )
    axes.set_ylim(0.0, 1.3 * float(np.nanmax(highest)) or 1.0)
    if not len(panel.points) and len(panel.atoms) <= _MOST_NAMES:
        axes.set_xticks(panel.atom_places, panel.atoms)
