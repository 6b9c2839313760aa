"""Copies of the data for every call of a mechanism, so that no call sees another's changes.

A mechanism may empty, sort or scale its dataset in place; if the next call saw that, its outputs
would not be draws of one distribution. Outputs are copied as well, because a function may return
the same buffer again and again. Copies are the cheapest correct ones.
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
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from epsilometer.errors import InputError, MechanismError
from epsilometer.outputs.foreign import field_names
from epsilometer.outputs.reading_pieces import MAX_LEAVES
from epsilometer.storage.digests import GENERATORS, Undigestible, content_digest

# A function that returns a fresh copy of a value.
MakeCopy = Callable[[], Any]

# Types of values that cannot change and have no parts.
_IMMUTABLE: frozenset[type] = frozenset(
    {
        type(None),
        type(Ellipsis),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        range,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
        fractions.Fraction,
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
_COMPARED_BY_VALUE: frozenset[type] = frozenset({type(None), bool, int, str, bytes})
# Immutable too, or not to be copied: every call would draw the same from a copy of a generator.
_SHARED = (Enum, type, types.ModuleType, types.FunctionType, *GENERATORS)
# Immutable classes of libraries, by library and name.
_IMMUTABLE_CLASSES = {
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
    ("pyarrow", "Array"),
    ("pyarrow", "ChunkedArray"),
    ("pyarrow", "Scalar"),
    ("pandas", "Index"),
    ("polars", "LazyFrame"),
    ("jax", "Array"),
    ("jaxlib", "ArrayImpl"),
}
# Values that can be read only once.
_ONE_SHOT = (Iterator, AsyncIterator, Awaitable, io.IOBase)

# --- comparing and checking


def same_content(left: Any, right: Any) -> bool:
    """Returns whether nothing distinguishes two values: type, dtype, bits, shape or order."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) in (list, tuple) and len(left) != len(right):
        return False
    if type(left) in _COMPARED_BY_VALUE:
        return bool(left == right)
    if type(left) is float:  # by its bits: 0.0 is not -0.0, and nan is itself
        return struct.pack("<d", left) == struct.pack("<d", right)
    with suppress(Undigestible):
        return content_digest(left) == content_digest(right)
    return False


def are_equal(left: Any, right: Any) -> bool:
    """Returns whether two values are equal by `==`; where `==` has no single answer, by content.

    Arrays and data frames compare item by item, and so does what holds them.
    """
    if left is right:
        return True
    with suppress(Exception):  # a foreign `==` may raise anything
        return bool(left == right)
    if isinstance(left, list | tuple) and type(left) is type(right):
        return len(left) == len(right) and all(map(are_equal, left, right))
    return same_content(left, right)


def equal_fields(left: Any, right: object) -> bool:
    """Returns whether two dataclasses are of one class and equal in every field that is compared.

    For classes that hold arrays or datasets: `__eq__ = equal_fields`.
    """
    compared = [field.name for field in dataclasses.fields(left) if field.compare]
    if type(left) is not type(right):
        return False
    return all(are_equal(getattr(left, name), getattr(right, name)) for name in compared)


def check_reusable(value: Any, name: str) -> None:
    """Refuses what can be read only once: an iterator, a generator, an open file.

    It also looks inside containers.

    Raises:
        InputError: if so, because later calls would see another dataset.
    """
    if type(value) in _IMMUTABLE:
        return
    to_check = [value]
    checked: set[int] = set()
    while to_check:
        part = to_check.pop()
        if isinstance(part, _ONE_SHOT):
            raise InputError(
                f"{name} is or holds a {type(part).__name__}, which can be read only once, but a "
                "mechanism is called many times; give a list of its items instead"
            )
        inner_parts = _parts(part)
        if id(part) not in checked and not _all_immutable(inner_parts):
            checked.add(id(part))
            to_check += inner_parts


