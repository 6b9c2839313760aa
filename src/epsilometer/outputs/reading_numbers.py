"""Numbers and names, many at a time, so that what differs stays different."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import EXACT, Labels, Numbers, uniform
from epsilometer.outputs.reading_pieces import Piece, Place, by_case, product, whole


def label_to_data(label: str) -> str | list[str]:
    """A label as JSON can hold it: half characters (surrogates), which are not valid text there, as bytes."""
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        return [label.encode("utf-8", "surrogatepass").hex()]
    return label


def label_from_data(data: Any) -> str:
    """The inverse of `label_to_data`."""
    return bytes.fromhex(data[0]).decode("utf-8", "surrogatepass") if isinstance(data, list) else str(data)


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Values as labels; `text` is called once per distinct value and must keep them distinct."""
    table: defaultdict[Hashable, int] = defaultdict(count().__next__)  # a new value gets the next number
    codes = np.fromiter(map(table.__getitem__, values), np.int32, len(values))
    return Labels(codes, tuple(map(text, table)))


INT64 = np.iinfo(np.int64)
# Below this a double is off by less than half of 2^53, so the number follows from it and the lowest digit.
_MOST_ROUNDED = 1 << 104


def read_wholes(array: NDArray[Any], name: str = "int", long_name: str = "bigint") -> list[Piece]:
    """Whole numbers, shape (n,), of any integer dtype.

    Args:
        array: the numbers.
        name: the shape of those that a double can hold.
        long_name: the shape of the others.
    """
    if array.dtype.itemsize < 8 or not len(array) or (array.max() <= EXACT and array.min() >= -EXACT):
        return _short(array, name)
    fits = (array <= EXACT) & (array >= -EXACT)
    return by_case(array, [(fits, lambda some: _short(some, name)), (~fits, lambda some: _long(some, long_name))])


def read_long_wholes(values: list[int], long_name: str = "bigint") -> list[Piece]:
    """Whole numbers of any size beyond 2^53."""
    array = np.array(values, dtype=object)
    fits = np.fromiter((abs(value) < _MOST_ROUNDED for value in values), np.bool_, len(values))
    return by_case(array, [(fits, lambda some: _long(some, long_name)), (~fits, _huge)])


def _short(array: NDArray[Any], name: str) -> list[Piece]:
    return [whole(name, (Numbers(array.astype(np.int64, copy=False)),), len(array))]


