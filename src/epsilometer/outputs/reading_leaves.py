"""Values without parts, many at a time; how values of other libraries are opened; errors for what cannot be read."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Awaitable, Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from io import IOBase
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import EXACT, Numbers, name_text
from epsilometer.outputs.reading_numbers import READERS, about, factorise, read_long_wholes, read_wholes
from epsilometer.outputs.reading_pieces import MAX_LEAVES, Piece, by_case, whole

MAX_REPR = 80
ALLOWED = (
    "an output may be a number, str, bytes, None, date or time, an enum member, an array, a data frame, or a tuple, "
    "list, set, iterator, dict, dataclass or the like of such values"
)
BATCH = (
    "a batch of outputs must be a sequence with one entry per output (a list, tuple, iterator or array), "
    "or a dict or data frame of columns of equal length"
)


def safe_repr(value: object) -> str:
    """The value's repr on one line, or a stand-in if it has none."""
    try:
        text = str.__str__(repr(value))
    except Exception:
        return f"<unprintable {type_name(value)}>"
    return text if text.isprintable() else ascii(text)[1:-1]


def cut_repr(value: object) -> str:
    """At most `MAX_REPR` characters of the value's repr."""
    text = safe_repr(value)
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def type_name(value: object) -> str:
    """The name of the value's class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


class Unreadable(MechanismError):
    """An output is, or contains, something that is not allowed."""

    def __init__(self, value: object, output: int, why: str = "") -> None:
        super().__init__(f"{type_name(value)} in output {output}")
        self.value, self.output, self.why = value, output, why

    def text(self, batch: Any) -> str:
        """The type, the place inside the output, and a line of code that would make it readable."""
        reason = f" ({self.why})" if self.why else ""
        path = None if isinstance(batch, dict) else path_of(self.value, batch[self.output], "")
        place = f" at output{path}" if path else ""
        return (
            f"output {self.output} is or holds a value of type {type_name(self.value)}{place}, which cannot be "
            f"read{reason}: {cut_repr(self.value)}; {ALLOWED}; try: {_remedy(self.value)}"
        )


def _remedy(value: Any) -> str:
    """A line of code that would make a value readable, by its type alone: its own code may do anything."""
    kind = type(value)
    if issubclass(kind, type) or callable(value):
        return "return value()  # what it returns, not the function itself"
    if hasattr(kind, "get_params") and hasattr(kind, "fit"):
        return "return em.fitted(model)"
    if hasattr(kind, "read"):
        return "return value.read()"
    if issubclass(kind, Awaitable):
        return "return asyncio.run(value)"
    if kind.__dictoffset__:
        return "return vars(value)  # its attributes as a dict"
    return "return list(value)" if issubclass(kind, Iterable) else "return str(value)"


# How deep an unreadable value is looked for.
_MOST_LEVELS = 12


def path_of(wanted: object, value: Any, path: str) -> str | None:
    """Where a value is inside another, as Python would write it: `['fit'][2].model`."""
    if value is wanted:
        return path
    parts: Iterable[tuple[str, Any]] = ()
    opened = opener(type(value))
    if opened is not None:
        value = opened(value)
    if isinstance(value, dict):
        parts = ((f"[{cut_repr(key)}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        parts = ((f"[{place}]", part) for place, part in enumerate(value))
    elif field_names(type(value)):
        parts = ((f".{name}", getattr(value, name, None)) for name in field_names(type(value)) or ())
    if path.count("[") + path.count(".") < _MOST_LEVELS:
        found = (path_of(wanted, part, path + step) for step, part in parts)
        return next((each for each in found if each is not None), None)
    return None


def not_a_batch(values: object) -> MechanismError:
    """The whole batch is something that has no entries."""
    return MechanismError(f"the mechanism returned a batch of type {type_name(values)}: {cut_repr(values)}; {BATCH}")


# Kinds of numpy dtypes that `read_flat` reads.
FLAT_KINDS = frozenset("biufcMmUS")


def read_leaves(kind: type, values: Sequence[Any]) -> list[Piece]:
    """Values whose type is exactly `kind`, one of the keys of `LEAVES`."""
    return LEAVES[kind](values)


def _read_bools(values: Sequence[bool]) -> list[Piece]:
    truths = np.frombuffer(bytes(values), dtype=np.bool_).copy()  # three times as fast as np.array
    return [whole("bool", (Numbers(truths),), len(values))]


def _read_floats(values: Sequence[float]) -> list[Piece]:
    return [whole("float", (Numbers(np.array(values, dtype=np.float64)),), len(values))]


def _read_complex(values: Sequence[complex]) -> list[Piece]:
    return READERS["c"](np.array(values, dtype=np.complex128))


def _read_nones(values: Sequence[None]) -> list[Piece]:
    return [whole("None", (), len(values))]


def _read_ints(values: Sequence[int], name: str = "int", long_name: str = "bigint") -> list[Piece]:
    try:
        return read_wholes(np.array(values, dtype=np.int64), name, long_name)
    except OverflowError:
        array = np.array(values, dtype=object)
    fits = np.fromiter((-EXACT <= value <= EXACT for value in values), np.bool_, len(values))
    return by_case(
        array,
        [
            (fits, lambda some: read_wholes(some.astype(np.int64), name, long_name)),
            (~fits, lambda some: read_long_wholes(some.tolist(), long_name)),
        ],
    )


def _read_decimals(values: Sequence[Decimal]) -> list[Piece]:
    # The label distinguishes 1.0 from 1.00, and what a float cannot hold; the float keeps the order.
    sizes = np.array([float("nan") if value.is_nan() else float(value) for value in values])
    return [whole("Decimal", (Numbers(sizes), factorise(list(map(str, values)), str)), len(values))]


def _read_fractions(values: Sequence[Fraction]) -> list[Piece]:
    return [whole("Fraction", (Numbers(np.array(list(map(about, values)))), factorise(values, str)), len(values))]


def _read_dates(values: Sequence[date]) -> list[Piece]:
    return [whole("date", (Numbers(np.fromiter((value.toordinal() for value in values), np.int64)),), len(values))]


# Times are whole numbers of microseconds, so that earlier and later are below and above. The offset of a zone is part
# of the shape: equal instants of two zones are different outputs.
_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)


def _read_moments(values: Sequence[datetime]) -> list[Piece]:
    return _by_zone("datetime", values, [(value.replace(tzinfo=None) - _EPOCH) // _TICK for value in values])


def _read_times(values: Sequence[time]) -> list[Piece]:
    seconds = [(value.hour * 60 + value.minute) * 60 + value.second for value in values]
    return _by_zone("time", values, [1_000_000 * s + each.microsecond for s, each in zip(seconds, values, strict=True)])


def _by_zone(name: str, values: Sequence[datetime] | Sequence[time], ticks: list[int]) -> list[Piece]:
    zones = [f" UTC+{value.utcoffset()}" if value.tzinfo else "" for value in values]
    array = np.array(ticks, dtype=object)
    cases = []
    for zone in sorted(set(zones)):
        read = partial(_read_ints, name=name + zone, long_name=f"long {name}{zone}")
        cases.append((np.array([each == zone for each in zones]), lambda some, read=read: read(some.tolist())))
    return by_case(array, cases)


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def read_instants(kind: type, values: Sequence[Any]) -> list[Piece]:
    """Times and durations of pandas: microseconds as the nearest float, and the nanoseconds modulo 2^53."""
    plain = [value.asm8 for value in values]
    units = [_PER_SECOND[np.datetime_data(each.dtype)[0]] for each in plain]
    ticks = [int(each.astype(np.int64)) * (10**9 // unit) for each, unit in zip(plain, units, strict=True)]
    zones = [str(getattr(value, "tz", None) or "") for value in values]
    cases = []
    for zone in sorted(set(zones)):
        read = partial(_nanoseconds, f"{kind.__name__} {zone}".strip())
        cases.append((np.array([each == zone for each in zones]), read))
    return by_case(np.array(ticks, dtype=object), cases)


def _nanoseconds(shape: str, ticks: NDArray[Any]) -> list[Piece]:
    rounded = np.array([each / 1000 for each in ticks.tolist()])
    return [whole(shape, (Numbers(rounded), Numbers((ticks & (EXACT - 1)).astype(np.int64))), len(ticks))]


def _read_durations(values: Sequence[timedelta]) -> list[Piece]:
    return _read_ints([value // _TICK for value in values], "timedelta", "long timedelta")


def _read_texts(values: Sequence[str]) -> list[Piece]:
    return [whole("str", (factorise(values, str),), len(values))]


def _read_bytes(values: Sequence[bytes]) -> list[Piece]:
    return [whole("bytes", (factorise(values, bytes_text),), len(values))]


def read_enums(kind: type[Enum], values: Sequence[Enum]) -> list[Piece]:
    """Members of one class, by name; classes of the same name count as the same."""
    # By identity: members are singletons, and a class may redefine equality and hash.
    identities = list(map(id, values))
    texts = {identity: _member_text(member) for identity, member in dict(zip(identities, values, strict=True)).items()}
    column = factorise(list(map(texts.__getitem__, identities)), str)
    return [whole(name_text(kind.__name__), (column,), len(values))]


def _member_text(member: Enum) -> str:
    # A flag without any bit set has no name.
    return str(member._name_ if member._name_ is not None else member._value_)


def bytes_text(value: bytes) -> str:
    """Printable ASCII as it is, a backslash doubled, everything else escaped: different bytes have different texts."""
    return value.decode("latin-1").encode("unicode_escape").decode("ascii")


LEAVES: dict[type, Callable[[Sequence[Any]], list[Piece]]] = {
    bool: _read_bools,
    int: _read_ints,
    float: _read_floats,
    complex: _read_complex,
    str: _read_texts,
    bytes: _read_bytes,
    type(None): _read_nones,
    Decimal: _read_decimals,
    date: _read_dates,
    datetime: _read_moments,
    time: _read_times,
    timedelta: _read_durations,
    Fraction: _read_fractions,
}

# How a value of a subclass becomes one of the class itself without running code of the subclass.
PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
}


def read_flat(array: NDArray[Any]) -> list[Piece]:
    """A one-dimensional array, shape (n,), whose dtype's kind is one of `FLAT_KINDS`.

    Arrays of float64, int64 and bool are not copied.
    """
    return _FLAT[array.dtype.kind](array)


_FLAT: dict[str, Callable[[NDArray[Any]], list[Piece]]] = {
    **READERS,
    "U": lambda array: _read_texts(array.tolist()),
    "S": lambda array: _read_bytes(array.tolist()),
}


def field_names(kind: type) -> tuple[str, ...] | None:
    """The declared fields of a dataclass, a named tuple, or a class of attrs or pydantic; None for other classes."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(field.name for field in kind.__attrs_attrs__)
    declared = getattr(kind, "model_fields", None)
    return tuple(declared) if isinstance(declared, dict) else None


