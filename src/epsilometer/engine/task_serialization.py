"""What goes to a worker and what comes back, as bytes.

The work of a whole map is packed once, under a key; every task then only names the key. An answer
says whether the work returned, raised, could not be unpacked, or failed for another reason.
"""

import hashlib
import pickle
import threading
import traceback
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from epsilometer.errors import EngineError, EpsilometerError, InputError

# Errors for which a worker's memory, disk or connections may be to blame instead of the work.
_PASSING_ERRORS = (MemoryError, OSError)


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


class _AnswerKind(Enum):
    """What became of a task in a worker."""

    VALUE = 1
    RAISED = 2
    UNREADABLE = 3
    FAULT = 4


class _RaisedError(NamedTuple):
    """An error of the work, as it travels back.

    Attributes:
        pickled: the error itself.
        traceback: where it was raised, as text.
    """

    pickled: bytes
    traceback: str


class _UnpackedWork(threading.local):
    """The work that a thread unpacked last.

    Threads do not share it: a mechanism need not be thread-safe.
    """

    key: str | None = None
    function: Callable[[Any], Any] | None = None


_unpacked = _UnpackedWork()


def pack(function: Callable[[Any], Any], asked: str) -> tuple[str, bytes]:
    """Returns the work as bytes, after a key that is the same for the same content.

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
        raise InputError(
            f"{asked}: the mechanism or its input cannot be sent to worker processes ({error}); "
            "define it at the top level of a module, or use jobs=1 on the local engine"
        ) from error
    key = hashlib.blake2b(content, digest_size=16).hexdigest()
    return key, content


def run_parcel(key: str, fetch: Callable[[], bytes], task: Any) -> bytes:
    """Does one task in a worker. Never raises; the answer says what happened.

    Args:
        key: of the packed work.
        fetch: brings the packed work if this worker has not unpacked it yet.
        task: what the work is called with.
    """
    try:
        if _unpacked.key != key:
            content = fetch()
            _unpacked.key = None
    except Exception as error:
        return _answer(_AnswerKind.FAULT, f"the work did not arrive: {_describe(error)}")
    try:
        if _unpacked.key != key:
            _unpacked.function = pickle.loads(content)
            _unpacked.key = key
    except Exception as error:
        return _answer(_AnswerKind.UNREADABLE, _describe(error))
    try:
        assert _unpacked.function is not None
        return _answer(_AnswerKind.VALUE, _unpacked.function(task))
    except _PASSING_ERRORS as error:
        return _answer(_AnswerKind.FAULT, _describe(error))
    except BaseException as error:  # a mechanism that ends the program would end the worker
        raised = _RaisedError(pickled=_pack_error(error), traceback=traceback.format_exc())
        return _answer(_AnswerKind.RAISED, raised)


def open_answer(answer: bytes, asked: str) -> Any:
    """Returns what the work returned, or raises what it raised.

    Raises:
        Fault: if something other than the work went wrong.
        InputError: if the worker could not unpack the work.
    """
    kind, content = pickle.loads(answer)
    if kind is _AnswerKind.VALUE:
        return content
    if kind is _AnswerKind.FAULT:
        raise Fault(content)
    if kind is _AnswerKind.UNREADABLE:
        raise InputError(
            f"{asked}: the workers cannot make out the mechanism or its input ({content}); "
            "install its module where they can import it, define it in the program or notebook "
            "itself, or use jobs=1 on the local engine"
        )
    raise pickle.loads(content.pickled) from WorkerTraceback(content.traceback)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _answer(kind: _AnswerKind, content: Any) -> bytes:
    import cloudpickle

    answer: bytes = cloudpickle.dumps((kind, content), protocol=pickle.HIGHEST_PROTOCOL)
    return answer


def _pack_error(error: BaseException) -> bytes:
    """Returns the error in a form that can surely be unpickled.

    If need be, that is another error with the same text.
    """
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(error)
        pickle.loads(packed)
    except Exception:
        return pickle.dumps(EngineError(f"the work raised {type(error).__name__}: {error}"))
    return packed
