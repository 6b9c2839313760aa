"""Numbers and labels, many at a time, read so that values that differ stay different."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.outputs.columns import Block, Labels, Numbers, uniform
from epsilometer.outputs.reading_pieces import Place, by_case, leaf, product
from epsilometer.outputs.shapes import EXACT

# --- labels


def label_to_data(label: str) -> str | list[str]:
    """Returns a label as JSON can hold it.

    Lone surrogates are no valid text there, so a label with some is stored as bytes.
    """
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        return [label.encode("utf-8", "surrogatepass").hex()]
    return label


def label_from_data(data: Any) -> str:
    """Inverse of `label_to_data`."""
    if isinstance(data, list):
        return bytes.fromhex(data[0]).decode("utf-8", "surrogatepass")
    return str(data)


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Returns values as labels.

    Args:
        values: shape (n,).
        text: of a value; called once per distinct value, it must keep them distinct.
    """
    code_of: defaultdict[Hashable, int] = defaultdict(count().__next__)  # a new value: a new code
    codes = np.fromiter(map(code_of.__getitem__, values), dtype=np.int32, count=len(values))
    return Labels(codes, tuple(map(text, code_of)))


# --- integers

INT64 = np.iinfo(np.int64)
# Below this, a double is off by less than half of 2^53, so that an integer follows from the double
# and the integer's lowest digit to the base 2^53.
_END_OF_TWO_COLUMNS = 1 << 104


def read_wholes(array: Array, name: str = "int", long_name: str = "bigint") -> list[Block]:
    """Reads integers of any integer dtype.

    Args:
        array: shape (n,).
        name: the shape of integers that a double can hold.
        long_name: the shape of the others.
    """
    if array.dtype.itemsize < 8 or not len(array):
        return _read_short(array, name)
    if array.max() <= EXACT and array.min() >= -EXACT:
        return _read_short(array, name)
    is_short = (array <= EXACT) & (array >= -EXACT)
    return by_case(
        array,
        [
            (is_short, lambda some: _read_short(some, name)),
            (~is_short, lambda some: _read_long(some, long_name)),
        ],
    )


def read_ints(values: Sequence[int], name: str = "int", long_name: str = "bigint") -> list[Block]:
    """Reads Python integers of any size; see `read_wholes` for the names."""
    try:
        return read_wholes(np.array(values, dtype=np.int64), name, long_name)
    except OverflowError:
        array = np.array(values, dtype=object)
    size = np.abs(array)
    is_short = np.asarray(size <= EXACT, dtype=np.bool_)
    fits_two_columns = np.asarray(size < _END_OF_TWO_COLUMNS, dtype=np.bool_)
    return by_case(
        array,
        [
            (is_short, lambda some: _read_short(some.astype(np.int64), name)),
            (fits_two_columns & ~is_short, lambda some: _read_long(some, long_name)),
            (~fits_two_columns, _read_huge),
        ],
    )


def _read_short(array: Array, name: str) -> list[Block]:
    return leaf(name, Numbers(array.astype(np.int64, copy=False)))


