"""Worker processes on this machine, kept warm from one audit to the next."""

import atexit
import os
import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import count

import epsilometer.engine.local_worker as local_worker
from epsilometer.engine.deadlines import Deadline
from epsilometer.engine.task_serialization import Fault, run_parcel

# Seconds to wait for answers before checking on the workers.
_PULSE_SECONDS = 1.0
# Tasks per worker: one that runs and one to begin right after it. More could not be cancelled.
_TASKS_PER_WORKER = 2
# A warm worker may still be busy with abandoned work of an earlier audit. Waiting for it longer
# than so many seconds costs more than starting another one.
_PATIENCE_SECONDS = 0.5
# Where numerical libraries read how many threads they may start.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)

# Every worker of this process; those that wait for the next audit; and the lock on both.
_all: weakref.WeakSet[local_worker.Worker] = weakref.WeakSet()
_warm: list[local_worker.Worker] = []
_lock = threading.RLock()


class LocalPool:
    """A number of processes. When one dies, all are started again.

    No wait is endless: a ticket without an answer is either with a worker, which is checked every
    second, or waits for one, or is lost and says so. A pool belongs to the thread that uses it;
    other audits have other workers.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.asked = f"jobs={jobs}"
        self._workers: list[local_worker.Worker] = []
        self._waiting: deque[local_worker.Ticket] = deque()
        self._numbers = count(1)
        self._owner = os.getpid()
        self._last_check = 0.0
        weakref.finalize(self, _check_in, self._workers, jobs).atexit = False

    def open(self) -> int:
        """Takes warm processes, and starts those that are missing."""
        if self._owner != os.getpid():  # a fork of the program does not own its workers
            self._owner = os.getpid()
            self._forget()
        if not self._workers:
            try:
                _check_out(self._workers, self.jobs)
            except OSError as error:
                raise Fault(
                    f"no worker process could be started: {error}", engine_lost=True
                ) from error
        return self.jobs

    def ship(self, key: str, content: bytes) -> str:
        """Sends the packed work to every worker through its own channel.

        A file would outlive a program that is killed.
        """
        order = (local_worker.hold_parcel, key, content)
        message = pickle.dumps(order, protocol=pickle.HIGHEST_PROTOCOL)
        for worker in self._workers:
            worker.send(message)
        return key

    def submit(self, key: str, shipped: str, task: object) -> local_worker.Ticket:
        """Puts a task in line for a worker."""
        import cloudpickle

        work = (run_parcel, key, partial(local_worker.fetch_held, shipped), task)
        message = cloudpickle.dumps(work, protocol=pickle.HIGHEST_PROTOCOL)
        ticket = local_worker.Ticket(number=next(self._numbers), message=message)
        self._waiting.append(ticket)
        # The worker may have died of this very task by now. The death is reported by the next wait:
        # only a ticket that its owner holds can be counted as lost.
        with suppress(Fault):
            self._exchange(0.0)
        return ticket

    def collect(
        self, ticket: local_worker.Ticket, deadline: Deadline | None = None
    ) -> bytes | None:
        """Waits for an answer, as long as there is somebody to give it."""
        # An answer that is here already is taken; a death is reported by the next wait.
        with suppress(Fault):
            self._exchange(0.0)
        while ticket.answer is None:
            if ticket.is_lost:
                raise Fault("the worker processes were ended", engine_lost=True)
            if deadline is not None and deadline.left <= 0.0:
                return None
            seconds = _PULSE_SECONDS
            if deadline is not None:
                seconds = min(seconds, deadline.left)
            self._exchange(seconds)
        return ticket.answer

    def end_running(self, tickets: Iterable[local_worker.Ticket]) -> None:
        """Ends all workers: what the others have to do is not wanted either."""
        self.drop()

    def times_begun(self, ticket: local_worker.Ticket) -> int:
        """Returns 1 if a worker was given the task, and 0 if it waits for a worker."""
        return int(ticket.is_given)

    def has_answer(self, ticket: local_worker.Ticket) -> bool:
        """Returns whether the answer came before the processes were lost."""
        return ticket.answer is not None

    def drop(self) -> None:
        """Ends the other processes, too; the next ones are new."""
        workers = list(self._workers)
        self._forget()
        local_worker.end_all(workers)

    def cancel(self, tickets: Iterable[local_worker.Ticket]) -> None:
        """Drops tasks. Running ones finish and are forgotten; others never begin.

        One task per worker may begin nevertheless: the worker has it already.
        """
        unwanted = set(tickets)
        for ticket in unwanted:
            ticket.is_lost = True
        self._waiting = deque(ticket for ticket in self._waiting if ticket not in unwanted)

    def withdraw(self, shipped: str) -> None:
        """No-op: the next packed work takes its place, and at the end of the audit nothing does."""

    def close(self) -> None:
        """Leaves the processes warm for the next audit."""
        workers = list(self._workers)
        self._forget()
        if self._owner == os.getpid():
            _check_in(workers, self.jobs)

    def _exchange(self, seconds: float) -> None:
        """Sends tasks and takes answers, waiting up to `seconds` for some.

        Raises:
            Fault: if a worker died, after all answers that came have reached their tickets.
        """
        if self._owner != os.getpid() or not self._workers:
            raise Fault("the worker processes are gone", engine_lost=True)
        try:
            self._hand_out()
            deaths = local_worker.exchange(self._workers, seconds)
            if time.monotonic() - self._last_check >= _PULSE_SECONDS:
                self._last_check = time.monotonic()
                for worker in self._workers:
                    deaths += local_worker.caught(worker.look)
            self._hand_out()
        except BaseException:  # Ctrl-C may have cut a message in two
            self.drop()
            raise
        if deaths:
            raise Fault(str(deaths[0]), engine_lost=True)

    def _hand_out(self) -> None:
        """Gives waiting tasks to the workers with the fewest tasks."""
        while self._waiting:
            worker = min(self._workers, key=lambda candidate: len(candidate.out))
            if len(worker.out) >= _TASKS_PER_WORKER:
                return
            worker.give(self._waiting.popleft())

    def _forget(self) -> None:
        """Lets go of all workers and tasks."""
        for ticket in self._waiting:
            ticket.is_lost = True
        for worker in self._workers:
            for ticket in worker.out:
                ticket.is_lost = True
        self._workers.clear()
        self._waiting.clear()


def _check_out(workers: list[local_worker.Worker], jobs: int) -> None:
    """Fills a list with workers: warm ones, brought up to date, and new ones."""
    # Shares the cores among the workers, unless the user's environment says otherwise.
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    limits = {name: os.environ.get(name, threads) for name in _THREAD_VARIABLES}
    with _lock:
        fitting = [worker for worker in _warm if worker.environment == limits][:jobs]
        _warm[:] = [worker for worker in _warm if worker not in fitting]
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for worker in fitting:
        # Only one that lives and has nothing left to do is ready.
        deaths = local_worker.exchange([worker], 0.0) or local_worker.caught(worker.look)
        while worker.out and not deaths:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                break
            deaths = local_worker.exchange([worker], seconds_left)
        if not worker.out and not deaths:
            folder, search_path = local_worker.surroundings()
            worker.order(local_worker.settle, folder, search_path)
            workers.append(worker)
        else:
            local_worker.end_all([worker])
    while len(workers) < jobs:
        worker = local_worker.Worker(limits)
        workers.append(worker)
        _all.add(worker)


def _check_in(workers: list[local_worker.Worker], jobs: int) -> None:
    """Keeps as many workers warm as were used last, and ends the others.

    Ending a dead one ends what it has forked.
    """
    dead = [worker for worker in workers if worker.process.poll() is not None]
    alive = [worker for worker in workers if worker not in dead]
    for worker in alive:
        worker.order(local_worker.forget_work)
    with _lock:
        n_surplus = max(0, len(_warm) + len(alive) - jobs)
        surplus = _warm[:n_surplus]
        _warm[:] = [*_warm[len(surplus) :], *alive]
    workers.clear()
    local_worker.end_all([*surplus, *dead])


@atexit.register
def _end_all() -> None:
    """Ends all workers when the program ends."""
    with _lock:
        local_worker.end_all(list(_all))
        _warm.clear()


def _leave_all() -> None:
    """Forgets all workers in a fork of this process, which must not end ours when it ends."""
    global _lock
    _lock = threading.RLock()  # another thread may have held it at the fork
    for worker in list(_all):
        worker.channel.close()
        worker.process.returncode = 0  # never waited for: it belongs to the parent
    _all.clear()
    _warm.clear()


os.register_at_fork(after_in_child=_leave_all)
