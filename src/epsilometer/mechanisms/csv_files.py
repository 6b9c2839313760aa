"""Rows of .csv files: what is an empty cell, what is text, what is a number, and what is refused by its line.

Python's own reader cannot tell an empty cell from a quoted empty text (before 3.12), and skips blank lines, which are
empty cells where there is one column. This one reads the same rows otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from epsilometer.errors import InputError
from epsilometer.mechanisms.base import shown
from epsilometer.mechanisms.exchange import number_or_text

# Characters of a quoted cell: a quote that is never closed would otherwise take the rest of the file with it.
_LONGEST_CELL = 1 << 20
# Rows that are looked at to find out whether the first one is a header.
_LOOK = 1000

Cell = int | float | str | None
# The text of every cell; None where it is empty and not quoted.
Row = list[str | None]


def csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The number of the first line, and the cells, of every row. All rows have as many cells as the first.

    A blank line is an empty cell if there is one column; else it may only stand at the end of the file.
    """
    number, width, blank = 0, 0, 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = iter(file)
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
                    width = _checked_width(row, width, f"{path}, line {blank or number}", blank)
                yield number, row
                number += more
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {_undecodable(path)}: cannot be read as CSV: not text in UTF-8") from error


def _checked_width(row: Row, width: int, place: str, blank: int) -> int:
    if blank:
        raise InputError(f"{place}: a blank line, but the first row has {width} cells")
    if width and len(row) != width:
        raise InputError(f"{place}: {len(row)} cells, but the first row has {width}")
    return len(row)


def header_of(path: Path, header: bool | None) -> list[str] | None:
    """The names of the columns, None if the first row is an output already.

    Args:
        path: the file.
        header: whether there is one; None finds out: words above a column of numbers are, and so are the names of
            sides.
    """
    rows = [row for _, row in islice(csv_rows(path), _LOOK)]
    if not rows or header is False:
        return None
    names = ["" if cell is None else cell.strip() for cell in rows[0]]
    if header or "side" in names or {"left", "right"} <= set(names):
        return names
    are_words = all(isinstance(cell_value(cell), str) for cell in rows[0])
    return names if are_words and any(map(_is_numeric, zip(*rows[1:], strict=True))) else None


def _is_numeric(column: Iterable[str | None]) -> bool:
    """Whether there are numbers, and nothing else but empty cells."""
    kinds = {type(cell_value(cell)) for cell in column} - {type(None)}
    return bool(kinds) and kinds <= {int, float}


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
    """What stands between quotes; the line with the closing one, the position behind it, and how many lines later."""
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


def _undecodable(path: Path) -> int:
    """The first line that is not UTF-8."""
    with path.open("rb") as file:
        return next(number for number, raw in enumerate(file, 1) if raw.decode("utf-8", "ignore").encode() != raw)
