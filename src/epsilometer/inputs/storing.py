"""Inputs as JSON: values that JSON can hold exactly, and digests of all others.

A stored input has one of several forms: `json` (as it is), `tuple`, `array` and `scalar` (numbers
of numpy), `typed` (nested values with their types), or only its type, a short text and its digest.
"""

import datetime
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.errors import safe_repr
from epsilometer.inputs.differences import digest_or_none
from epsilometer.storage.digests import content_digest

# Inputs larger than this many characters of JSON are stored as a digest.
_MAX_TEXT = 100_000
# Arrays with more numbers than this are not even tried: a number takes about ten characters.
_MAX_NUMBERS = _MAX_TEXT // 10
# Characters of the repr that stands for an input that is not stored.
_MAX_REPR = 200
# The kinds of dtypes whose values JSON numbers can hold: bool, integers and floats.
_NUMBER_KINDS = "biuf"
# The kinds of dtypes whose values need their types: texts and objects.
_CELL_KINDS = "UO"


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """Stands for an input that could not be stored.

    Attributes:
        kind: the name of its type.
        text: the beginning of its repr.
        digest: of its content; empty if it has none.
    """

    kind: str
    text: str
    digest: str


def store_input(value: Any) -> dict[str, Any]:
    """Returns an input as plain data, with its digest.

    The data gives back the same value of the same type, if JSON has a form for it.
    """
    if isinstance(value, StoredDigest):
        return {"type": value.kind, "text": value.text, "digest": value.digest}
    digest = digest_or_none(value) or ""
    # NaN, dates, arrays or data frames inside of a value need types.
    forms: tuple[Callable[[Any], dict[str, Any]], ...] = (_to_json, _to_typed_json)
    for form in forms:
        try:
            data = form(value)
            text = json.dumps(data, allow_nan=False)
            is_small = len(text) <= _MAX_TEXT
            if is_small and content_digest(restore_input(json.loads(text))) == digest:
                return {**data, "digest": digest}
        except Exception:  # whatever the libraries of data frames raise
            continue
    return {
        "type": type(value).__name__,
        "text": safe_repr(value)[:_MAX_REPR],
        "digest": digest,
    }


def restore_input(data: Mapping[str, Any]) -> Any:
    """Inverse of `store_input`; an input that was not stored becomes a `StoredDigest`."""
    if "json" in data:
        return data["json"]
    if "tuple" in data:
        return tuple(data["tuple"])
    if "typed" in data:
        return _from_typed(data["typed"])
    if "scalar" in data:
        return _number_array([data["scalar"]], data["dtype"])[0]
    if "array" in data:
        shape = [int(size) for size in data["shape"]]
        return _number_array(data["array"], data["dtype"]).reshape(shape)
    return StoredDigest(kind=str(data["type"]), text=str(data["text"]), digest=str(data["digest"]))


# --- plain values and arrays of numbers


def _to_json(value: Any) -> dict[str, Any]:
    if _is_number_array(value) and value.size <= _MAX_NUMBERS:
        return {
            "array": [_plain_number(number) for number in value.ravel().tolist()],
            "shape": list(value.shape),
            "dtype": str(value.dtype),
        }
    if isinstance(value, np.generic) and _is_number_array(np.asarray(value)):
        return {"scalar": _plain_number(value.item()), "dtype": str(value.dtype)}
    if type(value) is tuple:
        return {"tuple": list(value)}
    return {"json": value}


def _is_number_array(value: Any) -> bool:
    """Returns whether JSON numbers can hold every element."""
    if type(value) is not np.ndarray:
        return False
    return value.dtype.kind in _NUMBER_KINDS and value.itemsize <= 8


def _plain_number(value: float | int | bool) -> float | int | bool | str:
    """Returns a number as JSON can hold it: NaN and infinities as text."""
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def _number_array(flat: list[Any], dtype: Any) -> np.ndarray[Any, Any]:
    checked = _checked_dtype(dtype, _NUMBER_KINDS)
    numbers = [float(number) if isinstance(number, str) else number for number in flat]
    return np.array(numbers, dtype=checked)


