"""Outputs in .jsonl, .json and .csv files, read in pieces; an error names the line that cannot be read."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, AnyStr, TypeVar

from epsilometer.errors import InputError, shown
from epsilometer.storage.exchange import check_readable, memory_share, number_or_text, settle, settled_texts

# Characters of a quoted cell: a quote that is never closed would otherwise swallow the rest of the file.
_LONGEST_CELL = 1 << 20
# Rows that are looked at to find out whether the first one is a header.
_LOOK = 1000
# Characters of a row; a file without ends of lines would otherwise fill the memory.
_LONGEST_ROW = 1 << 27

Cell = int | float | str | None
# The text of every cell; None where it is empty and not quoted.
Row = list[str | None]


def _limited(lines: IO[AnyStr], path: Path, most: int) -> Iterator[AnyStr]:
    """The lines of a file, and an error before one fills the memory."""
    if path.stat().st_size <= min(most, _LONGEST_ROW):  # nearly all files; reading line by line is slower
        yield from lines
        return
    start = lines.read(1 << 16)
    if ("\0" if isinstance(start, str) else b"\0") in start:
        raise InputError(f"{path} is not text: it holds zero bytes")
    lines.seek(0)
    while line := lines.readline(most):
        if len(line) == most:
            raise InputError(f"{path} has a line of {most} characters or more, beginning with {shown(line[:60])}")
        yield line


def csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The number of the first line, and the cells, of every row. All rows have as many cells as the first.

    A blank line is an empty cell if there is one column; else blank lines are allowed only at the end of the file.
    """
    number, width, blank = 0, 0, 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _limited(file, path, _LONGEST_ROW)
            for line in lines:
                number += 1
                if '"' in line:
                    row, more = _quoted_row(line, lines, f"{path}, line {number}")
                else:  # nearly all rows of most files
                    row, more = line.rstrip("\r\n").split(","), 0  # type: ignore[assignment]  # a list of texts
                    if "" in row:
                        row = [cell or None for cell in row]
                if len(row) != width or blank:
                    blank = blank or (number if width > 1 and row == [None] else 0)
                    if blank and row == [None]:
                        continue
                    if blank:
                        raise InputError(f"{path}, line {blank}: a blank line, but the first row has {width} cells")
                    if width:
                        raise InputError(f"{path}, line {number}: {len(row)} cells, but the first row has {width}")
                    width = len(row)
                yield number, row
                number += more
    except UnicodeDecodeError as error:
        with path.open("rb") as raw:
            at = next(place for place, line in enumerate(raw, 1) if line.decode("utf-8", "ignore").encode() != line)
        raise InputError(f"{path}, line {at}: cannot be read as CSV: not text in UTF-8") from error


def header_of(path: Path, header: bool | None) -> list[str] | None:
    """The names of the columns, None if the first row is already an output.

    Args:
        path: the file.
        header: whether there is one; None detects it: words above a column of numbers are a header, and so are the
            names of sides.
    """
    rows = [row for _, row in islice(csv_rows(path), _LOOK)]
    if not rows or header is False:
        return None
    names = ["" if cell is None else cell.strip() for cell in rows[0]]
    if header or "side" in names or {"left", "right"} <= set(names):
        return names
    are_words = all(isinstance(cell_value(cell), str) for cell in rows[0])
    kinds = [{type(cell_value(cell)) for cell in column} - {type(None)} for column in zip(*rows[1:], strict=True)]
    # Of numbers, and nothing else but empty cells.
    return names if are_words and any(each and each <= {int, float} for each in kinds) else None


def cell_value(text: str | None) -> Cell:
    """The missing value for an empty cell, else a number if it reads as one, else the text.

    A number may be quoted, since many programs quote everything.
    """
    return None if text is None else number_or_text(text)


def _quoted_row(text: str, lines: Iterator[str], place: str) -> tuple[Row, int]:
    """A row with quotes, and how many lines it takes beyond the first."""
    row: Row = []
    position, n_lines = 0, 0
    while True:
        if text.startswith('"', position):
            cell, text, position, more = _quoted_cell(text, position + 1, lines, place)
            n_lines += more
            stop = _end_of_cell(text, position)
            row.append(cell + text[position:stop])
        else:
            stop = _end_of_cell(text, position)
            row.append(text[position:stop] or None)
        if not text.startswith(",", stop):
            return row, n_lines
        position = stop + 1


