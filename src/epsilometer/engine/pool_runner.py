"""Spreads tasks over workers that may die: results in order, tasks run again when they are lost."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any, Protocol, TypeVar

from epsilometer.engine.deadlines import Deadline, OutOfTime
from epsilometer.engine.task_serialization import Fault, open_answer, pack
from epsilometer.errors import EngineError
from epsilometer.interruptions import callers_handlers_relayed

T = TypeVar("T")
R = TypeVar("R")
# Pending tasks per worker: one that runs, one that is next, and some that finished before an
# earlier one.
_PENDING_PER_WORKER = 4
# How often in a row a task may be run again.
_MAX_FAULTS_IN_A_ROW = 3


class Pool(Protocol):
    """The workers of one engine.

    Whatever goes wrong with them, as opposed to the work, is raised as a `Fault`.

    Attributes:
        asked: how the user asked for them, for messages: "jobs=2".
    """

    asked: str

    def open(self) -> int:
        """Makes sure that there are workers, and returns how many tasks they run at a time."""

    def ship(self, key: str, content: bytes) -> Any:
        """Brings packed work to where the workers can fetch it."""

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """Sends a task out, and returns a ticket that stands for its answer."""

    def collect(self, ticket: Any, deadline: Deadline | None = None) -> bytes | None:
        """Waits for an answer; None if the time is over before it comes."""

    def times_begun(self, ticket: Any) -> int:
        """Returns how often the engine has begun a task that was sent once, or may have begun it.

        More than once if the engine itself runs tasks again whose worker has died.
        """

    def end_running(self, tickets: Iterable[Any]) -> None:
        """Ends the workers that are busy with these tasks.

        A call that hangs ends with its process.
        """

    def has_answer(self, ticket: Any) -> bool:
        """Returns whether an answer can be collected although the engine was lost."""

    def drop(self) -> None:
        """Drops lost workers, so that `open` starts afresh."""

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Cancels tasks whose answers are no longer needed."""

    def withdraw(self, shipped: Any) -> None:
        """Removes packed work again."""

    def close(self) -> None:
        """Ends what `open` began."""


