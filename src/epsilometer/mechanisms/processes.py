"""One run of a program: no shell, a time limit, bounded output, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms.base import shown

# So much of what a program writes to standard error is kept for messages: its end.
_COMPLAINT = 2000
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take.

    Attributes:
        seconds: before it is killed.
        output: bytes on standard output.
    """

    seconds: float
    output: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended by itself.

    Attributes:
        status: its exit status; negative for a signal.
        output: all of standard output.
        complaint: the end of standard error.
    """

    status: int
    output: bytes
    complaint: bytes


class RunFailed(MechanismError):
    """A run was ended from outside. `kind` is "TimedOut" or "TooMuchOutput"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def run_program(
    argv: Sequence[str], given: bytes, limits: Limits, env: Mapping[str, str] | None, cwd: str | None
) -> Finished:
    """Runs a program to its end.

    Args:
        argv: the program and its arguments, taken literally.
        given: what it reads on standard input.
        env: the whole environment; None is ours.
        cwd: the working directory; None is ours.

    Raises:
        MechanismError: the program cannot be started.
        RunFailed: it took too long or wrote too much; its whole process group is then dead.
    """
    process = _start(argv, bool(given), env, cwd)
    try:
        return _attend(process, given, limits)
    except BaseException:
        _kill_group(process)
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _start(
    argv: Sequence[str], has_input: bool, env: Mapping[str, str] | None, cwd: str | None
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,  # a group of its own, so that children of the program can be killed with it
        )
    except FileNotFoundError as error:
        missing = f"the folder {cwd!r}" if cwd is not None and not os.path.isdir(cwd) else f"the program {argv[0]!r}"
        raise MechanismError(f"{missing} does not exist (looked for from {os.getcwd()})") from error
    except OSError as error:
        advice = "; a large input goes to standard input with stdin=True" if error.errno == 7 else ""
        raise MechanismError(f"the program {argv[0]!r} cannot be run: {error.strerror}{advice}") from error
    except ValueError as error:  # a zero byte, or a surrogate that the system cannot encode
        raise InputError(f"the command {shown(list(argv))} cannot be run: {error}") from error


class _Streams:
    """The three streams of a running program, served as they become ready."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes, most: int) -> None:
        self.output, self.complaint, self.most = bytearray(), bytearray(), most
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
            if key.data == "input":
                self._write(key)
            else:
                self._read(key)
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
                raise RunFailed("TooMuchOutput", f"it wrote more than {self.most} bytes, beginning with {start}")

    def _write(self, key: selectors.SelectorKey) -> None:
        try:
            self.pending = self.pending[os.write(key.fd, self.pending[:_PIECE]) :]
        except BrokenPipeError:  # it does not want to read all of it: its own affair
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]  # registered above, a file


def _attend(process: subprocess.Popen[bytes], given: bytes, limits: Limits) -> Finished:
    deadline = time.monotonic() + limits.seconds
    streams = _Streams(process, given, limits.output)
    with contextlib.closing(streams.selector):
        while streams.serve(max(0.0, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                raise _timed_out(limits, streams)
    try:
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _timed_out(limits, streams) from None
    return Finished(status, bytes(streams.output), bytes(streams.complaint))


def _timed_out(limits: Limits, streams: _Streams) -> RunFailed:
    seen = f"so far it printed {shown(bytes(streams.output[:80]))}" if streams.output else "it printed nothing"
    return RunFailed("TimedOut", f"it did not end within timeout={limits.seconds:g} s; {seen}")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
