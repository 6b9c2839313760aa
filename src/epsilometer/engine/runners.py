"""Where chunks of work run: in this process, or spread over the workers of an engine."""

import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any, NoReturn, Protocol, TypeVar

from epsilometer.engine.deadlines import Alarm, Deadline, TimeUp
from epsilometer.engine.pool_runner import PoolRunner
from epsilometer.errors import EpsilometerWarning, InputError, MissingExtraError
from epsilometer.interruptions import callers_handlers_relayed

T = TypeVar("T")
R = TypeVar("R")
# Addresses of Dask schedulers; dask:// stands for tcp://.
_DASK_SCHEMES = ("dask", "tcp", "tls")
# On one core, two workers are not too many: one draws while the other waits for its next task.
_FEWEST_HELPFUL = 2
# Workers per core that help if most of them wait for a program or a service.
_WAITING_PER_CORE = 8
_KNOWN_ENGINES = (
    "local, serial, dask://host:8786, ray://host:10001, ray://auto, or a Client of Dask"
)


class Runner(Protocol):
    """Applies a function to tasks and yields the results in the order of the tasks.

    Attributes:
        deadline: when it must be over; None for never.
    """

    deadline: Deadline | None

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yields results in order, as they come."""

    def close(self) -> None:
        """Ends what was begun for it. It may be used again afterwards."""


@dataclass(slots=True)
class SerialRunner:
    """Runs everything here, one task after the other."""

    deadline: Deadline | None = None

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yields results like the built-in map.

        But if the mechanism forks this process and the child comes back from a task, the child
        ends, or everything would be done twice.
        """
        for task in tasks:
            this_process = os.getpid()
            real_exit = os._exit
            if threading.current_thread() is threading.main_thread():
                # The exit status of the mechanism would be taken for our verdict.
                os._exit = partial(_refuse_exit, this_process, real_exit)
            try:
                with callers_handlers_relayed():
                    if self.deadline is None:
                        result = function(task)
                    else:
                        result = self._run_in_time(function, task, self.deadline)
            finally:
                if os.getpid() != this_process:
                    real_exit(0)
                os._exit = real_exit
            yield result

    def close(self) -> None:
        """No-op."""

    def _run_in_time(self, function: Callable[[T], R], task: T, deadline: Deadline) -> R:
        began = monotonic()
        describe = getattr(function, "describe", None)
        where = str(function) if describe is None else str(describe(task))
        if deadline.left <= 0.0:
            raise deadline.over(where, began)
        if not _is_main_thread():
            return function(task)
        try:
            with deadline.last_resort(where, began):
                alarm = Alarm(deadline)
                try:
                    try:
                        alarm.is_armed = True
                        result = function(task)
                    finally:
                        alarm.is_armed = False
                finally:
                    alarm.cancel()
        except TimeUp as up:
            raise deadline.over(str(up) or where, began) from up
        if alarm.rang:  # the work caught what the alarm raised, and returned something else instead
            lose = getattr(function, "lose", None)
            if lose is not None:
                lose(task)
            raise deadline.over(where, began)
        return result


def _refuse_exit(this_process: int, real_exit: Callable[[int], NoReturn], status: int) -> NoReturn:
    """Replaces os._exit while a mechanism runs in this process.

    A fork of this process may still end like that.
    """
    if os.getpid() != this_process or not _is_main_thread():
        real_exit(status)
    raise SystemExit(f"os._exit({status})")


def _is_main_thread() -> bool:
    """Returns whether this is the main thread, the only one that a signal can interrupt."""
    return threading.current_thread() is threading.main_thread()


def open_runner(
    jobs: int = 1,
    engine: Any = "local",
    deadline: Deadline | None = None,
) -> Runner:
    """Returns the runner for an engine. Nothing is started before the first task.

    Args:
        jobs: worker processes of the local engine; other engines have their own workers.
        engine: "local", "serial", the address of a Dask scheduler or a Ray cluster, or a Client of
            Dask.
        deadline: when all must be over. Where no signal can end a call, a single worker does the
            work, and is ended.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r} must be a whole number of at least 1")
    if _is_dask_client(engine):
        return _cluster_runner(engine, "dask", deadline)
    if not isinstance(engine, str):
        raise _unknown_engine(engine)
    scheme, _, address = engine.partition("://")
    if address and scheme in _DASK_SCHEMES:
        return _cluster_runner(engine, "dask", deadline)
    if address and scheme == "ray":
        return _cluster_runner(engine, "ray", deadline)
    if engine not in ("local", "serial"):
        raise _unknown_engine(engine)
    # A daemon process may not have children. What it draws is the same with one worker.
    if engine == "serial" or multiprocessing.current_process().daemon:
        return SerialRunner(deadline)
    if jobs == 1 and (deadline is None or _is_main_thread()):
        return SerialRunner(deadline)
    from epsilometer.engine.local_pool import LocalPool

    return PoolRunner(LocalPool(jobs), deadline)


def helpful_jobs(jobs: int, *, waits: bool) -> int:
    """Returns how many of the requested worker processes can help.

    Starting one takes as long as drawing some hundred thousand numbers, and more than one per core
    take turns.

    Args:
        jobs: worker processes that the caller asked for.
        waits: whether the mechanism mostly waits for something else, such as a service.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover  # not every system tells which cores we may use
        cores = os.cpu_count() or 1
    most = max(_FEWEST_HELPFUL, cores)
    return min(jobs, most * _WAITING_PER_CORE if waits else most)


def limit_workers(runner: Runner, *, waits: bool) -> int | None:
    """Lets a runner of the local engine start no more workers than can help.

    Args:
        runner: that has not begun yet.
        waits: see `helpful_jobs`.

    Returns:
        How many workers it will have; None if it has as many as were asked for.
    """
    pool = getattr(runner, "pool", None)
    asked = getattr(pool, "jobs", None)
    if pool is None or asked is None:  # no workers, or those of a cluster
        return None
    helpful = helpful_jobs(asked, waits=waits)
    if helpful == asked:
        return None
    pool.jobs = helpful
    return helpful


def open_helpful_runner(jobs: int = 1, engine: Any = "local", *, waits: bool) -> Runner:
    """Returns `open_runner` with no more workers than can help, and warns if that is fewer.

    For functions whose results have no place for a remark.
    """
    runner = open_runner(jobs, engine)
    n_workers = limit_workers(runner, waits=waits)
    if n_workers is not None:
        warnings.warn(
            f"jobs={jobs} was lowered to {n_workers}: more workers do not help on this machine",
            EpsilometerWarning,
            stacklevel=3,
        )
    return runner


def engine_name(engine: Any) -> str:
    """Returns an engine as text, for the record of an audit."""
    if _is_dask_client(engine):
        return f"dask at {engine.scheduler.address}"
    return str(engine)


def _unknown_engine(engine: Any) -> InputError:
    return InputError(f"engine={engine!r} is unknown; known are {_KNOWN_ENGINES}")


def _is_dask_client(engine: Any) -> bool:
    distributed = sys.modules.get("distributed")  # a client exists only if it was imported
    return distributed is not None and isinstance(engine, distributed.Client)


def _cluster_runner(engine: Any, extra: str, deadline: Deadline | None) -> Runner:
    package = {"dask": "distributed", "ray": "ray"}[extra]
    if find_spec(package) is None:
        raise MissingExtraError(package, extra, f"engine={engine!r}")
    from epsilometer.engine.clusters import DaskPool, RayPool

    if extra == "dask":
        return PoolRunner(DaskPool(engine), deadline)
    return PoolRunner(RayPool(engine), deadline)