def _parts(value: Any) -> Collection[Any]:
    """Returns what a container holds.

    Other values cannot be looked into without knowing their type, so they have no parts.
    """
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.ravel().tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return ()


# --- copying inputs


def copier(value: Any) -> MakeCopy:
    """Returns a function that makes copies of a value, one per call.

    It returns the value itself if that is immutable.
    """
    if type(value) in _IMMUTABLE:
        return lambda: value
    return _CopyPlan(value).make_copy


def shared_parts(value: Any) -> list[str]:
    """Returns the types of the parts that cannot be copied, like connections: calls share them."""
    if type(value) in _IMMUTABLE:
        return []
    return _CopyPlan(value).shared


class _CopyPlan:
    """How to copy one value.

    Attributes:
        make_copy: returns a fresh copy.
        shared: the types of the parts that all copies share, because they cannot be copied.
    """

    def __init__(self, value: Any) -> None:
        self.shared: list[str] = []
        self._seen_ids: set[int] = set()
        self._has_repeated_part = False
        make_copy = self._copier_of(value)
        if self._has_repeated_part:
            # It must be one part in the copy, too, which pickle takes care of.
            self.shared = []
            make_copy = self._pickle_copier(value)
        self.make_copy: MakeCopy = make_copy or (lambda: value)

    def _copier_of(self, value: Any) -> MakeCopy | None:
        """Returns a function that copies a value; None if the value itself will do."""
        kind = type(value)
        if kind in _IMMUTABLE or isinstance(value, _SHARED):
            return None
        if not _library_classes(kind).isdisjoint(_IMMUTABLE_CLASSES):
            return None
        if kind is frozenset and _all_immutable(value):
            return None
        if kind is not tuple:
            if id(value) in self._seen_ids:
                self._has_repeated_part = True
                return None
            self._seen_ids.add(id(value))
        if kind not in (list, tuple, dict):
            return _plain_copier(value) or self._pickle_copier(value)
        parts = value.values() if kind is dict else value
        part_copiers: list[MakeCopy | None] = []
        if not _all_immutable(parts):
            part_copiers = [self._copier_of(part) for part in parts]
        if not any(part_copiers):
            return None if kind is tuple else value.copy
        return partial(_copy_with_parts, value, part_copiers)

    def _pickle_copier(self, value: Any) -> MakeCopy | None:
        """Returns a function that copies any object by pickle; what pickle cannot copy is shared.

        Parts are shared only if the object cannot be copied otherwise.
        """
        for shares_unpicklable in (False, True):
            target = io.BytesIO()
            pickler = _Pickler(target, shares_unpicklable)
            try:
                pickler.dump(value)
                data = target.getvalue()
                objects = pickler.shared_objects
                _Unpickler(data, objects).load()
            except Exception:  # objects may raise anything when they are copied
                continue
            self.shared += pickler.unpicklable
            return lambda: _Unpickler(data, objects).load()
        self.shared.append(type(value).__name__)
        return None


class _Pickler(pickle.Pickler):
    """Shares what must not be copied and, if asked to, what cannot be copied.

    Attributes:
        shared_objects: what copies share, by number.
        unpicklable: the types of those among them that could not be copied.
    """

    def __init__(self, target: io.BytesIO, shares_unpicklable: bool) -> None:
        super().__init__(target, protocol=pickle.HIGHEST_PROTOCOL)
        self.shared_objects: list[Any] = []
        self.unpicklable: list[str] = []
        self._shares_unpicklable = shares_unpicklable

    def persistent_id(self, value: Any) -> int | None:
        """Returns a number for what is shared, None for what is copied."""
        if type(value) in _IMMUTABLE and not isinstance(value, types.FunctionType):
            return None
        if isinstance(value, _SHARED):
            return self._share(value)
        is_container = isinstance(value, list | tuple | dict | set | frozenset)
        if self._shares_unpicklable and not is_container:
            try:
                value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
            except Exception:
                self.unpicklable.append(type(value).__name__)
                return self._share(value)
        return None

    def _share(self, value: Any) -> int:
        self.shared_objects.append(value)
        return len(self.shared_objects) - 1


