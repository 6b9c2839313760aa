"""Values with parts: sequences, sets, dicts, dataclasses and arrays, many at a time.

`read_values` sorts values by type, the readers below it by length, keys or array shape, and each part of all values
of a group is read by `read_values` again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import array_text, name_text, record_text, sequence_text
from epsilometer.outputs.reading_leaves import (
    FLAT_KINDS,
    LEAVES,
    PLAIN,
    cut_repr,
    read_enums,
    read_flat,
    read_leaves,
    safe_repr,
    type_name,
    unreadable,
)
from epsilometer.outputs.reading_numbers import int_text
from epsilometer.outputs.reading_pieces import Piece, Place, by_group, merge, product, spread

# Members of a set are sorted by text, which is astronomically long for tuples that share parts.
MAX_SORT_TEXT = 1_000_000

Reader = Callable[[Any, Sequence[Any], Place], list[Piece]]


def read_values(values: Sequence[Any], place: Place) -> list[Piece]:
    """Python values of any kind, at least one."""
    return by_group(values, type, place, _read_kind)


def _read_kind(kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    if kind in LEAVES:
        return read_leaves(kind, values)
    for base, reader in _READERS:
        if issubclass(kind, base):
            return reader(kind, values, place)
    if dataclasses.is_dataclass(kind):
        return _read_dataclasses(kind, values, place)
    raise unreadable(values[0], int(place.outputs[0]))


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
    rows = values
    if kind is not dict or not set(map(type, chain.from_iterable(values))) <= {str}:
        rows = [_plain_dict(value, output) for value, output in zip(values, place.outputs.tolist(), strict=True)]
    return by_group(rows, tuple, place, _read_records)


def _plain_dict(value: dict[Any, Any], output: int) -> dict[str, Any]:
    for key in dict.keys(value):
        if not isinstance(key, str):
            raise MechanismError(
                f"output {output} holds a dict with the key {cut_repr(key)} of type {type_name(key)}; "
                "keys must be strings, so turn them into strings or return a list of pairs"
            )
    return {str.__str__(key): part for key, part in dict.items(value)}


def _read_records(keys: tuple[str, ...], rows: Sequence[dict[str, Any]], place: Place) -> list[Piece]:
    inside = place.inside()
    names = sorted(keys)
    parts = (read_values(list(map(itemgetter(name), rows)), inside) for name in names)
    return product(parts, partial(record_text, "", names), place)


def _read_dataclasses(kind: type, values: Sequence[Any], place: Place) -> list[Piece]:
    inside = place.inside()
    names = [field.name for field in dataclasses.fields(kind)]
    parts = (read_values(_field(values, name, place), inside) for name in names)
    return product(parts, partial(record_text, name_text(kind.__name__), names), place)


def _field(values: Sequence[Any], name: str, place: Place) -> list[Any]:
    parts: list[Any] = []
    try:
        parts.extend(getattr(value, name) for value in values)
    except Exception as error:
        bad = len(parts)
        raise unreadable(values[bad], int(place.outputs[bad]), f"no field {name!r}") from error
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
        raise unreadable(array[0], int(place.outputs[0]), f"dtype {array.dtype}")
    inside = place.inside()
    names = sorted(array.dtype.names)
    parts = (read_array(array[name], inside) for name in names)
    return product(parts, partial(record_text, "", names), place)


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
