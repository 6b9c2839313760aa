"""Formats in which data crosses the border of the program, and which files are read at all.

Datasets are written as JSON or as arguments of programs; outputs are read from text. Files are
refused before they are read if they are no regular files or would fill the memory.
"""

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
from epsilometer.errors import InputError, MechanismError, short_repr
from epsilometer.outputs.shapes import EXACT

# Writing datasets.


def to_json(dataset: Any) -> str:
    """Returns a dataset as one line of strict JSON; arrays become lists.

    Raises:
        InputError: it holds something that JSON cannot express.
    """
    try:
        return json.dumps(plain_data(dataset), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the input {short_repr(dataset)} cannot be written as JSON ({error}); "
            "programs and services take numbers, texts, lists, dicts, arrays and data frames"
        ) from error


def to_argument(dataset: Any) -> str:
    """Returns a dataset as an argument of a program.

    A number or a text is written as it is, anything else as JSON.

    Raises:
        InputError: it holds something that JSON cannot express, or a zero byte.
    """
    value = plain_data(dataset)
    if isinstance(value, str):
        text = value
    elif isinstance(value, float):  # NaN and infinities, too, which JSON does not have
        text = repr(value)
    else:
        text = to_json(value)
    if "\0" in text:
        raise InputError(
            f"the input {short_repr(dataset)} has a zero byte, which no argument of a program "
            "can hold"
        )
    return text


def plain_data(value: Any) -> Any:
    """Returns the same data in lists, dicts and numbers of Python; a data frame is a list of dicts.

    Something else that JSON cannot express is returned as it is.
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if is_frame(value):
        if hasattr(value, "to_dicts"):  # of polars
            return plain_data(value.to_dicts())
        return plain_data(
            value.to_dict("records") if hasattr(value, "columns") else value.to_list()
        )
    return value


def is_frame(value: Any) -> bool:
    """Returns whether a value is a data frame or a series, of pandas or of polars."""
    library = type(value).__module__.partition(".")[0]
    return library in ("pandas", "polars") and type(value).__name__ in ("DataFrame", "Series")


# Reading outputs.

# Whole numbers stay whole, because they may be longer than a float can hold.
_WHOLE_NUMBER = re.compile(r"\s*(?:0|[+-]?[1-9][0-9]*)\s*")
# "007" is a name, and not the number 7.
_PADDED_NUMBER = re.compile(r"\s*[+-]?0[0-9]")
_PADDED_NUMBER_IN_LINES = re.compile(r"\n\s*[+-]?0[0-9]")


def decode(data: bytes, source: str) -> str:
    """Decodes UTF-8.

    Args:
        data: the bytes.
        source: where they are from, for the message.

    Raises:
        MechanismError: they are not UTF-8; the message quotes them.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MechanismError(f"{source} is not text in UTF-8: {short_repr(data)}") from error


def quotable(data: bytes | bytearray) -> str:
    """Returns bytes as text for a message, whatever they are."""
    return bytes(data).decode("utf-8", "backslashreplace")


def read_json(text: str, source: str) -> Any:
    """Reads JSON, with whole numbers as floats (see `settle`).

    Args:
        text: to be read.
        source: where the text is from, for the message.

    Raises:
        MechanismError: it is not JSON; the message quotes it.
    """
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise MechanismError(f"{source} is not JSON: {short_repr(text)}") from error


def read_value(text: str) -> Any:
    """Reads what a program printed: JSON, else a number, else the text itself."""
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError):
        return settle(number_or_text(text))


def number_or_text(text: str) -> int | float | str:
    """Returns a number if the text reads as one, NaN and infinities included, else the text.

    "1_000" and "007" are texts.
    """
    try:
        if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        if "_" in text or _PADDED_NUMBER.match(text):
            return text
        return float(text)
    except ValueError:  # not a number, or a whole one of thousands of digits
        return text


def settled_texts(texts: Sequence[str | None]) -> list[Any]:
    """Returns `settle(number_or_text(text))` of each text; None stays None.

    Where all texts are ordinary numbers, this is several times as fast as one by one.
    """
    with suppress(TypeError, ValueError):
        numbers = list(map(float, texts))  # type: ignore[arg-type]  # None raises a TypeError
        lines = "\n".join(["", *texts])  # type: ignore[list-item]  # there is no None
        has_names = "_" in lines or _PADDED_NUMBER_IN_LINES.search(lines) is not None
        if not has_names and -EXACT < min(numbers) <= max(numbers) < EXACT:
            return numbers
    return [None if text is None else settle(number_or_text(text)) for text in texts]


