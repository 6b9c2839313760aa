"""What goes into a command: inputs from flags and files. Nothing is ever unpickled."""

import ast
import contextlib
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.errors import EpsilometerError, InputError
from epsilometer.report.formatting import display_value, plain

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
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        in_json = _python_as_json(text)
        if in_json is not None:
            raise InputError(
                f"{option} {display_value(text)} is Python, not JSON: write {in_json}"
            ) from None
        if text.lstrip().startswith(("[", "{")):
            raise InputError(f"{option} {display_value(text)} is not JSON: {error}") from None
        as_word = plain(shlex.quote(json.dumps(text, ensure_ascii=False)))
        as_file = "@FILE"
        with contextlib.suppress(OSError, ValueError):  # a text that cannot be the name of a file
            if Path(text).is_file():
                as_file = plain("@" + text)
        raise InputError(
            f"{option} {display_value(text)} is not JSON: write a word as {as_word}, "
            f"a file as {as_file}"
        ) from None


def _python_as_json(text: str) -> str | None:
    """What a list, a dict, True, False or None of Python is in JSON, quoted for a shell."""
    try:
        value = ast.literal_eval(text.strip())
        return plain(shlex.quote(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def named_texts(entries: Sequence[str], option: str) -> dict[str, str]:
    """Returns the values of an option that may be repeated, each NAME=VALUE."""
    texts: dict[str, str] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or not name.isidentifier():
            raise InputError(f"{option} {display_value(entry)} must be NAME=VALUE")
        if name in texts:
            raise InputError(f"{option} {display_value(name)} is given twice")
        texts[name] = text
    return texts


def read_options(entries: Sequence[str]) -> dict[str, Any]:
    """Returns options of a method from the command line, with values in JSON or as a word."""
    return read_values(entries, "--option")


def read_values(entries: Sequence[str], option: str) -> dict[str, Any]:
    """Returns the values of an option that may be repeated, each NAME=VALUE in JSON or a word."""
    values: dict[str, Any] = {}
    for name, text in named_texts(entries, option).items():
        values[name] = text
        # .5 is a number to people, but not to JSON.
        with contextlib.suppress(ValueError):
            values[name] = float(text)
        with contextlib.suppress(ValueError, RecursionError):
            values[name] = json.loads(text)
    return values


def read_headers(entries: Sequence[str]) -> dict[str, str]:
    """Returns headers from the command line, each NAME=VALUE; no message shows a value."""
    headers: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        name, separator, text = entry.partition("=")
        if not separator or not name.strip():
            raise InputError(
                f"--http-header number {number} must be NAME=VALUE, or NAME=env:VAR for the value "
                "of a variable"
            )
        if name in headers:
            raise InputError(f"--http-header {display_value(name)} is given twice")
        headers[name] = text
    return headers


def read_dataset(path: Path, option: str, column: str | None = None) -> Any:
    """Returns an input from a file.

    JSON is taken as it is, jsonl as a list, npy as an array, parquet as a list of dicts, csv as a
    list of values, of rows, or of dicts by header.

    Args:
        path: the file.
        option: whose value it is, for messages.
        column: the name of a column: a csv file whose first row has it has a header.
    """
    kind = path.suffix.lower()
    if kind not in (".json", ".jsonl", ".npy", ".csv", ".parquet"):
        raise InputError(
            f"{option} @{path}: the name must end in .json, .jsonl, .npy, .csv or .parquet"
        )
    from epsilometer.storage.formats import regular_file

    if kind == ".json":
        return read_parsed(path, json.loads, "JSON")
    if kind == ".jsonl":
        return read_parsed(path, _json_lines, "a file of JSON lines")
    if kind == ".parquet":
        return _read_parquet(regular_file(path))
    if kind == ".npy":
        from epsilometer.storage.recorded_arrays import ArrayFile

        return ArrayFile(regular_file(path)).read()
    from epsilometer.storage.csv_parsing import cell_value, csv_rows, header_of

    rows = [[cell_value(cell) for cell in row] for _, row in csv_rows(regular_file(path))]
    if not rows:
        raise InputError(f"{path} is empty")
    names = header_of(path, True if column in rows[0] else None)
    if names is not None and len(names) > 1:
        return [dict(zip(names, row, strict=True)) for row in rows[1:]]
    data = rows if names is None else rows[1:]
    return [row[0] for row in data] if len(rows[0]) == 1 else data


def _json_lines(text: str) -> list[Any]:
    """Returns the values of a text with one JSON value per line."""
    # Not splitlines: JSON texts may hold other line ends.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    from importlib.util import find_spec

    from epsilometer.errors import MissingExtraError
    from epsilometer.storage.formats import check_readable, reading

    if find_spec("pyarrow") is None:
        raise MissingExtraError("pyarrow", "parquet", f"reading {path}")
    import pyarrow.parquet

    with reading(f"{path} is not a parquet file"):
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(check_readable(path)).to_pylist()
    return rows


def read_parsed(path: Path, parse: Callable[[str], Any], language: str) -> Any:
    """Returns what a text file says in a language; raises InputError if it cannot be read."""
    text = read_text(path)
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:  # also too many brackets, or digits
        raise InputError(f"{path} is not {language}: {error}") from error


def read_text(path: Path) -> str:
    """Returns the text of a file in UTF-8; raises InputError if it cannot be read."""
    from epsilometer.storage.formats import check_readable, regular_file

    try:
        return check_readable(regular_file(path)).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_result(path: Path) -> "AuditResult":
    """Returns a stored result; raises InputError if the file holds none."""
    from epsilometer.result import AuditResult
    from epsilometer.storage.formats import UNSOUND, first_line

    text = read_text(path)
    try:
        return AuditResult.from_json(text)
    except EpsilometerError as error:
        raise InputError(
            f"{path} is not a result that --json FILE or to_json() wrote: {error}"
        ) from error
    except (ValueError, *UNSOUND) as error:
        raise InputError(f"{path} is not a result: {first_line(error)}") from error
