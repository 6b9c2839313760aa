"""A worker process of this machine: both ends of its connection.

A worker is a fresh interpreter with its own socket. It never imports the program that started it,
so scripts need no main guard and notebooks work; what it does arrives pickled. Nothing is shared
between workers: no queue, no lock, no thread in this process. So whatever happens to one of them,
even in the middle of an answer, cannot block the others.
"""

import json
import os
import pickle
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NoReturn

from epsilometer.engine.task_serialization import run_parcel

# Before every message: the number of its task, 0 for an order without an answer, and how many bytes
# follow.
_HEADER = struct.Struct("!QQ")
# Bytes that are sent or received at a time.
_BUFFER_SIZE = 1 << 20
# Seconds after which a worker looks whether its program is still there, if a fork of the program
# keeps its channel open.
_WATCH_SECONDS = 1.0
# Seconds that a worker may take to end by itself. One that holds the interpreter's lock, or was
# stopped, does not end.
_GRACE_SECONDS = 1.0
# Seconds to wait for the end of a killed process.
_END_SECONDS = 10.0
# A worker found stopped (SIGSTOP, a debugger) in this many checks in a row is given up. Ctrl-Z
# stops this process too, which checks again only after everything has been resumed.
_STOPPED_LOOKS = 5
# The program of a worker. Search path and arguments are those of the parent, as with
# multiprocessing.
_PROGRAM = (
    "import json, sys; sys.path[:], sys.argv[:], channel, parent = json.loads(sys.argv[1]); "
    "from epsilometer.engine.local_worker import serve; serve(channel, parent)"
)


@dataclass(eq=False, slots=True)
class Ticket:
    """Stands for the answer to a task.

    Attributes:
        number: of the task, among those of its pool.
        message: the pickled task.
        answer: None until it comes.
        is_lost: whether it will never come.
        is_given: whether a worker was given the task.
    """

    number: int
    message: bytes
    answer: bytes | None = None
    is_lost: bool = False
    is_given: bool = False


class WorkerDied(Exception):
    """A worker is gone, or as good as gone; the message says how."""


class Worker:
    """A worker process, as its parent sees it. Reading and writing never block."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.out: deque[Ticket] = deque()
        self._incoming = bytearray()
        self.outgoing: deque[memoryview] = deque()  # views: what all workers are sent is there once
        self._stopped_looks = 0
        self.channel, there = socket.socketpair()
        self.channel.setblocking(False)
        try:
            with there:
                self.process = _start(there, {**os.environ, **environment})
        except BaseException:
            self.channel.close()
            raise

    def give(self, ticket: Ticket) -> None:
        """Sends a task."""
        ticket.is_given = True
        self.out.append(ticket)
        self.send(ticket.message, ticket.number)

    def order(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Has the worker do something that wants no answer, after the tasks that it has."""
        self.send(pickle.dumps((function, *arguments)))

    def send(self, message: bytes, number: int = 0) -> None:
        """Sends a message; without a number it is an order."""
        header = _HEADER.pack(number, len(message))
        self.outgoing.append(memoryview(header))
        self.outgoing.append(memoryview(message))
        self.write()

    def write(self) -> None:
        """Sends as much as the worker accepts."""
        # An error means that it accepts no more for now, or is gone, which `read` reports better.
        with suppress(OSError):
            while self.outgoing:
                n_sent = self.channel.send(self.outgoing[0][:_BUFFER_SIZE])
                self.outgoing[0] = self.outgoing[0][n_sent:]
                if not self.outgoing[0]:
                    self.outgoing.popleft()

    def read(self) -> None:
        """Reads what has arrived, and hands the answers to their tickets.

        Raises:
            WorkerDied: if nothing more can come. Earlier answers are handed over first.
        """
        try:
            while received := self.channel.recv(_BUFFER_SIZE):
                self._incoming += received
                for number, answer in _messages(self._incoming):
                    ticket = self.out.popleft()
                    assert ticket.number == number, (
                        f"task {number} was answered before {ticket.number}"
                    )
                    ticket.answer = answer
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass  # reset by the other end
        raise WorkerDied(self._how_it_ended())

    def look(self) -> None:
        """Notices what the channel does not show.

        To be called about once a second while an answer is pending.

        Raises:
            WorkerDied: if the process has ended, though a child of it may hold the channel open, or
                was stopped.
        """
        if self.process.poll() is not None:
            self.read()
            raise WorkerDied(self._how_it_ended())
        is_stopped = False
        if hasattr(os, "waitid"):  # macOS has it since Python 3.13
            with suppress(ChildProcessError):
                wanted = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
                is_stopped = os.waitid(os.P_PID, self.process.pid, wanted) is not None
        self._stopped_looks = self._stopped_looks + 1 if is_stopped else 0
        if self._stopped_looks >= _STOPPED_LOOKS:
            raise WorkerDied("a worker process was stopped by a signal and did not resume")

    def end(self) -> None:
        """Kills the process, whatever it does, and what it has forked."""
        self.channel.close()
        if self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_GRACE_SECONDS)
        # It leads a process group, so what a mechanism forks ends with it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel ends when it can
            self.process.wait(_END_SECONDS)

    def _how_it_ended(self) -> str:
        """Describes the end of the process, for messages."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        status = self.process.poll()
        if status is not None and status < 0:
            return f"a worker process was ended by signal {signal.Signals(-status).name}"
        if status is None:
            return "a worker process hung up"
        return f"a worker process ended with status {status}"


def end_all(workers: Sequence[Worker]) -> None:
    """Ends workers side by side."""
    # One that notices the closed channel ends at once, together with the programs that it runs.
    for worker in workers:
        worker.channel.close()
        worker.process.send_signal(signal.SIGCONT)
    for worker in workers:
        worker.end()


def exchange(workers: Sequence[Worker], seconds: float) -> list[WorkerDied]:
    """Writes and reads what is possible, and returns the deaths that it noticed.

    Args:
        workers: to exchange messages with.
        seconds: how long to wait until something is possible.
    """
    deaths = []
    # A PollSelector has no descriptor of its own, which a fork of the program would share.
    with selectors.PollSelector() as selector:
        for worker in workers:
            events = selectors.EVENT_READ
            if worker.outgoing:
                events |= selectors.EVENT_WRITE
            selector.register(worker.channel, events, worker)
        for key, _ in selector.select(seconds):
            worker = key.data
            worker.write()
            deaths += caught(worker.read)
    return deaths


def caught(action: Callable[[], None]) -> list[WorkerDied]:
    """Does something with a worker, and returns its death if it is dead."""
    try:
        action()
    except WorkerDied as death:
        return [death]
    return []


def serve(channel: int, parent: int) -> NoReturn:
    """Runs, in a worker, what arrives, until nothing more can arrive, and then ends the process.

    Args:
        channel: the descriptor of its socket, inherited.
        parent: the process that started it.
    """
    # Ctrl-C is for the program, which ends us. A handler instead of SIG_IGN, so that programs
    # started by a mechanism do not inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    this_process = os.getpid()
    with (
        suppress(EOFError, ConnectionError),
        socket.socket(fileno=channel) as wire,
        wire.makefile("rb") as stream,
    ):
        wire.set_inheritable(False)  # programs started by a mechanism do not hold it open
        _end_with(parent, wire)
        while True:
            number, size = _HEADER.unpack(_read(stream, _HEADER.size))
            function, *arguments = pickle.loads(_read(stream, size))
            answer = function(*arguments)
            if os.getpid() != this_process:
                os._exit(0)  # a mechanism has forked, and this is the child: its parent answers
            with suppress(Exception):  # it may be closed
                sys.stdout.flush()  # what a mechanism prints is seen, although we shall be killed
            if number:
                wire.sendall(_HEADER.pack(number, len(answer)))
                wire.sendall(answer)
    # Between two tasks this thread may notice the end of the program before the one that watches.
    _end_with_forks()


def surroundings() -> tuple[str, list[str]]:
    """Returns the folder and the search path of this process, usable by another process."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = os.curdir
    return folder, [place or folder for place in sys.path]


