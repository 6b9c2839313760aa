"""Tasks in worker processes, each answer as it comes. A worker that dies or hangs costs only its own task."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

# How often time limits are checked, in seconds.
_PULSE = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do.

    Attributes:
        payload: what the work is called with; plain data.
        seconds: after which it is given up; None for never.
    """

    payload: Any
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class News:
    """Something happened to a task.

    Attributes:
        number: of the task.
        state: "started", "done" or "failed".
        answer: what the work returned, or what went wrong.
    """

    number: int
    state: str
    answer: str = ""


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    connection: Connection
    number: int = -1
    began: float = 0.0

    def is_late(self, tasks: Sequence[Job]) -> bool:
        limit = tasks[self.number].seconds
        return limit is not None and time.monotonic() - self.began > limit

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


def run_tasks(work: Callable[[Any], str], tasks: Sequence[Job], jobs: int) -> Iterator[News]:
    """Runs all tasks in up to `jobs` processes and yields what happens.

    Args:
        work: a function at the top level of a module; its exceptions become failed news.
        tasks: begun in this order.
        jobs: how many at a time.
    """
    waiting = list(range(len(tasks)))[::-1]
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _start(work)
                worker.number = waiting.pop()
                busy.append(worker)
                # Before the work begins: whoever notes the start has noted it when the first draw is made.
                yield News(worker.number, "started")
                worker.began = time.monotonic()
                worker.connection.send(tasks[worker.number].payload)
            # Until workers have answered, died, or run out of time.
            ready = wait([worker.connection for worker in busy], _PULSE)
            for worker in [each for each in busy if each.connection in ready or each.is_late(tasks)]:
                busy.remove(worker)
                news, usable = _receive(worker, tasks)
                if usable:
                    idle.append(worker)
                else:
                    worker.stop()
                yield news
    finally:
        for worker in (*busy, *idle):
            worker.stop()


def _start(work: Callable[[Any], str]) -> _Worker:
    # spawn: a forked process would inherit threads and locks of the numerical libraries.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _receive(worker: _Worker, tasks: Sequence[Job]) -> tuple[News, bool]:
    """The news, and whether the worker can continue."""
    if not worker.connection.poll():
        return News(worker.number, "failed", f"given up after {tasks[worker.number].seconds:g} seconds"), False
    try:
        is_done, answer = worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        how = f"the process ended with status {code} and no answer"
        if code is not None and code < 0:
            how = f"the process was ended by signal {signal.Signals(-code).name}"
        return News(worker.number, "failed", how), False
    return News(worker.number, "done" if is_done else "failed", answer), True


def _serve(connection: Connection, work: Callable[[Any], str]) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    while True:
        try:
            payload = connection.recv()
        except (EOFError, OSError):  # the parent is gone
            return
        try:
            answer = True, work(payload)
        except BaseException as error:  # Ctrl-C does not reach us, so it is the mechanism's, whatever it is
            answer = False, f"{type(error).__name__}: {error}"
        try:
            connection.send(answer)
        except OSError:
            return
