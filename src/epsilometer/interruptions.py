"""Whose exception is it? What a signal handler of the caller raises is never taken for the mechanism's own error.

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


class _MainThread:
    """The state of the main thread, the only one that runs handlers.

    Attributes:
        depth: how many `callers_handlers_relayed` are open.
        mechanisms: how many mechanisms are drawing (one that audits another one makes two).
        relays: the signals whose handlers were replaced.
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
        """Puts the caller's handlers back, and notes whose the others are."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if number in self.relays and handler is self.relays[number]:
                signal.signal(number, self.relays[number].handler)
            elif callable(handler) and handler is not self.before[number]:
                self.of_mechanisms.append(handler)
        self.relays.clear()
        self.before.clear()
        self.raised.clear()


_main = _MainThread()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def callers_handlers_relayed() -> Iterator[None]:
    """Around an audit, or a part of one: what the caller's handlers raise leaves it unchanged, as the same object."""
    if not _is_main():
        yield
        return
    is_outermost = _main.depth == 0
    if is_outermost:
        _main.install()
    _main.depth += 1
    try:
        yield
    except BaseException as error:
        found = callers_error(error)
        if found is None or found is error:
            raise
        if not is_outermost and isinstance(found, Exception):
            raise CallerRaised(found) from None
        raise found from found.__cause__
    finally:
        _main.depth -= 1
        if is_outermost:
            _main.uninstall()


@contextmanager
def mechanism_runs() -> Iterator[None]:
    """Around a call of a mechanism: there, the caller's exceptions are raised as they are, and may be caught."""
    if not _is_main():
        yield
        return
    _main.mechanisms += 1
    try:
        yield
    finally:
        _main.mechanisms -= 1


def callers_error(error: BaseException) -> BaseException | None:
    """What a handler of the caller raised, if an error is that, or was raised because of it."""
    if isinstance(error, CallerRaised):
        return error.error
    if not _main.raised or not _is_main():
        return None
    pending: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while pending:
        each = pending.pop()
        if each is None or any(each is known for known in seen):
            continue
        if any(each is raised for raised in _main.raised):
            return each
        seen.append(each)
        pending += [each.__context__, each.__cause__]
    return None


def pass_on(error: BaseException) -> None:
    """Raises what a handler of the caller raised, if an error stems from it: for code that would swallow it."""
    found = callers_error(error)
    if found is not None:
        raise CallerRaised(found) from None
