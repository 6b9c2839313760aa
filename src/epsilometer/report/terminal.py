"""A result for people at a terminal: a coloured panel, or the plain text when nobody is there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from epsilometer.report import wording
from epsilometer.report.text import LABEL, render_text, sections
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:  # slow to import, and not needed when the output is piped
    from rich.console import Console
    from rich.panel import Panel

COLOURS = {Verdict.REFUTED: "red", Verdict.NOT_REFUTED: "cyan", Verdict.INCONCLUSIVE: "yellow", None: "blue"}
# Longer lines are hard to read.
MOST_WIDTH = 104


def show_result(result: AuditResult, console: Console | None = None) -> None:
    """Prints a result on standard output, or on a rich console.

    Args:
        result: what to show.
        console: None makes one if standard output is a terminal.
    """
    if console is None and not sys.stdout.isatty():
        sys.stdout.write(render_text(result) + "\n")
        return
    if console is None:
        from rich.console import Console

        console = Console()
    console.print(render_panel(result, min(MOST_WIDTH, console.width)))


def render_panel(result: AuditResult, width: int = MOST_WIDTH) -> Panel:
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
    body = Group(*parts)
    return Panel(body, title=headline, title_align="left", border_style=colour, width=width, padding=(0, 1))
