"""Work that travels to workers, and answers that come back: as bytes of our own on every engine.

The work is packed once and unpacked once per worker, however many tasks it is for. What cannot be packed is found here,
before anything is sent. An answer says whether the work itself failed or something around it, because only the latter
is worth another try. Arrays arrive as they left; some engines would hand over read-only views instead.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from epsilometer.errors import EngineError, EpsilometerError, InputError

# What a worker may run into without the work being to blame: its memory, its disk, its connections.
_PASSING = (MemoryError, OSError)


class Fault(Exception):
    """Something around the work went wrong: worth another try.

    Attributes:
        engine_lost: whether nothing that is still out can come back.
        is_final: whether the engine has tried again itself, and gave up.
    """

    def __init__(self, reason: str, *, engine_lost: bool = False, is_final: bool = False) -> None:
        super().__init__(reason)
        self.engine_lost = engine_lost
        self.is_final = is_final


class WorkerTraceback(Exception):
    """Where in a worker an error was raised: the cause of the error that is raised here."""

    def __str__(self) -> str:
        return f"in a worker:\n{self.args[0]}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """Packed work.

    Attributes:
        key: the same for the same content.
        content: the bytes.
    """

    key: str
    content: bytes


class _Kind(Enum):
    VALUE = 0
    RAISED = 1
    UNREADABLE = 2
    FAULT = 3


class _Unpacked(threading.local):
    """The work that a thread unpacked last. Threads do not share: what is audited need not be safe for them."""

    key: str | None = None
    function: Callable[[Any], Any] | None = None


_unpacked = _Unpacked()


def pack(function: Callable[[Any], Any], asked: str) -> Parcel:
    """The work as bytes.

    Args:
        function: of one task.
        asked: how workers were asked for, for the message: "jobs=2".

    Raises:
        InputError: if something in it cannot leave this process.
    """
    import cloudpickle  # takes functions of notebooks and other functions, too

    try:
        content: bytes = cloudpickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL)
    except EpsilometerError:
        raise
    except Exception as error:  # whatever an object says when it is asked to be pickled
        raise InputError(
            f"{asked}: the mechanism or its input cannot be sent to worker processes ({error}); "
            "define it at the top level of a module, or use jobs=1 on the local engine"
        ) from error
    return Parcel(hashlib.blake2b(content, digest_size=16).hexdigest(), content)


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
    return _do(_unpacked.function, task)


def open_answer(content: bytes, asked: str) -> Any:
    """What the work returned; raises what it raised.

    Raises:
        Fault: if something around the work went wrong.
        InputError: if the worker could not unpack the work.
    """
    kind, said = pickle.loads(content)
    if kind is _Kind.VALUE:
        return said
    if kind is _Kind.FAULT:
        raise Fault(said)
    if kind is _Kind.UNREADABLE:
        raise InputError(
            f"{asked}: the workers cannot make out the mechanism or its input ({said}); install its module where they "
            "can import it, define it in the program or notebook itself, or use jobs=1 on the local engine"
        )
    packed, text = said
    error = pickle.loads(packed)
    raise error from WorkerTraceback(text)


def _do(function: Any, task: Any) -> bytes:
    try:
        return _answer(_Kind.VALUE, function(task))
    except _PASSING as error:
        return _answer(_Kind.FAULT, f"{type(error).__name__}: {error}")
    except (Exception, SystemExit) as error:  # a mechanism that ends the program would end the worker
        return _answer(_Kind.RAISED, (_pack_error(error), traceback.format_exc()))


def _answer(kind: _Kind, said: Any) -> bytes:
    import cloudpickle

    answer: bytes = cloudpickle.dumps((kind, said), protocol=pickle.HIGHEST_PROTOCOL)
    return answer


def _pack_error(error: BaseException) -> bytes:
    """An error that is sure to be readable at the other end, if need be another one that says the same."""
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(error)
        pickle.loads(packed)
        return packed
    except Exception:
        return pickle.dumps(EngineError(f"the work raised {type(error).__name__}: {error}"))
