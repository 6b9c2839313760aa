"""Mechanisms that are programs.

They are run without a shell, with a time limit and bounded output, and nothing is left behind.
"""

import contextlib
import errno
import os
import re
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsilometer.claims.base import check_flag, check_positive
from epsilometer.errors import InputError, MechanismError, discreet, short_repr
from epsilometer.inputs import Pair
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.callables import OnError, failed_run
from epsilometer.mechanisms.dataset_files import written_dataset
from epsilometer.mechanisms.drawing_log import current_log, draw_one_by_one
from epsilometer.mechanisms.features import as_features
from epsilometer.mechanisms.process_groups import register_process_group, unregister_process_group
from epsilometer.mechanisms.transmission import check_transmitted
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.redaction import public_arguments, secrets_of
from epsilometer.storage import code_digest, files_digest
from epsilometer.storage.dataset_formats import check_dataset_format, encode_dataset
from epsilometer.storage.formats import (
    decode,
    named_files,
    quotable,
    read_json,
    read_value,
    to_argument,
    to_json,
)

# Bytes at the end of standard error that are kept.
_KEPT_ERROR_BYTES = 2000
# Characters of them that are quoted in a message.
_QUOTED_ERROR_CHARACTERS = 500
# Bytes at the beginning of standard output that are quoted in a message.
_QUOTED_OUTPUT_BYTES = 80
# Bytes that are read or written at a time.
_BUFFER_SIZE = 1 << 16
# The system refuses arguments that are too long with this error.
_ARGUMENTS_TOO_LONG = errno.E2BIG


class Limits(NamedTuple):
    """What a run may take.

    Attributes:
        seconds: before it is killed.
        output: bytes on standard output.
    """

    seconds: float
    output: int


# A run that ended by itself; of standard error it has the end.
Finished = subprocess.CompletedProcess[bytes]


class RunFailed(MechanismError):
    """A run was ended from outside. `kind` is "TimedOut" or "TooMuchOutput"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, str(self))


def run_program(
    argv: Sequence[str],
    input_bytes: bytes,
    limits: Limits,
    env: Mapping[str, str] | None,
    cwd: str | None,
) -> Finished:
    """Runs a program to its end.

    Args:
        argv: the program and its arguments, taken literally.
        input_bytes: what it reads on standard input.
        limits: what it may take.
        env: the whole environment; None for that of this process.
        cwd: the working directory; None for that of this process.

    Raises:
        MechanismError: the program cannot be started.
        RunFailed: it took too long or wrote too much; its whole process group is then dead.
    """
    with _start(argv, has_input=bool(input_bytes), env=env, cwd=cwd) as process:
        try:
            register_process_group(process.pid)
            return _attend(process, input_bytes, limits)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            unregister_process_group(process.pid)


def _start(
    argv: Sequence[str], *, has_input: bool, env: Mapping[str, str] | None, cwd: str | None
) -> subprocess.Popen[bytes]:
    """Starts a program, or raises an error that says why it cannot be started."""
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=cwd,
            # In its own group, so that the program's children can be killed with it.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        missing = f"the program {argv[0]!r}"
        if cwd is not None and not os.path.isdir(cwd):
            missing = f"the folder {cwd!r}"
        raise MechanismError(f"{missing} does not exist (looked for from {os.getcwd()})") from error
    except OSError as error:
        advice = ""
        if error.errno == _ARGUMENTS_TOO_LONG:
            advice = (
                "; a large input goes into a file with {file}, or to standard input with {stdin}"
            )
        raise MechanismError(
            f"the program {argv[0]!r} cannot be run: {error.strerror}{advice}"
        ) from error
    except ValueError as error:  # a zero byte, or a surrogate that the system cannot encode
        raise InputError(
            f"the command {short_repr(public_arguments(argv))} cannot be run: {error}"
        ) from error


class _Streams:
    """The three streams of a running program, served as they become ready.

    Attributes:
        output: what it has written to standard output.
        error_output: the end of what it has written to standard error.
        max_output: bytes that it may write to standard output.
        pending: what it has not yet read of its standard input.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], input_bytes: bytes, max_output: int
    ) -> None:
        self.output = bytearray()
        self.error_output = bytearray()
        self.max_output = max_output
        self.pending = memoryview(input_bytes)
        self.selector = selectors.DefaultSelector()
        assert process.stdout is not None
        assert process.stderr is not None
        self.selector.register(process.stdout, selectors.EVENT_READ, self._read_output)
        self.selector.register(process.stderr, selectors.EVENT_READ, self._read_error)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self.selector.register(process.stdin, selectors.EVENT_WRITE, self._write)

    def serve(self, seconds: float) -> bool:
        """Waits for something to happen; False when all streams have ended."""
        if not self.selector.get_map():
            return False
        for key, _ in self.selector.select(seconds):
            serve_stream = key.data
            serve_stream(key)
        return True

    def _read_output(self, key: selectors.SelectorKey) -> None:
        received = os.read(key.fd, _BUFFER_SIZE)
        if not received:
            self.selector.unregister(key.fileobj)
            return
        self.output += received
        if len(self.output) > self.max_output:
            start = short_repr(quotable(self.output[:_QUOTED_OUTPUT_BYTES]))
            raise RunFailed(
                "TooMuchOutput",
                f"it wrote more than {self.max_output} bytes, beginning with {start}",
            )

    def _read_error(self, key: selectors.SelectorKey) -> None:
        received = os.read(key.fd, _BUFFER_SIZE)
        if not received:
            self.selector.unregister(key.fileobj)
            return
        self.error_output = (self.error_output + received)[-_KEPT_ERROR_BYTES:]

    def _write(self, key: selectors.SelectorKey) -> None:
        try:
            n_written = os.write(key.fd, self.pending[:_BUFFER_SIZE])
            self.pending = self.pending[n_written:]
        except BrokenPipeError:  # the program need not read all of its input
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]  # registered above, a file


