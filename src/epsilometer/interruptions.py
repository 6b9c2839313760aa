"""Distinguishes exceptions of the caller's signal handlers from the mechanism's own errors.

A handler runs between two instructions of whatever the main thread is doing, so its exception seems
to come from there: from the mechanism (whose errors are refusals of an input), or from our own code
(which expects errors of files and connections). While an audit runs, the caller's Python handlers
are therefore replaced by relays, which call them and remember what they raised. A handler that the
mechanism itself installs is no relay: what it raises is the mechanism's.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Signals that can have a handler.
_SIGNALS = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))


class CallerRaised(BaseException):
    """Carries an exception of the caller's handler through code that catches exceptions.

    Attributes:
        error: what the handler raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Relay:
    """Stands in for a handler of the caller: calls it, and remembers what it raises."""

    def __init__(self, handler: Callable[[int, Any], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: Any) -> Any:
        try:
            return self.handler(number, frame)
        except BaseException as error:
            _main.raised.append(error)
            if isinstance(error, Exception) and not _main.mechanisms:
                raise CallerRaised(error) from None
            raise


class _MainThreadState:
    """The state of the main thread, the only one that runs handlers.

    Attributes:
        depth: how many `callers_handlers_relayed` are open.
        mechanisms: how many mechanisms are drawing (one that audits another one makes two).
        relays: by signal, what has replaced its handler.
        before: the handlers of all signals, as the caller had them.
        raised: what the caller's handlers raised since the outermost context was opened.
        of_mechanisms: handlers that appeared while a mechanism was drawing.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.mechanisms = 0
        self.relays: dict[int, _Relay] = {}
        self.before: dict[int, Any] = {}
        self.raised: list[BaseException] = []
        self.of_mechanisms: list[Any] = []

    def install(self) -> None:
        """Replaces the caller's handlers by relays."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            self.before[number] = handler
            # Ctrl-C raises KeyboardInterrupt, which nothing catches by mistake.
            if not callable(handler) or handler is signal.default_int_handler:
                continue
            if any(handler is known for known in self.of_mechanisms):
                continue
            relay = _Relay(handler)
            signal.signal(number, relay)
            self.relays[number] = relay

    def uninstall(self) -> None:
        """Puts the caller's handlers back, and remembers those that mechanisms installed."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if number in self.relays and handler is self.relays[number]:
                signal.signal(number, self.relays[number].handler)
            elif callable(handler) and handler is not self.before[number]:
                self.of_mechanisms.append(handler)
        self.relays.clear()
        self.before.clear()
        self.raised.clear()


_main = _MainThreadState()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def callers_handlers_relayed() -> Iterator[None]:
    """Relays the caller's handlers around an audit, or a part of one.

    What they raise leaves the context unchanged, as the same object.
    """
    if not _is_main_thread():
        yield
        return
    is_outermost = _main.depth == 0
    if is_outermost:
        _main.install()
    _main.depth += 1
    try:
        yield
    except BaseException as error:
        callers = callers_error(error)
        if callers is None or callers is error:
            raise
        if not is_outermost and isinstance(callers, Exception):
            raise CallerRaised(callers) from None
        raise callers from callers.__cause__
    finally:
        _main.depth -= 1
        if is_outermost:
            _main.uninstall()


@contextmanager
def mechanism_runs() -> Iterator[None]:
    """Marks a call of a mechanism.

    In it, the exceptions of the caller's handlers are raised as they are, and may be caught.
    """
    if not _is_main_thread():
        yield
        return
    _main.mechanisms += 1
    try:
        yield
    finally:
        _main.mechanisms -= 1


def callers_error(error: BaseException) -> BaseException | None:
    """Returns what a handler of the caller raised, if an error is that or stems from it.

    None if the error has nothing to do with a handler of the caller.
    """
    if isinstance(error, CallerRaised):
        return error.error
    if not _main.raised or not _is_main_thread():
        return None
    pending: list[BaseException | None] = [error]
    examined: list[BaseException] = []
    while pending:
        candidate = pending.pop()
        if candidate is None or any(candidate is known for known in examined):
            continue
        if any(candidate is raised for raised in _main.raised):
            return candidate
        examined.append(candidate)
        pending += [candidate.__context__, candidate.__cause__]
    return None


def pass_on(error: BaseException) -> None:
    """Raises what a handler of the caller raised, if an error stems from it.

    For code that would swallow the error otherwise.
    """
    callers = callers_error(error)
    if callers is not None:
        raise CallerRaised(callers) from None
