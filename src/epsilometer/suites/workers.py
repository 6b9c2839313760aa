"""Tasks in worker processes, each answer reported as it comes.

A worker that dies or hangs costs only its own task.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

# How often time limits are checked, in seconds.
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """A task for a worker.

    Attributes:
        payload: the argument of the work function; plain data.
        seconds: the time limit; None for no limit.
    """

    payload: Any
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """A change in the state of a task.

    Attributes:
        number: the position of the task in the sequence of tasks.
        state: "started", "done" or "failed".
        answer: the work function's return value, or the error message.
    """

    number: int
    state: str
    answer: str = ""


@dataclass(slots=True)
class _Worker:
    """A worker process and the task that it works on.

    Attributes:
        process: the process.
        connection: our end of the pipe to it.
        number: the task; −1 before the first one.
        began: the time at which the task was sent, by the monotonic clock.
    """

    process: SpawnProcess
    connection: Connection
    number: int = -1
    began: float = 0.0

    def is_late(self, tasks: Sequence[Job]) -> bool:
        """Whether the current task has exceeded its time limit."""
        limit = tasks[self.number].seconds
        return limit is not None and time.monotonic() - self.began > limit

    def stop(self) -> None:
        """Ends the process, whatever it is doing."""
        self.connection.close()
        self.process.kill()
        self.process.join()


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a task ended.

    Attributes:
        update: what to report.
        is_worker_usable: whether the worker can take another task.
    """

    update: TaskUpdate
    is_worker_usable: bool


def run_tasks(work: Callable[[Any], str], tasks: Sequence[Job], jobs: int) -> Iterator[TaskUpdate]:
    """Runs all tasks in worker processes and yields what happens to them.

    Args:
        work: a function at the top level of a module. If it raises, its task has failed.
        tasks: started in this order.
        jobs: the greatest number of processes at a time.
    """
    next_task = 0
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while next_task < len(tasks) or busy:
            while next_task < len(tasks) and len(busy) < jobs:
                worker = idle.pop() if idle else _start_worker(work)
                worker.number = next_task
                next_task += 1
                busy.append(worker)
                # Before the work begins: a caller that records the start has done so before the
                # first draw.
                yield TaskUpdate(number=worker.number, state="started")
                worker.began = time.monotonic()
                worker.connection.send(tasks[worker.number].payload)
            # Returns when a worker has answered or died, or after a while.
            ready = wait([worker.connection for worker in busy], _POLL_SECONDS)
            finished = [
                worker for worker in busy if worker.connection in ready or worker.is_late(tasks)
            ]
            for worker in finished:
                busy.remove(worker)
                ending = _receive(worker, tasks)
                if ending.is_worker_usable:
                    idle.append(worker)
                else:
                    worker.stop()
                yield ending.update
    finally:
        for worker in (*busy, *idle):
            worker.stop()


def _start_worker(work: Callable[[Any], str]) -> _Worker:
    # spawn: a forked process would inherit threads and locks of the numerical libraries.
    context = multiprocessing.get_context("spawn")
    our_end, worker_end = context.Pipe()
    process = context.Process(target=_serve, args=(worker_end, work), daemon=True)
    process.start()
    worker_end.close()
    return _Worker(process=process, connection=our_end)


def _receive(worker: _Worker, tasks: Sequence[Job]) -> _Ending:
    """Returns how the task of a worker ended that has answered, died or run out of time."""
    if not worker.connection.poll():
        limit = tasks[worker.number].seconds
        return _failure(worker, f"given up after {limit:g} seconds")
    try:
        is_done, answer = worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return _failure(worker, f"the process was ended by signal {name}")
        return _failure(worker, f"the process ended with status {code} and no answer")
    state = "done" if is_done else "failed"
    update = TaskUpdate(number=worker.number, state=state, answer=answer)
    return _Ending(update=update, is_worker_usable=True)


def _failure(worker: _Worker, message: str) -> _Ending:
    """Returns the ending of a task whose worker cannot be used again."""
    update = TaskUpdate(number=worker.number, state="failed", answer=message)
    return _Ending(update=update, is_worker_usable=False)


def _serve(connection: Connection, work: Callable[[Any], str]) -> None:
    """Does one task after the other, in the worker process, until the parent is gone."""
    # Ctrl-C is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            payload = connection.recv()
        except (EOFError, OSError):  # the parent is gone
            return
        try:
            answer = True, work(payload)
        except BaseException as error:  # Ctrl-C does not reach us: it is the mechanism's error
            answer = False, f"{type(error).__name__}: {error}"
        try:
            connection.send(answer)
        except OSError:
            return
