"""Mechanisms that are programs: no shell, a time limit, bounded output, and nothing left behind."""

import contextlib
import os
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

from epsilometer.claims.base import check_positive
from epsilometer.errors import (
    InputError,
    MechanismError,
    discreet,
    public_arguments,
    secrets_of,
    shown,
)
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism, tell_reaper
from epsilometer.mechanisms.drawing_log import current_log, draw_one_by_one
from epsilometer.mechanisms.features import as_features
from epsilometer.mechanisms.functions import OnError, failed_run
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.storage import code_digest, files_digest
from epsilometer.storage.exchange import (
    decode,
    named_files,
    read_json,
    read_value,
    to_argument,
    to_json,
)

# Bytes at the end of standard error that are kept for messages.
_COMPLAINT = 2000
_PIECE = 1 << 16
_Variables = Mapping[str, str] | None


class Limits(NamedTuple):
    """What a run may take: seconds before it is killed, and bytes on standard output."""

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
    argv: Sequence[str], given: bytes, limits: Limits, env: _Variables, cwd: str | None
) -> Finished:
    """Runs a program to its end.

    Args:
        argv: the program and its arguments, taken literally.
        given: what it reads on standard input.
        env: the whole environment; None for that of this process.
        cwd: the working directory; None for that of this process.

    Raises:
        MechanismError: the program cannot be started.
        RunFailed: it took too long or wrote too much; its whole process group is then dead.
    """
    with _start(argv, bool(given), env, cwd) as process:
        try:
            tell_reaper("+", process.pid)
            return _attend(process, given, limits)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            tell_reaper("-", process.pid)


def _start(
    argv: Sequence[str], has_input: bool, env: _Variables, cwd: str | None
) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    streams: dict[str, Any] = {
        "stdin": pipe if has_input else subprocess.DEVNULL,
        "stdout": pipe,
        "stderr": pipe,
    }
    try:
        # In its own group, so that the program's children can be killed with it.
        return subprocess.Popen(
            list(argv), **streams, bufsize=0, env=env, cwd=cwd, start_new_session=True
        )
    except FileNotFoundError as error:
        missing = (
            f"the folder {cwd!r}"
            if cwd is not None and not os.path.isdir(cwd)
            else f"the program {argv[0]!r}"
        )
        raise MechanismError(f"{missing} does not exist (looked for from {os.getcwd()})") from error
    except OSError as error:
        advice = (
            "; a large input goes to standard input with stdin=True" if error.errno == 7 else ""
        )
        raise MechanismError(
            f"the program {argv[0]!r} cannot be run: {error.strerror}{advice}"
        ) from error
    except ValueError as error:  # a zero byte, or a surrogate that the system cannot encode
        raise InputError(
            f"the command {shown(public_arguments(argv))} cannot be run: {error}"
        ) from error


