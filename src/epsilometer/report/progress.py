"""How far an audit is: drawn outputs, outputs per second, time left."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from epsilometer.report.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# The pace of the last half minute predicts the next one better than the pace since the beginning.
_WINDOW = 30.0
# Seconds between the recorded moments of the window.
_STEP = 1.0
# Work shorter than this needs no bar.
_PATIENCE = 1.0
# Seconds between lines, where they cannot be overwritten.
_BETWEEN_LINES = 30.0


class Pace:
    """Counts outputs and how fast they come.

    Attributes:
        total: outputs in all; None if unknown.
        drawn: so far.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.drawn = total, 0
        self._clock = clock
        self._moments = deque([(clock(), 0)])

    def advance(self, n: int) -> None:
        """n more outputs."""
        self.drawn += n
        now = self._clock()
        if now - self._moments[-1][0] >= _STEP:
            self._moments.append((now, self.drawn))
            while self._moments[1][0] <= now - _WINDOW:
                self._moments.popleft()

    @property
    def rate(self) -> float:
        """Recent outputs per second."""
        then, drawn = self._moments[0]
        return (self.drawn - drawn) / max(self._clock() - then, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """At this pace; None while nothing is known."""
        if self.total is None or not self.rate:
            return None
        return max(self.total - self.drawn, 0) / self.rate

    def describe(self) -> str:
        """All of it in one line."""
        parts = [f"{short_number(self.drawn)} draws" if self.total is None else self._share()]
        parts.append(f"{short_number(self.rate)}/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)

    def _share(self) -> str:
        assert self.total is not None
        share = 100.0 * min(self.drawn / max(self.total, 1), 1.0)
        return f"{share:.0f} % of {short_number(self.total)} draws"


class ProgressBar:
    """Shows the progress of an audit on standard error: a bar on a terminal, else a line every half minute.

    For the `progress=` of `audit`, `measure`, `profile` and `replay`. Nothing is shown for work that takes less than a
    second.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shows_bar = self._stream.isatty()
        self._pace = Pace(None)
        self._bar: RichProgress | None = None
        self._told = ""
        self._due = 0.0
        self.begin(None)

    def begin(self, total: int | None) -> None:
        """Work of `total` outputs begins."""
        self.end()
        self._pace, self._told = Pace(total), ""
        self._due = time.monotonic() + (_PATIENCE if self._shows_bar else _BETWEEN_LINES)

    def advance(self, n: int) -> None:
        """n more outputs were drawn."""
        self._pace.advance(n)
        if time.monotonic() < self._due:
            return
        if not self._shows_bar:
            self._due = time.monotonic() + _BETWEEN_LINES
            self._stream.write(f"{self._told or 'drawing'}: {self._pace.describe()}\n")
            self._stream.flush()
            return
        if self._bar is None:
            self._bar = _open_bar(self._stream, self._pace.total)
        self._show(self._bar)

    def tell(self, text: str) -> None:
        """Something about the state of the work, shown beside the figures."""
        self._told = text
        if self._bar is not None:
            self._show(self._bar)

    def end(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self, bar: RichProgress) -> None:
        text, pace = self._told or "drawing", self._pace.describe()
        bar.update(bar.task_ids[0], completed=self._pace.drawn, description=text, pace=pace)


def short_number(value: float) -> str:
    """A number in three digits, with k, M or G for thousands, millions and billions."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _open_bar(stream: TextIO, total: int | None) -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[pace]}"))
    bar = Progress(*columns, console=Console(file=stream), transient=True)
    bar.add_task("drawing", total=total, pace="")
    bar.start()
    return bar
