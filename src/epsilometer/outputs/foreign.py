"""Values of other libraries and lazy values: how they become plain Python values.

Libraries are recognised by the names of their classes, so that none of them is imported.
"""

import dataclasses
import os
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from io import IOBase
from itertools import islice
from typing import Any

import numpy as np

from epsilometer.outputs.reading_pieces import MAX_LEAVES


class Fields(dict[Any, Any]):
    """Names and values whose order counts."""


# Views and iterators are read as lists: what was returned is what a loop over it gives.
LISTED = (deque, KeysView, ValuesView, ItemsView, Iterator)


def field_names(kind: type) -> tuple[str, ...] | None:
    """Returns the declared fields of a record class; None for other classes.

    A record class is a dataclass, a named tuple, or a class of attrs or pydantic.
    """
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(field.name for field in kind.__attrs_attrs__)
    declared = getattr(kind, "model_fields", None)
    return tuple(declared) if isinstance(declared, dict) else None


def opener(kind: type) -> Callable[[Any], Any] | None:
    """Returns the function that turns values of a class into plain ones; None if none is needed."""
    for base in kind.__mro__:
        library = base.__module__.partition(".")[0]
        function = _OPENERS.get((library, base.__name__))
        if function is not None:
            return function
    if issubclass(kind, LISTED) and not issubclass(kind, IOBase):
        return _listed
    if issubclass(kind, os.PathLike):
        return os.fspath
    if hasattr(kind, "tocoo") and hasattr(kind, "toarray"):
        return _open_sparse_matrix
    if hasattr(kind, "__array__") and not issubclass(kind, np.ndarray | np.generic):
        return np.asarray
    return None


def collected(value: Any) -> Any:
    """Runs a lazy frame and returns its result; returns anything else as it is."""
    class_names = {base.__name__ for base in type(value).__mro__}
    is_lazy = not class_names.isdisjoint({"LazyFrame", "OnceFrame"})
    return value.collect() if is_lazy and hasattr(value, "collect") else value


def _listed(value: Any) -> list[Any]:
    """Lists what a loop gives, up to one value more than is allowed: it may be endless."""
    return list(islice(value, MAX_LEAVES + 1))


def _open_pandas_frame(value: Any) -> Fields:
    columns = [_open_pandas_series(column) for _, column in value.items()]
    return _unique_fields(list(value.columns), columns)


def _open_pandas_series(value: Any) -> Any:
    """Returns a dict by the labels of its rows, or a list if these are only numbered."""
    names = value.index.tolist()
    cells = value.tolist()
    if names == list(range(len(names))):
        return cells
    return _unique_fields(names, cells)


def _unique_fields(names: list[Any], values: list[Any]) -> Fields:
    """Returns fields; if a name occurs twice, every name is joined with its position."""
    if len(set(names)) < len(names):
        names = list(zip(names, range(len(names)), strict=True))
    return Fields(zip(names, values, strict=True))


def _open_sparse_matrix(value: Any) -> Any:
    """Returns a small matrix as an array, a large one as its shape and its entries by place."""
    if np.prod(value.shape, dtype=float) <= MAX_LEAVES:
        return value.toarray()
    entries = value.tocoo()
    places = zip(entries.row.tolist(), entries.col.tolist(), strict=True)
    entry_of_place = dict(sorted(zip(places, entries.data.tolist(), strict=True)))
    return [value.shape, entry_of_place]


def _open_polars_frame(value: Any) -> Fields:
    return Fields((name, value[name].to_list()) for name in value.columns)


def _open_arrow_table(value: Any) -> Fields:
    return Fields(value.to_pydict())


def _open_range(value: Any) -> Fields:
    return Fields(start=value.start, stop=value.stop, step=value.step)


# By the top-level module and the name of a class or one of its bases.
_OPENERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pandas", "DataFrame"): _open_pandas_frame,
    ("pandas", "Series"): _open_pandas_series,
    ("pandas", "Index"): lambda value: value.tolist(),
    ("pandas", "ExtensionArray"): lambda value: value.tolist(),
    ("pandas", "Period"): str,
    ("pandas", "Interval"): str,
    ("polars", "DataFrame"): _open_polars_frame,
    ("polars", "Series"): lambda value: value.to_list(),
    ("polars", "LazyFrame"): collected,
    ("opendp", "OnceFrame"): collected,
    ("pyarrow", "Table"): _open_arrow_table,
    ("pyarrow", "RecordBatch"): _open_arrow_table,
    ("pyarrow", "Array"): lambda value: value.to_pylist(),
    ("pyarrow", "ChunkedArray"): lambda value: value.to_pylist(),
    ("builtins", "range"): _open_range,
    ("builtins", "bytearray"): bytes,
    ("builtins", "memoryview"): bytes,
}
