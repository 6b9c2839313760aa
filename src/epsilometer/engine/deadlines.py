"""Deadlines: `max_seconds=` ends an audit, even inside a call that hangs.

In the main thread a signal ends the call, elsewhere the worker that runs it is ended.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any

from epsilometer.errors import InputError, MechanismError

# Seconds after which the alarm rings again, for code that catches whatever is raised.
_RING_AGAIN_SECONDS = 0.5
# If a call ignores the alarm for so many seconds, the process is ended, where that is allowed.
_UNRESPONSIVE_SECONDS = 5.0
# The shortest and the longest time, in seconds, that the timer is set to: 0 would switch it off,
# and the system refuses very large values.
_SHORTEST_TIMER = 1e-4
_LONGEST_TIMER = 1e6
# The exit status of a process that is ended for want of another way.
_EXIT_STATUS = 2


class OutOfTime(MechanismError):
    """`max_seconds` were over. What was under way was ended; what was drawn before stays."""


class TimeUp(BaseException):
    """Raised inside a call when the time is up.

    Not an Exception, which many functions catch; our own code turns it into OutOfTime.
    """


class Alarm:
    """Whether the time was up inside a call."""

    rang = False


class Deadline:
    """The moment by which an audit must be over, on a clock that nobody can set.

    Attributes:
        seconds: the time limit that the user gave.
        at: the end, on the monotonic clock.
        reserve: seconds that are kept for what comes after the work at hand.
        may_exit_process: whether the process may be ended if a call ignores the alarm. Only a
            program that is ours, the command line, may be ended like that.
    """

    def __init__(self, seconds: float, *, may_exit_process: bool = False) -> None:
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not seconds > 0.0:
            raise InputError(f"max_seconds={seconds!r} must be above 0, or None for no limit")
        self.seconds = seconds
        self.at = monotonic() + seconds
        self.reserve = 0.0
        self.may_exit_process = may_exit_process

    @property
    def left(self) -> float:
        """Seconds until the work at hand must be over; negative afterwards."""
        return self.at - self.reserve - monotonic()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left in reserve, either."""
        return monotonic() >= self.at

    def over(self, where: str, began: float) -> OutOfTime:
        """Returns the error that says what was running, and for how long."""
        lasted = monotonic() - began
        return OutOfTime(
            f"max_seconds={self.seconds:g} were over while running {where}, "
            f"after {lasted:.1f} s of it"
        )

    @contextmanager
    def alarm(self) -> Iterator["Alarm"]:
        """Raises TimeUp in what the main thread runs inside, when the time is up.

        A timer that the caller has set before still rings in time.
        """
        alarm = Alarm()
        began = monotonic()
        callers_handler = signal.getsignal(signal.SIGALRM)
        # Seconds from `began` until the caller's timer rings, 0 if there is none; and its interval.
        callers_timer, callers_interval = signal.getitimer(signal.ITIMER_REAL)
        is_inside = True

        def ring(number: int, frame: Any) -> None:
            nonlocal callers_timer
            is_callers_turn = callers_timer and monotonic() - began >= callers_timer
            if is_callers_turn and callable(callers_handler):
                callers_timer = callers_interval and monotonic() - began + callers_interval
                callers_handler(number, frame)
            if is_inside and self.left <= 0.0:
                alarm.rang = True
                raise TimeUp
            set_timer()

        def set_timer() -> None:
            seconds = self.left
            if callers_timer:
                seconds = min(seconds, callers_timer - (monotonic() - began))
            seconds = min(max(seconds, _SHORTEST_TIMER), _LONGEST_TIMER)
            signal.setitimer(signal.ITIMER_REAL, seconds, _RING_AGAIN_SECONDS)

        signal.signal(signal.SIGALRM, ring)
        set_timer()
        try:
            try:
                yield alarm
            finally:
                is_inside = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            restored = signal.SIG_DFL if callers_handler is None else callers_handler
            signal.signal(signal.SIGALRM, restored)
            if callers_timer:
                seconds = max(callers_timer - (monotonic() - began), _SHORTEST_TIMER)
                signal.setitimer(signal.ITIMER_REAL, seconds, callers_interval)

    @contextmanager
    def last_resort(self, where: str, began: float) -> Iterator[None]:
        """Ends the process if the code inside ignores the alarm and the process may be ended.

        What a checkpoint holds is safe.

        Args:
            where: what is running, for the message.
            began: since when, on the monotonic clock.
        """
        if not self.may_exit_process:
            yield
            return

        def end_process() -> None:
            late = self.over(where, began)
            text = f"epsilometer: {late}; it did not react, so the program was ended\n"
            with suppress(OSError):
                os.write(2, text.encode("utf-8", "backslashreplace"))
            os._exit(_EXIT_STATUS)

        seconds = min(self.left + _UNRESPONSIVE_SECONDS, threading.TIMEOUT_MAX)
        timer = threading.Timer(seconds, end_process)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
