"""What crosses the border: datasets and outputs as text, and which files are read at all."""

import json
import lzma
import os
import re
import resource
import shutil
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.outputs.columns import EXACT


def to_json(dataset: Any) -> str:
    """A dataset as one line of strict JSON; arrays become lists.

    Raises:
        InputError: it holds something that JSON cannot express.
    """
    try:
        return json.dumps(_plain(dataset), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "programs and services take numbers, texts, lists, dicts and arrays"
        raise InputError(f"the input {shown(dataset)} cannot be written as JSON ({error}); {hint}") from error


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
    """`settle(number_or_text(text))` of each, several times as fast where all are ordinary numbers; None stays None."""
    with suppress(TypeError, ValueError):
        values = list(map(float, texts))  # type: ignore[arg-type]  # None raises a TypeError
        lines = "\n".join(["", *texts])  # type: ignore[list-item]  # there is no None
        if "_" not in lines and not _PADDED_LINE.search(lines) and -EXACT < min(values) <= max(values) < EXACT:
            return values
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
    """The same value with every whole number up to 2^53 as a float; floats cannot hold longer ones exactly.

    Whether a number was printed as 1 or as 1.0 is a matter of format, not a different output.
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


def settled(array: Array) -> Array | list[Any]:
    """Whole numbers as floats, where these hold them: how a file stores a number is not what a mechanism leaks."""
    if array.dtype.kind not in "iu":
        return array
    if array.dtype.itemsize < 8 or not array.size or (array.min() >= -EXACT and array.max() <= EXACT):
        return array.astype(np.float64)
    if array.ndim == 1:
        return [settle(each) for each in array.tolist()]
    mixed = array.astype(object)
    mixed[...] = np.vectorize(settle, otypes=[object])(mixed)
    return mixed


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
    found = [Path(shutil.which(argv[0], path=search) or argv[0])]
    for before, part in pairwise(argv):
        names = [part, part.partition("=")[2]]
        if before == "-m":  # a module of Python
            module = part.replace(".", "/")
            names += [f"{module}.py", f"{module}/__main__.py"]
        for name in filter(None, names):
            with suppress(OSError, ValueError):  # an argument that is no name of a file at all
                found += [folder / name] if (folder / name).is_file() else []
    return found


# Of the memory, for the outputs of one side: an audit keeps two sides, and needs up to four times as much to work.
_SHARE, _MOST = 8, 8 << 30


def memory_share() -> int:
    """Bytes that outputs may take unless more is allowed: an eighth of this process's memory, at most 8 GB."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (AttributeError, OSError, ValueError):  # pragma: no cover  # not a POSIX system
        return _MOST // 2
    return min(_MOST, (there if limit == resource.RLIM_INFINITY else min(there, limit)) // _SHARE)


def check_readable(path: Path) -> Path:
    """Refuses a file that is read as a whole and is too large for that."""
    most = memory_share() // 4  # values take several times the room of their text
    size = path.stat().st_size
    if size > most:
        raise InputError(f"{path} has {size} bytes; a file that is read as a whole may have at most {most}")
    return path


# What damaged archives and headers raise, besides the errors that are meant for them.
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError, EOFError, OSError, ValueError),
    *(KeyError, IndexError, TypeError, AttributeError, SyntaxError, OverflowError, RuntimeError, MemoryError),
)


# What damaged content leads to where nobody expects it: never one of our own errors.
UNSOUND = (RecursionError, MemoryError, OverflowError, IndexError, KeyError, TypeError, AttributeError)


def first_line(error: BaseException) -> str:
    """Why a file cannot be read, short."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]


@contextmanager
def reading(what: str, kinds: tuple[type[Exception], ...] = UNREADABLE) -> Iterator[None]:
    """Says of what a damaged file raises that it is the file's fault: an InputError that begins with `what`."""
    try:
        yield
    except InputError:
        raise
    except kinds as error:
        raise InputError(f"{what}: {first_line(error)}") from error


def too_large(source: object, what: str, most: int) -> InputError:
    """What to say about outputs that would fill the memory."""
    return InputError(f"{source} has {what}, above the limit of {most}; if the memory is there, raise max_output_bytes")


def regular_file(path: Path) -> Path:
    """The file, or an InputError: pipes and devices may have no end.

    Raises:
        InputError: it is missing, a folder, or something that is no file at all.
    """
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path} is missing; a file is needed") from error
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        raise InputError(f"{shown(str(path))} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a pipe, a socket or a device"
        raise InputError(f"{path} is {what}; a file is needed")
    return path