def _attend(process: subprocess.Popen[bytes], input_bytes: bytes, limits: Limits) -> Finished:
    """Serves the streams of a program until it ends.

    Raises:
        RunFailed: if it exceeds a limit.
    """
    deadline = time.monotonic() + limits.seconds
    streams = _Streams(process, input_bytes, limits.output)
    try:
        with contextlib.closing(streams.selector):
            while streams.serve(max(0.0, deadline - time.monotonic())):
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(process.args, limits.seconds)
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        printed = "it printed nothing"
        if streams.output:
            start = quotable(streams.output[:_QUOTED_OUTPUT_BYTES])
            printed = f"so far it printed {short_repr(start)}"
        raise RunFailed(
            "TimedOut", f"it did not end within timeout={limits.seconds:g} s; {printed}"
        ) from None
    return Finished(
        args=process.args,
        returncode=status,
        stdout=bytes(streams.output),
        stderr=bytes(streams.error_output),
    )


# Stands for the dataset itself in the arguments of a program.
DATASET_PLACE = "{dataset}"
# Stands for the name of a temporary file that holds the dataset.
FILE_PLACE = "{file}"
# Among the arguments: the dataset goes to standard input. The argument itself is left out.
STDIN_PLACE = "{stdin}"
_PLACES = re.compile("|".join(map(re.escape, (DATASET_PLACE, FILE_PLACE))))
_HOW_TO_PLACE = (
    f"write {DATASET_PLACE} for the dataset itself, {FILE_PLACE} for a temporary file that holds "
    f"it, or {STDIN_PLACE} for standard input"
)
# Starting a program takes about a millisecond: a chunk of this many runs takes a tenth of a second.
_SINGLE_CHUNK = 64
# Outputs of a batch run: the program starts once for many of them, and chunks still show progress.
_BATCH_CHUNK = 10_000
# How a dataset is written unless the user says otherwise.
_DEFAULT_FORMAT = "json"
# Bytes that a run may print.
_MAX_OUTPUT_BYTES = 4 << 20
# Bytes per output that a batch may print on top of them.
_MAX_BYTES_PER_LINE = 4096


