"""Inputs and recorded outputs from the command line and from files. Nothing is ever unpickled."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epsilometer.errors import InputError
from epsilometer.report.showing import plain, shown


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
    except (json.JSONDecodeError, RecursionError):
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
    from epsilometer.cli.tables import read_csv

    _check_file(path)
    table = read_csv(path)
    if table.names and len(table.names) > 1:
        return [dict(zip(table.names, row, strict=True)) for row in table.rows()]
    return table.rows()


def read_recording(place: str, header: bool | None = None) -> Any:
    """Recorded outputs, one per entry of axis 0.

    Args:
        place: a file (npy, npz, csv, json, jsonl, parquet), or file.npz:name for one of several arrays.
        header: of a CSV file; None finds out.
    """
    path, key = _split_place(place)
    kind = path.suffix.lower()
    _check_file(path)
    if kind == ".npy":
        return _read_npy(path)
    if kind == ".npz":
        return _read_npz(path, key)
    if kind == ".json":
        return _as_list(_read_json(path), path)
    if kind == ".csv":
        from epsilometer.cli.tables import read_csv

        return read_csv(path, header).outputs()
    if kind in (".jsonl", ".parquet"):
        from epsilometer.mechanisms import from_recording

        return from_recording(path)
    raise InputError(f"{path}: recorded outputs are read from .npy, .npz, .csv, .json, .jsonl and .parquet files")


def read_text(path: Path) -> str:
    """A text file in UTF-8, or an InputError."""
    _check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def check_writable(path: str | None, option: str) -> None:
    """Complains about a file that cannot be written, before the work is done and not after it."""
    if path is None or path == "-":
        return
    place = Path(path)
    if not place.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {place.parent}")
    if place.is_dir():
        raise InputError(f"{option} {path} is a folder")


def _split_place(place: str) -> tuple[Path, str | None]:
    before, colon, key = place.rpartition(":")
    if colon and before.lower().endswith(".npz"):
        return Path(before), key
    return Path(place), None


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is {'a folder' if path.is_dir() else 'missing'}; a file is needed")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error


def _as_list(value: Any, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{path} must hold a JSON list with one output per entry, not {type(value).__name__}")
    return value


def _read_npy(path: Path) -> Any:
    import numpy as np

    _check_file(path)
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read as a plain array: {_reason(error)}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path} holds several arrays; name it .npz")
    return array


def _read_npz(path: Path, key: str | None) -> Any:
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            if isinstance(arrays, np.ndarray):
                return arrays
            names = list(arrays)
            if key is None and len(names) != 1:
                raise InputError(f"{path} holds {len(names)} arrays ({', '.join(names)}); say which: {path}:NAME")
            if key is not None and key not in names:
                raise InputError(f"{path} has no array {key!r}; it has {', '.join(names)}")
            return arrays[names[0] if key is None else key]
    except InputError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read as plain arrays: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Why NumPy refuses a file, without its advice to unpickle it."""
    return "it holds no plain numbers or texts, and nothing is unpickled" if "pickle" in str(error) else str(error)
