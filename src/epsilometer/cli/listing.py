"""`epsilometer methods` and `epsilometer zoo`: lists for people and for pipes."""

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


def methods() -> int:
    """List the methods that --method takes, with the names that --option takes for each.

    Installed packages may bring their own methods (entry points of the group epsilometer.methods).
    """
    from epsilometer.errors import InputError
    from epsilometer.methods.registry import find_method, names, option_names, origin

    rows = []
    for name in names():
        source = "" if origin(name) == "epsilometer" else f" (from {origin(name)})"
        try:
            method = find_method(name)
        except InputError as error:  # another package's method; the list continues
            rows.append((name, "?", f"{error}{source}", ""))
            continue
        rows.append((name, method.guarantee, method.summary + source, ", ".join(option_names(name))))
    print_rows(("name", "guarantee", "summary", "options"), rows)
    return 0


def zoo() -> int:
    """List the reference mechanisms.

    Audit one with: epsilometer audit zoo:NAME. Parameters follow a question mark: "zoo:laplace?epsilon=.7".
    Mechanisms of installed packages are listed below them: epsilometer audit plugin:NAME.
    """
    from epsilometer import zoo as mechanisms
    from epsilometer.mechanisms.libraries import brought_mechanisms

    rows = []
    for name in mechanisms.names():
        entry = mechanisms.find(name)
        rows.append((name, entry.claim.describe(), "kept" if entry.keeps_claim else "broken", entry.summary))
    print_rows(("name", "claim", "in truth", "summary"), rows)
    if brought_mechanisms():
        sys.stdout.write("\n")
        plugins = sorted(brought_mechanisms().values(), key=lambda each: each.name)
        print_rows(("name", "defined in"), [(f"plugin:{each.name}", each.value) for each in plugins])
    return 0
