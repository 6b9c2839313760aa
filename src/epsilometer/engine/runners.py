"""Where chunks of work run: in this process, or spread over workers that may die, in order, run again when lost.

And until when: `max_seconds=` ends a call that hangs, here by a signal, elsewhere by ending the
worker.
"""

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any, NoReturn, Protocol, TypeVar

from epsilometer.engine.parcels import Deadline, Fault, OutOfTime, TimeUp, open_answer, pack
from epsilometer.errors import EngineError, InputError, MissingExtraError
from epsilometer.interruptions import callers_handlers_relayed

T = TypeVar("T")
R = TypeVar("R")
# Pending tasks per worker: one that runs, one that is next, and some that finished before an
# earlier one.
_OUT_PER_WORKER = 4
# How often in a row a task may be run again.
_MOST_FAULTS = 3
# On the command line, what does not listen to the alarm for so long ends with the program.
_DEAF_SECONDS = 5.0


class Pool(Protocol):
    """The workers of one engine. Whatever goes wrong with them, as opposed to the work, is raised as a `Fault`.

    Attributes:
        asked: how the user asked for them, for messages: "jobs=2".
    """

    asked: str

    def open(self) -> int:
        """Makes sure that there are workers, and returns how many tasks they run at a time."""

    def ship(self, key: str, content: bytes) -> Any:
        """Brings a parcel to where the workers can fetch it."""

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """Sends a task out; the ticket stands for its answer."""

    def collect(self, ticket: Any, deadline: Deadline | None = None) -> bytes | None:
        """Waits for an answer; None if the time is over before it comes."""

    def end_running(self, tickets: Iterable[Any]) -> None:
        """Ends the workers that are busy with these tasks: a call that hangs ends with its process."""

    def has_answer(self, ticket: Any) -> bool:
        """Whether an answer can be collected although the engine was lost."""

    def drop(self) -> None:
        """Drops lost workers, so that `open` starts afresh."""

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Cancels tasks whose answers are no longer needed."""

    def withdraw(self, shipped: Any) -> None:
        """Removes a parcel again."""

    def close(self) -> None:
        """Ends what `open` began."""


class PoolRunner:
    """Spreads tasks over a pool. Every task is answered by exactly one ticket, so none counts twice or is lost."""

    def __init__(self, pool: Pool, deadline: Deadline | None = None) -> None:
        self.pool = pool
        self.deadline = deadline

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results in order; a few tasks per worker are under way at a time.

        Raises:
            EngineError: if a task was lost again and again.
            OutOfTime: if the time was over before all were done.
        """
        dispatch = _Dispatch(self.pool, function, self.deadline)
        try:
            for task in tasks:
                with callers_handlers_relayed():
                    dispatch.begin(task)
                if len(dispatch.tasks) >= _OUT_PER_WORKER * dispatch.workers:
                    yield self._finish(dispatch)
            while dispatch.tasks:
                yield self._finish(dispatch)
        finally:
            dispatch.rescue()
            dispatch.call_back(range(len(dispatch.tasks)))
            for shipped in dispatch.shipped:
                self.pool.withdraw(shipped)

    def _finish(self, dispatch: "_Dispatch") -> Any:
        """The next result. What a handler of the caller raises meanwhile is no fault of the engine."""
        with callers_handlers_relayed():
            return dispatch.finish()

    def close(self) -> None:
        """Ends the pool, if it was opened here."""
        self.pool.close()


