"""Outputs in .jsonl, .json and .csv files, read in pieces; an error names the line at fault."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from epsilometer.errors import InputError, short_repr
from epsilometer.storage.csv_parsing import Row, csv_rows, header_of
from epsilometer.storage.formats import check_readable, settle, settled_texts
from epsilometer.storage.text_lines import count_lines, text_lines

__all__ = [
    "SIDES",
    "CsvRows",
    "JsonLines",
    "JsonList",
    "ends_with_empty",
    "has_side",
    "json_values",
    "must_have",
]

T = TypeVar("T")
SIDES = ("left", "right")
# Lines per piece: large enough that reading is fast, small enough not to matter in memory.
_LINES_PER_PIECE = 1 << 14


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A .jsonl file with an output per line.

    With a side, every line is an object {"side": "left", "output": …}.

    Attributes:
        path: the file.
        side: whose outputs are read; None if lines have no side.
        columns: the entries of an object that make an output; all if none is named.
    """

    path: Path
    side: str | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """Returns the number of lines, which is at least the number of outputs."""
        return count_lines(self.path)

    def pieces(self) -> Iterator[list[Any]]:
        """Returns lists of outputs, in order."""
        return _in_pieces(self._outputs())

    def _outputs(self) -> Iterator[Any]:
        for number, value in json_values(self.path):
            place = f"{self.path}, line {number}"
            if self.side is None:
                yield settle(_select(value, self.columns, place))
                continue
            if not has_side(value) or value["side"] not in SIDES:
                raise InputError(
                    f"{place}: {short_repr(value)} must be "
                    f'{{"side": "left" or "right", "output": …}}'
                )
            # The columns of the other side are checked as well.
            output = _select(value["output"], self.columns, place)
            if value["side"] == self.side:
                yield settle(output)


@dataclass(frozen=True, slots=True)
class JsonList:
    """A .json file that holds a list of outputs. It is read as a whole.

    Attributes:
        path: the file.
        columns: the entries of an object that make an output; all if none is named.
    """

    path: Path
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    def count(self) -> int:
        """Returns the length of the list."""
        return len(self._values())

    def pieces(self) -> Iterator[list[Any]]:
        """Returns lists of outputs, in order."""
        return _in_pieces(self._outputs())

    def _outputs(self) -> Iterator[Any]:
        for number, value in enumerate(self._values(), 1):
            yield settle(_select(value, self.columns, f"{self.path}, entry {number}"))

    def _values(self) -> list[Any]:
        try:
            values = _decode_json(check_readable(self.path).read_text(encoding="utf-8-sig"))
        except _RepeatedKey as error:
            raise InputError(f"{self.path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path} is not JSON: {error}") from error
        if not isinstance(values, list):
            raise InputError(
                f"{self.path} must hold a JSON list with one output per entry, not "
                f"{short_repr(values)}"
            )
        return values


def _select(value: Any, columns: Sequence[str], place: str) -> Any:
    """Returns the requested entries of an object; the value of the entry if there is only one."""
    if not columns:
        return value
    if not isinstance(value, dict):
        raise InputError(
            f"{place}: {short_repr(value)} has no columns, of which {', '.join(columns)} were "
            "asked for"
        )
    must_have(place, columns, list(value))
    if len(columns) == 1:
        return value[columns[0]]
    return {name: value[name] for name in columns}


