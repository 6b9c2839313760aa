"""What goes into a command: inputs from flags and files. Nothing is ever unpickled."""

import contextlib
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.errors import EpsilometerError, InputError
from epsilometer.report.formatting import plain, shown

if TYPE_CHECKING:
    from epsilometer.result import AuditResult


def read_value(text: str, option: str) -> Any:
    """Returns an input from the command line: JSON, or @file (json, npy, csv).

    Args:
        text: what was given.
        option: whose value it is, for messages.
    """
    if text.startswith("@"):
        return read_dataset(Path(text[1:]), option)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also a number of thousands of digits
        as_word = plain(shlex.quote(json.dumps(text, ensure_ascii=False)))
        raise InputError(
            f"{option} {shown(text)} is not JSON: write a word as {as_word}, a file as @FILE"
        ) from None


def named_texts(entries: Sequence[str], option: str) -> dict[str, str]:
    """Returns the values of an option that may be repeated, each NAME=VALUE."""
    texts: dict[str, str] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or not name.isidentifier():
            raise InputError(f"{option} {shown(entry)} must be NAME=VALUE")
        if name in texts:
            raise InputError(f"{option} {shown(name)} is given twice")
        texts[name] = text
    return texts


def read_options(entries: Sequence[str]) -> dict[str, Any]:
    """Returns options of a method from the command line, with values in JSON or as a word."""
    values: dict[str, Any] = {}
    for name, text in named_texts(entries, "--option").items():
        values[name] = text
        # .5 is a number to people, but not to JSON.
        with contextlib.suppress(ValueError):
            values[name] = float(text)
        with contextlib.suppress(ValueError, RecursionError):
            values[name] = json.loads(text)
    return values


def read_dataset(path: Path, option: str) -> Any:
    """Returns an input from a file.

    JSON is taken as it is, npy as an array, csv as a list of values, of rows, or of dicts by
    header.
    """
    kind = path.suffix.lower()
    if kind not in (".json", ".npy", ".csv"):
        raise InputError(f"{option} @{path}: the name must end in .json, .npy or .csv")
    from epsilometer.storage.exchange import regular_file

    if kind == ".json":
        return read_parsed(path, json.loads, "JSON")
    if kind == ".npy":
        from epsilometer.storage.recorded_arrays import ArrayFile

        return ArrayFile(regular_file(path)).whole()
    from epsilometer.storage.recorded_texts import cell_value, csv_rows, header_of

    rows = [[cell_value(cell) for cell in row] for _, row in csv_rows(regular_file(path))]
    if not rows:
        raise InputError(f"{path} is empty")
    names = header_of(path, None)
    if names is not None and len(names) > 1:
        return [dict(zip(names, row, strict=True)) for row in rows[1:]]
    data = rows if names is None else rows[1:]
    return [row[0] for row in data] if len(rows[0]) == 1 else data


def read_parsed(path: Path, parse: Callable[[str], Any], language: str) -> Any:
    """Returns what a text file says in a language; raises InputError if it cannot be read."""
    text = read_text(path)
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:  # also too many brackets, or digits
        raise InputError(f"{path} is not {language}: {error}") from error


def read_text(path: Path) -> str:
    """Returns the text of a file in UTF-8; raises InputError if it cannot be read."""
    from epsilometer.storage.exchange import check_readable, regular_file

    try:
        return check_readable(regular_file(path)).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_result(path: Path) -> "AuditResult":
    """Returns a stored result; raises InputError if the file holds none."""
    from epsilometer.result import AuditResult
    from epsilometer.storage.exchange import UNSOUND, first_line

    text = read_text(path)
    try:
        return AuditResult.from_json(text)
    except EpsilometerError:
        raise
    except (ValueError, *UNSOUND) as error:
        raise InputError(f"{path} is not a result: {first_line(error)}") from error
