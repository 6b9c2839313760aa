"""The log of what happens while a mechanism draws, besides its outputs.

These are requests, failures, and draws that were finished before an interruption. A mechanism
writes them down (`current_log`), wherever it runs; whoever has it draw reads the log (`logged`). So
no output is drawn again, or replaced by a failure, in silence.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from epsilometer.outputs import Outputs


@dataclass(frozen=True, slots=True)
class Incidents:
    """Counts of what happened while some outputs were drawn.

    Attributes:
        requests: requests to a service; one that is sent again counts once.
        retried: requests that were sent again.
        failed: runs that failed and were counted as outcomes.
        redrawn: of outputs that were recorded earlier: draws that were lost then and drawn again.
            All chunks that may hold some of those name the same number.
    """

    requests: int = 0
    retried: int = 0
    failed: int = 0
    redrawn: int = 0

    def __add__(self, other: "Incidents") -> "Incidents":
        return Incidents(
            requests=self.requests + other.requests,
            retried=self.retried + other.retried,
            failed=self.failed + other.failed,
            redrawn=max(self.redrawn, other.redrawn),
        )

    def __bool__(self) -> bool:
        return self != Incidents()


NO_INCIDENTS = Incidents()


class DrawingLog:
    """What happened during one call of `Mechanism.sample`.

    Attributes:
        incidents: the counts so far.
        finished: makes outputs of the draws that are finished; None for a mechanism that draws all
            of them at once.
    """

    def __init__(self) -> None:
        self.incidents = Incidents()
        self.finished: Callable[[], Outputs] | None = None

    def add(self, *, requests: int = 0, retried: int = 0, failed: int = 0) -> None:
        """Counts something that happened."""
        self.incidents += Incidents(requests=requests, retried=retried, failed=failed)

    def repeat(self, incidents: Incidents) -> None:
        """Counts what happened when outputs were recorded that are read now."""
        self.incidents += incidents


class _ThreadState(threading.local):
    """The log of the call that this thread is in."""

    log: DrawingLog | None = None


_this_thread = _ThreadState()


@contextmanager
def logged() -> Iterator[DrawingLog]:
    """Opens a log around one call of `Mechanism.sample`."""
    outer_log = _this_thread.log
    log = DrawingLog()
    _this_thread.log = log
    try:
        yield log
    finally:
        _this_thread.log = outer_log


def current_log() -> DrawingLog:
    """Returns the log of the call that is under way, into which a mechanism may write.

    Outside an audit nobody reads it.
    """
    return DrawingLog() if _this_thread.log is None else _this_thread.log


def draw_one_by_one(
    draw: Callable[[], Any], n: int, read: Callable[[list[Any], int], Outputs]
) -> list[Any]:
    """Calls a function n times; outputs that are finished survive an interruption.

    Args:
        draw: returns one output.
        n: how many outputs.
        read: turns outputs into columns.
    """
    values: list[Any] = []
    current_log().finished = lambda: read(values, len(values))
    for _ in range(n):
        values.append(draw())  # noqa: PERF401  # one by one: an interruption finds the list as it is
    return values
