"""Lists for people (a table that fits the terminal) and for pipes (aligned columns, one line each)."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_rows(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows under headers."""
    if sys.stdout.isatty():
        _print_table(headers, rows)
        return
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")


def _print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
