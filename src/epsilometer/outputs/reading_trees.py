"""Values with parts: sequences, sets, dicts, dataclasses and arrays, many at a time.

`read_values` sorts values by type, the readers below it by length, keys or array shape, and each part of all values
of a group is read by `read_values` again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

import epsilometer.outputs.reading_leaves as leaves
from epsilometer.arrays import Array
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Block
from epsilometer.outputs.reading_numbers import int_text
from epsilometer.outputs.reading_pieces import (
    Place,
    Reader,
    by_case,
    by_group,
    leaf,
    product,
    spread,
)
from epsilometer.outputs.shapes import array_text, key_text, name_text, record_text, sequence_text

# Members of a set are sorted by text, which is astronomically long for tuples that share parts.
MAX_SORT_TEXT = 1_000_000


def read_values(values: Sequence[Any], place: Place) -> list[Block]:
    """Python values of any kind, at least one."""
    return by_group(values, type, place, _read_kind)


def _read_kind(kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    if kind in leaves.LEAVES:
        return leaves.LEAVES[kind](values)
    if (names := leaves.field_names(kind)) is not None:
        parts = (read_values(_field(values, name, place), place.inside()) for name in names)
        return product(
            parts, partial(record_text, name_text(kind.__name__), list(map(key_text, names))), place
        )
    for base, reader in _READERS:
        if issubclass(kind, base):
            return reader(kind, values, place)
    if kind.__module__.partition(".")[0] == "pandas":
        if kind.__name__ in _MISSING:
            return leaf(_MISSING[kind.__name__], size=len(values))
        if kind.__name__ in ("Timestamp", "Timedelta"):
            return leaves.read_instants(kind, values)
    if (opened := leaves.opener(kind)) is not None:
        return _read_opened(kind, opened, values, place)
    for base in (datetime, date, timedelta):
        if issubclass(kind, base):
            return leaves.LEAVES[base](values)
    raise leaves.Unreadable(values[0], int(place.outputs[0]))


# The missing values of pandas, and their shapes.
_MISSING = {"NAType": "NA", "NaTType": "NaT"}
# Classes whose name does not matter, because they become another.
_NAMELESS = frozenset({"LazyFrame", "OnceFrame"})


def _read_opened(
    kind: type, opened: Callable[[Any], Any], values: Sequence[Any], place: Place
) -> list[Block]:
    """Values of another library, by what they hold."""
    inside = place.inside()
    plain: list[Any] = []
    try:
        plain.extend(map(opened, values))
    except Exception as error:  # raised by the other library, or by a generator of the mechanism
        why = f"{leaves.type_name(error)}: {leaves.safe_repr(error)[:200]}"
        raise leaves.Unreadable(values[len(plain)], int(place.outputs[len(plain)]), why) from error
    blocks = read_values(plain, inside)
    if kind.__name__ in _NAMELESS or issubclass(kind, leaves.LISTED):
        return blocks
    return [
        replace(each, shape=sequence_text(name_text(kind.__name__), [each.shape]))
        for each in blocks
    ]


# How a value of a subclass becomes one of the class itself without running code of the subclass.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
}


def _read_subclass(base: type, kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    return leaves.LEAVES[base](list(map(_PLAIN[base], values)))


def _read_scalars(
    kind: type[np.generic], values: Sequence[np.generic], place: Place
) -> list[Block]:
    if issubclass(kind, (np.datetime64, np.timedelta64, np.void)):  # one type, many units or fields
        return by_group(values, attrgetter("dtype"), place, _read_same_dtype)
    return _read_same_dtype(values[0].dtype, values, place)


def _read_same_dtype(
    dtype: np.dtype[Any], values: Sequence[np.generic], place: Place
) -> list[Block]:
    array = np.empty(len(values), dtype=dtype)
    array[:] = list(values)  # a tuple would be read as one record
    return read_array(array, place)


# --- sequences and sets


def _read_sequences(base: Any, kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    # A subclass is read by its contents, not by its own __iter__ or __len__.
    rows = values if kind is base else [base(base.__iter__(value)) for value in values]
    if base in (set, frozenset):
        kinds = set(map(type, chain.from_iterable(rows)))
        text = _TEXTS.get(kinds.pop()) if len(kinds) == 1 else None
        here = (Place(place.outputs[row : row + 1], place.depth) for row in range(len(rows)))
        keys = (text or partial(sort_key, place=where) for where in here)
        rows = [sorted(value, key=key) for value, key in zip(rows, keys, strict=True)]
    return by_group(rows, len, place, partial(_read_rows, base.__name__))


# Faster keys, which sort like `sort_key`, for sets whose members have one simple type.
_TEXTS: dict[type, Callable[[Any], Any]] = {int: int_text, float: repr, str: repr, bytes: repr}


def _read_rows(name: str, width: int, rows: Sequence[Sequence[Any]], place: Place) -> list[Block]:
    inside = place.inside()
    place.check_leaves(width)
    flat = list(chain.from_iterable(rows))
    if (one := _read_alike(flat)) is not None:
        return [spread(one, len(rows), width, sequence_text(name, [one.shape] * width))]
    parts = (
        read_values(flat[position::width], inside) for position in range(width)
    )  # several times as fast as zip
    return product(parts, partial(sequence_text, name), place)


# Parts that are looked at before all of them are: those of different types mostly differ at once.
_FIRST = 64


def _read_alike(values: list[Any]) -> Block | None:
    """All parts of all values at once, if they are leaves of one shape; wide rows are then as fast as long columns."""
    for look in (values[:_FIRST], values):
        if len(kinds := set(map(type, look))) != 1:
            return None
    kind = kinds.pop()
    blocks = leaves.LEAVES[kind](values) if kind in leaves.LEAVES else []
    return blocks[0] if len(blocks) == 1 else None


def sort_key(value: object, place: Place) -> tuple[str, str]:
    """The order of a set's members: by type, then by text, the same in every process."""
    if isinstance(value, Enum):
        text = str(value._name_)
    elif type(value) is int:
        text = int_text(value)
    elif isinstance(value, tuple | frozenset):
        inside, parts, length = place.inside(), [], 0
        for each in value:
            parts.append(":".join(sort_key(each, inside)))
            length += len(parts[-1])
            if length > MAX_SORT_TEXT:
                long = f"a set with a member of more than {MAX_SORT_TEXT} characters as text"
                raise MechanismError(
                    f"output {place.outputs[0]} has {long}; return a list or smaller members"
                )
        # The repr of a frozenset of texts depends on the process, as do the hashes of texts.
        text = ", ".join(sorted(parts) if isinstance(value, frozenset) else parts)
    else:
        text = leaves.safe_repr(value)
    return leaves.type_name(value), text


