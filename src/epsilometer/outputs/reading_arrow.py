"""Columns of Arrow (a table that a mechanism returned, a parquet file) as arrays or lists.

Arrow's own way to NumPy makes NaN of nulls and floats of whole numbers beside them: both would then be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_arrow(values: object) -> bool:
    """Whether this is a column of Arrow, by the name of its type: nothing is imported for it."""
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
    plain = plain and not (kinds.is_float16(kind) and column.null_count)  # whose nulls Arrow cannot fill
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