class PoolRunner:
    """Spreads tasks over a pool.

    Every task is answered by exactly one ticket, so none counts twice or is lost.
    """

    def __init__(self, pool: Pool, deadline: Deadline | None = None) -> None:
        self.pool = pool
        self.deadline = deadline

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yields results in order; a few tasks per worker are under way at a time.

        Raises:
            EngineError: if a task was lost again and again.
            OutOfTime: if the time was over before all were done.
        """
        dispatch = _Dispatch(self.pool, function, self.deadline)
        try:
            for task in tasks:
                with callers_handlers_relayed():
                    dispatch.begin(task)
                if len(dispatch.tasks) >= _PENDING_PER_WORKER * dispatch.workers:
                    yield self._finish(dispatch)
            while dispatch.tasks:
                yield self._finish(dispatch)
        finally:
            dispatch.rescue()
            dispatch.call_back(range(len(dispatch.tasks)))
            for shipped in dispatch.shipped:
                self.pool.withdraw(shipped)

    def _finish(self, dispatch: "_Dispatch") -> Any:
        """Returns the next result.

        What a handler of the caller raises meanwhile is not taken for a fault of the engine.
        """
        with callers_handlers_relayed():
            return dispatch.finish()

    def close(self) -> None:
        """Ends the pool, if it was opened here."""
        self.pool.close()


class _Dispatch:
    """One map under way.

    It holds the pending tasks with their tickets, oldest first. The ticket of a task that is with
    no worker is None.

    The work may tell, and be told, more: `describe(task)` names a task in messages,
    `rescue(task, result)` receives results nobody waits for, `lose(task)` is called for every run
    of a task that may have begun and whose result nobody gets, and `is_unseeded` says that a second
    run has another result.
    """

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
        self._sent_alone = 0

    def begin(self, task: Any) -> None:
        """Sends one more task."""
        self.tasks.append(task)
        self._tickets.append(None)
        self._send()

    def finish(self) -> Any:
        """Waits for the oldest pending task, and returns its result."""
        while True:
            self._send()
            try:
                answer = self.pool.collect(self._tickets[0], self.deadline)
                if answer is None:
                    raise self._out_of_time()
                value = open_answer(answer, self.pool.asked)
                self._lose_earlier_runs(0)
            except Fault as fault:
                self._lose([0])
                self._tickets[0] = None
                self._recover(fault)
                continue
            self.tasks.popleft()
            self._tickets.popleft()
            self._began = monotonic()
            self._faults = 0
            self._sent_alone = max(self._sent_alone - 1, 0)
            return value

    def rescue(self) -> None:
        """Hands finished answers to the work when nobody waits for them any more.

        These are the answers of tasks that were finished before an earlier one.
        """
        rescue = getattr(self.function, "rescue", None)
        if rescue is None:
            return
        for position, ticket in enumerate(self._tickets):
            if ticket is None or not self.pool.has_answer(ticket):
                continue
            # A task whose work raised, or that met a fault, counts as lost.
            with suppress(Exception):
                answer = self.pool.collect(ticket)
                if answer is not None:
                    rescue(self.tasks[position], open_answer(answer, self.pool.asked))
                    self._lose_earlier_runs(position)
                    self._tickets[position] = None

    def _lose_earlier_runs(self, position: int) -> None:
        """Counts a task that was answered as lost once for every other run of it.

        The engine itself has run it again, and the other runs may have drawn outputs.
        """
        self._lose_runs(position, self.pool.times_begun(self._tickets[position]) - 1)

    def _lose(self, positions: Iterable[int]) -> None:
        """Reports tasks that may have begun as lost, whether they are run again or not."""
        for position in positions:
            ticket = self._tickets[position]
            if ticket is not None:
                self._lose_runs(position, self.pool.times_begun(ticket))

    def _lose_runs(self, position: int, n_runs: int) -> None:
        lose = getattr(self.function, "lose", None)
        if lose is None:
            return
        for _ in range(n_runs):
            lose(self.tasks[position])

    def call_back(self, positions: Iterable[int]) -> None:
        """Cancels the tasks at these positions, which are lost if they have begun."""
        sent = [position for position in positions if self._tickets[position] is not None]
        self._lose(sent)
        with suppress(Fault):  # workers that are gone need no notice
            self.pool.cancel([self._tickets[position] for position in sent])
        for position in sent:
            self._tickets[position] = None

    def _out_of_time(self) -> OutOfTime:
        """Ends what is running, and returns the error to raise."""
        assert self.deadline is not None
        late = self.deadline.over(self._oldest(), self._began)
        self.rescue()
        with suppress(Fault):  # workers that are gone need not be ended
            self.pool.end_running([ticket for ticket in self._tickets if ticket is not None])
        return late

    def _send(self) -> None:
        """Sends the tasks that are not with a worker: new ones, and lost ones."""
        while True:
            if self.deadline is not None and self.deadline.left <= 0.0:
                raise self._out_of_time()
            try:
                if not self._is_shipped:
                    self.workers = self.pool.open()
                    self.shipped.append(self.pool.ship(self._key, self._content))
                    self._is_shipped = True
                n_to_send = len(self.tasks)
                if self._sent_alone:
                    n_to_send = min(n_to_send, 1)
                for position in range(n_to_send):
                    if self._tickets[position] is None:
                        task = self.tasks[position]
                        ticket = self.pool.submit(self._key, self.shipped[-1], task)
                        self._tickets[position] = ticket
                return
            except Fault as fault:
                self._recover(fault)

    def _recover(self, fault: Fault) -> None:
        """Prepares another try, or gives up."""
        self._faults += 1
        was_alone = self._sent_alone > 0
        self._sent_alone = len(self.tasks)
        if self._faults > _MAX_FAULTS_IN_A_ROW or (fault.is_final and was_alone):
            tries = "" if fault.is_final else f" {self._faults} times in a row"
            raise EngineError(
                f"{self.pool.asked}: work was lost{tries} while running {self._oldest()}; "
                f"the last time: {fault}. If workers die every time, the mechanism may end its "
                "process, or need more memory than there is"
            ) from fault
        self._is_shipped = False  # it may be lost as well; the same work is sent again
        if fault.is_final or fault.engine_lost:
            unanswered = [
                position
                for position, ticket in enumerate(self._tickets)
                if ticket is not None and not self.pool.has_answer(ticket)
            ]
            self.call_back(unanswered)
        if fault.engine_lost:
            self.pool.drop()

    def _oldest(self) -> str:
        """Describes the task that was waited for, in the words of the work if it has some."""
        describe = getattr(self.function, "describe", None)
        if describe is None or not self.tasks:
            return str(self.function)
        return str(describe(self.tasks[0]))
