"""How far an audit is: outputs drawn, outputs per second, time left, and what it expects to find.

All constants that are times are in seconds.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from epsilometer.report.formatting import duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# The pace of the last half minute predicts the next one better than the pace since the beginning.
_PACE_WINDOW = 30.0
# Between the recorded moments of that window.
_PACE_STEP = 1.0
# Work shorter than this needs no sign of life; people wonder after a second and a half.
_BAR_DELAY = 0.4
# Lines stay for good, so they wait longer than a bar: until the pace of most mechanisms is known.
_LINE_DELAY = 2.0
# Between lines, which cannot be overwritten.
_LINE_INTERVAL = 10.0
# Between refreshes of a bar, and between looks at the clock.
_REFRESH_INTERVAL = 0.1
# Work that ends within this time needs no further line.
_NEARLY_DONE = 3.0
# Work longer than this deserves a hint how to make it shorter.
_LONG_WORK = 60.0


class _Moment(NamedTuple):
    """How many outputs had been drawn at some time."""

    time: float
    drawn: int


class Pace:
    """Counts outputs and how fast they come.

    Attributes:
        total: outputs in all; None if unknown.
        drawn: so far, with those that a checkpoint remembers.
        remembered: by a checkpoint, from an earlier run: they say nothing about the pace.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.drawn = 0
        self.remembered = 0
        self._clock = clock
        self._moments = deque([_Moment(clock(), 0)])

    def advance(self, n: int) -> None:
        """Counts n more outputs."""
        self.drawn += n
        now = self._clock()
        if now - self._moments[-1].time >= _PACE_STEP:
            self._moments.append(_Moment(now, self.drawn))
            while self._moments[1].time <= now - _PACE_WINDOW:
                self._moments.popleft()

    def remember(self, n: int) -> None:
        """Counts n outputs that were drawn by an earlier run."""
        self.drawn += n
        self.remembered += n
        self._moments = deque(_Moment(time, drawn + n) for time, drawn in self._moments)

    @property
    def has_begun(self) -> bool:
        """Whether anything was drawn by this run."""
        return self.drawn > self.remembered

    @property
    def rate(self) -> float:
        """Recent outputs per second."""
        start = self._moments[0]
        seconds = max(self._clock() - start.time, 1e-9)
        return (self.drawn - start.drawn) / seconds

    @property
    def seconds_left(self) -> float | None:
        """Time left at this pace; None while nothing is known."""
        rate = self.rate
        if self.total is None or not rate:
            return None
        return max(self.total - self.drawn, 0) / rate

    def describe(self) -> str:
        """Returns all of it in one line."""
        if self.total is None:
            draws = f"{short_number(self.drawn)} draws"
        else:
            percentage = 100.0 * min(self.drawn / max(self.total, 1), 1.0)
            draws = f"{percentage:.0f} % of {short_number(self.total)} draws"
        if not self.has_begun:
            waited = duration(self._clock() - self._moments[0].time)
            awaited = "next" if self.drawn else "first"
            return f"{draws}, waiting for the {awaited} ones for {waited}"
        parts = [draws, f"{short_number(self.rate)}/s"]
        seconds_left = self.seconds_left
        if seconds_left is not None:
            parts.append(f"{duration(seconds_left)} left")
        return ", ".join(parts)