def _read_long(array: Array, name: str) -> list[Block]:
    """Reads integers as the nearest double and the lowest digit to the base 2^53.

    The digit lies between −2^52 and 2^52, so that for noise around a round number it is the noise.
    """
    digit = (array & (EXACT - 1)).astype(np.int64)
    digit -= EXACT * (digit >= EXACT // 2)
    return leaf(name, Numbers(array.astype(np.float64)), Numbers(digit))


def _read_huge(array: Array) -> list[Block]:
    """Reads integers as the nearest double, or infinity, and a label that distinguishes them."""
    values = array.tolist()
    rounded = np.array([about(value) for value in values])
    return leaf("hugeint", Numbers(rounded), factorise(values, int_text))


def about(value: Any) -> float:
    """Returns the float nearest to a number, infinity if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


# Longer integers are labelled in hexadecimal: Python refuses decimal text beyond a limit that may
# be as low as 640 digits (2126 bits).
MAX_DECIMAL_BITS = 2_000


def int_text(value: int) -> str:
    """Returns an integer in decimal, or in hexadecimal if it is very long."""
    return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)


# --- floats, complex numbers and times


def _float_column(array: Array) -> Numbers:
    """Returns floats as doubles, and their width unless they were doubles."""
    width = array.dtype.itemsize
    widths = None if width == 8 else uniform(width, len(array))
    with np.errstate(all="ignore"):  # a signalling NaN
        return Numbers(array.astype(np.float64, copy=False), widths)


def _read_floats(array: Array) -> list[Block]:
    """Reads floats; long doubles as floats where these are exact, else as float and remainder."""
    if array.dtype.itemsize <= 8:
        return leaf("float", _float_column(array))
    with np.errstate(all="ignore"):
        head = array.astype(np.float64)
        rest = (array - head).astype(np.float64)
        is_exact = (head == array) | np.isnan(array)
        fits_two_columns = ~is_exact & (head.astype(array.dtype) + rest == array)

    def read_exact(rows: Array) -> list[Block]:
        return leaf("float", _float_column(array[rows]))

    def read_two_columns(rows: Array) -> list[Block]:
        return leaf("longdouble", Numbers(head[rows]), Numbers(rest[rows]))

    def read_beyond(rows: Array) -> list[Block]:
        # Even two floats cannot hold them, being too large or too small: a text distinguishes them.
        texts = [np.format_float_scientific(number) for number in array[rows]]
        return leaf("longdouble beyond float", Numbers(head[rows]), factorise(texts, str))

    return by_case(
        np.arange(len(array)),
        [
            (is_exact, read_exact),
            (fits_two_columns, read_two_columns),
            (~is_exact & ~fits_two_columns, read_beyond),
        ],
    )


def _read_complex(array: Array) -> list[Block]:
    if array.dtype.itemsize > 16:
        parts = [_read_floats(array.real), _read_floats(array.imag)]
        return product(parts, _complex_text, Place(np.arange(len(array))))
    # One copy: every later pass over a column then reads contiguous memory.
    real, imaginary = np.stack([array.real, array.imag])
    return leaf("complex", _float_column(real), _float_column(imaginary))


def _complex_text(parts: list[str]) -> str:
    return "complex" if parts == ["float", "float"] else f"complex({', '.join(parts)})"


def _read_times(array: Array) -> list[Block]:
    """Reads times and durations of numpy as integers, in the unit of their dtype."""
    name = array.dtype.name
    ticks = array.astype(array.dtype.newbyteorder("="), copy=False).view(np.int64)
    is_known = ticks > INT64.min
    return by_case(
        ticks,
        [
            (is_known, lambda some: read_wholes(some, name, f"long {name}")),
            (~is_known, lambda some: leaf(f"NaT {name}", size=len(some))),
        ],
    )


# What reads an array of one dimension, by the kind of its dtype.
READERS: dict[str, Callable[[Array], list[Block]]] = {
    "b": lambda array: leaf("bool", Numbers(array)),
    "i": read_wholes,
    "u": read_wholes,
    "f": _read_floats,
    "c": _read_complex,
    "M": _read_times,
    "m": _read_times,
}

# --- columns of Arrow


def is_arrow(values: object) -> bool:
    """Returns whether this is a column of Arrow, by the name of its type: nothing is imported."""
    module = type(values).__module__
    if not isinstance(module, str) or module.partition(".")[0] != "pyarrow":
        return False
    return hasattr(values, "null_count")


def arrow_values(column: Any) -> Array | Sequence[Any]:
    """Returns the entries of a column: an array, masked where it is null, or Python values."""
    import pyarrow

    types = pyarrow.types
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # too long for one array
        return [value for chunk in column.chunks for value in chunk.to_pylist()]
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_time(kind):
        ticks = column.cast(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64())
        return _masked_array(ticks, f"m8[{kind.unit}]")
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if types.is_float16(kind) and column.null_count:  # Arrow cannot fill their nulls
        is_number = False
    is_time = types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind)
    if is_number or is_time:
        return _masked_array(column)
    return list(column.to_pylist())


def _masked_array(column: Any, dtype: str | None = None) -> Array:
    """Returns an Arrow array as one of numpy, masked where it is null.

    Args:
        column: the Arrow array.
        dtype: as which its integers are to be understood; None to leave them as they are.
    """
    if 0 < column.null_count == len(column):
        return np.full(len(column), None)
    is_missing = None
    if column.null_count:
        is_missing = column.is_null().to_numpy(zero_copy_only=False)
        any_value = column.drop_null()[0]
        column = column.fill_null(any_value)
    array = np.asarray(column.to_numpy(zero_copy_only=False))
    if dtype is not None:
        array = array.astype(np.int64).view(dtype)
    return array if is_missing is None else np.ma.masked_array(array, is_missing)