class Fields(dict[Any, Any]):
    """Names and values whose order counts."""


# Views and iterators are read as lists: what was returned is what a loop over it gives.
LISTED = (deque, KeysView, ValuesView, ItemsView, Iterator)


def opener(kind: type) -> Callable[[Any], Any] | None:
    """What turns a value of another library, or one that must be looped over, into plain values; None for others.

    Libraries are recognised by the names of their classes, so that none is imported.
    """
    for each in kind.__mro__:
        opened = _OPENERS.get((each.__module__.partition(".")[0], each.__name__))
        if opened is not None:
            return opened
    if issubclass(kind, LISTED) and not issubclass(kind, IOBase):
        return lambda value: list(islice(value, MAX_LEAVES + 1))
    if issubclass(kind, os.PathLike):
        return os.fspath
    if hasattr(kind, "tocoo") and hasattr(kind, "toarray"):
        return _sparse
    return np.asarray if hasattr(kind, "__array__") and not issubclass(kind, np.ndarray | np.generic) else None


def collected(value: Any) -> Any:
    """A lazy frame, run; anything else as it is."""
    lazy = {each.__name__ for each in type(value).__mro__} & {"LazyFrame", "OnceFrame"}
    return value.collect() if lazy and hasattr(value, "collect") else value


def _frame(value: Any) -> Fields:
    names = _row_names(value.index)
    columns = [column.tolist() for _, column in value.items()]
    return _unique(list(value.columns), columns if names is None else [_unique(names, column) for column in columns])


