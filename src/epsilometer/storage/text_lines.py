"""The lines of text files, read so that no file can fill the memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, AnyStr

from epsilometer.errors import InputError, short_repr
from epsilometer.storage.formats import memory_share

# The greatest number of characters of a line; a file without line ends would otherwise fill the
# memory.
MAX_LINE_LENGTH = 1 << 27
# Characters at the start of a large file that are searched for zero bytes.
_START_LENGTH = 1 << 16
# Bytes that are read at once to count lines.
_CHUNK_BYTES = 1 << 20


def limited_lines(file: IO[AnyStr], path: Path, most: int) -> Iterator[AnyStr]:
    """Yields the lines of an open file.

    Args:
        file: open for reading, as text or as bytes.
        path: of the file.
        most: the greatest number of characters of a line.

    Raises:
        InputError: the file is not text, or a line is too long; before it fills the memory.
    """
    if path.stat().st_size <= min(most, MAX_LINE_LENGTH):
        # Nearly all files. Iterating is faster than reading line by line.
        yield from file
        return
    start = file.read(_START_LENGTH)
    zero_byte = "\0" if isinstance(start, str) else b"\0"
    if zero_byte in start:
        raise InputError(f"{path} is not text: it holds zero bytes")
    file.seek(0)
    while line := file.readline(most):
        if len(line) == most:
            raise InputError(
                f"{path} has a line of {most} characters or more, beginning with "
                f"{short_repr(line[:60])}"
            )
        yield line


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the number, counted from 1, and the text of every line.

    Blank lines are allowed only at the end of the file.
    """
    first_blank = 0
    with path.open("rb") as file:
        for number, line in enumerate(limited_lines(file, path, memory_share()), 1):
            if not line.strip():
                first_blank = first_blank or number
                continue
            if first_blank:
                raise InputError(
                    f"{path}, line {first_blank}: a blank line is not an output; "
                    "write null for a missing one"
                )
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            try:
                text = line.decode(encoding).strip()
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {number}: not text in UTF-8: {short_repr(line)}"
                ) from error
            yield number, text


def count_lines(path: Path) -> int:
    """Returns the number of lines, blank ones included, with any kind of line end."""
    n_newlines = 0
    n_returns = 0
    last_byte = b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            n_newlines += chunk.count(b"\n")
            n_returns += chunk.count(b"\r")
            last_byte = chunk[-1:]
    n_ends = n_newlines or n_returns
    ends_within_a_line = last_byte not in b"\r\n"
    return n_ends + 1 if ends_within_a_line else n_ends
