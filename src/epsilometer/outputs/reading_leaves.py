"""Values without parts, many at a time; how values of other libraries are opened; errors for what cannot be read."""

import dataclasses
import os
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Sequence,
    ValuesView,
)
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from io import IOBase
from itertools import islice
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Block, Numbers
from epsilometer.outputs.reading_numbers import READERS, about, factorise, read_ints
from epsilometer.outputs.reading_pieces import MAX_LEAVES, by_case, leaf
from epsilometer.outputs.shapes import EXACT, name_text

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
        path = None
        with suppress(
            Exception
        ):  # looking for it runs code of the outputs, which may raise anything
            path = None if isinstance(batch, dict) else path_of(self.value, batch[self.output], "")
        what = f"a value of type {type_name(self.value)}{f' at output{path}' if path else ''}"
        bad = f"output {self.output} is or holds {what}, which cannot be read{reason}: {cut_repr(self.value)}"
        return f"{bad}; {ALLOWED}; try: {_remedy(self.value)}"


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
    if path.count("[") + path.count(".") >= _MOST_LEVELS:
        return None
    value = (opener(type(value)) or (lambda same: same))(value)
    if isinstance(value, dict):
        parts: Iterable[tuple[str, Any]] = (
            (f"[{cut_repr(key)}]", part) for key, part in value.items()
        )
    elif isinstance(value, list | tuple):
        parts = ((f"[{place}]", part) for place, part in enumerate(value))
    else:
        parts = (
            (f".{name}", getattr(value, name, None)) for name in field_names(type(value)) or ()
        )
    found = (path_of(wanted, part, path + step) for step, part in parts)
    return next((each for each in found if each is not None), None)


