"""Numbers and times in arrays, many at a time, such that different values stay different.

Everything after the reading takes numbers for doubles: lines, atoms, scores. A value that a double cannot hold
therefore becomes several columns, each of which can be held exactly: a whole number beyond 2^53 its digits to the base
2^53, a long double its nearest double and the rest. Such values have a shape of their own, so ordinary numbers cost no
more than a look at the least and the greatest of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import Numbers, uniform
from epsilometer.outputs.reading_labels import factorise
from epsilometer.outputs.reading_pieces import Piece, Place, by_case, product, whole

INT64 = np.iinfo(np.int64)
# Doubles hold all whole numbers up to here.
_DIGIT_BITS = 53
EXACT = 1 << _DIGIT_BITS
# Two digits hold whole numbers whose upper digit is exact, too.
MOST_DIGITS = 1 << 105


def read_wholes(array: NDArray[Any], name: str = "int", long_name: str = "bigint") -> list[Piece]:
    """Whole numbers, shape (n,), of any integer dtype.

    Args:
        name: the shape of those that a double can hold.
        long_name: the shape of the others, which have two columns.
    """
    if array.dtype.itemsize < 8 or not len(array) or (array.max() <= EXACT and array.min() >= -EXACT):
        return _short(array, name)
    fits = (array <= EXACT) & (array >= -EXACT)
    return by_case(
        array, [(fits, lambda some: _short(some, name)), (~fits, lambda some: _long(*_digits(some), long_name))]
    )


def read_long_wholes(values: list[int]) -> list[Piece]:
    """Whole numbers of any size beyond 2^53: two digits, or the exact text and about how large they are."""
    array = np.array(values, dtype=object)
    fits = np.fromiter((abs(value) < MOST_DIGITS for value in values), np.bool_, len(values))
    return by_case(array, [(fits, _long_objects), (~fits, _huge)])


def _short(array: NDArray[Any], name: str) -> list[Piece]:
    return [whole(name, (Numbers(array.astype(np.int64, copy=False)),), len(array))]


def _long(high: NDArray[np.int64], low: NDArray[np.int64], name: str = "bigint") -> list[Piece]:
    return [whole(name, (Numbers(high), Numbers(low)), len(high))]


def _digits(array: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """high·2^53 + low with −2^52 ≤ low < 2^52: noise around any round number leaves the upper digit alone."""
    high, low = (array >> _DIGIT_BITS).astype(np.int64), (array & (EXACT - 1)).astype(np.int64)
    above = (low >= EXACT // 2).astype(np.int64)
    return high + above, low - above * EXACT


def whole_from_digits(high: int, low: int) -> int:
    """The inverse of `_digits`, for one number."""
    return high * EXACT + low


def _long_objects(array: NDArray[Any]) -> list[Piece]:
    return _long(*_digits(array))


def _huge(array: NDArray[Any]) -> list[Piece]:
    values = array.tolist()
    sizes = np.array([_about(value) for value in values])
    return [whole("hugeint", (Numbers(sizes), factorise(values, int_text)), len(values))]


def _about(value: int) -> float:
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
    if array.dtype.itemsize > 8:
        return _long_floats(array)
    return [whole("float", (_column(array),), len(array))]


def _column(array: NDArray[Any]) -> Numbers:
    size = array.dtype.itemsize
    with np.errstate(all="ignore"):  # a signalling NaN
        return Numbers(array.astype(np.float64, copy=False), None if size == 8 else uniform(size, len(array)))


def _long_floats(array: NDArray[Any]) -> list[Piece]:
    """Long doubles: floats where these hold them, else the nearest float and the rest."""
    with np.errstate(all="ignore"):
        head = array.astype(np.float64)
        rest = (array - head).astype(np.float64)
        fits = (head == array) | np.isnan(array)
        in_two = ~fits & (head.astype(array.dtype) + rest == array)
    return by_case(
        array, [(fits, _fitting_floats), (in_two, _floats_in_two), (~fits & ~in_two, _floats_beyond)]
    )


def _fitting_floats(array: NDArray[Any]) -> list[Piece]:
    return [whole("float", (_column(array),), len(array))]


def _floats_in_two(array: NDArray[Any]) -> list[Piece]:
    head = array.astype(np.float64)
    return [whole("longdouble", (Numbers(head), Numbers((array - head).astype(np.float64))), len(array))]


def _floats_beyond(array: NDArray[Any]) -> list[Piece]:
    """Long doubles so large or so small that even two floats do not make them up: their text tells them apart."""
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