class _Call(NamedTuple):
    """What a program is given for one dataset, whatever the run.

    Attributes:
        argument: the dataset as an argument; empty if no argument holds it.
        input_bytes: what is written to standard input.
        file_content: what the file holds; None if the program is given none.
    """

    argument: str
    input_bytes: bytes
    file_content: bytes | None


class CommandMechanism(Mechanism):
    """A program that is run once per output."""

    is_seeded = False
    waits = True
    runs_afresh = True

    def __init__(
        self,
        argv: list[str],
        *,
        limits: Limits,
        chunk_size: int,
        name: str | None,
        stdin: bool,
        dataset_format: str,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        statuses: Collection[int],
        on_error: OnError,
    ) -> None:
        self.argv = [part for part in argv if part != STDIN_PLACE]
        self.limits = limits
        self.chunk_size = chunk_size
        self.stdin = stdin or STDIN_PLACE in argv
        self.dataset_format = dataset_format
        self.statuses = frozenset(statuses)
        self.on_error = on_error
        self.given_env = dict(env or {})
        self.env = None if env is None else {**os.environ, **env}
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.name = name or shlex.join(public_arguments(argv))

    def weakening_facts(self) -> dict[str, Any]:
        """Returns those of every mechanism, and how datasets are written, unless as JSON."""
        facts = super().weakening_facts()
        if self.dataset_format != _DEFAULT_FORMAT:
            facts["dataset_format"] = self.dataset_format
        return facts

    def prepared(self, pairs: Sequence[Pair], samples: int) -> Mechanism:
        """Refuses pairs whose inputs reach the program as the same text or file."""
        check_transmitted(pairs, self._call, self.name)
        return self

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Runs the program n times."""
        call = self._call(dataset)
        with discreet(self.secrets):
            read = self.features or read_outputs
            values = draw_one_by_one(lambda: self._draw_one(call, dataset), n, read)
            return read(values, n)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values of arguments and variables that must not be in any text.

        The program may repeat them.
        """
        return secrets_of(named=self.given_env, argv=self.argv)

    def digest(self) -> str:
        """Returns a digest of the call, and of the program and files that its arguments name."""
        search_path = self.given_env.get("PATH", os.environ.get("PATH"))
        files = files_digest(named_files(self.argv, Path(self.cwd or "."), search_path))
        call = (
            self.argv,
            self.stdin,
            sorted(self.given_env.items()),
            sorted(self.statuses),
            self.on_error,
        )
        if self.dataset_format != _DEFAULT_FORMAT:
            return code_digest((type(self).__name__, call, files, self.dataset_format))
        return code_digest((type(self).__name__, call, files))

    def _call(self, dataset: Any) -> _Call:
        """Returns what the program is given for a dataset."""
        has_place = any(DATASET_PLACE in part for part in self.argv)
        content: bytes | None = None
        if self.stdin or self._has_file:
            content = encode_dataset(dataset, self.dataset_format)
        return _Call(
            argument=to_argument(dataset) if has_place else "",
            input_bytes=content if self.stdin and content is not None else b"",
            file_content=content if self._has_file else None,
        )

    @property
    def _has_file(self) -> bool:
        return any(FILE_PLACE in part for part in self.argv)

    def _draw_one(self, call: _Call, dataset: Any) -> Any:
        """Runs the program once, and returns its output."""
        try:
            finished = self._run(call, dataset)
        except RunFailed as failure:
            pass_on(failure)
            if self.on_error == "outcome":
                current_log().add(failed=1)
                return failed_run(failure.kind)
            raise
        source = f"what {self.name} printed on the input {short_repr(dataset)}"
        text = decode(finished.stdout, source).strip()
        if not text:
            raise MechanismError(
                f"{self.name} printed nothing on the input {short_repr(dataset)}"
                f"{_error_message(finished)}"
            )
        return read_value(text)

    def _run(self, call: _Call, dataset: Any) -> Finished:
        """Runs the program once.

        Raises:
            RunFailed: if it exceeds a limit, or ends with a status that does not mean success.
        """
        try:
            if call.file_content is None:
                finished = self._run_on(call)
            else:
                with written_dataset(call.file_content, self.dataset_format) as path:
                    finished = self._run_on(call, path)
        except RunFailed as failure:
            raise RunFailed(
                failure.kind, f"{self.name} on the input {short_repr(dataset)}: {failure}"
            ) from None
        if finished.returncode in self.statuses:
            return finished
        if finished.returncode >= 0:
            kind = f"ExitStatus{finished.returncode}"
            ending = f"exit status {finished.returncode}"
        else:
            kind = f"Signal{-finished.returncode}"
            ending = f"signal {-finished.returncode}"
        raise RunFailed(
            kind,
            f"{self.name} ended with {ending} on the input {short_repr(dataset)}"
            f"{_error_message(finished)}",
        )

    def _run_on(self, call: _Call, file: str = "") -> Finished:
        """Runs the program once, with the dataset in its places."""
        texts = {DATASET_PLACE: call.argument, FILE_PLACE: file}
        argv = [_PLACES.sub(lambda place: texts[place[0]], part) for part in self.argv]
        return run_program(
            argv, input_bytes=call.input_bytes, limits=self.limits, env=self.env, cwd=self.cwd
        )


