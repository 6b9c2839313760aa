"""Values without parts: Python's and numpy's numbers, texts, None and enum members, many at a time.

Every function here gets values of one type and returns pieces; only integers can fall into two
(those that fit into 64 bits, and the others).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from itertools import compress, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import Labels, Numbers
from epsilometer.outputs.reading_pieces import Piece, merge, whole
from epsilometer.outputs.shapes import name_text

INT64 = np.iinfo(np.int64)
# Longer integers are labelled in hexadecimal: Python refuses decimal text beyond a limit that may be as low as
# 640 digits (2126 bits).
MAX_DECIMAL_BITS = 2_000
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
    return read_flat(np.array(values, dtype=np.complex128))


def _read_nones(values: Sequence[None]) -> list[Piece]:
    return [whole("None", (), len(values))]


def _read_ints(values: Sequence[int]) -> list[Piece]:
    try:
        return [whole("int", (Numbers(np.array(values, dtype=np.int64)),), len(values))]
    except OverflowError:
        return _read_long_ints(values)


def _read_long_ints(values: Sequence[int]) -> list[Piece]:
    fits = np.fromiter((INT64.min <= value <= INT64.max for value in values), np.bool_, len(values))
    short = np.array(list(compress(values, fits)), dtype=np.int64)
    return _two_lengths(fits, short, list(compress(values, ~fits)))


def _two_lengths(fits: NDArray[np.bool_], short: NDArray[np.int64], long: list[int]) -> list[Piece]:
    big = whole("bigint", (factorise(long, int_text),), len(long))
    if not len(short):
        return [big]
    small = whole("int", (Numbers(short),), len(short))
    return merge([small.within(np.flatnonzero(fits)), big.within(np.flatnonzero(~fits))], len(fits))


def _read_texts(values: Sequence[str]) -> list[Piece]:
    return [whole("str", (factorise(values, str),), len(values))]


def _read_bytes(values: Sequence[bytes]) -> list[Piece]:
    return [whole("bytes", (factorise(values, bytes_text),), len(values))]


def read_enums(kind: type[Enum], values: Sequence[Enum]) -> list[Piece]:
    """Members of one class, by name; classes of the same name are taken for the same."""
    # By identity: a class may define equality and hash as it likes, and members are singletons.
    identities = list(map(id, values))
    texts = {identity: _member_text(member) for identity, member in dict(zip(identities, values, strict=True)).items()}
    column = factorise(list(map(texts.__getitem__, identities)), str)
    return [whole(name_text(kind.__name__), (column,), len(values))]


def _member_text(member: Enum) -> str:
    # A flag without any bit has no name.
    return str(member._name_ if member._name_ is not None else member._value_)


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Values as labels; `text` is called once per distinct value and must keep them distinct."""
    table: defaultdict[Hashable, int] = defaultdict(count().__next__)  # a new value gets the next number
    codes = np.fromiter(map(table.__getitem__, values), np.int32, len(values))
    return Labels(codes, tuple(map(text, table)))


def int_text(value: int) -> str:
    """Decimal, or hexadecimal for very long integers."""
    return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)


def bytes_text(value: bytes) -> str:
    """Printable ASCII as it is, a backslash doubled, everything else escaped: a different text for all bytes."""
    return value.decode("latin-1").encode("unicode_escape").decode("ascii")


LEAVES: dict[type, Callable[[Sequence[Any]], list[Piece]]] = {
    bool: _read_bools,
    int: _read_ints,
    float: _read_floats,
    complex: _read_complex,
    str: _read_texts,
    bytes: _read_bytes,
    type(None): _read_nones,
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

    Arrays of float64, int64 and bool are not copied. Other floats are rounded to float64.
    """
    reader = _FLAT.get(array.dtype.kind, _flat_ints)
    return reader(array)


def _flat_ints(array: NDArray[Any]) -> list[Piece]:
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and len(array) and int(array.max()) > INT64.max:
        fits = array <= INT64.max
        return _two_lengths(fits, array[fits].astype(np.int64), array[~fits].tolist())
    return [whole("int", (Numbers(array.astype(np.int64, copy=False)),), len(array))]


def _flat_bools(array: NDArray[Any]) -> list[Piece]:
    return [whole("bool", (Numbers(array),), len(array))]


def _flat_floats(array: NDArray[Any]) -> list[Piece]:
    with np.errstate(all="ignore"):  # a long double beyond the range becomes inf, which is an ordinary value
        return [whole("float", (Numbers(array.astype(np.float64, copy=False)),), len(array))]


def _flat_complex(array: NDArray[Any]) -> list[Piece]:
    with np.errstate(all="ignore"):
        both = np.stack([array.real, array.imag]).astype(np.float64, copy=False)
    return [whole("complex", (Numbers(both[0]), Numbers(both[1])), len(array))]


def _flat_times(array: NDArray[Any]) -> list[Piece]:
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return [whole(array.dtype.name, (Numbers(native.view(np.int64)),), len(array))]


_FLAT: dict[str, Callable[[NDArray[Any]], list[Piece]]] = {
    "b": _flat_bools,
    "f": _flat_floats,
    "c": _flat_complex,
    "M": _flat_times,
    "m": _flat_times,
    "U": lambda array: _read_texts(array.tolist()),
    "S": lambda array: _read_bytes(array.tolist()),
}