def settle(value: Any) -> Any:
    """Returns the same value with every whole number up to 2^53 as a float.

    Whether a number was printed as 1 or as 1.0 is a matter of format, not a different output.
    Longer numbers stay whole, because floats cannot hold them exactly.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if -EXACT <= value <= EXACT else value
    if isinstance(value, list):
        return [settle(item) for item in value]
    if type(value) is tuple:
        return tuple(settle(item) for item in value)
    if isinstance(value, dict):
        return {key: settle(item) for key, item in value.items()}
    return value


def settled(array: Array) -> Array | list[Any]:
    """Returns an array with whole numbers as floats, where floats hold them exactly.

    How a file stores a number is not part of what a mechanism leaks.
    """
    if array.dtype.kind not in "iu":
        return array
    is_short = array.dtype.itemsize < 8
    if is_short or not array.size or (array.min() >= -EXACT and array.max() <= EXACT):
        return array.astype(np.float64)
    if array.ndim == 1:
        return [settle(number) for number in array.tolist()]
    mixed = array.astype(object)
    mixed[...] = np.vectorize(settle, otypes=[object])(mixed)
    return mixed


# Files.

# The outputs of one side may take one part in eight of the memory: an audit keeps two sides, and
# needs up to four times as much to work.
_MEMORY_DIVISOR = 8
# But no more than 8 GB.
_MAX_OUTPUT_BYTES = 8 << 30
# Values in memory take several times the room of their text.
_VALUE_BYTES_PER_TEXT_BYTE = 4
# The greatest number of characters of a foreign error in a message.
_MAX_ERROR_LENGTH = 200

# What damaged archives and headers raise, besides the errors that are meant for them.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    SyntaxError,
    OverflowError,
    RuntimeError,
    MemoryError,
)

# What damaged content leads to at unexpected places; none of these is an error of our own.
UNSOUND = (
    RecursionError,
    MemoryError,
    OverflowError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
)


def named_files(argv: Sequence[str], folder: Path, search: str | None = None) -> list[Path]:
    """Returns the program and the files that its arguments name.

    With another content of one of these files, the program is another mechanism.

    Args:
        argv: the program and its arguments.
        folder: where it runs.
        search: where programs are searched for; None for our own PATH.
    """
    program = shutil.which(argv[0], path=search) or argv[0]
    files = [Path(program)]
    for previous, argument in pairwise(argv):
        names = [argument, argument.partition("=")[2]]
        if previous == "-m":  # a module of Python
            module = argument.replace(".", "/")
            names += [f"{module}.py", f"{module}/__main__.py"]
        for name in names:
            with suppress(OSError, ValueError):  # an argument that cannot be the name of a file
                if name and (folder / name).is_file():
                    files.append(folder / name)
    return files


def memory_share() -> int:
    """Returns how many bytes outputs may take unless the user allows more.

    This is an eighth of the memory that this process may use, and at most 8 GB.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (AttributeError, OSError, ValueError):  # pragma: no cover  # not a POSIX system
        return _MAX_OUTPUT_BYTES // 2
    if limit != resource.RLIM_INFINITY:
        memory = min(memory, limit)
    return min(_MAX_OUTPUT_BYTES, memory // _MEMORY_DIVISOR)


def check_readable(path: Path) -> Path:
    """Returns the path of a file that is read as a whole; refuses a file that is too large."""
    most = memory_share() // _VALUE_BYTES_PER_TEXT_BYTE
    size = path.stat().st_size
    if size > most:
        raise InputError(
            f"{path} has {size} bytes; a file that is read as a whole may have at most {most}"
        )
    return path


def regular_file(path: Path) -> Path:
    """Returns the path of a regular file; pipes and devices may have no end.

    Raises:
        InputError: it is missing, a folder, or not a file at all.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path} is missing; a file is needed") from error
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{short_repr(str(path))} cannot be read: {reason}") from error
    if stat.S_ISREG(mode):
        return path
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
    raise InputError(f"{path} is {what}; a file is needed")


@contextmanager
def reading(what: str, kinds: tuple[type[Exception], ...] = UNREADABLE) -> Iterator[None]:
    """Turns what a damaged file raises into an InputError.

    Args:
        what: the beginning of the message.
        kinds: the exceptions that are the file's fault.
    """
    try:
        yield
    except InputError:
        raise
    except kinds as error:
        raise InputError(f"{what}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type if it has none."""
    text = str(error) or type(error).__name__
    return text.splitlines()[0][:_MAX_ERROR_LENGTH]


def too_large(source: object, what: str, most: int) -> InputError:
    """Returns the error about outputs that would fill the memory.

    Args:
        source: where the outputs are from.
        what: how large they are.
        most: how large they may be.
    """
    return InputError(
        f"{source} has {what}, above the limit of {most}; "
        "if the memory is there, raise max_output_bytes"
    )
