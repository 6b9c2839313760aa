"""Numbers and names, many at a time, so that what differs stays different."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.outputs.columns import Block, Labels, Numbers, uniform
from epsilometer.outputs.reading_pieces import Place, by_case, leaf, product
from epsilometer.outputs.shapes import EXACT


def label_to_data(label: str) -> str | list[str]:
    """A label as JSON can hold it: half characters (surrogates), which are not valid text there, as bytes."""
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        return [label.encode("utf-8", "surrogatepass").hex()]
    return label


def label_from_data(data: Any) -> str:
    """The inverse of `label_to_data`."""
    return (
        bytes.fromhex(data[0]).decode("utf-8", "surrogatepass")
        if isinstance(data, list)
        else str(data)
    )


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Values as labels; `text` is called once per distinct value and must keep them distinct."""
    table: defaultdict[Hashable, int] = defaultdict(
        count().__next__
    )  # a new value gets the next number
    return Labels(
        np.fromiter(map(table.__getitem__, values), np.int32, len(values)), tuple(map(text, table))
    )


INT64 = np.iinfo(np.int64)
# Below this a double is off by less than half of 2^53, so the number follows from it and the lowest digit.
_MOST_ROUNDED = 1 << 104


def read_wholes(array: Array, name: str = "int", long_name: str = "bigint") -> list[Block]:
    """Whole numbers, shape (n,), of any integer dtype.

    Args:
        array: the numbers.
        name: the shape of those that a double can hold.
        long_name: the shape of the others.
    """
    if (
        array.dtype.itemsize < 8
        or not len(array)
        or (array.max() <= EXACT and array.min() >= -EXACT)
    ):
        return leaf(name, Numbers(array.astype(np.int64, copy=False)))
    fits = (array <= EXACT) & (array >= -EXACT)
    return by_case(
        array,
        [
            (fits, lambda some: read_wholes(some, name)),
            (~fits, lambda some: _long(some, long_name)),
        ],
    )


def read_ints(values: Sequence[int], name: str = "int", long_name: str = "bigint") -> list[Block]:
    """Whole numbers of any size."""
    try:
        return read_wholes(np.array(values, dtype=np.int64), name, long_name)
    except OverflowError:
        array = np.array(values, dtype=object)
    fits, rounds = (
        np.asarray(np.abs(array) <= most, dtype=np.bool_) for most in (EXACT, _MOST_ROUNDED - 1)
    )
    short = (fits, lambda some: read_wholes(some.astype(np.int64), name))
    return by_case(
        array, [short, (rounds & ~fits, lambda some: _long(some, long_name)), (~rounds, _huge)]
    )


def _long(array: Array, name: str) -> list[Block]:
    """The nearest double and the lowest digit, between −2^52 and 2^52: around a round number, it holds the noise."""
    low = (array & (EXACT - 1)).astype(np.int64)
    low -= EXACT * (low >= EXACT // 2)
    return leaf(name, Numbers(array.astype(np.float64)), Numbers(low))


def _huge(array: Array) -> list[Block]:
    values = array.tolist()
    return leaf("hugeint", Numbers(np.array(list(map(about, values)))), factorise(values, int_text))


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


def _column(array: Array) -> Numbers:
    size = array.dtype.itemsize
    with np.errstate(all="ignore"):  # a signalling NaN
        return Numbers(
            array.astype(np.float64, copy=False), None if size == 8 else uniform(size, len(array))
        )


def _floats(array: Array) -> list[Block]:
    """Long doubles as floats where these are exact, else the nearest float and the rest."""
    if array.dtype.itemsize <= 8:
        return leaf("float", _column(array))
    with np.errstate(all="ignore"):
        head = array.astype(np.float64)
        rest, fits = (array - head).astype(np.float64), (head == array) | np.isnan(array)
        in_two = ~fits & (head.astype(array.dtype) + rest == array)
    exact = (fits, lambda rows: leaf("float", _column(array[rows])))
    double = (in_two, lambda rows: leaf("longdouble", Numbers(head[rows]), Numbers(rest[rows])))
    beyond = (~fits & ~in_two, lambda rows: _floats_beyond(array[rows], head[rows]))
    return by_case(np.arange(len(array)), [exact, double, beyond])


def _floats_beyond(array: Array, head: Array) -> list[Block]:
    """Long doubles that even two floats cannot hold, being too large or too small: their text distinguishes them."""
    texts = [np.format_float_scientific(each) for each in array]
    return leaf("longdouble beyond float", Numbers(head), factorise(texts, str))


def _complex(array: Array) -> list[Block]:
    if array.dtype.itemsize > 16:
        parts = (_floats(part) for part in (array.real, array.imag))
        return product(parts, _complex_text, Place(np.arange(len(array))))
    real, imaginary = np.stack(
        [array.real, array.imag]
    )  # one copy: every later pass reads contiguous memory
    return leaf("complex", _column(real), _column(imaginary))


def _complex_text(parts: list[str]) -> str:
    return "complex" if parts == ["float", "float"] else f"complex({', '.join(parts)})"


def _times(array: Array) -> list[Block]:
    ticks = array.astype(array.dtype.newbyteorder("="), copy=False).view(np.int64)
    name, there = array.dtype.name, ticks > INT64.min
    known = (there, lambda some: read_wholes(some, name, f"long {name}"))
    return by_case(ticks, [known, (~there, lambda some: leaf(f"NaT {name}", size=len(some)))])


# By the kind of a numpy dtype.
READERS: dict[str, Callable[[Array], list[Block]]] = {
    "b": lambda array: leaf("bool", Numbers(array)),
    **dict.fromkeys("iu", read_wholes),
    "f": _floats,
    "c": _complex,
    **dict.fromkeys("Mm", _times),
}


def is_arrow(values: object) -> bool:
    """Whether this is a column of Arrow, by the name of its type, so that nothing is imported."""
    module = type(values).__module__
    return (
        isinstance(module, str)
        and module.partition(".")[0] == "pyarrow"
        and hasattr(values, "null_count")
    )


def arrow_values(column: Any) -> Array | Sequence[Any]:
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
        return _masked(
            column.cast(pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()),
            f"m8[{kind.unit}]",
        )
    plain = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
    plain = plain and not (
        kinds.is_float16(kind) and column.null_count
    )  # Arrow cannot fill their nulls
    if plain or kinds.is_date(kind) or kinds.is_timestamp(kind) or kinds.is_duration(kind):
        return _masked(column)
    return list(column.to_pylist())


def _masked(column: Any, view: str | None = None) -> Array:
    if 0 < column.null_count == len(column):
        return np.full(len(column), None)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    filled = column if missing is None else column.fill_null(column.drop_null()[0])
    array = np.asarray(filled.to_numpy(zero_copy_only=False))
    array = array if view is None else array.astype(np.int64).view(view)
    return array if missing is None else np.ma.masked_array(array, missing)