def settle(folder: str, path: Sequence[str]) -> None:
    """Takes over, in a worker that is reused, the program's current folder and search path."""
    with suppress(OSError):
        os.chdir(folder)
    sys.path[:] = path


# In a worker: the packed work that came last, by its key, until it is unpacked.
_held: dict[str, bytes] = {}


def hold_parcel(key: str, content: bytes) -> None:
    """Keeps packed work, in a worker, until a task asks for it."""
    _held.clear()
    _held[key] = content


def fetch_held(key: str) -> bytes:
    """Returns packed work, in a worker; it is unpacked once, so it is not kept any longer."""
    return _held.pop(key)


def forget_work() -> None:
    """Lets go, in a worker, of the work that it unpacked last, which may hold a large dataset."""
    _held.clear()
    # Unpacking a small function replaces it.
    run_parcel("", partial(pickle.dumps, bool), None)


def _read(stream: IO[bytes], size: int) -> bytes:
    """Reads exactly so many bytes."""
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("the program hung up")
    return content


def _messages(incoming: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes the complete messages out of the buffer, and yields their numbers and contents."""
    while len(incoming) >= _HEADER.size:
        number, size = _HEADER.unpack_from(incoming)
        end = _HEADER.size + size
        if len(incoming) < end:
            return
        yield number, bytes(incoming[_HEADER.size : end])
        del incoming[:end]


def _start(there: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a worker process.

    Args:
        there: its end of the channel.
        environment: all its variables.
    """
    # Interpreter options such as -O change what code does; it must do the same in the worker.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    channel = there.fileno()
    _, search_path = surroundings()
    arguments = json.dumps([search_path, sys.argv, channel, os.getpid()])
    return subprocess.Popen(
        [sys.executable, *flags, "-c", _PROGRAM, arguments],
        env=environment,
        pass_fds=[channel],
        stdin=subprocess.DEVNULL,  # not ours: a program may be read from there
        start_new_session=True,
    )


def _end_with(parent: int, wire: socket.socket) -> None:
    """Ends this process when the program hangs up or is gone, also in the middle of a task."""
    poll = select.poll()
    poll.register(wire, 0)  # reports the end of the other side, and nothing else

    def watch() -> None:
        while os.getppid() == parent and not poll.poll(1000 * _WATCH_SECONDS):
            pass
        _end_with_forks()

    threading.Thread(target=watch, daemon=True).start()


def _end_with_forks() -> NoReturn:
    """Ends this process and what a mechanism has forked, which nobody else would end."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