# Times are whole numbers of microseconds, so that earlier and later are below and above. The offset of a zone is part
# of the shape: equal instants of two zones are different outputs.
_EPOCH, _TICK = datetime(1970, 1, 1), timedelta(microseconds=1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _ticks(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - _EPOCH) // _TICK


def _read_times(
    name: str, values: Sequence[datetime] | Sequence[time], ticks: list[int]
) -> list[Block]:
    zones = [f" UTC+{value.utcoffset()}" if value.tzinfo else "" for value in values]
    return _by_zone(
        zones, ticks, lambda zone, some: read_ints(some.tolist(), name + zone, f"long {name}{zone}")
    )


def _by_zone(
    zones: list[str], ticks: list[int], read: Callable[[str, Array], list[Block]]
) -> list[Block]:
    cases = [
        (np.array([each == zone for each in zones]), partial(read, zone))
        for zone in sorted(set(zones))
    ]
    return by_case(np.array(ticks, dtype=object), cases)


def read_instants(kind: type, values: Sequence[Any]) -> list[Block]:
    """Times and durations of pandas: microseconds as the nearest float, and the nanoseconds modulo 2^53."""

    def read(zone: str, ticks: Array) -> list[Block]:
        rounded = np.array([each / 1000 for each in ticks.tolist()])
        digits = Numbers((ticks & (EXACT - 1)).astype(np.int64))
        return leaf(f"{kind.__name__} {zone}".strip(), Numbers(rounded), digits)

    plain = [value.asm8 for value in values]
    units = [_PER_SECOND[np.datetime_data(each.dtype)[0]] for each in plain]
    ticks = [
        int(each.astype(np.int64)) * (10**9 // unit)
        for each, unit in zip(plain, units, strict=True)
    ]
    return _by_zone([str(getattr(value, "tz", None) or "") for value in values], ticks, read)


def read_enums(kind: type[Enum], values: Sequence[Enum]) -> list[Block]:
    """Members of one class, by name; classes of the same name count as the same."""
    # By identity: members are singletons, and a class may redefine equality and hash.
    members = {id(member): member for member in values}
    # A flag without any bit set has no name.
    texts = {
        key: str(each._value_ if each._name_ is None else each._name_)
        for key, each in members.items()
    }
    return leaf(name_text(kind.__name__), factorise([texts[id(each)] for each in values], str))


def _read_decimals(values: Sequence[Decimal]) -> list[Block]:
    # The label distinguishes 1.0 from 1.00, and what a float cannot hold; the float keeps the order.
    sizes = np.array([float("nan") if value.is_nan() else float(value) for value in values])
    return leaf("Decimal", Numbers(sizes), factorise(list(map(str, values)), str))


def _bytes_text(value: bytes) -> str:
    """Printable ASCII as it is, a backslash doubled, everything else escaped: different bytes have different texts."""
    return value.decode("latin-1").encode("unicode_escape").decode("ascii")


# What reads values whose type is exactly this one.
LEAVES: dict[type, Callable[[Sequence[Any]], list[Block]]] = {
    # Three times as fast as np.array.
    bool: lambda values: leaf("bool", Numbers(np.frombuffer(bytes(values), dtype=np.bool_).copy())),
    int: read_ints,
    float: lambda values: leaf("float", Numbers(np.array(values, dtype=np.float64))),
    complex: lambda values: READERS["c"](np.array(values, dtype=np.complex128)),
    str: lambda values: leaf("str", factorise(values, str)),
    bytes: lambda values: leaf("bytes", factorise(values, _bytes_text)),
    type(None): lambda values: leaf("None", size=len(values)),
    Decimal: _read_decimals,
    date: lambda values: leaf(
        "date", Numbers(np.fromiter((each.toordinal() for each in values), np.int64))
    ),
    datetime: lambda some: _read_times("datetime", some, list(map(_ticks, some))),
    time: lambda some: _read_times(
        "time", some, [_ticks(datetime.combine(_EPOCH, each)) for each in some]
    ),
    timedelta: lambda values: read_ints(
        [each // _TICK for each in values], "timedelta", "long timedelta"
    ),
    Fraction: lambda values: leaf(
        "Fraction", Numbers(np.array(list(map(about, values)))), factorise(values, str)
    ),
}

# What reads an array of one dimension, by the kind of its dtype. Arrays of float64, int64 and bool are not copied.
FLAT: dict[str, Callable[[Array], list[Block]]] = {
    **READERS,
    "U": lambda array: LEAVES[str](array.tolist()),
    "S": lambda array: LEAVES[bytes](array.tolist()),
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
    return (
        np.asarray
        if hasattr(kind, "__array__") and not issubclass(kind, np.ndarray | np.generic)
        else None
    )


def collected(value: Any) -> Any:
    """A lazy frame, run; anything else as it is."""
    lazy = {each.__name__ for each in type(value).__mro__} & {"LazyFrame", "OnceFrame"}
    return value.collect() if lazy and hasattr(value, "collect") else value


def _frame(value: Any) -> Fields:
    return _unique(list(value.columns), [_series(column) for _, column in value.items()])


def _series(value: Any) -> Any:
    """By the labels of its rows, unless these are only numbered."""
    names, cells = value.index.tolist(), value.tolist()
    return cells if names == list(range(len(names))) else _unique(names, cells)


def _unique(names: list[Any], values: list[Any]) -> Fields:
    """Names that occur twice get their place, too."""
    if len(set(names)) < len(names):
        names = list(zip(names, range(len(names)), strict=True))
    return Fields(zip(names, values, strict=True))


def _sparse(value: Any) -> Any:
    if np.prod(value.shape, dtype=float) <= MAX_LEAVES:
        return value.toarray()
    entries = value.tocoo()
    places = zip(*(axis.tolist() for axis in (entries.row, entries.col)), strict=True)
    return [value.shape, dict(sorted(zip(places, entries.data.tolist(), strict=True)))]


_OPENERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    **dict.fromkeys(
        [("pandas", "Index"), ("pandas", "ExtensionArray")], lambda value: value.tolist()
    ),
    **dict.fromkeys([("pandas", "Period"), ("pandas", "Interval")], str),
    ("polars", "DataFrame"): lambda value: Fields(
        (name, value[name].to_list()) for name in value.columns
    ),
    ("polars", "Series"): lambda value: value.to_list(),
    **dict.fromkeys([("polars", "LazyFrame"), ("opendp", "OnceFrame")], collected),
    **dict.fromkeys(
        [("pyarrow", "Table"), ("pyarrow", "RecordBatch")], lambda value: Fields(value.to_pydict())
    ),
    **dict.fromkeys(
        [("pyarrow", "Array"), ("pyarrow", "ChunkedArray")], lambda value: value.to_pylist()
    ),
    ("builtins", "range"): lambda value: Fields(
        start=value.start, stop=value.stop, step=value.step
    ),
    **dict.fromkeys([("builtins", "bytearray"), ("builtins", "memoryview")], bytes),
}