class _Streams:
    """The three streams of a running program, served as they become ready."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes, most: int) -> None:
        self.output = bytearray()
        self.complaint = bytearray()
        self.most = most
        self.pending = memoryview(given)
        self.selector = selectors.DefaultSelector()
        for stream, name in ((process.stdout, "output"), (process.stderr, "complaint")):
            assert stream is not None
            self.selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self.selector.register(process.stdin, selectors.EVENT_WRITE, "input")

    def serve(self, seconds: float) -> bool:
        """Waits for something to happen; False when all streams have ended."""
        if not self.selector.get_map():
            return False
        for key, _ in self.selector.select(seconds):
            (self._write if key.data == "input" else self._read)(key)
        return True

    def _read(self, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, _PIECE)
        if not piece:
            self.selector.unregister(key.fileobj)
        elif key.data == "complaint":
            self.complaint = (self.complaint + piece)[-_COMPLAINT:]
        else:
            self.output += piece
            if len(self.output) > self.most:
                start = shown(bytes(self.output[:80]))
                raise RunFailed(
                    "TooMuchOutput", f"it wrote more than {self.most} bytes, beginning with {start}"
                )

    def _write(self, key: selectors.SelectorKey) -> None:
        try:
            self.pending = self.pending[os.write(key.fd, self.pending[:_PIECE]) :]
        except BrokenPipeError:  # the program need not read all of its input
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]  # registered above, a file


def _attend(process: subprocess.Popen[bytes], given: bytes, limits: Limits) -> Finished:
    deadline = time.monotonic() + limits.seconds
    streams = _Streams(process, given, limits.output)
    try:
        with contextlib.closing(streams.selector):
            while streams.serve(max(0.0, deadline - time.monotonic())):
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(process.args, limits.seconds)
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        seen = (
            f"so far it printed {shown(bytes(streams.output[:80]))}"
            if streams.output
            else "it printed nothing"
        )
        raise RunFailed(
            "TimedOut", f"it did not end within timeout={limits.seconds:g} s; {seen}"
        ) from None
    return Finished(process.args, status, bytes(streams.output), bytes(streams.complaint))


PLACE = "{dataset}"
# Starting a program takes about a millisecond: a chunk of this many runs takes a tenth of a second.
_SINGLE_CHUNK = 64
# Outputs of a batch run: the start is paid once for many of them, and a chunk still shows progress.
_BATCH_CHUNK = 10_000
# One output may be as long as this, and this much per output is allowed to a batch on top of it.
_MOST_SINGLE = 4 << 20
_MOST_PER_LINE = 4096


class CommandMechanism(Mechanism):
    """A program that is run once per output."""

    is_seeded = False

    def __init__(
        self, argv: list[str], limits: Limits, chunk_size: int, name: str | None, **how: Any
    ) -> None:
        self.argv = argv
        self.limits = limits
        self.chunk_size = chunk_size
        self.stdin = how["stdin"]
        self.statuses = frozenset(how["statuses"])
        self.on_error = how["on_error"]
        self.given_env = dict(how["env"] or {})
        self.env = None if how["env"] is None else {**os.environ, **how["env"]}
        self.cwd = None if how["cwd"] is None else os.fspath(how["cwd"])
        self.name = name or shlex.join(public_arguments(argv))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Runs the program n times."""
        argv, given = self._call(dataset)
        with discreet(self.secrets):
            read = self.features or read_outputs
            return read(draw_one_by_one(lambda: self._one(argv, given, dataset), n, read), n)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """Values of arguments and variables that must not be in any text, even if the program repeats them."""
        return secrets_of(named=self.given_env, argv=self.argv)

    def digest(self) -> str:
        """Of the call, and of the content of the program and the files that its arguments name."""
        search = self.given_env.get("PATH", os.environ.get("PATH"))
        files = files_digest(named_files(self.argv, Path(self.cwd or "."), search))
        given = (
            self.argv,
            self.stdin,
            sorted(self.given_env.items()),
            sorted(self.statuses),
            self.on_error,
        )
        return code_digest((type(self).__name__, given, files))

    def _call(self, dataset: Any) -> tuple[list[str], bytes]:
        text = to_argument(dataset) if any(PLACE in part for part in self.argv) else ""
        given = (to_json(dataset) + "\n").encode() if self.stdin else b""
        return [part.replace(PLACE, text) for part in self.argv], given

    def _one(self, argv: list[str], given: bytes, dataset: Any) -> Any:
        try:
            done = self._run(argv, given, dataset)
        except RunFailed as failure:
            pass_on(failure)
            if self.on_error == "outcome":
                current_log().add(failed=1)
                return failed_run(failure.kind)
            raise
        text = decode(
            done.stdout, f"what {self.name} printed on the input {shown(dataset)}"
        ).strip()
        if not text:
            raise MechanismError(
                f"{self.name} printed nothing on the input {shown(dataset)}{_complaint(done)}"
            )
        return read_value(text)

    def _run(self, argv: list[str], given: bytes, dataset: Any) -> Finished:
        try:
            done = run_program(argv, given, self.limits, self.env, self.cwd)
        except RunFailed as failure:
            raise RunFailed(
                failure.kind, f"{self.name} on the input {shown(dataset)}: {failure}"
            ) from None
        if done.returncode not in self.statuses:
            kind, how = (
                ("ExitStatus", "exit status") if done.returncode >= 0 else ("Signal", "signal")
            )
            status = abs(done.returncode)
            what = f"{self.name} ended with {how} {status} on the input {shown(dataset)}{_complaint(done)}"
            raise RunFailed(f"{kind}{status}", what)
        return done


