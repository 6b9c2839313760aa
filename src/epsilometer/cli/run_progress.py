"""The progress of a suite: a table that lives on the terminal, or a line per finished audit."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from epsilometer.report.wording import duration, figure_down, plain
from epsilometer.suites import Outcome

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


# Rows of the table on a terminal: what runs now, and what ended last.
_MOST_ROWS = 16
_COLOURS = {"refuted": "red", "not refuted": "cyan", "inconclusive": "yellow", "measured": "blue", "error": "magenta"}


class SuiteProgress(Protocol):
    """Is told about every audit."""

    def started(self, name: str) -> None:
        """An audit began."""

    def finished(self, outcome: Outcome) -> None:
        """An audit ended."""


@contextlib.contextmanager
def open_progress(total: int) -> Iterator[SuiteProgress]:
    """The progress of so many audits, as it suits standard output."""
    if not sys.stdout.isatty() or not total:
        yield _Lines(total)
        return
    from rich.live import Live

    with Live(auto_refresh=True, refresh_per_second=4, transient=True) as live:
        yield _LiveTable(live, total)


class _Lines:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def started(self, name: str) -> None:
        """Not worth a line."""

    def finished(self, outcome: Outcome) -> None:
        self._done += 1
        width = len(str(self._total))
        line = f"[{self._done:{width}}/{self._total}] {outcome.word:12} {plain(outcome.name)}  {_figures(outcome)}"
        sys.stdout.write(line.rstrip() + "\n")
        sys.stdout.flush()


class _LiveTable:
    def __init__(self, live: Live, total: int) -> None:
        self._total, self._done = total, 0
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._ended: list[Outcome] = []
        live.get_renderable = self._table  # type: ignore[method-assign]  # drawn anew at every refresh, for the clock

    def started(self, name: str) -> None:
        self._running[name] = time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        self._running.pop(outcome.name, None)
        self._ended.append(outcome)
        self._done += 1

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        title = f"{self._done} of {self._total} audits, {duration(now - self._began)}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for header in ("audit", "verdict", "bound", "time"):
            table.add_column(header)
        for outcome in self._ended[-max(_MOST_ROWS - len(self._running), 1) :]:
            seconds = "" if outcome.result is None else duration(outcome.result.seconds)
            verdict = Text(outcome.word, style=_COLOURS.get(outcome.word, ""))
            table.add_row(Text(plain(outcome.name, 40)), verdict, Text(_figures(outcome)), seconds)
        for name, began in self._running.items():
            table.add_row(Text(plain(name, 40)), Text("running", style="dim"), "", duration(now - began))
        return table


def _figures(outcome: Outcome) -> str:
    if outcome.result is None:
        return plain(outcome.error, 120)
    return f"{outcome.result.claim.symbol} ≥ {figure_down(outcome.result.lower_bound)}"