def _quoted_cell(text: str, position: int, lines: Iterator[str], place: str) -> tuple[str, str, int, int]:
    """The text between quotes; the line of the closing one, the position after it, and how many lines later."""
    parts: list[str] = []
    n_lines, length = 0, 0
    while True:
        end = text.find('"', position)
        if end < 0:
            parts.append(text[position:])
            length += len(text)
            text, position, n_lines = next(lines, ""), 0, n_lines + 1
            if not text or length > _LONGEST_CELL:
                raise InputError(f"{place}: a quote is opened and not closed: {shown(''.join(parts))}")
            continue
        parts.append(text[position:end])
        position = end + 1
        if not text.startswith('"', position):
            return "".join(parts), text, position, n_lines
        parts.append('"')
        position += 1


def _end_of_cell(text: str, position: int) -> int:
    comma = text.find(",", position)
    return len(text.rstrip("\r\n")) if comma < 0 else comma


T = TypeVar("T")
# Lines per piece.
_PIECE = 1 << 14
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A .jsonl file: an output per line; or, with a side, objects {"side": "left", "output": …}."""

    path: Path
    side: str | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """How many lines there are, which is at least the number of outputs."""
        return count_lines(self.path)

    def pieces(self) -> Iterator[list[Any]]:
        """Lists of outputs, in order."""
        values = (self._value(number, value) for number, value in json_values(self.path))
        return in_pieces(value for kept, value in values if kept)

    def _value(self, number: int, value: Any) -> tuple[bool, Any]:
        place = f"{self.path}, line {number}"
        if self.side is None:
            return True, settle(_picked(value, self.columns, place))
        if not has_side(value) or value["side"] not in SIDES:
            raise InputError(f'{place}: {shown(value)} must be {{"side": "left" or "right", "output": …}}')
        return value["side"] == self.side, settle(_picked(value["output"], self.columns, place))


def _picked(value: Any, columns: Sequence[str], place: str) -> Any:
    """The entries of an object that were asked for; a single one by itself."""
    if not columns:
        return value
    if not isinstance(value, dict):
        raise InputError(f"{place}: {shown(value)} has no columns, of which {', '.join(columns)} were asked for")
    must_have(place, columns, list(value))
    return value[columns[0]] if len(columns) == 1 else {name: value[name] for name in columns}


def must_have(place: object, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuses the name of a column that a file lacks, or of two columns, and says which it has."""
    for name in wanted:
        if there.count(name) != 1:
            lack = "two columns called" if name in there else "no column"
            raise InputError(f"{place} has {lack} {shown(name)}; it has {shown(', '.join(there))}")


def has_side(value: Any) -> bool:
    """Whether a line says which side its output belongs to."""
    return isinstance(value, dict) and set(value) == {"side", "output"}


def json_values(path: Path) -> Iterator[tuple[int, Any]]:
    """The number and the value of every line."""
    for number, line in text_lines(path):
        try:
            yield number, _read_json(line)
        except _KeyTwice as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not JSON: {shown(line)}") from error


class _KeyTwice(Exception):
    """A key occurs twice in an object, where JSON would lose the first value."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _KeyTwice(f"the key {shown(twice)} occurs twice in one object")
    return found


_read_json = json.JSONDecoder(object_pairs_hook=_unique).decode  # made once: json.loads would make one per line


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the text of every line; blank ones are allowed only at the end of the file."""
    blank = 0
    with path.open("rb") as file:
        for number, raw in enumerate(_limited(file, path, memory_share()), 1):
            if not raw.strip():
                blank = blank or number
                continue
            if blank:
                raise InputError(f"{path}, line {blank}: a blank line is not an output; write null for a missing one")
            try:
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InputError(f"{path}, line {number}: not text in UTF-8: {shown(raw)}") from error


@dataclass(frozen=True, slots=True)
class JsonList:
    """A .json file that holds a list of outputs. It is read as a whole."""

    path: Path
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    def count(self) -> int:
        """The length of the list."""
        return len(self._values())

    def pieces(self) -> Iterator[list[Any]]:
        """Lists of outputs, in order."""
        values = ((f"{self.path}, entry {number}", value) for number, value in enumerate(self._values(), 1))
        return in_pieces(settle(_picked(value, self.columns, place)) for place, value in values)

    def _values(self) -> list[Any]:
        try:
            values = _read_json(check_readable(self.path).read_text(encoding="utf-8-sig"))
        except _KeyTwice as error:
            raise InputError(f"{self.path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path} is not JSON: {error}") from error
        if not isinstance(values, list):
            raise InputError(f"{self.path} must hold a JSON list with one output per entry, not {shown(values)}")
        return values