class _Dispatch:
    """One map under way: its pending tasks with their tickets, oldest first; None for a task that is with no worker."""

    def __init__(
        self, pool: Pool, function: Callable[[Any], Any], deadline: Deadline | None
    ) -> None:
        self.pool = pool
        self.function = function
        self.deadline = deadline
        self._began = monotonic()
        if hasattr(pool, "counts_begun"):
            pool.counts_begun = bool(getattr(function, "is_unseeded", False))
        self._key, self._content = pack(function, pool.asked)
        self.tasks: deque[Any] = deque()
        self._tickets: deque[Any] = deque()
        self.shipped: list[Any] = []
        self._is_shipped = False
        self.workers = 1
        self._faults = 0
        # How many of the pending tasks are sent one at a time. After a fault this shows which of
        # them is to blame, and the others are not lost with it.
        self._alone = 0

    def begin(self, task: Any) -> None:
        """Sends one more task."""
        self.tasks.append(task)
        self._tickets.append(None)
        self._send()

    def finish(self) -> Any:
        """Waits for the oldest pending task."""
        while True:
            self._send()
            try:
                if (answer := self.pool.collect(self._tickets[0], self.deadline)) is None:
                    raise self._late()
                value = open_answer(answer, self.pool.asked)
                self._lose_first_run(0)
            except Fault as fault:
                self._lose([0])
                self._tickets[0] = None
                self._recover(fault)
                continue
            self.tasks.popleft()
            self._tickets.popleft()
            self._began, self._faults, self._alone = monotonic(), 0, max(self._alone - 1, 0)
            return value

    def rescue(self) -> None:
        """Hands over the answers of tasks that were finished before an earlier one, when nobody waits for that one."""
        rescue = getattr(self.function, "rescue", None)
        if rescue is None:
            return
        for place, ticket in enumerate(self._tickets):
            if ticket is None or not self.pool.has_answer(ticket):
                continue
            # What the work raised, or a fault: such a task counts as lost.
            with suppress(Exception):
                answer = self.pool.collect(ticket)
                if answer is not None:
                    rescue(self.tasks[place], open_answer(answer, self.pool.asked))
                    self._lose_first_run(place)
                    self._tickets[place] = None

    def _lose_first_run(self, place: int) -> None:
        """Counts a task as lost that the engine itself has run again, though it was answered in the end."""
        ran_again = getattr(self.pool, "ran_again", None)
        if ran_again is not None and ran_again(self._tickets[place]):
            self._lose([place])

    def _lose(self, places: Iterable[int]) -> None:
        """Tells the work that tasks which may have begun are lost, whether they are run again or not."""
        lose = getattr(self.function, "lose", None)
        may_have_begun = getattr(self.pool, "may_have_begun", None)
        if lose is None:
            return
        for place in places:
            ticket = self._tickets[place]
            if ticket is not None and (may_have_begun is None or may_have_begun(ticket)):
                lose(self.tasks[place])

    def call_back(self, places: Iterable[int]) -> None:
        """Cancels the tasks at these places, which are lost if they have begun."""
        out = [place for place in places if self._tickets[place] is not None]
        self._lose(out)
        with suppress(Fault):  # workers that are gone need no notice
            self.pool.cancel([self._tickets[place] for place in out])
        for place in out:
            self._tickets[place] = None

    def _late(self) -> OutOfTime:
        assert self.deadline is not None
        late = self.deadline.over(self._oldest(), self._began)
        self.rescue()
        with suppress(Fault):  # those that are gone need not be ended
            self.pool.end_running([ticket for ticket in self._tickets if ticket is not None])
        return late

    def _send(self) -> None:
        """Sends the tasks that are not with a worker: new ones, and lost ones."""
        while True:
            if self.deadline is not None and self.deadline.left <= 0.0:
                raise self._late()
            try:
                if not self._is_shipped:
                    self.workers = self.pool.open()
                    self.shipped.append(self.pool.ship(self._key, self._content))
                    self._is_shipped = True
                for place in range(min(len(self.tasks), 1) if self._alone else len(self.tasks)):
                    if self._tickets[place] is None:
                        self._tickets[place] = self.pool.submit(
                            self._key, self.shipped[-1], self.tasks[place]
                        )
                return
            except Fault as fault:
                self._recover(fault)

    def _recover(self, fault: Fault) -> None:
        """Prepares another try, or gives up."""
        self._faults += 1
        was_alone = self._alone > 0
        self._alone = len(self.tasks)
        if self._faults > _MOST_FAULTS or (fault.is_final and was_alone):
            tries = "" if fault.is_final else f" {self._faults} times in a row"
            lost = f"work was lost{tries} while running {self._oldest()}; the last time: {fault}"
            hint = "If workers die every time, the mechanism may end its process, or need more memory than there is"
            raise EngineError(f"{self.pool.asked}: {lost}. {hint}") from fault
        self._is_shipped = False  # it may be lost as well; the same work is sent again
        if fault.is_final or fault.engine_lost:
            waiting = [place for place, ticket in enumerate(self._tickets) if ticket is not None]
            self.call_back(
                [place for place in waiting if not self.pool.has_answer(self._tickets[place])]
            )
        if fault.engine_lost:
            self.pool.drop()

    def _oldest(self) -> str:
        """The task that was waited for, described by the work itself if it can."""
        describe = getattr(self.function, "describe", None)
        return (
            str(self.function)
            if describe is None or not self.tasks
            else str(describe(self.tasks[0]))
        )


# Addresses of Dask schedulers; dask:// stands for tcp://.
_DASK_SCHEMES = ("dask", "tcp", "tls")
_KNOWN = "local, serial, dask://host:port, ray://host:port, ray://auto, or a Client of Dask"