def _checked_dtype(dtype: Any, allowed_kinds: str) -> np.dtype[Any]:
    """Returns a stored dtype; refuses one that the form of the data cannot have."""
    checked = np.dtype(str(dtype))
    if checked.kind not in allowed_kinds:
        raise ValueError(f"a stored array cannot have the dtype {checked}")
    return checked


# --- nested values with types


def _to_typed_json(value: Any) -> dict[str, Any]:
    return {"typed": _to_typed(value)}


def _to_typed(value: Any) -> Any:
    """Returns JSON in which everything that JSON lacks is a dict of its type and its content."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if type(value) in (list, tuple):
        return {type(value).__name__: [_to_typed(item) for item in value]}
    if type(value) is dict:
        return {"dict": [[_to_typed(key), _to_typed(item)] for key, item in value.items()]}
    if type(value) in (float, datetime.date):
        return {type(value).__name__: str(value)}
    if type(value) is np.ndarray and value.dtype.kind in _CELL_KINDS:
        return {
            "cells": [_to_typed(cell) for cell in value.ravel().tolist()],
            "shape": list(value.shape),
            "dtype": str(value.dtype),
        }
    if isinstance(value, np.ndarray | np.generic):
        return _to_json(value)
    return _frame_to_typed(value)


def _frame_to_typed(value: Any) -> Any:
    """Returns a data frame or a series as JSON, or raises a TypeError for anything else."""
    library = type(value).__module__.partition(".")[0]
    kind = f"{library}.{type(value).__name__}"
    if kind == "pandas.Series" and value.name is None:
        return {kind: _to_typed(value.tolist()), "dtype": str(value.dtype)}
    if kind == "pandas.DataFrame":
        columns = []
        for name, column in value.items():
            columns.append([_to_typed(name), _to_typed(column.tolist()), str(column.dtype)])
        return {kind: columns}
    if kind == "polars.DataFrame":
        columns = []
        for column in value:
            columns.append([column.name, _to_typed(column.to_list()), str(column.dtype)])
        return {kind: columns}
    raise TypeError(f"a {type(value).__name__} has no JSON")


def _from_typed(data: Any) -> Any:
    """Inverse of `_to_typed`."""
    if not isinstance(data, dict):
        return data
    kind, content = next(iter(data.items()))
    if kind == "list":
        return [_from_typed(item) for item in content]
    if kind == "tuple":
        return tuple(_from_typed(item) for item in content)
    if kind == "dict":
        return {_from_typed(key): _from_typed(item) for key, item in content}
    if kind == "float":
        return float(content)
    if kind == "date":
        return datetime.date.fromisoformat(content)
    if kind == "cells":
        cells = np.empty(len(content), dtype=_checked_dtype(data["dtype"], _CELL_KINDS))
        cells[:] = [_from_typed(cell) for cell in content]
        return cells.reshape([int(size) for size in data["shape"]])
    if kind.startswith(("pandas.", "polars.")):
        return _restore_frame(kind, content, str(data.get("dtype")))
    return restore_input(data)


def _restore_frame(kind: str, content: Any, dtype: str) -> Any:
    """Returns a series or data frame of the library that `kind` names."""
    library: Any = importlib.import_module(kind.partition(".")[0])
    if kind == "pandas.Series":
        return library.Series(_from_typed(content), dtype=dtype)
    cells_of: dict[Any, Any] = {}
    dtype_of: dict[Any, str] = {}
    for stored_name, cells, column_dtype in content:
        name = _from_typed(stored_name)
        cells_of[name] = _from_typed(cells)
        dtype_of[name] = str(column_dtype)
    if kind == "pandas.DataFrame":
        columns = {}
        for name, cells in cells_of.items():
            columns[name] = library.Series(cells, dtype=dtype_of[name])
        return library.DataFrame(columns)
    schema = {}
    for name, column_dtype in dtype_of.items():
        schema[name] = getattr(library, column_dtype.partition("(")[0])
    return library.DataFrame(cells_of, schema=schema)
