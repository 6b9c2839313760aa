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
    """A timer that raises TimeUp in what the main thread runs, once a deadline is over.

    Set it, arm it, run, disarm it and cancel it, in this order and in one frame:

        alarm = Alarm(deadline)
        try:
            try:
                alarm.is_armed = True
                result = function(task)
            finally:
                alarm.is_armed = False
        finally:
            alarm.cancel()

    It rings again while what it raised is on its way up. So it must not be a context manager: an
    exception that is raised where such a manager is left keeps it from being left at all, and the
    alarm would ring in a later audit. Python runs no signal handler between an exception, or a
    call that returns, and the assignment that disarms the alarm.

    Attributes:
        is_armed: whether it may raise TimeUp now.
        rang: whether it has.
    """

    def __init__(self, deadline: "Deadline") -> None:
        """Sets the timer. One that the caller has set before still rings in time."""
        self.is_armed = False
        self.rang = False
        self._is_cancelled = False
        self._deadline = deadline
        self._began = monotonic()
        self._callers_handler = signal.getsignal(signal.SIGALRM)
        # Seconds until the caller's timer rings, 0 if there is none; and its interval.
        self._callers_timer, self._callers_interval = signal.getitimer(signal.ITIMER_REAL)
        signal.signal(signal.SIGALRM, self._ring)
        self._set_timer()

    def cancel(self) -> None:
        """Gives the signal and the timer back to the caller."""
        # What rings from now on, until the caller has the signal again, must not set the timer.
        self._is_cancelled = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        restored = signal.SIG_DFL if self._callers_handler is None else self._callers_handler
        signal.signal(signal.SIGALRM, restored)
        if self._callers_timer:
            seconds = max(self._callers_timer - self._seconds_since_set, _SHORTEST_TIMER)
            signal.setitimer(signal.ITIMER_REAL, seconds, self._callers_interval)

    @property
    def _seconds_since_set(self) -> float:
        return monotonic() - self._began

    def _ring(self, number: int, frame: Any) -> None:
        """Handles the signal."""
        is_callers_turn = self._callers_timer and self._seconds_since_set >= self._callers_timer
        if is_callers_turn and callable(self._callers_handler):
            interval = self._callers_interval
            self._callers_timer = interval and self._seconds_since_set + interval
            self._callers_handler(number, frame)
        if self.is_armed and self._deadline.left <= 0.0:
            self.rang = True
            raise TimeUp
        if not self._is_cancelled:
            self._set_timer()

    def _set_timer(self) -> None:
        seconds = self._deadline.left
        if self._callers_timer:
            seconds = min(seconds, self._callers_timer - self._seconds_since_set)
        seconds = min(max(seconds, _SHORTEST_TIMER), _LONGEST_TIMER)
        signal.setitimer(signal.ITIMER_REAL, seconds, _RING_AGAIN_SECONDS)


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