class Runner(Protocol):
    """Applies a function to tasks and yields the results in the order of the tasks.

    Attributes:
        deadline: when it must be over; None for never.
    """

    deadline: Deadline | None

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results in order, as they come."""

    def close(self) -> None:
        """Ends what was begun for it. It may be used again afterwards."""


@dataclass(slots=True)
class SerialRunner:
    """Runs everything here, one task after the other."""

    deadline: Deadline | None = None

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The built-in map; but a fork of this process that comes back from a task ends, or all would be done twice."""
        for task in tasks:
            here = os.getpid()
            leave = os._exit
            if threading.current_thread() is threading.main_thread():
                os._exit = partial(_stay, here, leave)  # its status would pass for our verdict
            try:
                with callers_handlers_relayed():
                    result = (
                        function(task)
                        if self.deadline is None
                        else self._in_time(function, task, self.deadline)
                    )
            finally:
                if os.getpid() != here:
                    leave(0)
                os._exit = leave
            yield result

    def close(self) -> None:
        """There is nothing to end."""

    def _in_time(self, function: Callable[[T], R], task: T, deadline: Deadline) -> R:
        began = monotonic()
        where = str(getattr(function, "describe", lambda _: function)(task))
        if deadline.left <= 0.0:
            raise deadline.over(where, began)
        if not _hears_alarms():
            return function(task)
        try:
            with _last_resort(deadline, where, began), deadline.alarm() as alarm:
                result = function(task)
        except TimeUp as up:
            raise deadline.over(str(up) or where, began) from up
        if alarm.rang:  # the work caught what the alarm raised, and returned something else instead
            getattr(function, "lose", _ignore)(task)
            raise deadline.over(where, began)
        return result


def _ignore(task: object) -> None:
    """For work that need not know which of its tasks are lost."""


def _stay(here: int, leave: Callable[[int], NoReturn], status: int) -> NoReturn:
    """Stands for os._exit while a mechanism runs in this process; a fork of it may still end like that."""
    if os.getpid() != here or not _hears_alarms():
        leave(status)
    raise SystemExit(f"os._exit({status})")


def _hears_alarms() -> bool:
    """Whether this is the main thread, the only one that a signal can interrupt."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _last_resort(deadline: Deadline, where: str, began: float) -> Iterator[None]:
    """Ends our own program if code inside does not listen to the alarm. What a checkpoint has is safe."""

    def end_program() -> None:
        text = f"epsilometer: {deadline.over(where, began)}; it did not react, so the program was ended\n"
        with suppress(OSError):
            os.write(2, text.encode("utf-8", "backslashreplace"))
        os._exit(2)

    ours = sys.modules.get("epsilometer.cli")
    # not ours to be ended
    if ours is None or getattr(sys.modules.get("__main__"), "main", None) is not ours.main:
        yield
        return
    watch = threading.Timer(min(deadline.left + _DEAF_SECONDS, threading.TIMEOUT_MAX), end_program)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def open_runner(jobs: int = 1, engine: Any = "local", deadline: Deadline | None = None) -> Runner:
    """The runner for an engine. Nothing is started or connected to before the first task.

    Args:
        jobs: worker processes of the local engine; other engines have their own workers.
        engine: "local", "serial", the address of a Dask scheduler or a Ray cluster, or a Client of
            Dask.
        deadline: when all must be over. Where no signal can end a call, a single worker does the
            work, and is ended.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r} must be a whole number of at least 1")
    scheme, _, place = engine.partition("://") if isinstance(engine, str) else ("", "", "")
    if (not isinstance(engine, str) and _is_dask_client(engine)) or (
        place and scheme in _DASK_SCHEMES
    ):
        return _cluster_runner(engine, "dask", deadline)
    if place and scheme == "ray":
        return _cluster_runner(engine, "ray", deadline)
    if not isinstance(engine, str) or engine not in ("local", "serial"):
        raise InputError(f"engine={engine!r} is unknown; known are {_KNOWN}")
    # A daemon process may not have children. What it draws is the same with one worker.
    if engine == "serial" or multiprocessing.current_process().daemon:
        return SerialRunner(deadline)
    if jobs == 1 and (deadline is None or _hears_alarms()):
        return SerialRunner(deadline)
    from epsilometer.engine.local_pool import LocalPool

    return PoolRunner(LocalPool(jobs), deadline)


def engine_name(engine: Any) -> str:
    """An engine that is no text as one, for the record of an audit."""
    return f"dask at {engine.scheduler.address}" if _is_dask_client(engine) else str(engine)


def _is_dask_client(engine: Any) -> bool:
    distributed = sys.modules.get("distributed")  # a client exists only if it was imported
    return distributed is not None and isinstance(engine, distributed.Client)


def _cluster_runner(engine: Any, extra: str, deadline: Deadline | None) -> Runner:
    package = {"dask": "distributed", "ray": "ray"}[extra]
    if find_spec(package) is None:
        raise MissingExtraError(package, extra, f"engine={engine!r}")
    from epsilometer.engine.clusters import DaskPool, RayPool

    return PoolRunner(DaskPool(engine) if extra == "dask" else RayPool(engine), deadline)
