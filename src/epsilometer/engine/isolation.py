"""Keeps a mechanism that runs in this process from changing what we work with.

A mechanism may replace functions of NumPy, add warning filters, close standard output, or try to
end the program. Afterwards everything is put back as it was, and what would falsify the counts is
an error.
"""

import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import is_not
from types import ModuleType
from typing import Any, NamedTuple, TextIO

import numpy as np

from epsilometer.engine.deadlines import TimeUp
from epsilometer.errors import MechanismError, short_repr
from epsilometer.interruptions import callers_error, mechanism_runs
from epsilometer.mechanisms.base import failure_text

# What we work with ourselves. A mechanism that replaces a part of it, for a test or by mistake,
# would have us count something else.
_GUARDED_MODULES = (np, np.random, math)
# Signals whose handlers are restored.
_GUARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _ReplacedAttribute(NamedTuple):
    """An attribute of a guarded module that a mechanism has replaced, with its original value."""

    module: ModuleType
    name: str
    original: Any


@contextmanager
def detect_monkeypatching(name: str, inputs: Sequence[Any]) -> Iterator[None]:
    """Detects that a mechanism has replaced functions that we count with, and puts them back.

    Signal handlers are put back, too. This takes as long as a short chunk: use it around several of
    them, before any is believed.

    Args:
        name: of the mechanism, for the message.
        inputs: that it runs on, for the message.

    Raises:
        MechanismError: if functions were replaced that we count with.
    """
    originals = [vars(module).copy() for module in _GUARDED_MODULES]
    is_main_thread = threading.current_thread() is threading.main_thread()
    handlers = [signal.getsignal(number) for number in _GUARDED_SIGNALS]
    try:
        yield
    finally:
        if is_main_thread:
            _restore_handlers(handlers)
        replaced = _find_replaced(originals)
        for attribute in replaced:
            setattr(attribute.module, attribute.name, attribute.original)
        is_time_up = isinstance(sys.exc_info()[1], TimeUp)
        if replaced and not is_time_up:
            names = sorted(
                f"{attribute.module.__name__}.{attribute.name}" for attribute in replaced
            )
            where = " or ".join(dict.fromkeys(map(short_repr, inputs)))
            raise MechanismError(
                f"{name} replaced {', '.join(names)} while it ran on the input {where}, "
                "with which its outputs are read and counted; "
                "have it put them back, or run it as a program of its own (from_command)"
            )


def _restore_handlers(handlers: Sequence[Any]) -> None:
    if handlers == [signal.getsignal(number) for number in _GUARDED_SIGNALS]:
        return
    for number, handler in zip(_GUARDED_SIGNALS, handlers, strict=True):
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _find_replaced(originals: Sequence[dict[str, Any]]) -> list[_ReplacedAttribute]:
    """Returns the attributes of the guarded modules that are no longer the original ones."""
    replaced = []
    for module, original in zip(_GUARDED_MODULES, originals, strict=True):
        now = vars(module)
        missing = object()
        # Comparing the values in order takes a fifth of the time of comparing name by name.
        is_same = len(now) == len(original) and not any(
            map(is_not, now.values(), original.values())
        )
        if is_same:
            continue
        for name, value in original.items():
            if now.get(name, missing) is not value:
                replaced.append(_ReplacedAttribute(module, name, value))
    return replaced


@contextmanager
def isolate_process_state(name: str, dataset: Any) -> Iterator[None]:
    """Isolates the state of this process from a mechanism that draws.

    Warning filters, the recursion limit, the search path and the standard streams are put back.
    What is no Exception passes unchanged: it is meant for the caller of the audit, like the end of
    a test.

    Args:
        name: of the mechanism, for messages.
        dataset: that it runs on, for messages.

    Raises:
        MechanismError: if it tried to end the program, or recursed too deeply.
    """
    filters = warnings.filters[:]
    recursion_limit = sys.getrecursionlimit()
    search_path = sys.path[:]
    caught: BaseException | None = None
    try:
        with np.errstate(), mechanism_runs():
            yield
    except BaseException as error:
        caught = error
    if sys.getrecursionlimit() != recursion_limit:
        sys.setrecursionlimit(recursion_limit)
    if warnings.filters != filters:
        warnings.filters[:] = filters  # type: ignore[index]  # a list, whatever typeshed says
    if sys.path != search_path:  # what it has added stays
        sys.path += [folder for folder in search_path if folder not in sys.path]
    if getattr(sys.stdout, "closed", False) or getattr(sys.stderr, "closed", False):
        _reopen_streams()
    if isinstance(caught, TimeUp):
        raise TimeUp(f"{name} on the input {short_repr(dataset)}") from caught
    if caught is None:
        return
    # The status of SystemExit would be taken for a verdict, unless a handler of the caller wants
    # the program to end.
    is_callers = callers_error(caught) is not None
    if not is_callers and isinstance(caught, SystemExit | RecursionError):
        raise MechanismError(failure_text(name, dataset, caught)) from caught
    raise caught


def _reopen_streams() -> None:
    """Reopens standard output and standard error if a mechanism has closed them."""
    are_one_stream = sys.stdout is sys.stderr
    if getattr(sys.stderr, "closed", False):
        sys.stderr = _reopened(2)
    if are_one_stream:
        sys.stdout = sys.stderr
    elif getattr(sys.stdout, "closed", False):
        sys.stdout = _reopened(1)


def _reopened(descriptor: int) -> TextIO:
    try:
        os.fstat(descriptor)
    except OSError:
        # The descriptor is closed as well. Nobody reads what is written there, and no other file
        # must get its number.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
    return os.fdopen(descriptor, "w", errors="backslashreplace", closefd=False)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delays signals until something short is done, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