def must_have(place: object, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuses the name of a column that a file lacks or has twice.

    Args:
        place: for errors.
        wanted: the names of the requested columns.
        there: the names of the columns of the file.
    """
    for name in wanted:
        if there.count(name) != 1:
            lack = "two columns called" if name in there else "no column"
            raise InputError(
                f"{place} has {lack} {short_repr(name)}; it has {short_repr(', '.join(there))}"
            )


def has_side(value: Any) -> bool:
    """Whether a line says which side its output belongs to."""
    return isinstance(value, dict) and set(value) == {"side", "output"}


def json_values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the number, counted from 1, and the value of every line."""
    for number, line in text_lines(path):
        try:
            value = _decode_json(line)
        except _RepeatedKey as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON: {short_repr(line)}") from error
        yield number, value


class _RepeatedKey(Exception):
    """A key occurs twice in an object, where Python would drop the first value."""


def _dict_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the entries of a JSON object as a dict; refuses a key that occurs twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedKey(f"the key {short_repr(repeated)} occurs twice in one object")
    return entries


# Made once: json.loads would make a decoder for every line.
_decode_json = json.JSONDecoder(object_pairs_hook=_dict_without_repeats).decode


@dataclass(frozen=True, slots=True)
class CsvRows:
    """A .csv file with an output per row. An empty cell is the missing value, a quoted "" is text.

    Attributes:
        path: the file.
        header: whether the first row names the columns; None detects it: words above numbers do.
        side: with a column `side`, which rows are kept; with the columns `left` and `right`, which
            of them is read.
        columns: those that make an output; all of them if none is named.
    """

    path: Path
    header: bool | None = None
    side: str | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """Returns the number of lines below the header, at least the number of outputs."""
        n_lines = count_lines(self.path)
        has_header = header_of(self.path, self.header) is not None
        return n_lines - 1 if has_header else n_lines

    def pieces(self) -> Iterator[list[Any] | dict[str, Any]]:
        """Yields pieces of the file, in order.

        An output is the cell itself if there is one column, else a tuple. Of named columns, a piece
        is a dict of columns.
        """
        rows = self._rows()
        first_row: Row = next(rows, [])
        width = len(first_row)
        positions = self._positions() if self.columns else range(width)
        # The cells of many rows in one list: lists of lists would keep the garbage collector busy.
        all_cells = chain(first_row, chain.from_iterable(rows))
        for cells in _in_pieces(all_cells, width):
            columns = [settled_texts(cells[position::width]) for position in positions]
            if len(columns) == 1:
                yield columns[0]
            elif self.columns:
                yield dict(zip(self.columns, columns, strict=True))
            else:
                yield list(zip(*columns, strict=True))

    def _positions(self) -> list[int]:
        """Returns the positions of the requested columns in the rows of `_rows`."""
        names = header_of(self.path, self.header) or []
        if self.side is not None:
            names = [name for name in names if name != "side"]
        must_have(self.path, self.columns, names)
        return [names.index(name) for name in self.columns]

    def _rows(self) -> Iterator[Row]:
        """Returns the rows of the requested side, without the header and the column `side`."""
        names = header_of(self.path, self.header)
        n_header_rows = 0 if names is None else 1
        rows = islice(csv_rows(self.path), n_header_rows, None)
        if self.side is None or names is None:
            return map(itemgetter(1), rows)
        if "side" in names:
            return self._rows_of_side(rows, names.index("side"))
        other_side = "right" if self.side == "left" else "left"
        return self._column_of_side(rows, names.index(self.side), names.index(other_side))

    def _rows_of_side(self, rows: Iterable[tuple[int, Row]], position: int) -> Iterator[Row]:
        """Yields the rows of the requested side, without the column `side` at this position."""
        for number, row in rows:
            if row[position] not in SIDES:
                raise InputError(
                    f"{self.path}, line {number}: side is {short_repr(row[position])}, not left "
                    "or right"
                )
            if row[position] == self.side:
                yield row[:position] + row[position + 1 :]

    def _column_of_side(
        self, rows: Iterable[tuple[int, Row]], position: int, other_position: int
    ) -> Iterator[Row]:
        """Yields the cells of one of two columns, of which the shorter ends with empty cells.

        Args:
            rows: with the numbers of their lines.
            position: of the requested column.
            other_position: of the column of the other side.
        """
        # Empty cells since the last output. The next cells show whether these outputs are missing
        # or the column has ended.
        n_undecided = 0
        first_undecided_line = 0
        has_missing = False
        has_outputs = False
        for number, row in rows:
            cell = row[position]
            if cell is None and row[other_position] is not None:
                if n_undecided == 0:
                    first_undecided_line = number
                n_undecided += 1
                continue
            if n_undecided > 0 or cell is None:
                has_missing = True
            for _ in range(n_undecided):
                yield [None]
            yield [cell]
            n_undecided = 0
            has_outputs = True
        is_unclear = has_missing or not has_outputs
        if n_undecided > 0 and is_unclear:
            message = ends_with_empty(str(self.side))
            raise InputError(f"{self.path}, line {first_undecided_line}: {message}")


def ends_with_empty(name: str) -> str:
    """Returns why a column is refused that may have ended, or may lack outputs."""
    return (
        f"the column {name} is empty from here on, and has other empty cells or no others: "
        "it is unclear whether it ends here or whether outputs are missing; "
        "use a column side, or a file for each side"
    )


def _in_pieces(values: Iterable[T], width: int = 1) -> Iterator[list[T]]:
    """Yields lists of some thousand times `width` values."""
    iterator = iter(values)
    while piece := list(islice(iterator, _LINES_PER_PIECE * width)):
        yield piece
