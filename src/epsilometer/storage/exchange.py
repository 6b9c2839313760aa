"""Datasets and outputs as text: what goes to a program or a service, and what comes back."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.outputs.columns import EXACT


def to_json(dataset: Any) -> str:
    """A dataset as one line of strict JSON; arrays become lists.

    Raises:
        InputError: it holds something that JSON has no word for.
    """
    try:
        return json.dumps(_plain(dataset), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the input {shown(dataset)} cannot be written as JSON ({error}); programs and services take "
            "numbers, texts, lists, dicts and arrays"
        ) from error


def to_argument(dataset: Any) -> str:
    """A dataset as an argument of a program: a number or a text as it is, anything else as JSON."""
    plain = _plain(dataset)
    text = plain if isinstance(plain, str) else repr(plain) if isinstance(plain, float) else to_json(plain)
    if "\0" in text:
        raise InputError(f"the input {shown(dataset)} has a zero byte, which no argument of a program can hold")
    return text


def read_value(text: str) -> Any:
    """What a program printed: JSON, else a number, else the text itself."""
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError):
        return settle(number_or_text(text))


# Whole numbers stay whole: they may be longer than a float.
_WHOLE = re.compile(r"\s*(?:0|[+-]?[1-9][0-9]*)\s*")
# "007" is a name, and not the number 7.
_PADDED = re.compile(r"\s*[+-]?0[0-9]")
_PADDED_LINE = re.compile(r"\n\s*[+-]?0[0-9]")


def settled_texts(texts: Sequence[str | None]) -> list[Any]:
    """`settle(number_or_text(text))` of each, several times as fast where all are usual numbers; None stays None."""
    try:
        values = list(map(float, texts))  # type: ignore[arg-type]  # None raises a TypeError
        lines = "\n".join(["", *texts])  # type: ignore[list-item]  # there is no None
        if "_" not in lines and not _PADDED_LINE.search(lines) and -EXACT < min(values) <= max(values) < EXACT:
            return values
    except (TypeError, ValueError):
        pass
    return [None if text is None else settle(number_or_text(text)) for text in texts]


def number_or_text(text: str) -> int | float | str:
    """A number if the text reads as one, NaN and infinities included; "1_000" and "007" are text."""
    try:
        if _WHOLE.fullmatch(text):
            return int(text)
        return text if "_" in text or _PADDED.match(text) else float(text)
    except ValueError:  # also a whole number of thousands of digits
        return text


def read_json(text: str, source: str) -> Any:
    """JSON, or a MechanismError that quotes what came instead.

    Args:
        source: where the text is from, for the message.
    """
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise MechanismError(f"{source} is not JSON: {shown(text)}") from error


def settle(value: Any) -> Any:
    """The same value with every whole number up to 2^53 as a float; floats hold no longer ones exactly.

    Whether a number was printed as 1 or as 1.0 is the printer's habit and not an output of its own.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if -EXACT <= value <= EXACT else value
    if isinstance(value, list):
        return [settle(each) for each in value]
    if type(value) is tuple:
        return tuple(settle(each) for each in value)
    if isinstance(value, dict):
        return {key: settle(each) for key, each in value.items()}
    return value


def decode(data: bytes, source: str) -> str:
    """UTF-8, or a MechanismError that quotes what came instead."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MechanismError(f"{source} is not text in UTF-8: {shown(data)}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def named_files(argv: Sequence[str], folder: Path, search: str | None = None) -> list[Path]:
    """The program, and the files that its arguments name: with another content they are another mechanism.

    Args:
        argv: the program and its arguments.
        folder: where it runs.
        search: where programs are looked for; None is our own PATH.
    """
    program = shutil.which(argv[0], path=search)
    found = [Path(argv[0] if program is None else program)]
    for before, part in pairwise(argv):
        names = [part, part.partition("=")[2]]
        if before == "-m":  # a module of Python
            module = part.replace(".", "/")
            names += [f"{module}.py", f"{module}/__main__.py"]
        found += [folder / name for name in names if name and _is_file(folder / name)]
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # an argument that is no name of a file at all
        return False
