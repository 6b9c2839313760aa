"""Where chunks of work run: in this process, in local worker processes, on Dask, on Ray."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

from epsilometer.engine.dispatching import PoolRunner
from epsilometer.errors import InputError, MissingExtraError

T = TypeVar("T")
R = TypeVar("R")
# Addresses of Dask schedulers; dask:// stands for tcp://.
_DASK_SCHEMES = ("dask", "tcp", "tls")
_KNOWN = "local, serial, dask://host:port, ray://host:port, ray://auto, or a Client of Dask"


class Runner(Protocol):
    """Applies a function to tasks and yields the results in the order of the tasks."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results in order, as they come."""

    def close(self) -> None:
        """Ends what was begun for it. It may be used again afterwards."""


class SerialRunner:
    """Runs everything here, one task after the other."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The built-in map."""
        return map(function, tasks)

    def close(self) -> None:
        """There is nothing to end."""


def open_runner(jobs: int = 1, engine: Any = "local") -> Runner:
    """The runner for an engine. Nothing is started or connected to before the first task.

    Args:
        jobs: worker processes of the local engine; other engines have workers of their own.
        engine: "local", "serial", the address of a Dask scheduler or a Ray cluster, or a Client of Dask.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r} must be a whole number of at least 1")
    if _is_dask_client(engine):
        return _dask_runner(engine)
    if not isinstance(engine, str):
        raise InputError(f"engine={engine!r} is unknown; known are {_KNOWN}")
    scheme, separator, place = engine.partition("://")
    if separator and place and scheme in _DASK_SCHEMES:
        return _dask_runner(engine)
    if separator and place and scheme == "ray":
        return _ray_runner(engine)
    if engine not in ("local", "serial"):
        raise InputError(f"engine={engine!r} is unknown; known are {_KNOWN}")
    # A daemon process may not have children. What it draws is the same with one worker.
    is_alone = jobs == 1 or engine == "serial" or multiprocessing.current_process().daemon
    return SerialRunner() if is_alone else _local_runner(jobs)


def engine_name(engine: Any) -> str:
    """The engine as a text, for the record of an audit."""
    return f"dask at {engine.scheduler.address}" if _is_dask_client(engine) else str(engine)


def _is_dask_client(engine: Any) -> bool:
    distributed = sys.modules.get("distributed")  # who has a client has imported it
    return distributed is not None and isinstance(engine, distributed.Client)


def _local_runner(jobs: int) -> Runner:
    from epsilometer.engine.local_pool import LocalPool

    return PoolRunner(LocalPool(jobs))


def _dask_runner(engine: Any) -> Runner:
    if find_spec("distributed") is None:
        raise MissingExtraError("distributed", "dask", f"engine={engine!r}")
    from epsilometer.engine.dask_pool import DaskPool

    return PoolRunner(DaskPool(engine))


def _ray_runner(engine: str) -> Runner:
    if find_spec("ray") is None:
        raise MissingExtraError("ray", "ray", f"engine={engine!r}")
    from epsilometer.engine.ray_pool import RayPool

    return PoolRunner(RayPool(engine))
