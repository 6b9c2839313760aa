"""What goes to a worker and comes back, what must not go there, and until when it may take.

A generator inside a mechanism must not: a copy of it in every worker would draw the same numbers in
each of them. To find one, the mechanism is packed as it would be for a worker, into nothing, and
every object is looked at on the way: what functions close over, attributes, arguments that were
bound, the globals that a function uses.
"""

import hashlib
import pickle
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from time import monotonic  # by name: a mechanism may replace what the module holds
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from epsilometer.errors import EngineError, EpsilometerError, InputError, MechanismError

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
# Library code is searched only where it is used directly: there is too much behind it, none of it
# the user's.
_LIBRARIES = ("site-packages", "dist-packages")
_OWN = __name__.partition(".")[0]


class _Found(Exception):
    """Ends the search: says what was found."""


def own_generator(mechanism: object) -> str | None:
    """The type of a generator that the mechanism holds or uses, e.g. "Generator"; None if none is visible.

    What is not a generator by its type (a counter, a seed that is updated by hand) is not seen
    here; the check for repeated draws sees its effect.
    """
    try:
        _search(mechanism, set())
    except _Found as found:
        return str(found)
    return None


def _search(each: object, seen: set[int]) -> None:
    """Looks at everything in an object.

    Args:
        seen: the classes whose methods were searched.
    """
    import cloudpickle  # slow to import, and only workers need it

    class Searching(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, each: Any) -> Any:
            if isinstance(each, _GENERATORS):
                raise _Found(type(each).__name__)
            if isinstance(each, FunctionType):
                for used in map(each.__globals__.get, _names(each.__code__)):
                    if isinstance(used, _GENERATORS):
                        raise _Found(type(used).__name__)
                if _is_of_the_user(each):
                    # by value, with everything that it uses
                    return self._dynamic_function_reduce(each)
            if isinstance(each, type) and _is_of_the_user(each) and id(each) not in seen:
                seen.add(id(each))
                # nothing is packed of a class that workers import
                for value in vars(each).values():
                    _search(getattr(value, "__func__", value), seen)
            return super().reducer_override(each)

    try:
        # Large arrays are handed to the callback instead of being copied.
        nowhere = SimpleNamespace(write=len)  # a file that keeps nothing
        Searching(nowhere, protocol=5, buffer_callback=lambda buffer: None).dump(each)
    except _Found:
        raise
    except Exception:  # what cannot be packed is reported when it is really sent
        return


def _names(code: CodeType) -> Iterator[str]:
    """All names of globals and attributes in a function, and in those that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_of_the_user(each: Any) -> bool:
    """Whether something was written in the user's own program and not in a library."""
    top = str(getattr(each, "__module__", None)).partition(".")[0]
    if top in sys.stdlib_module_names or top == _OWN:
        return False
    file = getattr(sys.modules.get(str(each.__module__)), "__file__", None) or ""
    return not any(part in file for part in _LIBRARIES)


# Errors for which a worker's memory, disk or connections may be to blame instead of the work.
_PASSING = (MemoryError, OSError)


class Fault(Exception):
    """Something other than the work itself went wrong: worth another try.

    Attributes:
        engine_lost: whether no pending task can come back.
        is_final: whether the engine itself has retried and given up.
    """

    def __init__(self, reason: str, *, engine_lost: bool = False, is_final: bool = False) -> None:
        super().__init__(reason)
        self.engine_lost = engine_lost
        self.is_final = is_final


class WorkerTraceback(Exception):
    """Where in a worker an error was raised: the cause of the error that is raised here."""

    def __str__(self) -> str:
        return f"in a worker:\n{self.args[0]}"


_Kind = Enum("_Kind", ["VALUE", "RAISED", "UNREADABLE", "FAULT"])


class _Unpacked(threading.local):
    """The work that a thread unpacked last. Threads do not share it: a mechanism need not be thread-safe."""

    key: str | None = None
    function: Callable[[Any], Any] | None = None


_unpacked = _Unpacked()


def pack(function: Callable[[Any], Any], asked: str) -> tuple[str, bytes]:
    """The work as bytes, after a key that is the same for the same content.

    Args:
        function: of one task.
        asked: how workers were requested, for the message: "jobs=2".

    Raises:
        InputError: if something in it cannot be pickled.
    """
    import cloudpickle  # can also pickle functions of notebooks and nested functions

    try:
        content: bytes = cloudpickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL)
    except EpsilometerError:
        raise
    except Exception as error:  # objects may raise anything when they are pickled
        hint = "define it at the top level of a module, or use jobs=1 on the local engine"
        what = f"{asked}: the mechanism or its input cannot be sent to worker processes ({error})"
        raise InputError(f"{what}; {hint}") from error
    return hashlib.blake2b(content, digest_size=16).hexdigest(), content


