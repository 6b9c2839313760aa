"""A result as plain text, as a coloured panel for terminals, and as a fragment of HTML for notebooks."""

import io
import sys
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, TextIO

from epsilometer.report import plot_data, wording
from epsilometer.report.wording import plain
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.panel import Panel


_WIDTH = 100
_INDENT = 2
# The longest label, "would be seen", and a gap.
LABEL = 15

Row = tuple[str, str]


def render_text(result: AuditResult) -> str:
    """The result in plain words, ready to be printed or logged."""
    wrapper = textwrap.TextWrapper(
        _WIDTH, subsequent_indent=" " * (2 * _INDENT + LABEL), break_on_hyphens=False
    )
    lines = [f"{wording.headline(result)}: {wording.verdict_sentence(result)}", ""]
    for title, rows in sections(result):
        if title:
            lines += ["", " " * _INDENT + title]
        for label, text in rows:
            wrapper.initial_indent = " " * (2 * _INDENT) + label.ljust(LABEL)
            lines += wrapper.wrap(text) or [wrapper.initial_indent.rstrip()]
    return "\n".join(lines)


def sections(result: AuditResult) -> Iterator[tuple[str, list[Row]]]:
    """Titles with rows of a label and a text; the first title is empty."""
    weakened = [("with", wording.reservations(result.settings))]
    bound = [
        ("bound", wording.bound_sentence(result)),
        ("confidence", wording.confidence_sentence(result)),
    ]
    beyond = [
        ("would be seen", wording.detectable_sentence(result)),
        ("meaning", wording.meaning_sentence(result)),
    ]
    yield "", _known([*weakened, *bound, *beyond])
    witness = result.witness
    if witness is not None:
        inputs = []
        counts = []
        for side, name in enumerate(("left", "right")):
            inputs.append((f"{name} input", wording.input_text(result, witness, side)))
            proved = f"{wording.count_sentence(witness, side)}, {wording.certified_sentence(witness, side)}"
            counts.append((f"under {name}", proved))
        between = [
            ("difference", wording.difference_text(result, witness)),
            ("event", wording.event_text(witness)),
        ]
        title = "Counterexample" if result.verdict is Verdict.REFUTED else "Strongest evidence"
        yield title, _known([*inputs, *between, *counts])
    beside: list[Row] = []
    for finding in result.findings[1:]:  # those that did not decide
        beside.append((plain(finding.method)[: LABEL - 1], wording.beside_sentence(finding)))
        if finding.witness is not None:
            beside.append(("event", wording.event_text(finding.witness)))
    if beside:
        yield "Also found", beside
    if searched := wording.search_rows(result):
        yield "Inputs tried", searched
    remarks = wording.health_lines(result) or [wording.unusual_sentence(result)]
    run = [
        ("samples", wording.effort_sentence(result)),
        ("recorded", wording.recorded_rows(result.settings)),
    ]
    run += [("draws", line) for line in remarks]
    about = [("date", wording.date_text(result)), ("code", wording.identity_text(result))]
    again = [("repeat", wording.repeat_sentence(result)), ("replay", wording.replay_hint(result))]
    yield "This run", _known([*run, *about, *again])


def _known(rows: Sequence[tuple[str, str | None]]) -> list[Row]:
    return [(label, text) for label, text in rows if text]


COLOURS = {
    Verdict.REFUTED: "red",
    Verdict.NOT_REFUTED: "cyan",
    Verdict.INCONCLUSIVE: "yellow",
    None: "blue",
}
# Longer lines are hard to read.
MOST_WIDTH = 104


def show_result(
    result: AuditResult, console: "Console | None" = None, file: TextIO | None = None
) -> None:
    """Prints a result on standard output, or on a rich console.

    Args:
        result: what to show.
        console: None makes one if standard output is a terminal.
        file: instead of standard output.
    """
    file = sys.stdout if file is None else file
    if console is None and not file.isatty():
        file.write(render_text(result) + "\n")
        return
    if console is None:
        from rich.console import Console

        console = Console(file=file)
    console.print(render_panel(result, min(MOST_WIDTH, console.width)))


