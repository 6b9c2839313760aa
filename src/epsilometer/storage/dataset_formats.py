"""Datasets as the content of a file, for programs that read one."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from epsilometer.errors import InputError, MissingExtraError, meant_or_known, short_repr
from epsilometer.storage.formats import is_frame, plain_data, to_json

# What may stand in one cell of a table.
_CELL_TYPES = (str, bool, int, float, type(None))
# The column of a parquet file whose records are single values.
_VALUE_COLUMN = "value"
# Kinds of arrays that a npy file holds without pickled objects: truth values, numbers and texts.
_NPY_KINDS = "biufcU"


def check_dataset_format(name: object) -> str:
    """Returns the name of a format, or raises an InputError that lists those that are known."""
    if name not in DATASET_FORMATS:
        raise InputError(
            f"dataset_format={name!r} is unknown{meant_or_known(name, DATASET_FORMATS)}"
        )
    return str(name)


def encode_dataset(dataset: Any, dataset_format: str) -> bytes:
    """Returns the content of a file that holds a dataset.

    Args:
        dataset: numbers, texts, lists, dicts, arrays or a data frame of pandas or polars.
        dataset_format: a name of `DATASET_FORMATS`.

    Raises:
        InputError: if this format cannot hold it without loss; the message names one that can.
        MissingExtraError: if the format needs a package that is not installed.
    """
    return DATASET_FORMATS[dataset_format](dataset)


def _encode_json(dataset: Any) -> bytes:
    return (to_json(dataset) + "\n").encode()


def _encode_jsonl(dataset: Any) -> bytes:
    lines = [to_json(record) + "\n" for record in _records(dataset, "jsonl")]
    return "".join(lines).encode()


def _encode_csv(dataset: Any) -> bytes:
    """Returns rows of cells: of dicts and data frames with a header, of other records without."""
    records = _records(dataset, "csv")
    header = _column_names(dataset, records)
    rows: list[list[Any]]
    if header is not None:
        rows = [header, *([record[name] for name in header] for record in records)]
    elif any(isinstance(record, list) for record in records):
        rows = records
    else:
        rows = [[record] for record in records]
    is_table = all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
    if not is_table or not all(isinstance(cell, _CELL_TYPES) for row in rows for cell in row):
        raise InputError(
            f"the input {short_repr(dataset)} cannot be written as csv, which holds rows of "
            "equally many numbers and texts; choose the format json"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def _encode_npy(dataset: Any) -> bytes:
    try:
        array = np.asarray(dataset.to_numpy() if is_frame(dataset) else dataset)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    # An array of texts and numbers would turn the numbers into texts.
    is_mixed = array.dtype.kind == "U" and not all(
        isinstance(text, str) for text in np.asarray(dataset, dtype=object).ravel()
    )
    if is_mixed or array.dtype.kind not in _NPY_KINDS:
        raise InputError(
            f"the input {short_repr(dataset)} cannot be written as npy, which holds arrays of "
            "numbers or of texts; choose the format json"
        )
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _encode_parquet(dataset: Any) -> bytes:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("pyarrow", "parquet", "writing a dataset as parquet")
    import pyarrow
    import pyarrow.parquet

    records = _records(dataset, "parquet")
    names = _column_names(dataset, records)
    try:
        if names is None:
            table = pyarrow.table({_VALUE_COLUMN: records})
        else:
            columns = {str(name): [record[name] for record in records] for name in names}
            table = pyarrow.table(columns)
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"the input {short_repr(dataset)} cannot be written as parquet ({error}); "
            "choose the format json"
        ) from error
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


DATASET_FORMATS: dict[str, Callable[[Any], bytes]] = {
    "json": _encode_json,
    "jsonl": _encode_jsonl,
    "csv": _encode_csv,
    "npy": _encode_npy,
    "parquet": _encode_parquet,
}


def _records(dataset: Any, dataset_format: str) -> list[Any]:
    """Returns the records of a dataset, in plain Python; refuses what has none."""
    records = plain_data(dataset)
    if not isinstance(records, list):
        raise InputError(
            f"the input {short_repr(dataset)} has no records to be written as {dataset_format}: "
            "give a list, an array or a data frame, or choose the format json"
        )
    return records


def _column_names(dataset: Any, records: list[Any]) -> list[Any] | None:
    """Returns the columns of a data frame or of dicts with equal keys; None if there are none."""
    if is_frame(dataset) and hasattr(dataset, "columns"):
        return list(dataset.columns)
    are_rows = bool(records) and all(
        isinstance(record, Mapping) and record.keys() == records[0].keys() for record in records
    )
    return list(records[0]) if are_rows else None


def _cell(value: Any) -> Any:
    """Returns a value as a cell of a csv file has it: a missing one is empty, true is a word."""
    if isinstance(value, bool):
        return json.dumps(value)
    return repr(value) if isinstance(value, float) else value