# --- records


def _read_dicts(kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    if kind is dict and set(map(type, chain.from_iterable(values))) <= {str}:
        return by_group(values, tuple, place, partial(_read_records, is_sorted=True))
    rows = [_texts_of_keys(*each) for each in zip(values, place.outputs.tolist(), strict=True)]
    return by_group(rows, tuple, place, partial(_read_records, is_sorted=kind is not leaves.Fields))


def _texts_of_keys(value: dict[Any, Any], output: int) -> dict[Any, Any]:
    """Keys that are not strings as texts in brackets, which no key that is a string can have as its text."""
    row: dict[Any, Any] = {}
    for key, part in dict.items(value):
        name: Any = str.__str__(key) if isinstance(key, str) else (_key_text(key, output),)
        while name in row:  # several NaN
            name = (f"{name[0][:-1]}']",)
        row[name] = part
    return row


def _key_text(key: object, output: int) -> str:
    text = ascii(key) if type(key) in _WITH_REPR or isinstance(key, np.generic) else None
    if isinstance(key, Enum):
        text = f"{leaves.type_name(key)}.{str(key._name_)!a}"
    elif isinstance(key, tuple | frozenset):
        parts = [_key_text(each, output)[1:-1] for each in key]
        text = (
            f"({', '.join(parts)})"
            if isinstance(key, tuple)
            else f"frozenset({', '.join(sorted(parts))})"
        )
    elif leaves.opener(type(key)) is not None:  # a time of pandas, a path
        text = f"{leaves.type_name(key)}({str(key)!a})"
    if text is None:
        raise leaves.Unreadable(key, output, "as a key of a dict")
    return f"[{text}]"


_WITH_REPR = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    Decimal,
    Fraction,
    date,
    datetime,
    time,
    timedelta,
}


def _read_records(
    keys: tuple[Any, ...], rows: Sequence[dict[Any, Any]], place: Place, is_sorted: bool
) -> list[Block]:
    inside = place.inside()
    names = (
        sorted(keys, key=lambda key: (1, *key) if isinstance(key, tuple) else (0, key))
        if is_sorted
        else keys
    )
    parts = (read_values(list(map(itemgetter(name), rows)), inside) for name in names)
    texts = [name[0] if isinstance(name, tuple) else key_text(name) for name in names]
    return product(parts, partial(record_text, "", texts), place)