def render_panel(result: AuditResult, width: int = MOST_WIDTH) -> "Panel":
    """The result as a rich panel in the colour of its verdict."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    colour = COLOURS[result.verdict]
    parts: list[Text | Table] = [Text(wording.verdict_sentence(result), style="bold")]
    for title, rows in sections(result):
        parts.append(Text(f"\n{title}" if title else "", style=colour))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True, min_width=LABEL - 2)
        grid.add_column(overflow="fold")
        for label, text in rows:
            # Text, never markup: an output may look like a rich tag.
            grid.add_row(label, Text(text))
        parts.append(grid)
    headline = Text(f" {wording.headline(result)} ", style=f"bold reverse {colour}")
    return Panel(
        Group(*parts),
        title=headline,
        title_align="left",
        border_style=colour,
        width=width,
        padding=(0, 1),
    )


# Readable on white and on dark grey alike: which one a notebook has is unknown.
_TONES = {
    Verdict.REFUTED: "#d64540",
    Verdict.NOT_REFUTED: "#1d8f8a",
    Verdict.INCONCLUSIVE: "#b8860b",
    None: "#5b6fd6",
}
_CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:none"


def render_fragment(result: AuditResult) -> str:
    """Verdict, bound against claim, both distributions of outputs, and the counted event."""
    from epsilometer.report.figures import outputs_svg
    from epsilometer.report.panels import outputs_panels

    tone = _TONES[result.verdict]
    square = '<span style="color:{}">■</span> {}'
    names = " ".join(
        square.format(*each)
        for each in (("#2c64c4", "left"), ("#b4570f", "right"), ("#8888", "event"))
    )
    style = '<div style="max-width:32em;font-size:90%;fill:currentColor">'
    pictures = [f"{style}{names}{outputs_svg(panel)}</div>" for panel in outputs_panels(result)[:1]]
    badge = f"background:{tone};color:#fff;padding:1px 8px;border-radius:9px;font-size:85%;font-weight:600"
    parts = [
        f'<div style="border-left:4px solid {tone};padding:4px 0 4px 12px;max-width:52em">',
        f'<div><span style="{badge}">{escape(wording.headline(result))}</span> '
        f"<b>{escape(wording.verdict_sentence(result))}</b></div>",
        *(
            f"<div><i>{escape(each)}</i></div>"
            for each in [wording.reservation_sentence(result)]
            if each
        ),
        f"<div>{escape(wording.bound_sentence(result))} {escape(wording.meaning_sentence(result))}</div>",
        _scale(result, tone),
        *pictures,
        f'<table style="border:0;margin:4px 0">{"".join(map(_row, _rows(result)))}</table>',
        "</div>",
    ]
    return "\n".join(parts)


def for_notebooks(picture: "Figure") -> "Figure":
    """A figure that every notebook shows as the last value of a cell, whatever it set up for matplotlib."""

    def as_png() -> bytes:
        file = io.BytesIO()
        picture.savefig(file, format="png", dpi=110, facecolor="white")
        return file.getvalue()

    setattr(picture, "_repr_png_", as_png)  # noqa: B010  # looked up by IPython, unknown to matplotlib's types
    return picture


def _scale(result: AuditResult, tone: str) -> str:
    """The bar of the bound with a mark at the claim."""
    scale = plot_data.claim_scale(result)
    claim = scale["claim"]
    words = escape(scale["description"])
    at = "" if claim is None else f'x1="{claim.x}" x2="{claim.x}" y1="0" y2="18"'
    mark = f'<line {at} stroke="currentColor" stroke-width="2"/>' if at else ""
    return (
        f'<svg width="100%" height="18" role="img" aria-label="{words}" style="max-width:32em">'
        '<rect width="100%" y="4" height="10" rx="3" fill="currentColor" opacity=".12"/>'
        f'<rect width="{scale["bound"].x}" y="4" height="10" rx="3" fill="{tone}"/>{mark}</svg>'
    )


def _rows(result: AuditResult) -> list[Row]:
    witness = result.witness
    rows: list[tuple[str, str | None]] = []
    if witness is not None:
        rows.append(("event", wording.event_text(witness)))
        for side, name in enumerate(("left", "right")):
            rows.append(
                (
                    name,
                    f"{wording.input_text(result, witness, side)}: {wording.count_sentence(witness, side)}",
                )
            )
        rows.append(("difference", wording.difference_text(result, witness)))
    rows.append(("confidence", wording.confidence_sentence(result)))
    rows.append(("would be seen", wording.detectable_sentence(result)))
    return _known(
        [
            *rows,
            *wording.search_rows(result),
            *(("draws", line) for line in wording.health_lines(result)),
        ]
    )


def _row(row: tuple[str, str]) -> str:
    label, text = row
    return f'<tr><td style="{_CELL};opacity:.7">{escape(label)}</td><td style="{_CELL}">{escape(text)}</td></tr>'