@dataclass(frozen=True, slots=True)
class CsvRows:
    """A .csv file: an output per row. An empty cell is the missing value, a quoted "" is text.

    Attributes:
        path: the file.
        header: whether the first row names the columns; None detects it: words above numbers do.
        side: with a column `side`, which rows are kept; with the columns `left` and `right`, which of them is read.
        columns: those that make an output; all of them if none is named.
    """

    path: Path
    header: bool | None = None
    side: str | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} ({self.side})" if self.side else str(self.path)

    def count(self) -> int:
        """How many lines there are below the header, which is at least the number of outputs."""
        return count_lines(self.path) - (header_of(self.path, self.header) is not None)

    def pieces(self) -> Iterator[list[Any] | dict[str, Any]]:
        """Outputs, in order: the cell itself if there is one column, else a tuple; a dict of chosen columns."""
        rows = self._rows()
        first: Row = next(rows, [])
        places = self._places() if self.columns else range(len(first))
        # The cells of many rows in one list: lists of lists would keep the garbage collector busy.
        for cells in in_pieces(chain(first, chain.from_iterable(rows)), len(first)):
            columns = [settled_texts(cells[place :: len(first)]) for place in places]
            if len(columns) == 1:
                yield columns[0]
            elif self.columns:
                yield dict(zip(self.columns, columns, strict=True))
            else:
                yield list(zip(*columns, strict=True))

    def _places(self) -> list[int]:
        names = [name for name in header_of(self.path, self.header) or () if self.side is None or name != "side"]
        must_have(self.path, self.columns, names)
        return [names.index(name) for name in self.columns]

    def _rows(self) -> Iterator[Row]:
        names = header_of(self.path, self.header)
        rows = islice(csv_rows(self.path), 0 if names is None else 1, None)
        if self.side is None or names is None:
            return map(itemgetter(1), rows)
        if "side" in names:
            return self._rows_of_side(rows, names.index("side"))
        here, beside = names.index(self.side), names.index("right" if self.side == "left" else "left")
        return self._column_of_side((number, row[here], row[beside]) for number, row in rows)

    def _rows_of_side(self, rows: Iterable[tuple[int, Row]], place: int) -> Iterator[Row]:
        for number, row in rows:
            if row[place] not in SIDES:
                raise InputError(f"{self.path}, line {number}: side is {shown(row[place])}, not left or right")
            if row[place] == self.side:
                yield row[:place] + row[place + 1 :]

    def _column_of_side(self, cells: Iterable[tuple[int, str | None, str | None]]) -> Iterator[Row]:
        """The cells of one of two columns, of which the shorter ends with empty cells."""
        first, n_empty, gaps, there = 0, 0, False, False
        for number, cell, beside in cells:
            if cell is None and beside is not None:  # missing, or beyond the end: the next cells show which
                first, n_empty = first or number, n_empty + 1
                continue
            gaps = gaps or n_empty > 0 or cell is None
            for _ in range(n_empty):
                yield [None]
            yield [cell]
            first, n_empty, there = 0, 0, True
        if n_empty and (gaps or not there):
            raise InputError(f"{self.path}, line {first}: {ends_with_empty(str(self.side))}")


def ends_with_empty(name: str) -> str:
    """Why a column that may be shorter than its neighbour, or hold missing outputs, is not read."""
    why = "whether it ends here or whether outputs are missing; use a column side, or a file for each side"
    return f"the column {name} is empty from here on, and has other empty cells or no others: it is unclear {why}"


def count_lines(path: Path) -> int:
    """Lines, blank ones included, with any kind of line end."""
    ends, returns, last = 0, 0, b"\n"
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            ends, returns, last = ends + piece.count(b"\n"), returns + piece.count(b"\r"), piece[-1:]
    return (ends or returns) + (last not in b"\r\n")


def in_pieces(values: Iterable[T], width: int = 1) -> Iterator[list[T]]:
    """Lists of some thousand times `width` values."""
    iterator = iter(values)
    while piece := list(islice(iterator, _PIECE * width)):
        yield piece
