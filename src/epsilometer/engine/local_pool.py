"""Worker processes on this machine (joblib's loky), kept warm from one audit to the next."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from functools import partial
from pathlib import Path
from typing import Any

from epsilometer.engine.parcels import Fault, run_parcel

# Idle workers go after so many seconds. Starting them takes about one.
_IDLE_SECONDS = 60.0
# How often a worker looks whether its program is still there.
_WATCH_SECONDS = 2.0
# Where numerical libraries read how many threads they may start.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_warm: dict[int, Any] = {}
_lock = threading.Lock()


class LocalPool:
    """So many processes. One that dies takes the others with it; all are started again."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.asked = f"jobs={jobs}"
        self._executor: Any = None

    def open(self) -> int:
        """Takes the warm processes, or starts some."""
        if self._executor is None:
            self._executor = _warm_executor(self.jobs)
        return self.jobs

    def ship(self, key: str, content: bytes) -> Path:
        """A file in a folder of its own, which every worker reads once."""
        path = Path(tempfile.mkdtemp(prefix="epsilometer-")) / key
        path.write_bytes(content)
        return path

    def submit(self, key: str, shipped: Path, task: Any) -> Any:
        """A future of loky's."""
        from joblib.externals.loky.process_executor import ShutdownExecutorError

        try:
            return self._executor.submit(run_parcel, key, partial(Path.read_bytes, shipped), task)
        except (BrokenExecutor, ShutdownExecutorError) as error:
            raise Fault(_shortened(error), engine_lost=True) from error

    def collect(self, ticket: Any) -> bytes:
        """Waits for the future."""
        from joblib.externals.loky.process_executor import ShutdownExecutorError

        try:
            answer: bytes = ticket.result()
        except (BrokenExecutor, ShutdownExecutorError) as error:
            raise Fault(_shortened(error), engine_lost=True) from error
        return answer

    def has_answer(self, ticket: Any) -> bool:
        """Answers that came in before the processes were lost are here."""
        return ticket.done() and not ticket.cancelled() and ticket.exception() is None

    def drop(self) -> None:
        """Ends the other processes, too; the next ones are new."""
        with _lock:
            if _warm.get(self.jobs) is self._executor:
                del _warm[self.jobs]
        self._executor.shutdown(wait=True, kill_workers=True)
        self._executor = None

    def cancel(self, tickets: Iterable[Any]) -> None:
        """What runs runs on and is forgotten; what has not begun never does."""
        for ticket in tickets:
            ticket.cancel()

    def withdraw(self, shipped: Path) -> None:
        """Removes the file and its folder."""
        shutil.rmtree(shipped.parent, ignore_errors=True)

    def close(self) -> None:
        """Leaves the processes warm for the next audit; idle ones end by themselves."""
        self._executor = None


def _warm_executor(jobs: int) -> Any:
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    with _lock:
        if jobs not in _warm:
            _warm[jobs] = ProcessPoolExecutor(
                jobs,
                timeout=_IDLE_SECONDS,
                env=_thread_limits(jobs),
                initializer=_end_with_parent,
                initargs=(os.getpid(),),
            )
        return _warm[jobs]


@atexit.register
def _end_all() -> None:
    """Before the interpreter takes its modules apart, which loky's callbacks do not survive."""
    with _lock:
        executors = list(_warm.values())
        _warm.clear()
    for executor in executors:
        executor.shutdown(wait=True, kill_workers=True)


def _end_with_parent(parent: int) -> None:
    """Ends this worker soon after the program that started it, also if that was killed and could not say goodbye."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _thread_limits(jobs: int) -> dict[str, str]:
    """The cores shared out among the workers, unless the user has said otherwise."""
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    return {name: os.environ.get(name, threads) for name in _THREAD_VARIABLES}


def _shortened(error: Exception) -> str:
    """What happened, without loky's guesses about the reason."""
    return str(error).split(". ")[0].split("\n")[0] or type(error).__name__
