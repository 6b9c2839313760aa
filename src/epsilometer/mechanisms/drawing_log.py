"""What happens while a mechanism draws, besides its outputs: requests, failures, and draws that were finished.

A mechanism writes it down (`current_log`), wherever it runs; whoever has it draw reads it
(`logged`). So an output that is drawn again, or replaced by a failure, is never drawn again or
replaced in silence.
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
        requests: sent to a service; one that is sent again counts once.
        retried: requests that were sent again.
        failed: runs that failed and were counted as outcomes.
    """

    requests: int = 0
    retried: int = 0
    failed: int = 0

    def __add__(self, other: "Incidents") -> "Incidents":
        return Incidents(
            requests=self.requests + other.requests,
            retried=self.retried + other.retried,
            failed=self.failed + other.failed,
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


class _Open(threading.local):
    """The log of the call that this thread is in."""

    log: DrawingLog | None = None


_open = _Open()


@contextmanager
def logged() -> Iterator[DrawingLog]:
    """Around one call of `Mechanism.sample`: its log."""
    before = _open.log
    log = DrawingLog()
    _open.log = log
    try:
        yield log
    finally:
        _open.log = before


def current_log() -> DrawingLog:
    """The log of the call that is under way; a mechanism may write into it. Nobody reads it outside an audit."""
    return DrawingLog() if _open.log is None else _open.log


def draw_one_by_one(
    draw: Callable[[], Any], n: int, read: Callable[[list[Any], int], Outputs]
) -> list[Any]:
    """Calls a function n times, and has those outputs outlive an interruption that are finished by then."""
    values: list[Any] = []
    current_log().finished = lambda: read(values, len(values))
    for _ in range(n):
        values.append(draw())  # noqa: PERF401  # one by one: an interruption finds the list as it is
    return values
