"""What goes into a command and comes out of it: inputs from flags and files, files to write, and standard output.

Nothing is ever unpickled. Standard output belongs to our answer alone: see `own_output`.
"""

import atexit
import contextlib
import functools
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar

from epsilometer.errors import EpsilometerError, InputError
from epsilometer.report.wording import plain, shown

if TYPE_CHECKING:
    from epsilometer.result import AuditResult

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")

STANDARD_OUTPUT = "standard output"
_ITS_NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
# Where our answers go while a mechanism may print; None while nobody else uses standard output.
_own: TextIO | None = None


def own_output() -> TextIO:
    """Where the answers of a command go: standard output, as it was before a mechanism could print there."""
    return sys.stdout if _own is None else _own


def apart_from_mechanisms(command: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """Gives standard output to the command alone. What mechanisms, their workers and C code print goes to stderr."""

    @functools.wraps(command)
    def apart(*arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> _Answer:
        with _output_kept():
            return command(*arguments, **keywords)

    return apart


# Set by a program that is nothing but our command line: then what a mechanism leaves behind (threads, buffers of C
# libraries, functions that run at exit) cannot follow our answer either.
for_good = False


@contextlib.contextmanager
def _output_kept() -> Iterator[None]:
    global _own
    sys.stdout.flush()
    before, saved = sys.stdout, os.dup(1)
    is_real = _descriptor(before) == 1
    _own = _reopened(before, saved) if is_real else before
    os.dup2(2, 1)
    if is_real:
        before.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # its lines mix with those of stderr
    else:  # something in its place, as in a test or a notebook
        sys.stdout = sys.stderr
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # there is something more important to tell
            _own.flush()
        raise
    else:
        _own.flush()
    finally:
        if for_good:
            atexit.register(_close, _own)
        else:
            _restore(before, saved, is_real)


def _close(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):  # whoever read it may be gone; that was told before
        stream.close()


def _restore(before: TextIO, saved: int, is_real: bool) -> None:
    global _own
    with contextlib.suppress(OSError, ValueError):
        (before if is_real else sys.stdout).flush()
    os.dup2(saved, 1)
    with contextlib.suppress(OSError):
        own_output().close() if is_real else os.close(saved)
    sys.stdout, _own = before, None


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _reopened(stream: TextIO, descriptor: int) -> TextIO:
    """The same stream by another descriptor, whose errors say what it is."""
    from epsilometer.storage.writing import NamedFile

    binary = io.BufferedWriter(NamedFile(descriptor, STANDARD_OUTPUT))
    return io.TextIOWrapper(binary, stream.encoding, "backslashreplace", line_buffering=stream.isatty())


def write_all(writers: Sequence[Callable[[], object]]) -> EpsilometerError | None:
    """Writes files one after the other, also after one that cannot be written; returns what went wrong, in one line."""
    problems: list[str] = []
    for write in writers:
        try:
            write()
        except OSError as error:
            problems.append(f"{error.filename or 'a file'} cannot be written: {error.strerror or error}")
        except InputError as error:  # a pair that no test can hold
            problems.append(str(error))
    return EpsilometerError("; ".join(problems)) if problems else None


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
        hint = f"write a word as {plain(shlex.quote(json.dumps(text, ensure_ascii=False)))}, a file as @FILE"
        raise InputError(f"{option} {shown(text)} is not JSON: {hint}") from None


def named_texts(entries: Sequence[str], option: str) -> dict[str, str]:
    """The values of an option that may be repeated, each NAME=VALUE."""
    found: dict[str, str] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or not name.isidentifier():
            raise InputError(f"{option} {shown(entry)} must be NAME=VALUE")
        if name in found:
            raise InputError(f"{option} {shown(name)} is given twice")
        found[name] = text
    return found


def read_options(entries: Sequence[str]) -> dict[str, Any]:
    """Options of a method from the command line, with values in JSON or as a word."""
    found: dict[str, Any] = {**named_texts(entries, "--option")}
    for name, text in found.items():
        for read in (float, json.loads):  # .5 is a number to people, but not to JSON
            with contextlib.suppress(ValueError, RecursionError):
                found[name] = read(text)
    return found


def read_dataset(path: Path, option: str) -> Any:
    """An input from a file: JSON as it is, npy as an array, csv as a list of values, of rows, or of dicts by header."""
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
    """What a text file says in a language, or an InputError."""
    text = read_text(path)
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:  # also too many brackets, or digits
        raise InputError(f"{path} is not {language}: {error}") from error


def read_text(path: Path) -> str:
    """A text file in UTF-8, or an InputError."""
    from epsilometer.storage.exchange import check_readable, regular_file

    try:
        return check_readable(regular_file(path)).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_result(path: Path) -> "AuditResult":
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


def writable(path: str | None, option: str) -> str | None:
    """A file that will be written, by its whole name: a mechanism may change the folder.

    Complains about one that cannot be written, before the work is done and not after it. None stays what it is, and
    so does "-" for --json.
    """
    if path is None or (path, option) == ("-", "--json"):
        return path
    place = Path(path)
    if not place.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {place.parent}")
    if place.is_dir():
        raise InputError(f"{option} {path} is a folder")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InputError(f"{option} {path}: Permission denied")
    whole = os.path.abspath(path)
    if whole in _ITS_NAMES and _own is not None and _descriptor(_own) is not None:
        return f"/dev/fd/{_own.fileno()}"
    return whole