def _field(values: Sequence[Any], name: str, place: Place) -> list[Any]:
    parts: list[Any] = []
    try:
        parts.extend(getattr(value, name) for value in values)
    except Exception as error:
        raise leaves.Unreadable(
            values[len(parts)], int(place.outputs[len(parts)]), f"no field {name!r}"
        ) from error
    return parts


# --- arrays


def _read_arrays(kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    as_array = np.ma.asarray if issubclass(kind, np.ma.MaskedArray) else np.asarray
    rows = values if kind is np.ndarray else list(map(as_array, values))
    return by_group(rows, attrgetter("dtype", "shape"), place, _read_stack)


def _read_stack(
    key: tuple[Any, tuple[int, ...]], arrays: Sequence[Array], place: Place
) -> list[Block]:
    dimensions = key[1]
    place.check_leaves(math.prod(dimensions))
    if isinstance(arrays[0], np.ma.MaskedArray):
        joined = np.ma.concatenate([array.reshape(1, *dimensions) for array in arrays])  # type: ignore[no-untyped-call]  # numpy's stub
        return read_array(joined, place if dimensions else place.inside())
    if not dimensions:  # read as its only value; `inside`, because it may hold itself
        return read_array(np.stack(arrays), place.inside())
    # Faster than np.stack for many small arrays.
    return read_array(np.concatenate(arrays).reshape(len(arrays), *dimensions), place)


def read_array(array: Array, place: Place) -> list[Block]:
    """The entries of an array, shape (k, ...), k > 0: numbers or texts if it is one-dimensional, else arrays."""
    if array.ndim == 1:
        return _read_entries(array, place)
    dimensions = array.shape[1:]
    width, inside = math.prod(dimensions), place.inside()
    place.check_leaves(width)
    cells = array.reshape(len(array), width)
    one = None
    if array.dtype.kind in leaves.FLAT and not isinstance(array, np.ma.MaskedArray):
        blocks = leaves.FLAT[array.dtype.kind](cells.reshape(-1))
        one = blocks[0] if len(blocks) == 1 else None
    elif array.dtype.kind in "OT" and not isinstance(array, np.ma.MaskedArray):
        one = _read_alike(cells.reshape(-1).tolist())
    if one is not None:
        return [
            spread(
                one, len(array), width, array_text(dimensions, [one.shape] * width, empty=one.shape)
            )
        ]
    parts = (_read_entries(cells[:, position], inside) for position in range(width))
    return product(parts, partial(array_text, dimensions), place)


def _read_entries(array: Array, place: Place) -> list[Block]:
    if isinstance(array, np.ma.MaskedArray) and array.dtype.names is None:
        # A masked entry is the missing value, whatever lies beneath the mask.
        missing = np.ma.getmaskarray(array)
        there = (~missing, lambda some: _read_entries(some, place.pick(np.flatnonzero(~missing))))
        return by_case(
            np.ma.getdata(array), [(missing, lambda some: leaf("None", size=len(some))), there]
        )
    if array.dtype.kind in leaves.FLAT:
        return leaves.FLAT[array.dtype.kind](array)
    if array.dtype.kind in "OT":
        return read_values(array.tolist(), place)
    if array.dtype.names is None:
        raise leaves.Unreadable(array[0], int(place.outputs[0]), f"dtype {array.dtype}")
    names = sorted(array.dtype.names)
    parts = (read_array(array[name], place.inside()) for name in names)
    return product(parts, partial(record_text, "", list(map(key_text, names))), place)


_READERS: tuple[tuple[type | tuple[type, ...], Reader], ...] = (
    (
        Enum,
        lambda kind, values, place: leaves.read_enums(kind, values),
    ),  # first: members may be ints or strs too
    # Before numpy's scalars: np.str_ and np.bytes_ are texts.
    *((base, partial(_read_subclass, base)) for base in (str, bytes)),
    (np.generic, _read_scalars),  # before Python's numbers: np.float64 is a float
    (np.ndarray, _read_arrays),
    *((base, partial(_read_subclass, base)) for base in (int, float, complex)),
    (dict, _read_dicts),
    *((base, partial(_read_sequences, base)) for base in (tuple, list, set, frozenset)),
)
