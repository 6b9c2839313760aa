"""The content of data as bytes: sequences, numpy arrays, data frames of the usual libraries.

Every function yields self-delimiting pieces, so that no two different things run together to the same bytes. `encode`
turns a part that has parts itself into such a piece. No library is imported: whoever has a data frame has done so.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Encode = Callable[[Any], bytes]
Parts = Callable[[Any, Encode], Iterator[bytes]]
# Kinds of dtypes whose elements are their bytes; others are encoded one by one.
_BY_BYTES = frozenset("biufcmMSUV")
# Tensors of these libraries are arrays by another name.
_TENSORS = ("torch", "jax", "jaxlib", "cupy", "tensorflow")
# From this many values on, checking whether they have one type pays off.
_MANY = 32
_INT64 = range(-(2**63), 2**63)


def tagged(tag: str, content: bytes) -> bytes:
    """A piece."""
    return f"{tag}:{len(content)}:".encode() + content


def items(values: Sequence[Any], encode: Encode) -> Iterator[bytes]:
    """Values in order; all at once where they are numbers or texts of one kind."""
    yield tagged("count", str(len(values)).encode())
    kinds = set(map(type, values)) if len(values) >= _MANY else ()
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is float:
        yield tagged("floats", array("d", values).tobytes())
    elif kind is str:
        texts = [each.encode("utf-8", "surrogatepass") for each in values]
        yield tagged("lengths", array("q", map(len, texts)).tobytes())
        yield tagged("texts", b"".join(texts))
    elif kind is int and min(values) in _INT64 and max(values) in _INT64:
        yield tagged("ints", array("q", values).tobytes())
    else:
        yield from map(encode, values)


def mapping(value: dict[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Names and values in their order, which a mechanism sees."""
    yield from items(list(value.keys()), encode)
    yield from items(list(value.values()), encode)


def numpy_array(value: np.ndarray[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Dtype, shape and bytes; objects one by one, records field by field (there may be gaps between the fields)."""
    kind = value.dtype
    yield tagged("array", f"{kind.str} {value.shape} {kind.names}".encode())
    if isinstance(value, np.ma.MaskedArray):
        yield from numpy_array(np.ma.getmaskarray(value), encode)
        value = np.ma.getdata(value)
    plain = np.asarray(value)
    if kind.names is not None:
        for name in kind.names:
            yield from numpy_array(plain[name], encode)
    elif _has_gaps(kind):
        yield from items([repr(each) for each in plain.ravel()], encode)
    elif kind.kind in _BY_BYTES and not kind.hasobject:
        yield tagged("bytes", plain.tobytes())
    else:
        yield from items(plain.ravel().tolist(), encode)


def _has_gaps(kind: np.dtype[Any]) -> bool:
    """Whether numbers have unused bytes: long doubles do."""
    return kind.kind in "fc" and kind.itemsize > (8 if kind.kind == "f" else 16)


def of_library(value: Any) -> Parts | None:
    """How to read a frame, column or tensor of a library, recognised by name; subclasses included."""
    for kind in type(value).__mro__:
        top = kind.__module__.partition(".")[0]
        if (top, kind.__name__) in _TABLES:
            return _TABLES[top, kind.__name__]
        if top in _TENSORS and hasattr(value, "__array__"):
            return _tensor
    return None


def _frame(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(value.columns)
    yield encode(value.index)
    for place in range(value.shape[1]):
        yield from _column(value.iloc[:, place].array, encode)
    yield encode(dict(value.attrs))


def _series(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(value.name)
    yield encode(value.index)
    yield from _column(value.array, encode)


def _index(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(list(value.names))
    yield from _column(value.array if value.nlevels == 1 else value.to_numpy(), encode)


def _column(value: Any, encode: Encode) -> Iterator[bytes]:
    """A pandas array: its dtype, and its values as numpy or Python holds them."""
    kind = value.dtype
    yield tagged("dtype", str(kind).encode())
    if hasattr(value, "categories") and hasattr(value, "codes"):
        yield encode(value.categories)
        yield encode(bool(value.ordered))
        yield from numpy_array(np.asarray(value.codes), encode)
    elif isinstance(kind, np.dtype) and not kind.hasobject:
        yield from numpy_array(np.asarray(value), encode)
    else:
        yield from items(np.asarray(value, dtype=object).tolist(), encode)


def _polars(value: Any, encode: Encode) -> Iterator[bytes]:
    for column in value.get_columns() if hasattr(value, "get_columns") else [value]:
        yield encode(f"{column.name!r} {column.dtype!r}")
        yield from items(column.to_list(), encode)


def _arrow_table(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(str(value.schema))
    for column in value.columns:
        yield from items(column.to_pylist(), encode)


def _arrow_column(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(str(value.type))
    yield from items(value.to_pylist(), encode)


def _tensor(value: Any, encode: Encode) -> Iterator[bytes]:
    yield from numpy_array(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value), encode)


_TABLES: dict[tuple[str, str], Parts] = {
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _index,
    ("pandas", "ExtensionArray"): _column,
    ("polars", "DataFrame"): _polars,
    ("polars", "Series"): _polars,
    ("pyarrow", "Table"): _arrow_table,
    ("pyarrow", "RecordBatch"): _arrow_table,
    ("pyarrow", "Array"): _arrow_column,
    ("pyarrow", "ChunkedArray"): _arrow_column,
}