def _series(value: Any) -> Any:
    names = _row_names(value.index)
    return value.tolist() if names is None else _unique(names, value.tolist())


def _row_names(index: Any) -> list[Any] | None:
    """The labels of the rows of a pandas object, unless these are only numbered."""
    names: list[Any] = index.tolist()
    return None if names == list(range(len(names))) else names


def _unique(names: list[Any], values: list[Any]) -> Fields:
    """Names that occur twice get their place, too."""
    fields = Fields(zip(names, values, strict=True))
    return (
        fields
        if len(fields) == len(names)
        else Fields(zip(zip(names, range(len(names)), strict=True), values, strict=True))
    )


def _sparse(value: Any) -> Any:
    if np.prod(value.shape, dtype=float) <= MAX_LEAVES:
        return value.toarray()
    entries = value.tocoo()
    places = zip(*(axis.tolist() for axis in (entries.row, entries.col)), strict=True)
    return [value.shape, dict(sorted(zip(places, entries.data.tolist(), strict=True)))]


_OPENERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): lambda value: value.tolist(),
    ("pandas", "ExtensionArray"): lambda value: value.tolist(),
    ("pandas", "Period"): str,
    ("pandas", "Interval"): str,
    ("polars", "DataFrame"): lambda value: Fields((name, value[name].to_list()) for name in value.columns),
    ("polars", "Series"): lambda value: value.to_list(),
    ("polars", "LazyFrame"): collected,
    ("opendp", "OnceFrame"): collected,
    ("pyarrow", "Table"): lambda value: Fields(value.to_pydict()),
    ("pyarrow", "RecordBatch"): lambda value: Fields(value.to_pydict()),
    ("pyarrow", "Array"): lambda value: value.to_pylist(),
    ("pyarrow", "ChunkedArray"): lambda value: value.to_pylist(),
    ("builtins", "range"): lambda value: Fields(start=value.start, stop=value.stop, step=value.step),
    ("builtins", "bytearray"): bytes,
    ("builtins", "memoryview"): bytes,
}
