"""The progress of a suite: a line per finished audit, or on a terminal a table drawn anew."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer.cli.output import Answers
from epsilometer.report.formatting import duration, figure_down, plain
from epsilometer.report.text import COLOURS
from epsilometer.report.wording import coloured_as, is_blind
from epsilometer.suites import Outcome

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

# Rows of the table on a terminal: what runs now, and what ended last.
_MAX_ROWS = 16
# Refreshes of the table per second, for the clock.
_REFRESH_RATE = 4
# Characters of the name of an audit in the table, and of an error message.
_MAX_NAME_CHARACTERS = 40
_MAX_ERROR_CHARACTERS = 120


@contextlib.contextmanager
def open_progress(total: int, answers: Answers) -> "Iterator[SuiteProgress]":
    """Opens the progress of `total` audits, as it suits standard output."""
    if not answers.stream.isatty() or not total:
        yield SuiteProgress(total, answers)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=answers.stream)
    with Live(console=console, refresh_per_second=_REFRESH_RATE, transient=True) as live:
        yield _LiveTable(live, total, answers)


class SuiteProgress:
    """Writes a line per finished audit.

    Args:
        total: audits in all.
        answers: where lines go.
    """

    def __init__(self, total: int, answers: Answers) -> None:
        self._total = total
        self._n_finished = 0
        self._answers = answers

    def started(self, name: str) -> None:
        """Notes that an audit began, which is not worth a line."""

    def finished(self, outcome: Outcome) -> None:
        """Writes what was found."""
        self._n_finished += 1
        width = len(str(self._total))
        count = f"[{self._n_finished:{width}}/{self._total}]"
        line = f"{count} {outcome.word:12} {plain(outcome.name)}  {_figures(outcome)}"
        self._answers.write(line.rstrip() + "\n")
        self._answers.flush()


class _LiveTable(SuiteProgress):
    """Shows the audits that run, and those that ended last."""

    def __init__(self, live: "Live", total: int, answers: Answers) -> None:
        super().__init__(total, answers)
        self._began = time.monotonic()
        # When each running audit began, by its name.
        self._running: dict[str, float] = {}
        self._ended: list[Outcome] = []
        # Drawn anew at every refresh, for the clock.
        live.get_renderable = self._table  # type: ignore[method-assign]

    def started(self, name: str) -> None:
        self._running[name] = time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        self._running.pop(outcome.name, None)
        self._ended.append(outcome)
        self._n_finished += 1

    def _table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        table = Table(
            title=f"{self._n_finished} of {self._total} audits, {duration(now - self._began)}",
            title_justify="left",
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
        )
        for header in ("audit", "verdict", "bound", "time"):
            table.add_column(header)
        n_ended_rows = max(_MAX_ROWS - len(self._running), 1)
        for outcome in self._ended[-n_ended_rows:]:
            name = Text(plain(outcome.name, _MAX_NAME_CHARACTERS))
            if outcome.result is None:
                colour = "magenta"
                seconds = ""
            else:
                colour = COLOURS[coloured_as(outcome.result)]
                seconds = duration(outcome.result.seconds)
            verdict = Text(outcome.word, style=colour)
            table.add_row(name, verdict, Text(_figures(outcome)), seconds)
        for running_name, began in self._running.items():
            name = Text(plain(running_name, _MAX_NAME_CHARACTERS))
            table.add_row(name, Text("running", style="dim"), "", duration(now - began))
        return table


def _figures(outcome: Outcome) -> str:
    """The certified bound, or why there is none."""
    if outcome.result is None:
        return plain(outcome.error, _MAX_ERROR_CHARACTERS)
    bound = figure_down(outcome.result.lower_bound)
    text = f"{outcome.result.claim.symbol} ≥ {bound}"
    return f"could not have been refuted; {text}" if is_blind(outcome.result) else text
