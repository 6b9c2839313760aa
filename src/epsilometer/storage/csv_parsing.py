"""Reads .csv files row by row; an error names the line that cannot be read.

The csv module of Python does not distinguish an empty cell, which is a missing value, from a quoted
"", which is an empty text. So rows are parsed here.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from epsilometer.errors import InputError, short_repr
from epsilometer.storage.formats import number_or_text
from epsilometer.storage.text_lines import MAX_LINE_LENGTH, limited_lines

# The greatest number of characters of a quoted cell; a quote that is never closed would otherwise
# swallow the rest of the file.
_MAX_CELL_LENGTH = 1 << 20
# Rows that are read to find out whether the first one is a header.
_HEADER_ROWS = 1000

Cell = int | float | str | None
# The text of every cell; None where it is empty and not quoted.
Row = list[str | None]


def csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yields the number of the first line and the cells of every row.

    All rows have as many cells as the first one. If there is one column, a blank line is an empty
    cell; else blank lines are allowed only at the end of the file.

    Raises:
        InputError: a row has another number of cells, a quote is not closed, or the file is not
            text in UTF-8.
    """
    number = 0
    width = 0  # the number of cells of the first row
    first_blank = 0  # the number of the first blank line
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = limited_lines(file, path, MAX_LINE_LENGTH)
            for line in lines:
                number += 1
                n_more_lines = 0
                row: Row
                if '"' in line:
                    row, n_more_lines = _quoted_row(line, lines, f"{path}, line {number}")
                else:  # nearly all rows of most files
                    row = line.rstrip("\r\n").split(",")  # type: ignore[assignment]  # has no None
                    if "" in row:
                        row = [cell or None for cell in row]
                if len(row) != width or first_blank:
                    is_blank = row == [None]
                    if is_blank and width > 1 and not first_blank:
                        first_blank = number
                    if is_blank and first_blank:
                        continue
                    if first_blank:
                        raise InputError(
                            f"{path}, line {first_blank}: a blank line, "
                            f"but the first row has {width} cells"
                        )
                    if width:
                        raise InputError(
                            f"{path}, line {number}: {len(row)} cells, "
                            f"but the first row has {width}"
                        )
                    width = len(row)
                yield number, row
                number += n_more_lines
    except UnicodeDecodeError as error:
        line_number = _first_line_not_utf8(path)
        raise InputError(
            f"{path}, line {line_number}: cannot be read as CSV: not text in UTF-8"
        ) from error


def _first_line_not_utf8(path: Path) -> int:
    with path.open("rb") as file:
        return next(
            number
            for number, line in enumerate(file, 1)
            if line.decode("utf-8", "ignore").encode() != line
        )


def header_of(path: Path, header: bool | None) -> list[str] | None:
    """Returns the names of the columns; None if the first row is already an output.

    Args:
        path: the file.
        header: whether there is a header. None detects it: words above a column of numbers are a
            header, and so are the names of sides.
    """
    rows = [row for _, row in islice(csv_rows(path), _HEADER_ROWS)]
    if not rows or header is False:
        return None
    names = ["" if cell is None else cell.strip() for cell in rows[0]]
    if header or "side" in names or {"left", "right"} <= set(names):
        return names
    are_words = all(isinstance(cell_value(cell), str) for cell in rows[0])
    if not are_words:
        return None
    for column in zip(*rows[1:], strict=True):
        cell_types = {type(cell_value(cell)) for cell in column} - {type(None)}
        is_numeric = bool(cell_types) and cell_types <= {int, float}
        if is_numeric:
            return names
    return None


def cell_value(text: str | None) -> Cell:
    """Returns the value of a cell: None if it is empty, a number if it reads as one, else the text.

    A quoted number is a number, since many programs quote everything.
    """
    return None if text is None else number_or_text(text)


class _QuotedCell(NamedTuple):
    """A cell that begins with a quote, up to the closing quote.

    Attributes:
        content: the text between the quotes.
        line: the line of the closing quote.
        position: in this line, after the closing quote.
        n_more_lines: how many lines the cell takes beyond its first.
    """

    content: str
    line: str
    position: int
    n_more_lines: int


def _quoted_row(line: str, lines: Iterator[str], place: str) -> tuple[Row, int]:
    """Parses a row with quotes.

    Args:
        line: its first line.
        lines: the lines after it, which are read as far as the row goes.
        place: for errors.

    Returns:
        The cells, and how many lines the row takes beyond its first.
    """
    row: Row = []
    position = 0
    n_more_lines = 0
    while True:
        if line.startswith('"', position):
            cell = _quoted_cell(line, position + 1, lines, place)
            line = cell.line
            n_more_lines += cell.n_more_lines
            end = _end_of_cell(line, cell.position)
            row.append(cell.content + line[cell.position : end])
        else:
            end = _end_of_cell(line, position)
            row.append(line[position:end] or None)
        if not line.startswith(",", end):
            return row, n_more_lines
        position = end + 1


def _quoted_cell(line: str, position: int, lines: Iterator[str], place: str) -> _QuotedCell:
    """Parses a cell up to the closing quote; a doubled quote stands for a quote.

    Args:
        line: in which the cell begins.
        position: in this line, after the opening quote.
        lines: the lines after it, which are read as far as the cell goes.
        place: for errors.
    """
    fragments: list[str] = []
    n_more_lines = 0
    length = 0
    while True:
        end = line.find('"', position)
        if end < 0:  # the cell goes on in the next line
            fragments.append(line[position:])
            length += len(line)
            line = next(lines, "")
            position = 0
            n_more_lines += 1
            if not line or length > _MAX_CELL_LENGTH:
                raise InputError(
                    f"{place}: a quote is opened and not closed: {short_repr(''.join(fragments))}"
                )
            continue
        fragments.append(line[position:end])
        position = end + 1
        if not line.startswith('"', position):
            return _QuotedCell(
                content="".join(fragments),
                line=line,
                position=position,
                n_more_lines=n_more_lines,
            )
        fragments.append('"')
        position += 1


def _end_of_cell(line: str, position: int) -> int:
    """Returns the position of the next comma, or of the line end if there is none."""
    comma = line.find(",", position)
    return len(line.rstrip("\r\n")) if comma < 0 else comma