def run_parcel(key: str, fetch: Callable[[], bytes], task: Any) -> bytes:
    """Does one task in a worker. Never raises; the answer says what happened.

    Args:
        key: of the parcel.
        fetch: brings the content of the parcel if this worker has not unpacked it yet.
        task: what the work is called with.
    """
    try:
        if _unpacked.key != key:
            content = fetch()
            _unpacked.key = None
    except Exception as error:
        return _answer(_Kind.FAULT, f"the work did not arrive: {type(error).__name__}: {error}")
    try:
        if _unpacked.key != key:
            _unpacked.function = pickle.loads(content)
            _unpacked.key = key
    except Exception as error:
        return _answer(_Kind.UNREADABLE, f"{type(error).__name__}: {error}")
    try:
        assert _unpacked.function is not None
        return _answer(_Kind.VALUE, _unpacked.function(task))
    except _PASSING as error:
        return _answer(_Kind.FAULT, f"{type(error).__name__}: {error}")
    except BaseException as error:  # a mechanism that ends the program would end the worker
        return _answer(_Kind.RAISED, (_pack_error(error), traceback.format_exc()))


def open_answer(content: bytes, asked: str) -> Any:
    """What the work returned; raises what it raised.

    Raises:
        Fault: if something other than the work went wrong.
        InputError: if the worker could not unpack the work.
    """
    kind, said = pickle.loads(content)
    if kind is _Kind.VALUE:
        return said
    if kind is _Kind.FAULT:
        raise Fault(said)
    if kind is _Kind.UNREADABLE:
        what = f"{asked}: the workers cannot make out the mechanism or its input ({said})"
        hint = "install its module where they can import it, define it in the program or notebook itself"
        raise InputError(f"{what}; {hint}, or use jobs=1 on the local engine")
    raise pickle.loads(said[0]) from WorkerTraceback(said[1])


def _answer(kind: _Kind, said: Any) -> bytes:
    import cloudpickle

    answer: bytes = cloudpickle.dumps((kind, said), protocol=pickle.HIGHEST_PROTOCOL)
    return answer


def _pack_error(error: BaseException) -> bytes:
    """The error in a form that can surely be unpickled; if need be, another error with the same text."""
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(error)
        pickle.loads(packed)
        return packed
    except Exception:
        return pickle.dumps(EngineError(f"the work raised {type(error).__name__}: {error}"))


# The alarm rings again and again, for code that catches whatever is raised.
_RING_SECONDS = 0.5


class OutOfTime(MechanismError):
    """`max_seconds` were over. What was under way was ended; what was drawn before stays."""


class TimeUp(BaseException):
    """Rings inside a call. Not an Exception, which many a function catches; our own code turns it into OutOfTime."""


class Alarm:
    """Whether the time was up inside a call."""

    rang = False


class Deadline:
    """When an audit is to be over, by a clock that nobody can set.

    Attributes:
        seconds: as the user said.
        at: the end, on the monotonic clock.
        reserve: seconds that are kept for what comes after the work at hand.
    """

    def __init__(self, seconds: float) -> None:
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0.0:
            raise InputError(f"max_seconds={seconds!r} must be above 0, or None for no limit")
        self.seconds = seconds
        self.at = monotonic() + seconds
        self.reserve = 0.0

    @property
    def left(self) -> float:
        """Seconds until the work at hand must be over; negative afterwards."""
        return self.at - self.reserve - monotonic()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left in reserve, either."""
        return monotonic() >= self.at

    def over(self, where: str, began: float) -> OutOfTime:
        """The error that says what was running, and since when."""
        lasted = monotonic() - began
        return OutOfTime(
            f"max_seconds={self.seconds:g} were over while running {where}, after {lasted:.1f} s of it"
        )

    @contextmanager
    def alarm(self) -> Iterator["Alarm"]:
        """Raises TimeUp in what the main thread runs inside, when the time is up. Another timer still rings in time."""
        alarm = Alarm()
        before = signal.getsignal(signal.SIGALRM)
        began, (other, interval) = monotonic(), signal.getitimer(signal.ITIMER_REAL)
        is_inside = True

        def ring(number: int, frame: Any) -> None:
            nonlocal other
            if other and monotonic() - began >= other and callable(before):
                other = interval and monotonic() - began + interval
                before(number, frame)
            if is_inside and self.left <= 0.0:
                alarm.rang = True
                raise TimeUp
            signal.setitimer(signal.ITIMER_REAL, soonest(), _RING_SECONDS)

        def soonest() -> float:
            return min(
                max(
                    self.left if not other else min(self.left, other - (monotonic() - began)), 1e-4
                ),
                1e6,
            )

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, soonest(), _RING_SECONDS)
        try:
            try:
                yield alarm
            finally:
                is_inside = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
            if other:
                signal.setitimer(
                    signal.ITIMER_REAL, max(other - (monotonic() - began), 1e-4), interval
                )
