"""Outputs in .jsonl, .json and .csv files, read in pieces; what cannot be read is refused by its line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from epsilometer.errors import InputError
from epsilometer.mechanisms.base import shown
from epsilometer.mechanisms.exchange import settle

T = TypeVar("T")
# Lines per piece.
_PIECE = 1 << 14
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A .jsonl file: an output per line; or, with a side, objects {"side": "left", "output": …}."""

    path: Path
    side: str | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """Lines that are not blank, at least as many as outputs."""
        return count_lines(self.path)

    def pieces(self) -> Iterator[list[Any]]:
        """Lists of outputs, in order."""
        values = (self._value(number, value) for number, value in json_values(self.path))
        return in_pieces(value for kept, value in values if kept)

    def _value(self, number: int, value: Any) -> tuple[bool, Any]:
        if self.side is None:
            return True, settle(value)
        if not has_side(value) or value["side"] not in SIDES:
            raise InputError(
                f'{self.path}, line {number}: {shown(value)} must be {{"side": "left" or "right", "output": …}}'
            )
        return value["side"] == self.side, settle(value["output"])


def has_side(value: Any) -> bool:
    """Whether a line says to which side its output belongs."""
    return isinstance(value, dict) and set(value) == {"side", "output"}


def json_values(path: Path) -> Iterator[tuple[int, Any]]:
    """The number and the value of every line that is not blank."""
    for number, line in text_lines(path):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON: {shown(line)}") from error


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the text of every line that is not blank."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.strip():
                try:
                    yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError as error:
                    raise InputError(f"{path}, line {number}: not text in UTF-8: {shown(raw)}") from error


@dataclass(frozen=True, slots=True)
class JsonList:
    """A .json file that holds a list of outputs. It is read as a whole."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def count(self) -> int:
        """The length of the list."""
        return len(self._values())

    def pieces(self) -> Iterator[list[Any]]:
        """Lists of outputs, in order."""
        return in_pieces(settle(value) for value in self._values())

    def _values(self) -> list[Any]:
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path} is not JSON: {error}") from error
        if not isinstance(values, list):
            raise InputError(f"{self.path} must hold a JSON list with one output per entry, not {shown(values)}")
        return values


@dataclass(frozen=True, slots=True)
class CsvRows:
    """A .csv file: an output per row.

    Attributes:
        path: the file.
        header: whether the first row names the columns; None finds out: words above a number do.
        side: with a column `side`, which rows are kept; with the columns `left` and `right`, which of them is read.
    """

    path: Path
    header: bool | None = None
    side: str | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """Lines that are not blank, at least as many as outputs."""
        return count_lines(self.path)

    def pieces(self) -> Iterator[list[Any]]:
        """Lists of outputs, in order: the cell itself if there is one column, else a tuple."""
        if self.side is None:
            return in_pieces(_output(row) for _, row in self._rows())
        return in_pieces(self._of_side())

    def names(self) -> list[str] | None:
        """The header, if there is one."""
        rows = [row for _, row in islice(csv_rows(self.path), 2)]
        if not rows or self.header is False:
            return None
        names = [cell.strip() for cell in rows[0]]
        if self.header or "side" in names or {"left", "right"} <= set(names):
            return names
        kinds = [[isinstance(_cell(cell), str) for cell in row] for row in rows]
        return names if all(kinds[0]) and not all(kinds[-1]) else None

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        return islice(csv_rows(self.path), 1 if self.names() is not None else 0, None)

    def _of_side(self) -> Iterator[Any]:
        names = self.names() or []
        if "side" not in names:
            place = names.index(str(self.side))
            # The shorter of two columns ends with empty cells.
            return (_cell(row[place]) for _, row in self._rows() if row[place])
        return self._rows_of_side(names.index("side"))

    def _rows_of_side(self, place: int) -> Iterator[Any]:
        for number, row in self._rows():
            if row[place] not in SIDES:
                raise InputError(f"{self.path}, line {number}: side is {shown(row[place])}, not left or right")
            if row[place] == self.side:
                yield _output(row[:place] + row[place + 1 :])


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line and the cells of every row; a row of another length than the first is refused."""
    width = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in filter(None, reader):
                if width and len(row) != width:
                    raise InputError(f"{path}, line {reader.line_num}: {len(row)} cells, but the first row has {width}")
                width = len(row)
                yield reader.line_num, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as CSV: {error}") from error


def count_lines(path: Path) -> int:
    """Lines that are not blank."""
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def in_pieces(values: Iterable[T]) -> Iterator[list[T]]:
    """Lists of some thousand values."""
    iterator = iter(values)
    while piece := list(islice(iterator, _PIECE)):
        yield piece


def _output(row: list[str]) -> Any:
    return _cell(row[0]) if len(row) == 1 else tuple(map(_cell, row))


def _cell(text: str) -> float | str:
    """A number if it reads as one, NaN and infinities included; "1_000" does not."""
    try:
        return text if "_" in text else float(text)
    except ValueError:
        return text
