"""Values with parts: sequences, sets, dicts, dataclasses and arrays, many at a time.

`read_values` sorts values by type, the readers below it by length, keys or array shape, and each
part of all values of a group is read by `read_values` again.
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

from epsilometer.arrays import Array
from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Block
from epsilometer.outputs.foreign import LISTED, Fields, field_names, opener
from epsilometer.outputs.reading_leaves import FLAT, LEAVES, read_enums, read_instants
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
from epsilometer.outputs.unreadable import Unreadable, safe_repr, type_name

# Members of a set are sorted by text, which is astronomically long for tuples that share parts.
MAX_SORT_TEXT = 1_000_000
# Parts that are looked at before all of them are: those of different types mostly differ at once.
_N_FIRST_PARTS = 64
# The missing values of pandas, and their shapes.
_MISSING = {
    "NAType": "NA",
    "NaTType": "NaT",
}
# Classes whose name does not matter, because they become another.
_NAMELESS = frozenset({"LazyFrame", "OnceFrame"})


def read_values(values: Sequence[Any], place: Place) -> list[Block]:
    """Reads Python values of any kind, at least one."""
    return by_group(values, type, place, _read_type)


def _read_type(  # noqa: C901  # a list of kinds, the first that fits
    kind: type, values: Sequence[Any], place: Place
) -> list[Block]:
    """Reads values of one type. The order of these checks matters: types may meet several."""
    if kind in LEAVES:
        return LEAVES[kind](values)
    names = field_names(kind)
    if names is not None:
        parts = (read_values(_field(values, name, place), place.inside()) for name in names)
        keys = [key_text(name) for name in names]
        return product(parts, partial(record_text, name_text(kind.__name__), keys), place)
    for base, reader in _READERS:
        if issubclass(kind, base):
            return reader(kind, values, place)
    if kind.__module__.partition(".")[0] == "pandas":
        if kind.__name__ in _MISSING:
            return leaf(_MISSING[kind.__name__], size=len(values))
        if kind.__name__ in ("Timestamp", "Timedelta"):
            return read_instants(kind, values)
    open_value = opener(kind)
    if open_value is not None:
        return _read_opened(kind, open_value, values, place)
    for base in (datetime, date, timedelta):
        if issubclass(kind, base):
            return LEAVES[base](values)
    raise Unreadable(values[0], int(place.outputs[0]))


def _read_opened(
    kind: type, open_value: Callable[[Any], Any], values: Sequence[Any], place: Place
) -> list[Block]:
    """Reads values of another library, by what they hold."""
    inside = place.inside()
    plain: list[Any] = []
    try:
        plain.extend(map(open_value, values))
    except Exception as error:  # raised by the other library, or by a generator of the mechanism
        failed = len(plain)
        why = f"{type_name(error)}: {safe_repr(error)[:200]}"
        raise Unreadable(values[failed], int(place.outputs[failed]), why) from error
    blocks = read_values(plain, inside)
    if kind.__name__ in _NAMELESS or issubclass(kind, LISTED):
        return blocks
    name = name_text(kind.__name__)
    return [replace(block, shape=sequence_text(name, [block.shape])) for block in blocks]


# How a value of a subclass becomes one of the class itself without running code of the subclass.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
}


def _read_subclass(base: type, kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    as_base = _PLAIN[base]
    return LEAVES[base]([as_base(value) for value in values])


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

# Faster keys, which sort like `sort_key`, for sets whose members have one simple type.
_SORT_TEXTS: dict[type, Callable[[Any], Any]] = {
    int: int_text,
    float: repr,
    str: repr,
    bytes: repr,
}


def _read_sequences(base: Any, kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    # A subclass is read by its contents, not by its own __iter__ or __len__.
    rows = values if kind is base else [base(base.__iter__(value)) for value in values]
    if base in (set, frozenset):
        rows = _sorted_members(rows, place)
    return by_group(rows, len, place, partial(_read_rows, base.__name__))


def _sorted_members(sets: Sequence[Any], place: Place) -> list[list[Any]]:
    """Returns the members of each set in an order that is the same in every process."""
    types = set(map(type, chain.from_iterable(sets)))
    if len(types) == 1:
        text = _SORT_TEXTS.get(types.pop())
        if text is not None:
            return [sorted(members, key=text) for members in sets]
    rows = []
    for number, members in enumerate(sets):
        place_of_set = Place(place.outputs[number : number + 1], place.depth)
        rows.append(sorted(members, key=partial(sort_key, place=place_of_set)))
    return rows


def _read_rows(name: str, width: int, rows: Sequence[Sequence[Any]], place: Place) -> list[Block]:
    """Reads sequences of one length.

    Args:
        name: of their type.
        width: their length.
        rows: the sequences.
        place: of the sequences.
    """
    inside = place.inside()
    place.check_leaves(width)
    flat = list(chain.from_iterable(rows))
    block = _read_alike(flat)
    if block is not None:
        return [spread(block, len(rows), width, sequence_text(name, [block.shape] * width))]
    # Slices of the flat list are several times as fast as zip.
    parts = (read_values(flat[position::width], inside) for position in range(width))
    return product(parts, partial(sequence_text, name), place)


def _read_alike(values: list[Any]) -> Block | None:
    """Reads all parts of all values at once, if they are leaves of one shape; else None.

    Wide rows are then as fast as long columns.
    """
    if len(set(map(type, values[:_N_FIRST_PARTS]))) != 1:
        return None
    types = set(map(type, values))
    if len(types) != 1:
        return None
    kind = types.pop()
    if kind not in LEAVES:
        return None
    blocks = LEAVES[kind](values)
    return blocks[0] if len(blocks) == 1 else None


def sort_key(value: object, place: Place) -> tuple[str, str]:
    """Returns the sort key of a set's member: type and text, the same in every process.

    Args:
        value: the member.
        place: of the set.
    """
    if isinstance(value, Enum):
        text = str(value._name_)
    elif type(value) is int:
        text = int_text(value)
    elif isinstance(value, tuple | frozenset):
        text = _sort_text_of_parts(value, place)
    else:
        text = safe_repr(value)
    return type_name(value), text


def _sort_text_of_parts(value: tuple[Any, ...] | frozenset[Any], place: Place) -> str:
    inside = place.inside()
    texts = []
    length = 0
    for part in value:
        text = ":".join(sort_key(part, inside))
        texts.append(text)
        length += len(text)
        if length > MAX_SORT_TEXT:
            raise MechanismError(
                f"output {place.outputs[0]} has a set with a member of more than {MAX_SORT_TEXT} "
                "characters as text; return a list or smaller members"
            )
    if isinstance(value, frozenset):
        # The order of a frozenset depends on the process, as do the hashes of texts.
        texts.sort()
    return ", ".join(texts)


# --- records

# Keys of these types are written as their repr.
_TYPES_WITH_REPR = {
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


def _read_dicts(kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    """Reads dicts; the order of their keys counts only in `Fields`."""
    key_types = set(map(type, chain.from_iterable(values)))
    if kind is dict and key_types <= {str}:
        return by_group(values, tuple, place, partial(_read_records, is_sorted=True))
    rows = []
    for value, output in zip(values, place.outputs.tolist(), strict=True):
        rows.append(_with_text_keys(value, output))
    is_sorted = kind is not Fields
    return by_group(rows, tuple, place, partial(_read_records, is_sorted=is_sorted))


def _with_text_keys(value: dict[Any, Any], output: int) -> dict[Any, Any]:
    """Returns a dict with keys that are a str, or a tuple of one text for any other key.

    The text is in brackets, which no key that is a string can have as its text.
    """
    row: dict[Any, Any] = {}
    for key, part in dict.items(value):
        name: Any = str.__str__(key) if isinstance(key, str) else (_text_of_key(key, output),)
        while name in row:  # several NaN
            name = (f"{name[0][:-1]}']",)
        row[name] = part
    return row


def _text_of_key(key: object, output: int) -> str:
    """Returns the text, in brackets, of a key that is no string."""
    if isinstance(key, Enum):
        return f"[{type_name(key)}.{str(key._name_)!a}]"
    if isinstance(key, tuple | frozenset):
        parts = [_text_of_key(part, output)[1:-1] for part in key]
        if isinstance(key, tuple):
            return f"[({', '.join(parts)})]"
        return f"[frozenset({', '.join(sorted(parts))})]"
    if opener(type(key)) is not None:  # a time of pandas, a path
        return f"[{type_name(key)}({str(key)!a})]"
    if type(key) in _TYPES_WITH_REPR or isinstance(key, np.generic):
        return f"[{key!a}]"
    raise Unreadable(key, output, "as a key of a dict")


def _read_records(
    keys: tuple[Any, ...], rows: Sequence[dict[Any, Any]], place: Place, is_sorted: bool
) -> list[Block]:
    """Reads dicts with the same keys, each a str or a tuple of one text."""
    inside = place.inside()
    names = sorted(keys, key=_record_order) if is_sorted else keys
    parts = (read_values(list(map(itemgetter(name), rows)), inside) for name in names)
    texts = [name[0] if isinstance(name, tuple) else key_text(name) for name in names]
    return product(parts, partial(record_text, "", texts), place)


def _record_order(name: Any) -> tuple[int, str]:
    """Returns the sort key of a name: keys that are strings come first."""
    return (1, name[0]) if isinstance(name, tuple) else (0, name)


def _field(values: Sequence[Any], name: str, place: Place) -> list[Any]:
    parts: list[Any] = []
    try:
        parts.extend(getattr(value, name) for value in values)
    except Exception as error:
        failed = len(parts)
        output = int(place.outputs[failed])
        raise Unreadable(values[failed], output, f"no field {name!r}") from error
    return parts


# --- arrays


def _read_arrays(kind: type, values: Sequence[Any], place: Place) -> list[Block]:
    arrays = values
    if kind is not np.ndarray:
        as_array = np.ma.asarray if issubclass(kind, np.ma.MaskedArray) else np.asarray
        arrays = [as_array(value) for value in values]
    return by_group(arrays, attrgetter("dtype", "shape"), place, _read_stack)


def _read_stack(
    key: tuple[Any, tuple[int, ...]], arrays: Sequence[Array], place: Place
) -> list[Block]:
    """Reads arrays of one dtype and shape."""
    _, dimensions = key
    place.check_leaves(math.prod(dimensions))
    if isinstance(arrays[0], np.ma.MaskedArray):
        rows = [array.reshape(1, *dimensions) for array in arrays]
        stacked = np.ma.concatenate(rows)  # type: ignore[no-untyped-call]  # numpy's stub
        return read_array(stacked, place if dimensions else place.inside())
    if not dimensions:  # read as its only value; `inside`, because it may hold itself
        return read_array(np.stack(arrays), place.inside())
    # Faster than np.stack for many small arrays.
    return read_array(np.concatenate(arrays).reshape(len(arrays), *dimensions), place)


def read_array(array: Array, place: Place) -> list[Block]:
    """Reads the entries of an array along its first axis.

    Args:
        array: shape (k, ...), k > 0. The entries are numbers or texts if it has one dimension,
            else arrays.
        place: of the entries.
    """
    if array.ndim == 1:
        return _read_entries(array, place)
    dimensions = array.shape[1:]
    width = math.prod(dimensions)
    inside = place.inside()
    place.check_leaves(width)
    cells = array.reshape(len(array), width)
    block = _read_cells_alike(cells)
    if block is not None:
        shape = array_text(dimensions, [block.shape] * width, empty=block.shape)
        return [spread(block, len(array), width, shape)]
    parts = (_read_entries(cells[:, position], inside) for position in range(width))
    return product(parts, partial(array_text, dimensions), place)


def _read_cells_alike(cells: Array) -> Block | None:
    """Reads all cells of all arrays at once, if they are leaves of one shape; else None."""
    if isinstance(cells, np.ma.MaskedArray):
        return None
    if cells.dtype.kind in FLAT:
        blocks = FLAT[cells.dtype.kind](cells.reshape(-1))
        return blocks[0] if len(blocks) == 1 else None
    if cells.dtype.kind in "OT":
        return _read_alike(cells.reshape(-1).tolist())
    return None


def _read_entries(array: Array, place: Place) -> list[Block]:
    """Reads the entries of an array of one dimension."""
    if isinstance(array, np.ma.MaskedArray) and array.dtype.names is None:
        # A masked entry is the missing value, whatever lies beneath the mask.
        is_missing = np.ma.getmaskarray(array)
        place_of_others = place.pick(np.flatnonzero(~is_missing))
        return by_case(
            np.ma.getdata(array),
            [
                (is_missing, lambda some: leaf("None", size=len(some))),
                (~is_missing, lambda some: _read_entries(some, place_of_others)),
            ],
        )
    if array.dtype.kind in FLAT:
        return FLAT[array.dtype.kind](array)
    if array.dtype.kind in "OT":
        return read_values(array.tolist(), place)
    if array.dtype.names is None:
        raise Unreadable(array[0], int(place.outputs[0]), f"dtype {array.dtype}")
    names = sorted(array.dtype.names)
    parts = (read_array(array[name], place.inside()) for name in names)
    keys = [key_text(name) for name in names]
    return product(parts, partial(record_text, "", keys), place)


# What reads subclasses of a class. The first class that fits decides.
_READERS: tuple[tuple[type, Reader], ...] = (
    # Before everything else: members may be ints or strs, too.
    (Enum, lambda kind, values, place: read_enums(kind, values)),
    # Before numpy's scalars: np.str_ and np.bytes_ are texts.
    (str, partial(_read_subclass, str)),
    (bytes, partial(_read_subclass, bytes)),
    # Before Python's numbers: np.float64 is a float.
    (np.generic, _read_scalars),
    (np.ndarray, _read_arrays),
    (int, partial(_read_subclass, int)),
    (float, partial(_read_subclass, float)),
    (complex, partial(_read_subclass, complex)),
    (dict, _read_dicts),
    (tuple, partial(_read_sequences, tuple)),
    (list, partial(_read_sequences, list)),
    (set, partial(_read_sequences, set)),
    (frozenset, partial(_read_sequences, frozenset)),
)
