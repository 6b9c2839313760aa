"""Inputs and recorded outputs from the command line and from files. Nothing is ever unpickled."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.errors import EpsilometerError, InputError
from epsilometer.report.wording import plain, shown

if TYPE_CHECKING:
    from epsilometer.result import AuditResult


def read_value(text: str, option: str) -> Any:
    """An input from the command line: JSON, or @file (json, npy, csv).

    Args:
        text: what was given.
        option: whose value it is, for messages.
    """
    if text.startswith("@"):
        return read_dataset(Path(text[1:]), option)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also a number of thousands of digits
        quoted = shlex.quote(json.dumps(text, ensure_ascii=False))
        hint = f"write a word as {plain(quoted)}, a file as @FILE"
        raise InputError(f"{option} {shown(text)} is not JSON: {hint}") from None


def read_options(entries: Sequence[str]) -> dict[str, Any]:
    """Options of a method from the command line, each NAME=VALUE with a value in JSON or a word."""
    found: dict[str, Any] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or not name.isidentifier():
            raise InputError(f"--option {shown(entry)} must be NAME=VALUE")
        if name in found:
            raise InputError(f"--option {shown(name)} is given twice")
        found[name] = _value_or_word(text)
    return found


def _value_or_word(text: str) -> Any:
    for read in (json.loads, float):  # .5 is a number to people, but not to JSON
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    return text


def read_dataset(path: Path, option: str) -> Any:
    """An input from a file: JSON as it is, npy as an array, csv as a list of values, of rows, or of dicts by header."""
    kind = path.suffix.lower()
    if kind == ".json":
        return _read_json(path)
    if kind == ".npy":
        return _read_npy(path)
    if kind != ".csv":
        raise InputError(f"{option} @{path}: the name must end in .json, .npy or .csv")
    return _read_table(path)


def _read_table(path: Path) -> list[Any]:
    from epsilometer.storage.exchange import regular_file
    from epsilometer.storage.recorded_texts import cell_value, csv_rows, header_of

    rows = [[cell_value(cell) for cell in row] for _, row in csv_rows(regular_file(path))]
    if not rows:
        raise InputError(f"{path} is empty")
    names = header_of(path, None)
    if names is not None and len(names) > 1:
        return [dict(zip(names, row, strict=True)) for row in rows[1:]]
    data = rows if names is None else rows[1:]
    return [row[0] for row in data] if len(rows[0]) == 1 else data


def read_text(path: Path) -> str:
    """A text file in UTF-8, or an InputError."""
    from epsilometer.storage.exchange import check_whole, regular_file

    try:
        return check_whole(regular_file(path)).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_result(path: Path) -> AuditResult:
    """A stored result, or an InputError."""
    from epsilometer.result import AuditResult
    from epsilometer.storage.exchange import UNSOUND, first_line

    text = read_text(path)
    try:
        return AuditResult.from_json(text)
    except EpsilometerError:
        raise
    except (ValueError, *UNSOUND) as error:
        raise InputError(f"{path} is not a result: {first_line(error)}") from error


def check_writable(path: str | None, option: str) -> None:
    """Complains about a file that cannot be written, before the work is done and not after it."""
    if path is None or path == "-":
        return
    place = Path(path)
    if not place.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {place.parent}")
    if place.is_dir():
        raise InputError(f"{option} {path} is a folder")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not JSON: {error}") from error


def _read_npy(path: Path) -> Any:
    from epsilometer.storage.exchange import regular_file
    from epsilometer.storage.recorded_arrays import ArrayFile

    return ArrayFile(regular_file(path)).whole()
