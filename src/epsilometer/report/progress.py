"""How far an audit is: drawn outputs, outputs per second, time left, and what it expects to find."""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from epsilometer.report.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# The pace of the last half minute predicts the next one better than the pace since the beginning.
_WINDOW = 30.0
# Seconds between the recorded moments of the window.
_STEP = 1.0
# Work shorter than this needs no sign of life. People wonder after a second and a half. Lines,
# which stay, wait longer.
_PATIENCE = 0.4
_PATIENCE_FOR_LINES = 1.0
# Seconds between lines, where they cannot be overwritten, and between looks at the clock.
_BETWEEN_LINES = 10.0
_PULSE = 0.1
# Lines stay for good: work that ends within this many seconds needs none.
_SOON = 3.0
# Work longer than this deserves a hint how to make it shorter.
_LONG = 60.0


class Pace:
    """Counts outputs and how fast they come.

    Attributes:
        total: outputs in all; None if unknown.
        drawn: so far.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.drawn = 0
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
        return (
            None
            if self.total is None or not self.rate
            else max(self.total - self.drawn, 0) / self.rate
        )

    def describe(self) -> str:
        """All of it in one line."""
        parts = [f"{short_number(self.drawn)} draws"]
        if self.total is not None:
            share = 100.0 * min(self.drawn / max(self.total, 1), 1.0)
            parts = [f"{share:.0f} % of {short_number(self.total)} draws"]
        if not self.drawn:
            return f"{parts[0]}, waiting for the first ones for {duration(self._clock() - self._moments[0][0])}"
        parts.append(f"{short_number(self.rate)}/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)


class ProgressBar:
    """Shows the progress of an audit: a bar on a terminal or in a notebook, else a line every ten seconds.

    For the `progress=` of `audit`, `measure`, `profile` and `replay`. The first sign comes within a
    second, even if nothing has been drawn by then; work that is done by then shows nothing.

    Args:
        stream: where to; None is standard error.
        hint: what to advise if it will take long.
        waited: seconds that somebody has been waiting before the work begins, for Python to start.

    Example:
        >>> bar = em.ProgressBar()
        >>> result = em.audit(em.zoo.laplace(), samples=2000, seed=0, progress=bar)
        >>> print(bar.summary())
        4,000 of 4,000 draws (estimated bound on ε: 0.9...)
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        hint: str = "stop_early=True usually needs fewer draws, jobs= more cores",
        waited: float = 0.0,
    ) -> None:
        self._hint = hint
        self._waited = waited
        self._stream = sys.stderr if stream is None else stream
        self._shows_bar = self._stream.isatty()
        self._cell = _NotebookCell() if stream is None and in_notebook() else None
        self._pace = Pace(None)
        self._bar: RichProgress | None = None
        self._told = ""
        self._due = 0.0
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._over.set()

    def begin(self, total: int | None) -> None:
        """Work of `total` outputs begins."""
        self.end()
        self._pace = Pace(total)
        self._told = ""
        self._hinted = not self._hint
        is_lasting = self._cell is None and not self._shows_bar
        self._due = time.monotonic() + (
            _PATIENCE_FOR_LINES if is_lasting else max(_PATIENCE - self._waited, 0.0)
        )
        self._over = threading.Event()
        # A mechanism may take minutes before its first output: the clock, not the draws, decides
        # when to say something.
        threading.Thread(
            target=self._beat, args=(self._over,), daemon=True, name="epsilometer-progress"
        ).start()

    def advance(self, n: int) -> None:
        """n more outputs were drawn."""
        self._pace.advance(n)
        self._show_if_due()

    def tell(self, text: str) -> None:
        """Something about the state of the work, shown beside the figures."""
        self._told = text

    def end(self) -> None:
        """Removes the bar."""
        self._over.set()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            if self._cell is not None:
                self._cell.clear()

    def summary(self) -> str:
        """How far it came, and what was told last."""
        pace = self._pace
        share = (
            f"{pace.drawn:,} draws"
            if pace.total is None
            else f"{pace.drawn:,} of {pace.total:,} draws"
        )
        return f"{share} ({self._told})" if self._told else share

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(_PULSE):
            with suppress(Exception):  # nothing about a sign of life may disturb the work
                self._show_if_due()

    def _show_if_due(self) -> None:
        if time.monotonic() >= self._due and self._lock.acquire(blocking=False):
            try:
                if not self._over.is_set():
                    self._show()
            finally:
                self._lock.release()

    def _show(self) -> None:
        pace = self._pace
        told = self._told or "drawing"
        if self._cell is not None:
            self._due = time.monotonic() + _PULSE
            self._cell.show(f"{told}: {pace.describe()}", pace.drawn, pace.total)
        elif self._shows_bar:
            self._due = time.monotonic() + _PULSE
            if self._bar is None:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TextColumn

                columns = (
                    TextColumn("{task.description}", markup=False),
                    BarColumn(),
                    TextColumn("{task.fields[pace]}"),
                )
                self._bar = Progress(*columns, console=Console(file=self._stream), transient=True)
                self._bar.add_task("drawing", total=pace.total, pace=pace.describe())
                self._bar.start()
            self._bar.update(
                self._bar.task_ids[0], completed=pace.drawn, description=told, pace=pace.describe()
            )
        else:
            left = pace.seconds_left
            if left is not None and left < _SOON:
                return
            self._due = time.monotonic() + _BETWEEN_LINES
            self._line(f"{told}: {pace.describe()}")
        self._advise()

    def _advise(self) -> None:
        """Once, when the pace is known: how long it will take, and what would be quicker."""
        left = self._pace.seconds_left
        rate = self._pace.rate
        if self._hinted or self._told or left is None or left < _LONG:
            return
        self._hinted = True
        text = f"{1e3 / rate:.3g} ms per draw: about {duration(left)}; {self._hint}"
        if self._cell is not None:
            self._cell.note = text
        elif self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            self._line(text)

    def _line(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this. Imports nothing: there, IPython is loaded."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _NotebookCell:
    """A line below the cell of a notebook that is written anew."""

    def __init__(self) -> None:
        self.note = ""
        self._handle: Any = None

    def show(self, text: str, done: int, total: int | None) -> None:
        """The line, with a bar if it is known how much there is."""
        from html import escape

        bar = (
            ""
            if total is None
            else f'<progress value="{min(done, total)}" max="{total}"></progress> '
        )
        note = f"<br><small>{escape(self.note)}</small>" if self.note else ""
        self._write(f"<div>{bar}<code>{escape(text)}</code>{note}</div>", text)

    def clear(self) -> None:
        """Leaves nothing behind."""
        if self._handle is not None:
            self._write("", "")
            self._handle = None

    def _write(self, html: str, text: str) -> None:
        data = {"text/html": html, "text/plain": text}
        if self._handle is None:  # IPython is loaded in every notebook
            self._handle = sys.modules["IPython"].display.display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def short_number(value: float) -> str:
    """A number in three digits, with k, M or G for thousands, millions and billions."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"
