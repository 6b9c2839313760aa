"""Reads files of membership scores: one row per canary, with its score and whether it was in."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans, Floats
from epsilometer.claims.base import float_holds
from epsilometer.errors import InputError, short_repr
from epsilometer.storage.csv_parsing import cell_value, csv_rows
from epsilometer.storage.formats import check_readable, reading, regular_file
from epsilometer.storage.recorded_arrays import ArrayFile, members, parquet_names
from epsilometer.storage.recorded_texts import json_values, must_have

# How membership may be written. Numbers are compared as such, texts without regard to case.
_WORDS = {"1": True, "true": True, "in": True, "0": False, "false": False, "out": False}
_ALLOWED_WORDS = "0/1, true/false or in/out"
# Rows that an error names before it counts the others.
_MOST_NAMED_ROWS = 5


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The rows of a file of scores.

    Attributes:
        scores: shape (n,); infinite ones are allowed, NaN is not.
        included: shape (n,), whether each canary was in the training set.
        ids: what the rows are called; None if no column was named.
    """

    scores: Floats
    included: Booleans
    ids: tuple[Hashable, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a file, as they are there.

    Attributes:
        path: the file.
        values: by the name of the column; missing values are None.
        rows: what each row is called in errors: its line of a text, or its number.
        unit: "line" or "row".
    """

    path: Path
    values: dict[str, Sequence[Any]]
    rows: Sequence[int]
    unit: str


def read_score_table(
    path: str | Path, *, score: str, member: str, id_column: str | None = None
) -> ScoreTable:
    """Reads a file whose name ends in .csv, .jsonl, .parquet or .npz.

    Args:
        path: the file. A csv file has a header; the arrays of a npz file are its columns.
        score: the column of the scores.
        member: the column that says whether a canary was in: 0/1, true/false or in/out.
        id_column: the column of the ids, each of which may occur only once.

    Raises:
        InputError: in one line, with the columns that are there or the rows that are wrong.
    """
    file = regular_file(Path(path))
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError(f"{file}: the name must end in {', '.join(_READERS)}")
    names = [score, member] if id_column is None else [score, member, id_column]
    columns = reader(check_readable(file), list(dict.fromkeys(names)))
    if not len(columns.rows):
        raise InputError(f"{file} has no rows")
    table = ScoreTable(
        scores=_scores(columns, score),
        included=_membership(columns, member),
        ids=None if id_column is None else _ids(columns, id_column),
    )
    for is_in, word in ((True, "in"), (False, "out")):
        if not np.any(table.included == is_in):
            raise InputError(f"{file}: no row of the column {short_repr(member)} says {word}")
    return table


# --- The formats ---


def _read_csv(path: Path, names: list[str]) -> _Columns:
    rows = csv_rows(path)
    _, first = next(rows, (0, None))
    if first is None:
        raise InputError(f"{path} is empty")
    header = ["" if cell is None else cell.strip() for cell in first]
    must_have(path, names, header)
    places = [header.index(name) for name in names]
    lines: list[int] = []
    values: list[list[Any]] = [[] for _ in names]
    for line, row in rows:
        lines.append(line)
        for place, column in zip(places, values, strict=True):
            column.append(cell_value(row[place]))
    return _Columns(path, dict(zip(names, values, strict=True)), lines, "line")


def _read_jsonl(path: Path, names: list[str]) -> _Columns:
    lines: list[int] = []
    values: dict[str, list[Any]] = {name: [] for name in names}
    there: dict[str, None] = {}
    for line, entry in json_values(path):
        if not isinstance(entry, dict):
            raise InputError(
                f"{path}, line {line}: {short_repr(entry)} must be an object with the columns "
                f"{', '.join(names)}"
            )
        there.update(dict.fromkeys(entry))
        lines.append(line)
        for name, column in values.items():
            column.append(entry.get(name))
    if lines:
        must_have(path, names, list(there))
    return _Columns(path, dict(values), lines, "line")


def _read_parquet(path: Path, names: list[str]) -> _Columns:
    must_have(path, names, parquet_names(path))
    import pyarrow.parquet

    with reading(f"{path} cannot be read as parquet"):
        table = pyarrow.parquet.read_table(path, columns=names)
        values = {name: table.column(name).to_pylist() for name in names}
    return _Columns(path, dict(values), range(1, table.num_rows + 1), "row")


def _read_npz(path: Path, names: list[str]) -> _Columns:
    must_have(path, names, members(path))
    arrays = {name: ArrayFile(path, name).read() for name in names}
    for name, array in arrays.items():
        if array.ndim != 1:
            raise InputError(f"{path}:{name} has shape {array.shape}: it must be one-dimensional")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{path}: the columns must be equally long, but {sizes}")
    n_rows = next(iter(lengths.values()))
    values = {name: array.tolist() for name, array in arrays.items()}
    return _Columns(path, dict(values), range(1, n_rows + 1), "row")


_READERS: dict[str, Callable[[Path, list[str]], _Columns]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}


# --- The columns ---


def _scores(columns: _Columns, name: str) -> Floats:
    values = columns.values[name]
    _refuse_missing(columns, name, "a missing score is no evidence")
    for row, value in zip(columns.rows, values, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{columns.path}, {columns.unit} {row}: {name} is {short_repr(value)}, "
                "but scores must be numbers"
            )
        if isinstance(value, int) and not float_holds(value):
            raise InputError(
                f"{columns.path}, {columns.unit} {row}: {name} is {short_repr(value)}, which no "
                "float holds exactly, so that scores that differ would count as equal; subtract "
                "what all have in common, or give their ranks"
            )
    return np.array(values, dtype=np.float64)


def _membership(columns: _Columns, name: str) -> Booleans:
    _refuse_missing(columns, name, "say for every row whether it was in")
    included = []
    for row, value in zip(columns.rows, columns.values[name], strict=True):
        is_in = _as_membership(value)
        if is_in is None:
            raise InputError(
                f"{columns.path}, {columns.unit} {row}: {name} is {short_repr(value)}, "
                f"but membership must be {_ALLOWED_WORDS}"
            )
        included.append(is_in)
    return np.array(included, dtype=np.bool_)


def _as_membership(value: object) -> bool | None:
    """Whether a word means "in"; None if it is unknown."""
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    return None


def _ids(columns: _Columns, name: str) -> tuple[Hashable, ...]:
    _refuse_missing(columns, name, "give every row an id")
    first_rows: dict[Hashable, int] = {}
    for row, value in zip(columns.rows, columns.values[name], strict=True):
        # Lists and objects of a jsonl file cannot be compared quickly; nobody means them.
        if not isinstance(value, str | int | float):
            raise InputError(
                f"{columns.path}, {columns.unit} {row}: {name} is {short_repr(value)}, "
                "but ids must be texts or numbers"
            )
        first = first_rows.setdefault(value, row)
        if first != row:
            raise InputError(
                f"{columns.path}: the {name} {short_repr(value)} occurs in {columns.unit}s "
                f"{first} and {row}, but every id must occur once"
            )
    return tuple(columns.values[name])


def _refuse_missing(columns: _Columns, name: str, advice: str) -> None:
    """Raises an InputError that names the rows in which a column is empty or NaN."""
    missing = [
        row
        for row, value in zip(columns.rows, columns.values[name], strict=True)
        if value is None or (isinstance(value, float) and math.isnan(value))
    ]
    if not missing:
        return
    named = ", ".join(str(row) for row in missing[:_MOST_NAMED_ROWS])
    n_more = len(missing) - _MOST_NAMED_ROWS
    more = f" and {n_more} more" if n_more > 0 else ""
    unit = columns.unit if len(missing) == 1 else f"{columns.unit}s"
    raise InputError(f"{columns.path}: {name} is missing or NaN in {unit} {named}{more}; {advice}")
