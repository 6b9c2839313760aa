"""A copy of the data for every call of a mechanism, so that no call sees another's changes; the cheapest correct one.

A mechanism may empty, sort or scale its dataset in place; if the next call saw that, its outputs would not be draws of
one distribution. Outputs are copied as well, because a function may return the same buffer again and again.
"""

import copy
import dataclasses
import datetime
import decimal
import fractions
import io
import pickle
import struct
import types
import uuid
from array import array
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from epsilometer.errors import InputError, MechanismError
from epsilometer.outputs.foreign import field_names
from epsilometer.outputs.reading_pieces import MAX_LEAVES
from epsilometer.storage.digests import GENERATORS, Undigestible, content_digest

Make = Callable[[], Any]
# Immutable.
_ATOMS: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis)}
    | {
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
        fractions.Fraction,
    }
    | {
        uuid.UUID,
        types.FunctionType,
        types.BuiltinFunctionType,
        np.str_,
        np.bytes_,
        np.datetime64,
        np.timedelta64,
    }
    | set(np.sctypeDict.values()) - {np.void, np.object_}
)
# Values of these types are equal if and only if their digests are.
_COMPARED: frozenset[type] = frozenset({type(None), bool, int, str, bytes})
# Immutable too, or not to be copied: every call would draw the same from a copy of a generator.
_SHARED = (Enum, type, types.ModuleType, types.FunctionType, *GENERATORS)
_FROZEN = {
    ("pyarrow", name) for name in ("Table", "RecordBatch", "Array", "ChunkedArray", "Scalar")
}
_FROZEN |= {("pandas", "Index"), ("polars", "LazyFrame"), ("jax", "Array"), ("jaxlib", "ArrayImpl")}
_ONE_SHOT = (Iterator, AsyncIterator, Awaitable, io.IOBase)


def same_content(left: Any, right: Any) -> bool:
    """Whether nothing distinguishes two values: type, dtype, bits, shape or order."""
    if (
        left is right
        or type(left) is not type(right)
        or (type(left) in (list, tuple) and len(left) != len(right))
    ):
        return left is right
    if type(left) in _COMPARED:
        return bool(left == right)
    if type(left) is float:  # by its bits: 0.0 is not -0.0, and nan is itself
        return struct.pack("<d", left) == struct.pack("<d", right)
    with suppress(Undigestible):
        return content_digest(left) == content_digest(right)
    return False


def check_reusable(value: Any, name: str) -> None:
    """Refuses what can be read only once: an iterator, a generator, an open file; also inside containers.

    Raises:
        InputError: if so, because later calls would see another dataset.
    """
    if type(value) in _ATOMS:
        return
    waiting, met = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, _ONE_SHOT):
            once = "which can be read only once, but a mechanism is called many times; give a list of its items instead"
            raise InputError(f"{name} is or holds a {type(each).__name__}, {once}")
        held = _held(each)
        if id(each) not in met and not _all_atoms(held):
            met.add(id(each))
            waiting += held


