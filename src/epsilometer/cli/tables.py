"""CSV files as columns of numbers and words."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.errors import InputError

Cell = float | int | str


@dataclass(frozen=True, slots=True)
class CsvTable:
    """What a CSV file holds.

    Attributes:
        names: the header, None if there is none.
        columns: of equal length; a cell that reads as a number is one.
    """

    names: list[str] | None
    columns: list[list[Cell]]

    def rows(self) -> list[Any]:
        """One value per row: the cell itself if there is one column, else a list."""
        if len(self.columns) == 1:
            return list(self.columns[0])
        return [list(row) for row in zip(*self.columns, strict=True)]

    def outputs(self) -> Any:
        """One output per row, as an array where all cells are numbers, shape (n,) or (n, columns).

        Every number is a float: whether all of a side happen to be whole must not tell the sides apart.
        """
        columns = [[float(cell) if isinstance(cell, int) else cell for cell in column] for column in self.columns]
        if any(isinstance(cell, str) for column in columns for cell in column):
            return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        arrays = [np.array(column, dtype=np.float64) for column in columns]
        return arrays[0] if len(arrays) == 1 else np.column_stack(arrays)


def read_csv(path: Path, header: bool | None = None) -> CsvTable:
    """Reads a CSV file; ragged rows are refused with their line.

    Args:
        path: the file, in UTF-8.
        header: whether the first row names the columns; None finds out: a word above a column of numbers does.
    """
    rows: list[list[str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in filter(None, reader):
                if rows and len(row) != len(rows[0]):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} cells, but the first row has {len(rows[0])}"
                    )
                rows.append(row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as CSV: {error}") from error
    if not rows:
        raise InputError(f"{path} is empty")
    columns = [[_cell(text) for text in column] for column in zip(*rows, strict=True)]
    if _has_header(columns) if header is None else header:
        return CsvTable(rows[0], [column[1:] for column in columns])
    return CsvTable(None, columns)


def _has_header(columns: list[list[Cell]]) -> bool:
    return any(
        isinstance(column[0], str) and len(column) > 1 and not any(isinstance(cell, str) for cell in column[1:])
        for column in columns
    )


def _cell(text: str) -> Cell:
    """A number if it reads as one, NaN and infinities included; "1_000" does not."""
    try:
        return text if "_" in text else int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
