"""What comes out of a command: its answer on standard output, and the files it was asked to write.

Standard output belongs to the answer of the command alone, see `Answers`.
"""

import atexit
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from epsilometer.cli.exit_status import ExitStatus
from epsilometer.errors import EpsilometerError, InputError

if TYPE_CHECKING:
    from epsilometer.result import AuditResult

STANDARD_OUTPUT = "standard output"
_NAMES_OF_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class Answers:
    """The stream on which a command answers.

    It is standard output. While mechanisms run, `reserved` sends everything that they, their
    workers and C code print to standard error, so that a program can read the answer from a pipe.

    Args:
        ends_process: whether the process ends with this command. Then standard output stays
            reserved until the end, so that what a mechanism leaves behind (threads, buffers of C
            libraries, functions that run at exit) cannot follow the answer either.
    """

    def __init__(self, *, ends_process: bool = False) -> None:
        self.ends_process = ends_process
        self._reserved: TextIO | None = None

    @property
    def stream(self) -> TextIO:
        """Standard output as it was before a mechanism could print there."""
        return sys.stdout if self._reserved is None else self._reserved

    def write(self, text: str) -> None:
        """Writes a part of the answer."""
        self.stream.write(text)

    def flush(self) -> None:
        """Hands everything written so far to the reader."""
        self.stream.flush()

    @contextlib.contextmanager
    def reserved(self) -> Iterator[None]:
        """Sends whatever others print to standard error; only `write` reaches standard output."""
        sys.stdout.flush()
        before = sys.stdout
        saved_descriptor = os.dup(1)
        is_real = _descriptor(before) == 1
        self._reserved = _reopened(before, saved_descriptor) if is_real else before
        os.dup2(2, 1)
        if is_real:
            # Lines that mechanisms print mix with those of standard error, which has no buffer.
            before.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        else:
            # Something stands in its place, as in a test or a notebook.
            sys.stdout = sys.stderr
        try:
            yield
        except BaseException:
            # There is something more important to report than a reader who has gone.
            with contextlib.suppress(OSError):
                self._reserved.flush()
            raise
        else:
            self._reserved.flush()
        finally:
            if self.ends_process:
                atexit.register(_close, self._reserved)
            else:
                self._restore(before, saved_descriptor, is_real=is_real)

    def _restore(self, before: TextIO, saved_descriptor: int, *, is_real: bool) -> None:
        printed_by_others = before if is_real else sys.stdout
        with contextlib.suppress(OSError, ValueError):
            printed_by_others.flush()
        os.dup2(saved_descriptor, 1)
        with contextlib.suppress(OSError):
            if is_real:
                self.stream.close()
            else:
                os.close(saved_descriptor)
        sys.stdout = before
        self._reserved = None

    def path_of(self, path: str) -> str:
        """The absolute path of a file to write; /dev/stdout is the reserved stream."""
        absolute = os.path.abspath(path)
        if absolute in _NAMES_OF_STANDARD_OUTPUT and self._reserved is not None:
            descriptor = _descriptor(self._reserved)
            if descriptor is not None:
                return f"/dev/fd/{descriptor}"
        return absolute


