"""What an experiment shows: a progress bar, a table, `results.json`, and figures."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.storage.writing import write_atomically, writing
from epsilometer_experiments.experiment import Results, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADINGS = ("case", "quantity", "expected", "measured", "± s.e.", "runs", "met", "source")


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each run; shows a bar with a time estimate on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, elapsed"),
    )
    times = (TimeElapsedColumn(), TextColumn("remaining"), TimeRemainingColumn())
    with Progress(*columns, *times, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=total)
        yield lambda: progress.advance(task)


def print_table(results: Results, wide: bool = False) -> None:
    """The comparison with what was expected, on stdout; if wide, the bare figures with a line per case."""
    from rich.console import Console
    from rich.table import Table

    headings, lines = (
        wide_table(results) if wide else (_HEADINGS, [table_cells(row) for row in results.rows])
    )
    table = Table(title=f"{results.experiment} ({results.seconds:.1f} s)", title_justify="left")
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(
            heading, justify="left" if heading in ("quantity", "met", "source") else "right"
        )
    for line in lines:
        table.add_row(*line)
    # A pipe has no width of its own; 140 columns hold every row.
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def wide_table(results: Results) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headings and the lines of a table with a line per case."""
    quantities = tuple(dict.fromkeys(row.quantity for row in results.rows))
    figures = {(row.case, row.quantity): f"{row.measured:.4g}" for row in results.rows}
    cases = [case.name for case in results.cases]
    return ("case", *quantities), [
        (case, *(figures.get((case, quantity), "") for quantity in quantities)) for case in cases
    ]


def table_cells(row: Row) -> tuple[str, ...]:
    """One line of the printed table."""
    return (
        row.case,
        row.quantity,
        row.target.describe() if row.target else "",
        f"{row.measured:.4g}",
        "" if row.standard_error is None else f"{row.standard_error:.2g}",
        str(len(row.values)),
        _met(row),
        row.target.source if row.target else "",
    )


def _met(row: Row) -> str:
    if row.target is not None and not row.is_judged:
        return "–"
    return {True: "yes", False: "no", None: ""}[row.is_met]


def write_markdown(results: Results, path: Path) -> None:
    """Writes the table with a line per case, for a page."""
    headings, lines = wide_table(results)
    rules = ["---", *["---:"] * (len(headings) - 1)]
    write_atomically(
        path, "".join(f"| {' | '.join(cells)} |\n" for cells in (headings, rules, *lines))
    )


def write_json(results: Results, path: Path) -> None:
    """Writes strict JSON: a figure that is not finite is null."""
    write_atomically(path, json.dumps(finite(results.to_dict()), indent=1, allow_nan=False))


def write_figures(figures: Iterable[tuple[str, Figure]], out: Path) -> list[Path]:
    """Writes each figure as SVG and PNG; the same figure gives the same bytes."""
    import matplotlib

    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "epsilometer"}):
        for stem, figure in figures:
            for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
                path = out / f"{stem}.{ending}"
                with writing(path) as file:
                    figure.savefig(
                        file, format=ending, metadata=metadata, dpi=150, bbox_inches="tight"
                    )
                paths.append(path)
    return paths


def legend_below(figure: Figure, columns: int = 3) -> None:
    """One legend for all panels, outside of them, where it covers nothing; entries of the same name once.

    Below, or above where a common label of the panels is below.
    """
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    handles, labels = list(entries.values()), list(entries)
    place: dict[str, Any] = {
        "loc": f"outside {'upper' if figure.get_supxlabel() else 'lower'} center"
    }
    figure.legend(handles, labels, **place, ncols=columns, frameon=False, fontsize="small")


def finite(value: Any) -> Any:
    """Plain data for strict JSON: None for what is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