class BatchCommandMechanism(CommandMechanism):
    """A program that reads how many outputs to print, one JSON value per line."""

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Runs the program once."""
        argv, _ = self._call(dataset)
        with discreet(self.secrets):
            done = self._run(
                argv, f'{{"n": {n}, "dataset": {to_json(dataset)}}}\n'.encode(), dataset
            )
            # JSON may hold other line ends
            lines = decode(done.stdout, f"what {self.name} printed").split("\n")
            while lines and not lines[-1].strip():
                lines.pop()
            if len(lines) != n:
                last = f"; the last one is {shown(lines[-1])}" if lines else ""
                what = (
                    f"{self.name} printed {len(lines)} lines where {n} outputs were asked for{last}"
                )
                raise MechanismError(what + _complaint(done))
            source = f"{self.name} on the input {shown(dataset)}: line"
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
    """A mechanism from a program. No shell is involved: the parts of `argv` reach the program as they are.

    Args:
        argv: the program and its arguments. `{dataset}` stands for the dataset: a number or a text
            as it is, anything else as JSON.
        batch: the program reads one line `{"n": …, "dataset": …}` on standard input and prints n
            JSON values, one per line. Otherwise it is run once per output, and what it prints is
            read as JSON, else as a number, else as text.
        stdin: also gives the dataset as a line of JSON on standard input (for programs that take no
            arguments, and for datasets too large for one).
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
    parts = _check_argv(argv)
    if not batch and not stdin and not any(PLACE in part for part in parts):
        hint = f"the program never sees its input; write {PLACE} or give stdin=True"
        raise InputError(f"argv={shown(public_arguments(argv))}: {hint}")
    if on_error not in (("raise",) if batch else ("raise", "outcome")):
        raise InputError(
            f"on_error={on_error!r} must be 'raise', or, for one run per output, 'outcome'"
        )
    kind, chunk = (
        (BatchCommandMechanism, _BATCH_CHUNK) if batch else (CommandMechanism, _SINGLE_CHUNK)
    )
    chunk = chunk if chunk_size is None else int(check_positive("chunk_size", chunk_size))
    most = _MOST_SINGLE + (chunk * _MOST_PER_LINE if batch else 0)
    limits = Limits(
        check_positive("timeout", timeout), int(check_positive("max_output", max_output or most))
    )
    how: dict[str, Any] = {
        "stdin": stdin,
        "env": env,
        "cwd": cwd,
        "statuses": statuses,
        "on_error": on_error,
    }
    return kind(parts, limits, chunk, name, **how).with_features(as_features(features))


def _check_argv(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str):
        raise InputError(
            f"argv must be a list, e.g. {public_arguments(argv.split())!r}: there is no shell to split it"
        )
    parts = [os.fspath(part) if isinstance(part, os.PathLike) else part for part in argv]
    if not parts or not all(isinstance(part, str) and part for part in parts[:1]):
        raise InputError(f"argv={shown(public_arguments(argv))} must begin with the program")
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"argv={shown(public_arguments(argv))} must consist of texts")
    return parts


def _complaint(done: Finished) -> str:
    text = done.stderr.decode("utf-8", "backslashreplace").strip()
    # Whole words only: of a secret that was cut in two, nothing could be found.
    cut = text if len(text) <= 500 else text[-500:].partition(" ")[2]
    return f"; it said: {cut}" if text else ""