def _held(value: Any) -> Collection[Any]:
    """What a container holds; other values cannot be looked into without knowing their type."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.ravel().tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return ()


def copier(value: Any) -> Make:
    """A function that makes copies of a value, one per call; the value itself if it is immutable."""
    return (lambda: value) if type(value) in _ATOMS else _Plan(value).make


def shared_parts(value: Any) -> list[str]:
    """The types of the parts that cannot be copied, like connections: all calls share them."""
    return [] if type(value) in _ATOMS else _Plan(value).shared


class _Plan:
    """How to copy one value."""

    def __init__(self, value: Any) -> None:
        self.shared: list[str] = []
        self._met: set[int] = set()
        self._tangled = False
        make = self._of(value)
        if self._tangled:  # a part that occurs twice must be one part in the copy, too
            self.shared = []
            make = self._unpickled(value)
        self.make: Make = make or (lambda: value)

    def _of(self, value: Any) -> Make | None:
        """None if the value itself will do."""
        kind = type(value)
        if kind in _ATOMS or isinstance(value, _SHARED) or _names(kind) & _FROZEN:
            return None
        if kind is frozenset and _all_atoms(value):
            return None
        if kind is not tuple:
            if id(value) in self._met:
                self._tangled = True
                return None
            self._met.add(id(value))
        if kind not in (list, tuple, dict):
            return _plain_copy(value) or self._unpickled(value)
        parts = value.values() if kind is dict else value
        makes = [] if _all_atoms(parts) else [self._of(each) for each in parts]
        if not any(makes):
            return None if kind is tuple else value.copy

        def copied() -> Any:
            copies = [
                each if make is None else make() for each, make in zip(parts, makes, strict=True)
            ]
            return (
                copies
                if kind is list
                else tuple(copies)
                if kind is tuple
                else dict(zip(value, copies, strict=True))
            )

        return copied

    def _unpickled(self, value: Any) -> Make | None:
        """Any object, copied by pickle; what pickle cannot copy is shared."""
        for lenient in (False, True):
            target = io.BytesIO()
            pickler = _Pickler(target, lenient)
            try:
                pickler.dump(value)
                data, held = target.getvalue(), pickler.held
                _Unpickler(data, held).load()
            except Exception:  # objects may raise anything when they are copied
                continue
            self.shared += pickler.shared
            return lambda: _Unpickler(data, held).load()
        self.shared.append(type(value).__name__)
        return None


class _Pickler(pickle.Pickler):
    """Shares what must not be copied; if lenient, also what cannot be copied."""

    def __init__(self, target: io.BytesIO, lenient: bool) -> None:
        super().__init__(target, protocol=pickle.HIGHEST_PROTOCOL)
        self.held: list[Any] = []
        self.shared: list[str] = []
        self._lenient = lenient

    def persistent_id(self, value: Any) -> int | None:
        """A number for what is shared, None for what is copied."""
        if type(value) in _ATOMS and not isinstance(value, types.FunctionType):
            return None
        if isinstance(value, _SHARED):
            return self._hold(value)
        if self._lenient and not isinstance(value, list | tuple | dict | set | frozenset):
            try:
                value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
            except Exception:
                self.shared.append(type(value).__name__)
                return self._hold(value)
        return None

    def _hold(self, value: Any) -> int:
        self.held.append(value)
        return len(self.held) - 1


class _Unpickler(pickle.Unpickler):
    """Reads bytes that this process has just written."""

    def __init__(self, data: bytes, held: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._held = held

    def persistent_load(self, number: Any) -> Any:
        """The shared object."""
        return self._held[number]


def snapshot(value: Any) -> Any:
    """An output as it is now, whatever its mechanism later does with its arrays and lists."""
    if type(value) in _ATOMS:
        return value
    try:
        return _received(value)
    except RecursionError:  # reading it will report that
        return value


def _received(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind in (list, tuple):
        return value[:] if _all_atoms(value) else kind(map(_received, value))
    if kind is dict:
        return {name: _received(each) for name, each in value.items()}
    if (make := _plain_copy(value)) is not None:
        return make()
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        try:  # now: later it might see what another run has changed; an endless one is cut
            return [_received(each) for each in islice(value, MAX_LEAVES + 1)]
        except Exception as error:
            raised = f"raised {type(error).__name__}: {error!s:.200}"
            raise MechanismError(
                f"the mechanism returned a {kind.__name__} that {raised}"
            ) from error
    if (
        field_names(kind)
        or hasattr(kind, "tocoo")
        or isinstance(value, list | tuple | dict | set | np.ndarray)
    ):
        with suppress(Exception):  # reading it will report what is wrong
            return copy.deepcopy(value)
    return value


def _plain_copy(value: Any) -> Make | None:
    """A copy function for a value without mutable parts; None if it may have such parts."""
    kind = type(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        return lambda: value.copy(order="K")
    if kind in (bytearray, array):
        return lambda: value[:]
    if kind is memoryview:
        return lambda: np.array(value).data
    names = _names(kind)
    if names & {("polars", "DataFrame"), ("polars", "Series")}:
        return lambda: value.clone()
    of_numpy = (
        isinstance(value, np.ndarray | np.void) and kind.__module__.partition(".")[0] == "numpy"
    )
    of_pandas = names & {("pandas", "DataFrame"), ("pandas", "Series")} and _cells_are_atoms(value)
    if of_pandas or (of_numpy and not value.dtype.hasobject) or (kind is set and _all_atoms(value)):
        return lambda: value.copy()
    return None


def _all_atoms(values: Collection[Any]) -> bool:
    return _ATOMS.issuperset(map(type, values))


def _cells_are_atoms(value: Any) -> bool:
    """Whether all cells of a pandas object are immutable: its copies share the objects in its cells."""
    columns = (
        [value.iloc[:, place] for place in range(value.shape[1])] if value.ndim == 2 else [value]
    )
    boxed = [
        column
        for column in columns
        if isinstance(column.dtype, np.dtype) and column.dtype.hasobject
    ]
    return all(_all_atoms(column.tolist()) for column in boxed)


def _names(kind: type) -> set[tuple[str, str]]:
    """The classes of a library that a type is or descends from, by library and name."""
    return {(each.__module__.partition(".")[0], each.__name__) for each in kind.__mro__}
