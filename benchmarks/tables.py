"""The measurements as tables: for the terminal, and as Markdown for a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement

_HEADINGS = ("measurement", "figure", "target", "met", "how")
# Columns of figures are set to the right.
_FIGURES = ("figure", "target", "met")


def print_table(title: str, measured: Sequence[Measurement]) -> None:
    """One group on the terminal."""
    table = Table(title=title, title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right" if heading in _FIGURES else "left")
    for each in measured:
        table.add_row(*_cells(each))
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def markdown(measured: Sequence[Measurement]) -> str:
    """All groups, one table each."""
    lines: list[str] = []
    for group in dict.fromkeys(each.group for each in measured):
        rules = ["---:" if heading in _FIGURES else "---" for heading in _HEADINGS]
        lines += [f"## {group}", "", _row(_HEADINGS), _row(rules)]
        lines += [_row(_cells(each)) for each in measured if each.group == group] + [""]
    return "\n".join(lines)


def _cells(each: Measurement) -> tuple[str, ...]:
    target = "" if each.target is None else f"{each.relation} {each.target:g} {each.unit}"
    met = {True: "yes", False: "no", None: ""}[each.is_met]
    return each.name, f"{each.value:.3g} {each.unit}", target, met, each.detail


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