class ProgressBar:
    """Shows the progress of an audit.

    As a bar on a terminal or in a notebook, else as a line every ten seconds. For the `progress=`
    of `audit`, `measure`, `profile` and `replay`. The first sign comes within two seconds, even if
    nothing has been drawn by then; work that is done by then shows nothing. With the first draws
    comes how long all of it will take.

    Args:
        stream: where to; None is standard error.
        hint: what to advise if it will take long.
        waited: seconds that somebody has been waiting before the work begins, for Python to start.

    Example:
        >>> bar = em.ProgressBar()
        >>> result = em.audit(em.zoo.laplace(), samples=2000, seed=0, progress=bar)
        >>> print(bar.summary())
        4,000 of 4,000 draws (estimated bound on ε: 1...)
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
        self._status = ""
        self._hinted = False
        # Whether the last line had to say that nothing was drawn yet.
        self._has_waited = False
        # The time at which something is shown next.
        self._due = 0.0
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._over.set()

    def __repr__(self) -> str:
        return f"<ProgressBar: {self.summary()}>"

    def begin(self, total: int | None) -> None:
        """Begins work of `total` outputs; None if their number is unknown."""
        self.end()
        self._pace = Pace(total)
        self._status = ""
        self._hinted = not self._hint
        self._has_waited = False
        writes_lines = self._cell is None and not self._shows_bar
        delay = _LINE_DELAY if writes_lines else max(_BAR_DELAY - self._waited, 0.0)
        self._due = time.monotonic() + delay
        self._over = threading.Event()
        # A mechanism may take minutes before its first output: the clock, not the draws, decides
        # when to say something.
        thread = threading.Thread(
            target=self._refresh_until,
            args=(self._over,),
            daemon=True,
            name="epsilometer-progress",
        )
        thread.start()

    def advance(self, n: int) -> None:
        """Counts n more outputs."""
        is_first = not self._pace.has_begun
        self._pace.advance(n)
        if is_first and self._has_waited:  # now it is known how long all of it will take
            self._due = time.monotonic()
        self._show_if_due()

    def remember(self, n: int) -> None:
        """Counts n outputs that a checkpoint remembers."""
        self._pace.remember(n)

    def tell(self, text: str) -> None:
        """Sets the status of the work, which is shown beside the figures."""
        self._status = text

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
        """Returns how far it came, with the last status."""
        pace = self._pace
        if pace.total is None:
            draws = f"{pace.drawn:,} draws"
        else:
            draws = f"{pace.drawn:,} of {pace.total:,} draws"
        return f"{draws} ({self._status})" if self._status else draws

    def _refresh_until(self, over: threading.Event) -> None:
        while not over.wait(_REFRESH_INTERVAL):
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
        status = self._status or "drawing"
        line = f"{status}: {pace.describe()}"
        if self._cell is not None:
            self._due = time.monotonic() + _REFRESH_INTERVAL
            self._cell.show(line, pace.drawn, pace.total)
        elif self._shows_bar:
            self._due = time.monotonic() + _REFRESH_INTERVAL
            self._update_bar(status)
        else:
            seconds_left = pace.seconds_left
            if seconds_left is not None and seconds_left < _NEARLY_DONE:
                return
            self._due = time.monotonic() + _LINE_INTERVAL
            self._has_waited = not pace.has_begun
            self._write_line(line)
        self._advise()

    def _update_bar(self, status: str) -> None:
        pace = self._pace
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[pace]}"),
                console=Console(file=self._stream),
                transient=True,
            )
            self._bar.add_task("drawing", total=pace.total, pace=pace.describe())
            self._bar.start()
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=pace.drawn, description=status, pace=pace.describe())

    def _advise(self) -> None:
        """Once, when the pace is known: how long it will take, and what would be quicker."""
        seconds_left = self._pace.seconds_left
        milliseconds = 1e3 / max(self._pace.rate, 1e-9)
        if self._hinted or self._status or seconds_left is None or seconds_left < _LONG_WORK:
            return
        self._hinted = True
        text = f"{milliseconds:.3g} ms per draw: about {duration(seconds_left)}; {self._hint}"
        if self._cell is not None:
            self._cell.note = text
        elif self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            self._write_line(text)

    def _write_line(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def in_notebook() -> bool:
    """Returns whether a notebook's kernel runs this. Imports nothing: there, IPython is loaded."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython, "get_ipython"):
        return False
    return getattr(ipython.get_ipython(), "kernel", None) is not None


class _NotebookCell:
    """A line below the cell of a notebook that is written anew."""

    def __init__(self) -> None:
        self.note = ""
        self._handle: Any = None

    def show(self, text: str, done: int, total: int | None) -> None:
        """Shows the line, with a bar if it is known how much there is."""
        bar = ""
        if total is not None:
            bar = f'<progress value="{min(done, total)}" max="{total}"></progress> '
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
    """Returns a number in three digits, with k, M or G for thousands, millions and billions."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


class PatienceNotice:
    """Says on standard error what takes so long, after a second and then every ten seconds.

    A context manager around work that cannot say how far it is.

    Args:
        text: what is being done.
        stream: where to say it; None is standard error.
        delay: before the first line.
        interval: between lines.
    """

    def __init__(
        self,
        text: str,
        stream: TextIO | None = None,
        delay: float = _LINE_DELAY,
        interval: float = _LINE_INTERVAL,
    ) -> None:
        self.text = text
        self.stream = stream
        self.delay = delay
        self.interval = interval
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True)
        self._began = 0.0

    def __enter__(self) -> "PatienceNotice":
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _say(self) -> None:
        wait = self.delay
        while not self._is_done.wait(wait):
            stream = sys.stderr if self.stream is None else self.stream
            elapsed = duration(time.monotonic() - self._began)
            with suppress(OSError, ValueError):  # whoever read it may have gone
                stream.write(f"epsilometer: {self.text}, for {elapsed} so far\n")
                stream.flush()
            wait = self.interval