class BatchCommandMechanism(CommandMechanism):
    """A program that reads how many outputs to print, one JSON value per line."""

    def _call(self, dataset: Any, n: int = 1) -> _Call:
        """Returns what the program is given for a dataset: a line that asks for n outputs."""
        request = f'{{"n": {n}, "dataset": {to_json(dataset)}}}\n'
        return super()._call(dataset)._replace(input_bytes=request.encode())

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Runs the program once."""
        with discreet(self.secrets):
            finished = self._run(self._call(dataset, n), dataset)
            # Not splitlines: JSON texts may hold other line ends.
            lines = decode(finished.stdout, f"what {self.name} printed").split("\n")
            while lines and not lines[-1].strip():
                lines.pop()
            if len(lines) != n:
                last = f"; the last one is {short_repr(lines[-1])}" if lines else ""
                raise MechanismError(
                    f"{self.name} printed {len(lines)} lines where {n} outputs were asked for{last}"
                    f"{_error_message(finished)}"
                )
            source = f"{self.name} on the input {short_repr(dataset)}: line"
            values = [
                read_json(line, f"{source} {number} of what it printed")
                for number, line in enumerate(lines, 1)
            ]
            return (self.features or read_outputs)(values, n)


def from_command(
    argv: Sequence[str],
    *,
    batch: bool = False,
    stdin: bool = False,
    dataset_format: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 60.0,
    statuses: Collection[int] = (0,),
    on_error: OnError = "raise",
    chunk_size: int | None = None,
    max_output: int | None = None,
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
) -> CommandMechanism:
    """A mechanism from a program.

    No shell is involved: the parts of `argv` reach the program as they are.

    Args:
        argv: the program and its arguments. `{dataset}` stands for the dataset: a number or a text
            as it is, anything else as JSON. `{file}` stands for the name of a temporary file that
            holds the dataset; it is written anew for every run and removed afterwards. An argument
            `{stdin}` is left out, and means stdin=True.
        batch: the program reads one line `{"n": …, "dataset": …}` on standard input and prints n
            JSON values, one per line. Otherwise it is run once per output, and what it prints is
            read as JSON, else as a number, else as text.
        stdin: also gives the dataset on standard input (for programs that take no arguments, and
            for datasets too large for one).
        dataset_format: how the dataset is written to `{file}` and to standard input: "json" (the
            default), "jsonl" (a record per line), "csv" (with a header if records have names),
            "npy" or "parquet".
        env: variables set on top of the environment of this process.
        cwd: working directory.
        timeout: seconds per run; then the program and all its children are killed.
        statuses: exit statuses that mean success.
        on_error: "outcome" counts a failed run (exit status, time limit, too much output) as a
            separate output instead of stopping the audit; not with batch.
        chunk_size: outputs per run of a batch program, and per piece of work for other processes.
        max_output: bytes that a run may print.
        name: its name in reports.
        features: a function of one output, see `from_batch`.

    The program draws its own randomness, so its audits cannot be repeated from the seed; keep the
    draws with `audit(…, record=path)`.

    Example:
        >>> mechanism = em.from_command(["python3", "-c", "print(1)", "{dataset}"])
        >>> mechanism.is_seeded
        False
    """
    check_flag("batch", batch)
    check_flag("stdin", stdin)
    parts = _check_argv(argv)
    _check_places(parts, batch=batch, stdin=stdin, dataset_format=dataset_format)
    allowed_on_error = ("raise",) if batch else ("raise", "outcome")
    if on_error not in allowed_on_error:
        raise InputError(
            f"on_error={on_error!r} must be 'raise', or, for one run per output, 'outcome'"
        )
    chunk = _BATCH_CHUNK if batch else _SINGLE_CHUNK
    if chunk_size is not None:
        chunk = int(check_positive("chunk_size", chunk_size))
    default_max_output = _MAX_OUTPUT_BYTES
    if batch:
        default_max_output += chunk * _MAX_BYTES_PER_LINE
    limits = Limits(
        seconds=check_positive("timeout", timeout),
        output=int(check_positive("max_output", max_output or default_max_output)),
    )
    mechanism_class = BatchCommandMechanism if batch else CommandMechanism
    mechanism = mechanism_class(
        parts,
        limits=limits,
        chunk_size=chunk,
        name=name,
        stdin=stdin,
        dataset_format=check_dataset_format(dataset_format or _DEFAULT_FORMAT),
        env=env,
        cwd=cwd,
        statuses=statuses,
        on_error=on_error,
    )
    return mechanism.with_features(as_features(features))


def _check_argv(argv: Sequence[str]) -> list[str]:
    """Returns the parts of a command as texts."""
    if isinstance(argv, str):
        raise InputError(
            f"argv must be a list, e.g. {public_arguments(argv.split())!r}: "
            "there is no shell to split it"
        )
    parts = [os.fspath(part) if isinstance(part, os.PathLike) else part for part in argv]
    if not parts or not isinstance(parts[0], str) or not parts[0]:
        raise InputError(f"argv={short_repr(public_arguments(argv))} must begin with the program")
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"argv={short_repr(public_arguments(argv))} must consist of texts")
    return parts


def _check_places(
    argv: Sequence[str], *, batch: bool, stdin: bool, dataset_format: str | None
) -> None:
    """Refuses a command to which no dataset can get, or not in the format that was chosen."""
    call = f"argv={short_repr(public_arguments(argv))}"
    has_file = any(FILE_PLACE in part for part in argv)
    has_stdin = stdin or STDIN_PLACE in argv
    if any(STDIN_PLACE in part and part != STDIN_PLACE for part in argv):
        raise InputError(
            f"{call}: {STDIN_PLACE} must be an argument of its own, which is left out; a program "
            "that wants the name of standard input takes /dev/stdin beside it"
        )
    if batch and has_stdin:
        raise InputError(
            f"{call}: a batch program reads what it is asked for on standard input; leave out "
            f"{STDIN_PLACE}"
        )
    has_dataset = any(DATASET_PLACE in part for part in argv)
    if not (batch or has_stdin or has_file or has_dataset):
        raise InputError(f"{call}: the program never sees its input; {_HOW_TO_PLACE}")
    if dataset_format is not None and not (has_file or has_stdin):
        raise InputError(
            f"dataset_format={dataset_format!r}: {call} takes the dataset neither as {FILE_PLACE} "
            f"nor on standard input; {_HOW_TO_PLACE}"
        )


def _error_message(finished: Finished) -> str:
    """Returns the end of what a program wrote to standard error, for messages."""
    text = finished.stderr.decode("utf-8", "backslashreplace").strip()
    if not text:
        return ""
    quoted = text
    if len(text) > _QUOTED_ERROR_CHARACTERS:
        # Only complete words: a secret that was cut in two could not be recognised.
        quoted = text[-_QUOTED_ERROR_CHARACTERS:].partition(" ")[2]
    return f"; it said: {quoted}"