class _Unpickler(pickle.Unpickler):
    """Reads bytes that this process has just written."""

    def __init__(self, data: bytes, shared_objects: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._shared_objects = shared_objects

    def persistent_load(self, number: Any) -> Any:
        """Returns a shared object by its number."""
        return self._shared_objects[number]


# --- copying outputs


def snapshot(value: Any) -> Any:
    """Returns an output as it is now, whatever its mechanism later does with its arrays."""
    if type(value) in _IMMUTABLE:
        return value
    try:
        return _copy_output(value)
    except RecursionError:  # reading it will report that
        return value


def _copy_output(value: Any) -> Any:
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if kind in (list, tuple):
        return value[:] if _all_immutable(value) else kind(map(_copy_output, value))
    if kind is dict:
        return {name: _copy_output(part) for name, part in value.items()}
    make_copy = _plain_copier(value)
    if make_copy is not None:
        return make_copy()
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        # Now: later it might see what another run has changed. An endless one is cut.
        try:
            return [_copy_output(item) for item in islice(value, MAX_LEAVES + 1)]
        except Exception as error:
            raise MechanismError(
                f"the mechanism returned a {kind.__name__} that raised "
                f"{type(error).__name__}: {error!s:.200}"
            ) from error
    is_container = isinstance(value, list | tuple | dict | set | np.ndarray)
    if is_container or field_names(kind) or hasattr(kind, "tocoo"):
        with suppress(Exception):  # reading it will report what is wrong
            return copy.deepcopy(value)
    return value


# --- both


def _copy_with_parts(
    value: list[Any] | tuple[Any, ...] | dict[Any, Any], part_copiers: list[MakeCopy | None]
) -> Any:
    """Returns a copy of a container; None in `part_copiers` stands for a part that is shared."""
    parts = value.values() if isinstance(value, dict) else value
    copies = [
        part if make_copy is None else make_copy()
        for part, make_copy in zip(parts, part_copiers, strict=True)
    ]
    if isinstance(value, dict):
        return dict(zip(value, copies, strict=True))
    return copies if isinstance(value, list) else tuple(copies)


def _plain_copier(value: Any) -> MakeCopy | None:
    """Returns a copy function for a value without mutable parts; None if it may have such parts."""
    kind = type(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        return lambda: value.copy(order="K")
    if kind in (bytearray, array):
        return lambda: value[:]
    if kind is memoryview:
        return lambda: np.array(value).data
    classes = _library_classes(kind)
    if not classes.isdisjoint({("polars", "DataFrame"), ("polars", "Series")}):
        return lambda: value.clone()
    is_pandas = not classes.isdisjoint({("pandas", "DataFrame"), ("pandas", "Series")})
    library = kind.__module__.partition(".")[0]
    is_numpy = isinstance(value, np.ndarray | np.void) and library == "numpy"
    if (
        (is_pandas and _has_immutable_cells(value))
        or (is_numpy and not value.dtype.hasobject)
        or (kind is set and _all_immutable(value))
    ):
        return lambda: value.copy()
    return None


def _all_immutable(values: Collection[Any]) -> bool:
    return _IMMUTABLE.issuperset(map(type, values))


def _has_immutable_cells(value: Any) -> bool:
    """Returns whether all cells of a pandas object are immutable: its copies share them."""
    columns = [value]
    if value.ndim == 2:
        columns = [value.iloc[:, position] for position in range(value.shape[1])]
    for column in columns:
        holds_objects = isinstance(column.dtype, np.dtype) and column.dtype.hasobject
        if holds_objects and not _all_immutable(column.tolist()):
            return False
    return True


def _library_classes(kind: type) -> set[tuple[str, str]]:
    """Returns the classes that a type is or descends from, by library and name."""
    return {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}
