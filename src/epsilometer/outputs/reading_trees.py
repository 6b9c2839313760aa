"""Values with parts: sequences, sets, dicts, dataclasses and arrays, many at a time.

`read_values` sorts values by type, the readers below it by length, keys or array shape, and each part of all values
of a group is read by `read_values` again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
from numpy.typing import NDArray

from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import array_text, key_text, name_text, record_text, sequence_text
from epsilometer.outputs.reading_leaves import (
    FLAT_KINDS,
    LEAVES,
    LISTED,
    PLAIN,
    Fields,
    Unreadable,
    field_names,
    opener,
    read_enums,
    read_flat,
    read_instants,
    read_leaves,
    safe_repr,
    type_name,
)
from epsilometer.outputs.reading_numbers import int_text
from epsilometer.outputs.reading_pieces import Piece, Place, by_group, merge, product, spread, whole

# Members of a set are sorted by text, which is astronomically long for tuples that share parts.
MAX_SORT_TEXT = 1_000_000

Reader = Callable[[Any, Sequence[Any], Place], list[Piece]]


def read_values(values: Sequence[Any], place: Place) -> list[Piece]:
    """Python values of any kind, at least one."""
    return by_group(values, type, place, _read_kind)


def _read_kind(kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    if kind in LEAVES:
        return read_leaves(kind, values)
    names = field_names(kind)
    if names is not None:
        return _read_objects(kind, names, values, place)
    for base, reader in _READERS:
        if issubclass(kind, base):
            return reader(kind, values, place)
    if kind.__module__.partition(".")[0] == "pandas":
        if kind.__name__ in _MISSING:
            return [whole(_MISSING[kind.__name__], (), len(values))]
        if kind.__name__ in ("Timestamp", "Timedelta"):
            return read_instants(kind, values)
    opened = opener(kind)
    if opened is not None:
        return _read_opened(kind, opened, values, place)
    for base in (datetime, date, timedelta):
        if issubclass(kind, base):
            return read_leaves(base, values)
    raise Unreadable(values[0], int(place.outputs[0]))


# The missing values of pandas, and their shapes.
_MISSING = {"NAType": "NA", "NaTType": "NaT"}
# Classes whose name does not matter, because they become another.
_NAMELESS = frozenset({"LazyFrame", "OnceFrame"})


def _read_opened(kind: type, opened: Callable[[Any], Any], values: Sequence[Any], place: Place) -> list[Piece]:
    """Values of another library, by what they hold."""
    inside = place.inside()
    plain: list[Any] = []
    try:
        plain.extend(map(opened, values))
    except Exception as error:  # raised by the other library, or by a generator of the mechanism
        why = f"{type_name(error)}: {safe_repr(error)[:200]}"
        raise Unreadable(values[len(plain)], int(place.outputs[len(plain)]), why) from error
    pieces = read_values(plain, inside)
    if kind.__name__ in _NAMELESS or issubclass(kind, LISTED):
        return pieces
    name = name_text(kind.__name__)
    return [replace(piece, block=replace(piece.block, shape=sequence_text(name, [piece.shape]))) for piece in pieces]


def _read_subclass(base: type, kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    return read_leaves(base, list(map(PLAIN[base], values)))


def _read_enums(kind: type[Enum], values: Sequence[Enum], place: Place) -> list[Piece]:
    return read_enums(kind, values)


def _read_scalars(kind: type[np.generic], values: Sequence[np.generic], place: Place) -> list[Piece]:
    if issubclass(kind, (np.datetime64, np.timedelta64, np.void)):  # one type, many units or fields
        return by_group(values, attrgetter("dtype"), place, _read_same_dtype)
    return _read_same_dtype(values[0].dtype, values, place)


def _read_same_dtype(dtype: np.dtype[Any], values: Sequence[np.generic], place: Place) -> list[Piece]:
    array = np.empty(len(values), dtype=dtype)
    array[:] = list(values)  # a tuple would be read as one record
    return read_array(array, place)


# --- sequences and sets


def _read_sequences(base: type, kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    # A subclass is read by its contents, not by its own __iter__ or __len__.
    rows = values if kind is base else [base(base.__iter__(value)) for value in values]  # type: ignore[attr-defined]
    return by_group(rows, len, place, partial(_read_rows, base.__name__))


def _read_sets(base: type, kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    sets = values if kind is base else [base(base.__iter__(value)) for value in values]  # type: ignore[attr-defined]
    text = _one_text(sets)
    if text is None:
        here = [Place(place.outputs[row : row + 1], place.depth) for row in range(len(sets))]
        rows = [sorted(value, key=partial(sort_key, place=where)) for value, where in zip(sets, here, strict=True)]
    else:
        rows = [sorted(value, key=text) for value in sets]
    return by_group(rows, len, place, partial(_read_rows, base.__name__))


def _one_text(sets: Sequence[set[Any]]) -> Callable[[Any], str] | None:
    """A faster key that sorts like `sort_key`, if all members have one simple type."""
    kinds = set(map(type, chain.from_iterable(sets)))
    return _TEXTS.get(kinds.pop()) if len(kinds) == 1 else None


_TEXTS: dict[type, Callable[[Any], str]] = {int: int_text, float: repr, str: repr, bytes: repr}


def _read_rows(name: str, width: int, rows: Sequence[Sequence[Any]], place: Place) -> list[Piece]:
    inside = place.inside()
    place.check_leaves(width)
    flat = list(chain.from_iterable(rows))
    one = _read_alike(flat)
    if one is not None:
        return [spread(one, len(rows), width, sequence_text(name, [one.shape] * width))]
    parts = (read_values(flat[position::width], inside) for position in range(width))  # several times as fast as zip
    return product(parts, partial(sequence_text, name), place)


def _read_alike(values: list[Any]) -> Piece | None:
    """All parts of all values at once, if they are leaves of one shape; wide rows are then as fast as long columns."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else object
    pieces = read_leaves(kind, values) if kind in LEAVES else []
    return pieces[0] if len(pieces) == 1 else None


