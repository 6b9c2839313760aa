"""A result as plain text, and as a coloured panel for terminals."""

import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TextIO

from epsilometer.report import wording
from epsilometer.report.formatting import plain
from epsilometer.report.reservations import recorded_rows, reservations
from epsilometer.report.wording import SIDES, ReportRow, known_rows
from epsilometer.result import AuditResult, Verdict, Witness

if TYPE_CHECKING:
    from rich.console import Console
    from rich.panel import Panel


# Characters of a line of plain text.
_WIDTH = 100
# Characters by which titles are indented; rows are indented twice as far.
_INDENT = 2
# Characters of the longest label, "would be seen", and a gap.
LABEL_WIDTH = 15
# Characters of a panel: longer lines are hard to read.
MAX_PANEL_WIDTH = 104
COLOURS = {
    Verdict.REFUTED: "red",
    Verdict.NOT_REFUTED: "cyan",
    Verdict.INCONCLUSIVE: "yellow",
    None: "blue",
}


class Section(NamedTuple):
    """Rows under a title."""

    title: str
    rows: list[ReportRow]


def render_text(result: AuditResult) -> str:
    """Returns the result in plain words, ready to be printed or logged."""
    wrapper = textwrap.TextWrapper(
        width=_WIDTH,
        subsequent_indent=" " * (2 * _INDENT + LABEL_WIDTH),
        break_on_hyphens=False,
    )
    lines = [f"{wording.headline(result)}: {wording.verdict_sentence(result)}", ""]
    for section in sections(result):
        if section.title:
            lines += ["", " " * _INDENT + section.title]
        for label, text in section.rows:
            wrapper.initial_indent = " " * (2 * _INDENT) + label.ljust(LABEL_WIDTH)
            lines += wrapper.wrap(text) or [wrapper.initial_indent.rstrip()]
    return "\n".join(lines)


def sections(result: AuditResult) -> Iterator[Section]:
    """Yields the parts of a report; the first has no title."""
    yield Section(
        "",
        known_rows(
            ("with", reservations(result.settings)),
            ("bound", wording.bound_sentence(result)),
            ("confidence", wording.confidence_sentence(result)),
            *wording.power_rows(result),
            ("meaning", wording.meaning_sentence(result)),
        ),
    )
    if result.witness is not None and not wording.is_blind(result):
        title = "Counterexample" if result.verdict is Verdict.REFUTED else "Strongest evidence"
        yield Section(title, _witness_rows(result, result.witness))
    secondary = _secondary_rows(result)
    if secondary:
        yield Section("Also found", secondary)
    searched = wording.search_rows(result)
    if searched:
        yield Section("Inputs tried", searched)
    yield Section("This run", _run_rows(result))


def _witness_rows(result: AuditResult, witness: Witness) -> list[ReportRow]:
    inputs = []
    counts = []
    for side, name in enumerate(SIDES):
        inputs.append((f"{name} input", wording.input_text(result, witness, side)))
        count = wording.count_sentence(witness, side)
        certified = wording.certified_sentence(witness, side)
        counts.append((f"under {name}", f"{count}, {certified}"))
    return known_rows(
        *inputs,
        ("difference", wording.difference_text(result, witness)),
        ("event", wording.event_text(witness)),
        *counts,
    )


def _secondary_rows(result: AuditResult) -> list[ReportRow]:
    """The findings that did not decide."""
    rows = []
    for finding in result.findings[1:]:
        label = plain(finding.method)[: LABEL_WIDTH - 1]
        rows.append(ReportRow(label, wording.secondary_sentence(finding)))
        if finding.witness is not None:
            rows.append(ReportRow("event", wording.event_text(finding.witness)))
    return rows


def _run_rows(result: AuditResult) -> list[ReportRow]:
    remarks = wording.health_lines(result) or [wording.unusual_sentence(result)]
    return known_rows(
        ("samples", wording.effort_sentence(result)),
        ("recorded", recorded_rows(result.settings)),
        *(("draws", remark) for remark in remarks),
        ("date", wording.date_text(result)),
        ("code", wording.identity_text(result)),
        ("repeat", wording.repeat_sentence(result)),
        ("replay", wording.replay_hint(result)),
    )


def show_result(
    result: AuditResult, console: "Console | None" = None, file: TextIO | None = None
) -> None:
    """Prints a result on standard output, or on a rich console.

    Args:
        result: what to show.
        console: None makes one if standard output is a terminal.
        file: instead of standard output.
    """
    stream = sys.stdout if file is None else file
    if console is None:
        if not stream.isatty():
            stream.write(render_text(result) + "\n")
            return
        from rich.console import Console

        console = Console(file=stream)
    console.print(render_panel(result, min(MAX_PANEL_WIDTH, console.width)))


def render_panel(result: AuditResult, width: int = MAX_PANEL_WIDTH) -> "Panel":
    """Returns the result as a rich panel in the colour of its verdict."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    colour = COLOURS[wording.coloured_as(result)]
    parts: list[Text | Table] = [Text(wording.verdict_sentence(result), style="bold")]
    for section in sections(result):
        parts.append(Text(f"\n{section.title}" if section.title else "", style=colour))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True, min_width=LABEL_WIDTH - 2)
        grid.add_column(overflow="fold")
        for label, text in section.rows:
            # Text, never markup: an output may look like a rich tag.
            grid.add_row(label, Text(text))
        parts.append(grid)
    return Panel(
        Group(*parts),
        title=Text(f" {wording.headline(result)} ", style=f"bold reverse {colour}"),
        title_align="left",
        border_style=colour,
        width=width,
        padding=(0, 1),
    )