def _long(array: NDArray[Any], name: str = "bigint") -> list[Piece]:
    """The nearest double and the lowest digit, between −2^52 and 2^52: around a round number, it holds the noise."""
    low = (array & (EXACT - 1)).astype(np.int64)
    low -= EXACT * (low >= EXACT // 2)
    return [whole(name, (Numbers(array.astype(np.float64)), Numbers(low)), len(array))]


def _huge(array: NDArray[Any]) -> list[Piece]:
    values = array.tolist()
    sizes = np.array([about(value) for value in values])
    return [whole("hugeint", (Numbers(sizes), factorise(values, int_text)), len(values))]


def about(value: Any) -> float:
    """A number as the nearest float."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


# Longer integers are labelled in hexadecimal: Python refuses decimal text beyond a limit that may be as low as
# 640 digits (2126 bits).
MAX_DECIMAL_BITS = 2_000


def int_text(value: int) -> str:
    """Decimal, or hexadecimal for very long integers."""
    return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)


def _bools(array: NDArray[Any]) -> list[Piece]:
    return [whole("bool", (Numbers(array),), len(array))]


def _floats(array: NDArray[Any]) -> list[Piece]:
    return _long_floats(array) if array.dtype.itemsize > 8 else _short_floats(array)


def _short_floats(array: NDArray[Any]) -> list[Piece]:
    return [whole("float", (_column(array),), len(array))]


def _column(array: NDArray[Any]) -> Numbers:
    size = array.dtype.itemsize
    with np.errstate(all="ignore"):  # a signalling NaN
        return Numbers(array.astype(np.float64, copy=False), None if size == 8 else uniform(size, len(array)))


def _long_floats(array: NDArray[Any]) -> list[Piece]:
    """Long doubles: as floats where these are exact, else the nearest float and the rest."""
    with np.errstate(all="ignore"):
        head = array.astype(np.float64)
        rest = (array - head).astype(np.float64)
        fits = (head == array) | np.isnan(array)
        in_two = ~fits & (head.astype(array.dtype) + rest == array)
    return by_case(array, [(fits, _short_floats), (in_two, _floats_in_two), (~fits & ~in_two, _floats_beyond)])


def _floats_in_two(array: NDArray[Any]) -> list[Piece]:
    head = array.astype(np.float64)
    return [whole("longdouble", (Numbers(head), Numbers((array - head).astype(np.float64))), len(array))]


def _floats_beyond(array: NDArray[Any]) -> list[Piece]:
    """Long doubles that even two floats cannot hold, being too large or too small: their text distinguishes them."""
    with np.errstate(all="ignore"):
        head = array.astype(np.float64)
    texts = [np.format_float_scientific(each) for each in array]
    return [whole("longdouble beyond float", (Numbers(head), factorise(texts, str)), len(array))]


def _complex(array: NDArray[Any]) -> list[Piece]:
    if array.dtype.itemsize > 16:
        parts = (_long_floats(part) for part in (array.real, array.imag))
        return product(parts, _complex_text, Place(np.arange(len(array))))
    real, imaginary = np.stack([array.real, array.imag])  # one copy: every later pass reads contiguous memory
    return [whole("complex", (_column(real), _column(imaginary)), len(array))]


def _complex_text(parts: list[str]) -> str:
    return "complex" if parts == ["float", "float"] else f"complex({', '.join(parts)})"


def _times(array: NDArray[Any]) -> list[Piece]:
    ticks = array.astype(array.dtype.newbyteorder("="), copy=False).view(np.int64)
    name = array.dtype.name
    if not len(ticks) or ticks.min() > INT64.min:
        return read_wholes(ticks, name, f"long {name}")
    missing = ticks == INT64.min
    return by_case(
        ticks,
        [
            (missing, lambda some: [whole(f"NaT {name}", (), len(some))]),
            (~missing, lambda some: read_wholes(some, name, f"long {name}")),
        ],
    )


READERS: dict[str, Callable[[NDArray[Any]], list[Piece]]] = {
    "b": _bools,
    "i": read_wholes,
    "u": read_wholes,
    "f": _floats,
    "c": _complex,
    "M": _times,
    "m": _times,
}


def is_arrow(values: object) -> bool:
    """Whether this is a column of Arrow, by the name of its type, so that nothing is imported."""
    module = type(values).__module__
    return isinstance(module, str) and module.partition(".")[0] == "pyarrow" and hasattr(values, "null_count")


def arrow_values(column: Any) -> NDArray[Any] | Sequence[Any]:
    """The entries of a column: an array, masked where it is null, or a list of Python values."""
    import pyarrow

    kinds = pyarrow.types
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # too long for one piece
        return [value for chunk in column.chunks for value in chunk.to_pylist()]
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if kinds.is_time(kind):
        length = pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()
        return _masked(column.cast(length), f"m8[{kind.unit}]")
    plain = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
    plain = plain and not (kinds.is_float16(kind) and column.null_count)  # Arrow cannot fill their nulls
    if plain or kinds.is_date(kind) or kinds.is_timestamp(kind) or kinds.is_duration(kind):
        return _masked(column)
    values: list[Any] = column.to_pylist()
    return values


def _masked(column: Any, view: str | None = None) -> NDArray[Any]:
    if 0 < column.null_count == len(column):
        return np.full(len(column), None)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    filled = column if missing is None else column.fill_null(column.drop_null()[0])
    array = np.asarray(filled.to_numpy(zero_copy_only=False))
    array = array if view is None else array.astype(np.int64).view(view)
    return array if missing is None else np.ma.masked_array(array, missing)