def _close(stream: TextIO) -> None:
    # Whoever read it may be gone; that was reported before.
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _reopened(stream: TextIO, descriptor: int) -> TextIO:
    """The same stream by another descriptor, whose errors say what it is."""
    from epsilometer.storage.writing import NamedFile

    binary = io.BufferedWriter(NamedFile(descriptor, STANDARD_OUTPUT))
    return io.TextIOWrapper(
        binary,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.isatty(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFiles:
    """The files into which a result goes; None for those that were not asked for.

    Attributes:
        json: the result; "-" is standard output.
        html: the report.
        junit: JUnit XML.
        markdown: a summary for the page of a job.
        write_test: the counterexample as a test for pytest, if the claim is refuted.
        given_json: `json` as it was given, for the line that says how to replay the result.
    """

    json: str | None = None
    html: str | None = None
    junit: str | None = None
    markdown: str | None = None
    write_test: str | None = None
    given_json: str | None = None

    def checked(self, answers: Answers) -> "OutputFiles":
        """The same files by absolute paths; raises for one that cannot be written."""
        checked: dict[str, str | None] = {}
        for name in FILE_KEYS:
            option = f"--{name.replace('_', '-')}"
            checked[name] = writable(getattr(self, name), option, answers)
        return OutputFiles(**checked, given_json=self.json)


# The keys of a settings file that name an output file.
FILE_KEYS = ("json", "html", "junit", "markdown", "write_test")


def writable(path: str | None, option: str, answers: Answers) -> str | None:
    """The absolute path of a file that will be written: a mechanism may change the folder.

    Complains about a file that cannot be written before the work is done and not after it. None
    stays what it is, and so does "-" for --json.
    """
    if path is None or (path == "-" and option == "--json"):
        return path
    if path == "-":
        raise InputError(f"{option} -: only --json writes to standard output; name a file")
    file = Path(path)
    if not file.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {file.parent}")
    if file.is_dir():
        raise InputError(f"{option} {path} is a folder")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InputError(f"{option} {path}: Permission denied")
    return answers.path_of(path)


def write_all(writers: Sequence[Callable[[], object]]) -> EpsilometerError | None:
    """Writes files one after the other, also after one that cannot be written.

    Returns:
        What went wrong, in one line; None if everything was written.
    """
    problems: list[str] = []
    for write in writers:
        try:
            write()
        except OSError as error:
            name = error.filename or "a file"
            problems.append(f"{name} cannot be written: {error.strerror or error}")
        except InputError as error:  # a pair that no test can hold
            problems.append(str(error))
    return EpsilometerError("; ".join(problems)) if problems else None


def write_and_print(
    result: "AuditResult", files: OutputFiles, answers: Answers, *, fail_blind: bool = False
) -> ExitStatus:
    """Writes the files that were asked for, prints the result, and returns the exit status.

    Args:
        result: what was found.
        files: where it goes besides.
        answers: where it is printed.
        fail_blind: whether an audit that could not have refuted anything counts as inconclusive.

    Raises:
        EpsilometerError: if a file could not be written. The others are, and the result is printed
            all the same.
    """
    from epsilometer.result import Verdict

    if files.json not in (None, "-"):
        # For the line that says how to replay the result: no folder that was not given.
        result = replace(result, settings={**result.settings, "json": files.given_json})
    problem = write_all(_writers(result, files, fail_blind=fail_blind))
    if files.json == "-":
        answers.write(result.to_json() + "\n")
    else:
        from epsilometer.report.text import show_result

        show_result(result, file=answers.stream)
    if problem is not None:
        raise problem
    if result.verdict is Verdict.REFUTED:
        return ExitStatus.REFUTED
    from epsilometer.report.wording import is_untrusted_measurement

    is_blind = fail_blind and result.blind is not None
    is_untrusted = result.verdict is Verdict.INCONCLUSIVE or is_untrusted_measurement(result)
    if is_untrusted or is_blind:
        return ExitStatus.INCONCLUSIVE
    return ExitStatus.NOT_REFUTED


def _writers(
    result: "AuditResult", files: OutputFiles, *, fail_blind: bool
) -> list[Callable[[], object]]:
    from epsilometer.report.junit import render_junit
    from epsilometer.report.markdown import render_markdown
    from epsilometer.storage.writing import write_atomically

    writers: list[Callable[[], object]] = []
    if files.json not in (None, "-"):
        writers.append(partial(result.save_json, files.json))
    if files.html is not None:
        writers.append(partial(result.save_html, files.html))
    if files.junit is not None:
        junit = render_junit([result], fail_blind=fail_blind)
        writers.append(partial(write_atomically, files.junit, junit))
    if files.markdown is not None:
        writers.append(partial(write_atomically, files.markdown, render_markdown([result])))
    if files.write_test is not None and result.is_refuted:
        # Rendered by the writer: a pair that no test can hold must not cost the other files.
        test_file = files.write_test
        writers.append(lambda: write_atomically(test_file, result.to_test()))
    return writers
