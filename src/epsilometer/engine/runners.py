"""Where chunks of work run: in this process, or in local worker processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from epsilometer.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Applies a function to tasks and yields the results in the order of the tasks."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results in order, as they come."""


class SerialRunner:
    """Runs everything here, one task after the other."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The built-in map."""
        return map(function, tasks)


class ProcessRunner:
    """Spreads tasks over local processes (joblib's loky)."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results in order; a few tasks per worker are under way at a time."""
        from joblib import Parallel, delayed  # not needed for serial work, and slow to import

        call = delayed(function)
        try:
            yield from Parallel(n_jobs=self.jobs, return_as="generator")(call(task) for task in tasks)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if "pickle" not in str(error).lower():
                raise
            raise InputError(
                f"jobs={self.jobs}: the mechanism or its input cannot be sent to worker processes ({_reason(error)}); "
                "define it at the top level of a module, or use jobs=1"
            ) from error


def open_runner(jobs: int = 1, engine: str = "local") -> Runner:
    """The runner for a number of workers on an engine."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r} must be a whole number of at least 1")
    if engine not in ("local", "serial"):
        raise InputError(f"engine={engine!r} is unknown; known are local and serial")
    return SerialRunner() if jobs == 1 or engine == "serial" else ProcessRunner(jobs)


def _reason(error: Exception) -> str:
    """What the object itself said: joblib hands it on as the last line of a traceback in text."""
    lines = str(error.__cause__ or error).strip('\n" ').splitlines()
    return lines[-1] if lines else str(error)