def sort_key(value: object, place: Place) -> tuple[str, str]:
    """The order of a set's members: by type, then by text, the same in every process."""
    return type_name(value), _canonical(value, place)


def _canonical(value: object, place: Place) -> str:
    if isinstance(value, Enum):
        return str(value._name_)
    if type(value) is int:
        return int_text(value)
    if isinstance(value, (tuple, frozenset)):
        parts = _canonical_parts(value, place.inside())
        # The repr of a frozenset of texts depends on the process, as do the hashes of texts.
        return ", ".join(sorted(parts) if isinstance(value, frozenset) else parts)
    return safe_repr(value)


def _canonical_parts(values: Iterable[object], place: Place) -> list[str]:
    parts, length = [], 0
    for value in values:
        parts.append(":".join(sort_key(value, place)))
        length += len(parts[-1])
        if length > MAX_SORT_TEXT:
            raise MechanismError(
                f"output {place.outputs[0]} has a set with a member of more than {MAX_SORT_TEXT} characters as text; "
                "return a list or smaller members"
            )
    return parts


# --- records


def _read_dicts(kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    if kind is dict and set(map(type, chain.from_iterable(values))) <= {str}:
        return by_group(values, tuple, place, partial(_read_records, is_sorted=True))
    outputs = place.outputs.tolist()
    rows = [_texts_of_keys(value, output) for value, output in zip(values, outputs, strict=True)]
    return by_group(rows, tuple, place, partial(_read_records, is_sorted=kind is not Fields))


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
        text = f"{type_name(key)}.{str(key._name_)!a}"
    elif isinstance(key, tuple | frozenset):
        parts = [_key_text(each, output)[1:-1] for each in key]
        text = f"({', '.join(parts)})" if isinstance(key, tuple) else f"frozenset({', '.join(sorted(parts))})"
    elif opener(type(key)) is not None:  # a time of pandas, a path
        text = f"{type_name(key)}({str(key)!a})"
    if text is None:
        raise Unreadable(key, output, "as a key of a dict")
    return f"[{text}]"


_WITH_REPR = {type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, date, datetime, time, timedelta}


def _read_records(keys: tuple[Any, ...], rows: Sequence[dict[Any, Any]], place: Place, is_sorted: bool) -> list[Piece]:
    inside = place.inside()
    names = sorted(keys, key=lambda key: (1, *key) if isinstance(key, tuple) else (0, key)) if is_sorted else keys
    parts = (read_values(list(map(itemgetter(name), rows)), inside) for name in names)
    texts = [name[0] if isinstance(name, tuple) else key_text(name) for name in names]
    return product(parts, partial(record_text, "", texts), place)


def _read_objects(kind: type, names: tuple[str, ...], values: Sequence[Any], place: Place) -> list[Piece]:
    """Dataclasses and the like, and named tuples."""
    inside = place.inside()
    parts = (read_values(_field(values, name, place), inside) for name in names)
    return product(parts, partial(record_text, name_text(kind.__name__), list(map(key_text, names))), place)


def _field(values: Sequence[Any], name: str, place: Place) -> list[Any]:
    parts: list[Any] = []
    try:
        parts.extend(getattr(value, name) for value in values)
    except Exception as error:
        bad = len(parts)
        raise Unreadable(values[bad], int(place.outputs[bad]), f"no field {name!r}") from error
    return parts


# --- arrays


def _read_arrays(kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    as_array = np.ma.asarray if issubclass(kind, np.ma.MaskedArray) else np.asarray
    rows = values if kind is np.ndarray else list(map(as_array, values))
    return by_group(rows, attrgetter("dtype", "shape"), place, _read_stack)


def _read_stack(
    key: tuple[np.dtype[Any], tuple[int, ...]], arrays: Sequence[NDArray[Any]], place: Place
) -> list[Piece]:
    dimensions = key[1]
    place.check_leaves(math.prod(dimensions))
    if isinstance(arrays[0], np.ma.MaskedArray):
        joined = np.ma.concatenate([array.reshape(1, *dimensions) for array in arrays])  # type: ignore[no-untyped-call]  # numpy's stub
        return read_array(joined, place if dimensions else place.inside())
    if not dimensions:  # read as its only value; `inside`, because it may hold itself
        return read_array(np.stack(arrays), place.inside())
    # Faster than np.stack for many small arrays.
    return read_array(np.concatenate(arrays).reshape(len(arrays), *dimensions), place)


def read_array(array: NDArray[Any], place: Place) -> list[Piece]:
    """The entries of an array, shape (k, ...), k > 0: numbers or texts if it is one-dimensional, else arrays."""
    if array.ndim == 1:
        return _read_entries(array, place)
    dimensions = array.shape[1:]
    width = math.prod(dimensions)
    inside = place.inside()
    place.check_leaves(width)
    cells = array.reshape(len(array), width)
    one = _read_cells(cells)
    if one is not None:
        shape = array_text(dimensions, [one.shape] * width, empty=one.shape)
        return [spread(one, len(array), width, shape)]
    parts = (_read_entries(cells[:, position], inside) for position in range(width))
    return product(parts, partial(array_text, dimensions), place)


def _read_cells(cells: NDArray[Any]) -> Piece | None:
    if isinstance(cells, np.ma.MaskedArray):
        return None
    if cells.dtype.kind in FLAT_KINDS:
        pieces = read_flat(cells.reshape(-1))
        return pieces[0] if len(pieces) == 1 else None
    return _read_alike(cells.reshape(-1).tolist()) if cells.dtype.kind in "OT" else None


def _read_entries(array: NDArray[Any], place: Place) -> list[Piece]:
    if isinstance(array, np.ma.MaskedArray) and array.dtype.names is None:
        return _read_masked(array, place)
    if array.dtype.kind in FLAT_KINDS:
        return read_flat(array)
    if array.dtype.kind in "OT":
        return read_values(array.tolist(), place)
    if array.dtype.names is None:
        raise Unreadable(array[0], int(place.outputs[0]), f"dtype {array.dtype}")
    inside = place.inside()
    names = sorted(array.dtype.names)
    parts = (read_array(array[name], inside) for name in names)
    return product(parts, partial(record_text, "", list(map(key_text, names))), place)


def _read_masked(array: np.ma.MaskedArray[Any, Any], place: Place) -> list[Piece]:
    """A masked entry is the missing value, whatever lies beneath the mask."""
    values, missing = np.ma.getdata(array), np.ma.getmaskarray(array)
    if missing.all():
        return read_leaves(type(None), [None] * len(values))
    if not missing.any():
        return _read_entries(values, place)
    there, gone = np.flatnonzero(~missing), np.flatnonzero(missing)
    pieces = [piece.within(there) for piece in _read_entries(values[there], place.pick(there))]
    pieces += [piece.within(gone) for piece in read_leaves(type(None), [None] * len(gone))]
    return merge(pieces, len(values))


_READERS: tuple[tuple[type | tuple[type, ...], Reader], ...] = (
    (Enum, _read_enums),  # first: members may be ints or strs too
    (str, partial(_read_subclass, str)),  # before numpy's scalars: np.str_ and np.bytes_ are texts
    (bytes, partial(_read_subclass, bytes)),
    (np.generic, _read_scalars),  # before Python's numbers: np.float64 is a float
    (np.ndarray, _read_arrays),
    (int, partial(_read_subclass, int)),
    (float, partial(_read_subclass, float)),
    (complex, partial(_read_subclass, complex)),
    (tuple, partial(_read_sequences, tuple)),
    (list, partial(_read_sequences, list)),
    (dict, _read_dicts),
    (set, partial(_read_sets, set)),
    (frozenset, partial(_read_sets, frozenset)),
)
