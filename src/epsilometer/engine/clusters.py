"""Workers of a Dask or a Ray cluster."""

import asyncio
import importlib
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property, partial
from itertools import count
from typing import Any
from uuid import uuid4

from epsilometer.engine.deadlines import Deadline
from epsilometer.engine.task_serialization import Fault, run_parcel
from epsilometer.errors import EngineError, InputError

# A scheduler that does not answer within so many seconds counts as absent.
_CONNECT_SECONDS = 5
# Seconds that workers may take to start or restart.
_WORKER_SECONDS = 60
# Seconds after which a long wait checks that there are still workers.
_PULSE_SECONDS = 5
# Seconds between two looks whether workers have come.
_WORKER_POLL_SECONDS = 0.1
# Seconds that a wait lasts at least: a shorter one would miss an answer that is there.
_SHORTEST_WAIT = 0.01


class DaskPool:
    """A Dask scheduler and its workers.

    Dask itself runs a task again when its worker dies, a few times.

    Attributes:
        counts_begun: whether every run of a task reports to the scheduler that it begins, so that
            runs whose results were lost are noticed. That takes two messages per task, and is
            wanted where a second run has another result.
    """

    def __init__(self, engine: Any) -> None:
        if isinstance(engine, str):
            self.address = engine.replace("dask://", "tcp://", 1)
            self.asked = f"engine={engine!r}"
            self._given_client = None
        else:
            self.address = engine.scheduler.address
            self.asked = f"engine=Client({self.address!r})"
            self._given_client = engine
        self._client: Any = None
        self._was_open = False
        self.counts_begun = False
        # By the name of the task: its future, and its answer once it was fetched.
        self._out: dict[str, Any] = {}
        self._answers: dict[str, bytes] = {}
        self._numbers = count()
        self._name = f"epsilometer-{uuid4().hex}"

    def open(self) -> int:
        """Connects and waits for workers."""
        if self._client is None:
            self._client = self._given_client or self._connect()
            self._was_open = True
        self._check_alive()
        deadline = time.monotonic() + _WORKER_SECONDS
        while True:
            threads_by_worker = self._guarded(self._client.nthreads)
            n_threads = int(sum(threads_by_worker.values()))
            if n_threads:
                return n_threads
            if time.monotonic() > deadline:
                hint = f"start some with: dask worker {self.address}"
                raise EngineError(f"{self.asked}: the scheduler has no workers; {hint}")
            time.sleep(_WORKER_POLL_SECONDS)

    def ship(self, key: str, content: bytes) -> Any:
        """Submits a task that brings the packed work, and returns its future.

        Workers get the result from one another, and Dask repeats the task when it is lost.
        Scattered data would be lost with its worker, and sending it to all workers hangs if one
        dies meanwhile.
        """
        name = f"{self._name}-parcel-{next(self._numbers)}"
        return self._guarded(lambda: self._client.submit(bytes, content, key=name, pure=False))

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """Submits a task, and returns its Dask future.

        Every try has its own name, or Dask would return the answer of an earlier one.
        """
        name = f"{self._name}-{next(self._numbers)}"
        counted_as = name if self.counts_begun else None
        arguments = (key, shipped, task, counted_as)
        ticket = self._guarded(
            lambda: self._client.submit(_run_here, *arguments, key=name, pure=False)
        )
        self._out[name] = ticket
        return ticket

    def collect(self, ticket: Any, deadline: Deadline | None = None) -> bytes | None:
        """Waits for the future, as long as there is somebody to do the work."""
        self._out.pop(ticket.key, None)
        if ticket.key in self._answers:
            return self._answers.pop(ticket.key)
        while True:
            seconds: float = _PULSE_SECONDS
            if deadline is not None:
                seconds = min(seconds, max(deadline.left, _SHORTEST_WAIT))
            try:
                answer: bytes = self._guarded(partial(ticket.result, timeout=seconds))
                break
            except _StillWaiting:
                if deadline is not None and deadline.left <= 0.0:
                    return None
                self.open()
        # Fetches all other ready answers as well: one takes as long as many.
        ready = {name: future for name, future in self._out.items() if future.status == "finished"}
        with suppress(Fault):  # whatever it is will show up again with a later task
            self._answers |= self._guarded(lambda: self._client.gather(ready))
            for name in ready:
                del self._out[name]
        return answer

    def times_begun(self, ticket: Any) -> int:
        """Returns how many runs of a task have begun.

        The scheduler keeps the notes of a task until its future is cancelled or released. A task
        without notes may begin while it is being cancelled, and one whose scheduler is gone may
        have begun: both count as begun once.
        """
        if not self.counts_begun:
            return 1
        try:
            runs = self._guarded(lambda: self._client.get_metadata([ticket.key], default={}))
        except Fault:
            return 1
        return max(len(runs), 1)

    def end_running(self, tickets: Iterable[Any]) -> None:
        """Restarts the workers that are busy with these tasks, since Dask cannot end a task."""
        our_keys = {ticket.key for ticket in tickets}
        keys_by_worker = self._guarded(self._client.processing)
        busy = [
            worker
            for worker, keys in keys_by_worker.items()
            if our_keys.intersection(map(str, keys))
        ]
        self.cancel(tickets)  # first, or the next worker would begin them
        for worker in busy:
            restart = partial(self._client.restart_workers, [worker], timeout=_CONNECT_SECONDS)
            # A worker without a nanny (in this process, say) cannot be ended by anybody.
            with suppress(Fault):
                self._guarded(restart)

    def has_answer(self, ticket: Any) -> bool:
        """Returns whether the answer was fetched.

        Others stay with the workers until they are collected.
        """
        return ticket.key in self._answers

    def drop(self) -> None:
        """Drops the connection."""
        self._out.clear()
        self.close()

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Asks the scheduler to cancel them, if it can still be reached."""
        waiting = list(tickets)
        self._out.clear()
        self._answers.clear()
        if waiting and self._client is not None and self._client.status == "running":
            self._guarded(lambda: self._client.cancel(waiting))

    def withdraw(self, shipped: Any) -> None:
        """Releases the future: Dask forgets tasks whose futures are gone."""
        shipped.release()

    def close(self) -> None:
        """Ends a connection that was made here; a client that was given stays open."""
        client = self._client
        self._client = None
        if client is not None and client is not self._given_client:
            client.close(timeout=_CONNECT_SECONDS)

    def _connect(self) -> Any:
        from distributed import Client

        try:
            return Client(self.address, timeout=_CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:  # also its TimeoutError
            if self._was_open:  # a scheduler that went away may come back
                raise Fault(f"the scheduler at {self.address} is gone", engine_lost=True) from error
            hint = f"no Dask scheduler answers at {self.address}; start one with: dask scheduler"
            raise EngineError(f"{self.asked}: {hint}") from error

    def _check_alive(self) -> None:
        if self._client.status != "running":
            raise Fault(
                f"the connection to {self.address} is {self._client.status}", engine_lost=True
            )

    def _guarded(self, action: Any) -> Any:
        """Does something with the client, and turns errors of the cluster into faults."""
        from distributed import KilledWorker

        try:
            return action()
        except KilledWorker as error:
            reason = f"workers died, too often for Dask: {error}".split("\n")[0]
            raise Fault(reason, is_final=True) from error
        except ImportError as error:
            raise EngineError(
                f"{self.asked}: the workers cannot import {error.name}; "
                "install the same packages for them as here"
            ) from error
        except TimeoutError as error:
            self._check_alive()
            raise _StillWaiting(f"{self.address} did not answer in time") from error
        # Our work never raises, so this is Dask's: a scheduler passes on whatever it trips over
        # when a worker dies.
        except (Exception, asyncio.CancelledError) as error:
            self._check_alive()
            raise Fault(f"{type(error).__name__}: {error}") from error


class _StillWaiting(Fault):
    """Nothing came yet: a fault only for callers that cannot wait."""


def _run_here(key: str, content: bytes, task: Any, name: str | None) -> bytes:
    """Does one task in a worker, which has the packed work already.

    Args:
        key: of the packed work.
        content: the packed work.
        task: what the work is called with.
        name: of the task, if the scheduler is to know that a run of it has begun.
    """
    if name is not None:
        _note_run(name)
    return run_parcel(key, lambda: content, task)


def _note_run(name: str) -> None:
    """Notes with the scheduler that a run of a task begins; each run has a note of its own.

    The scheduler is reached through the worker's own connection, and has the note before the run
    draws anything.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker: Any = get_worker()
    sync(worker.loop, worker.scheduler.set_metadata, keys=[name, uuid4().hex], value=True)


# A cluster that does not answer after this many tries counts as absent.
_JOIN_TRIES = 3


class RayPool:
    """A running cluster: behind a client server (ray://host:port), or on this machine (ray://auto).

    A connection that the program itself has made is used as it is, and left open.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.asked = f"engine={engine!r}"
        self._is_ours = False
        self._was_open = False
        self._run: Any = None

    @cached_property
    def _ray(self) -> Any:
        """The library, which is slow to import."""
        return importlib.import_module("ray")

    def open(self) -> int:
        """Connects and counts the cores of the cluster."""
        if not self._ray.is_initialized():
            self._connect()
            self._is_ours = True
            self._was_open = True
        elif not self._is_ours and self.engine != "ray://auto":
            raise InputError(
                f"{self.asked}: the program is connected to a Ray cluster already; "
                "use engine='ray://auto'"
            )
        if self._run is None:
            # Retries are counted in one place: in `PoolRunner`.
            self._run = self._ray.remote(max_retries=0, num_cpus=1)(run_parcel)
        resources = self._guarded(self._ray.cluster_resources)
        return max(1, int(resources.get("CPU", 1)))

    def ship(self, key: str, content: bytes) -> Any:
        """Puts the packed work into the object store."""
        return self._guarded(lambda: self._ray.put(content))

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """Submits a task, and returns its Ray reference.

        The reference of the packed work is wrapped, so that a worker fetches it only once.
        """
        fetch = partial(_fetch, [shipped])
        return self._guarded(lambda: self._run.remote(key, fetch, task))

    def collect(self, ticket: Any, deadline: Deadline | None = None) -> bytes | None:
        """Waits for the answer."""
        seconds = None if deadline is None else max(deadline.left, _SHORTEST_WAIT)
        try:
            answer: bytes = self._guarded(lambda: self._ray.get(ticket, timeout=seconds))
        except Fault as fault:
            if isinstance(fault.__cause__, self._ray.exceptions.GetTimeoutError):
                return None
            raise
        return answer

    def end_running(self, tickets: Iterable[Any]) -> None:
        """Cancels tasks by force: Ray then ends the process of the worker."""
        for ticket in tickets:
            self._guarded(partial(self._ray.cancel, ticket, force=True))

    def times_begun(self, ticket: Any) -> int:
        """Returns 1: the task may have begun, and Ray was asked not to run it again by itself."""
        return 1

    def has_answer(self, ticket: Any) -> bool:
        """Returns False: answers stay in the cluster until they are collected."""
        return False

    def drop(self) -> None:
        """Drops the connection, even if the program made it: it is broken."""
        self._ray.shutdown()
        self._is_ours = False
        self._run = None

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Cancels what has not begun."""
        if self._ray.is_initialized():
            for ticket in tickets:
                self._guarded(partial(self._ray.cancel, ticket, force=False))

    def withdraw(self, shipped: Any) -> None:
        """No-op: Ray forgets objects without a reference, and the dispatch holds the last one."""

    def close(self) -> None:
        """Ends a connection that was made here."""
        if self._is_ours:
            self.drop()

    def _connect(self) -> None:
        address = self.engine.removeprefix("ray://")
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if address == "auto":
                self._ray.init(address="auto", **quiet)
            else:
                host, _, port = address.rpartition(":")
                if not port.isdecimal():
                    raise ValueError(f"{address!r} is not host:port")
                # Is anybody listening? Ray itself would try for half a minute.
                listener = (host.strip("[]"), int(port))
                socket.create_connection(listener, timeout=_CONNECT_SECONDS).close()
                _join(self.engine, quiet)
        except (OSError, ValueError, RuntimeError) as error:
            if self._was_open:  # a cluster that went away may come back
                raise Fault(f"the cluster is gone: {error}", engine_lost=True) from error
            raise EngineError(
                f"{self.asked}: no Ray cluster answers ({error}); start one with: "
                "ray start --head, and give the port of its client server "
                "(10001 unless set otherwise)"
            ) from error

    def _guarded(self, action: Any) -> Any:
        """Does something with the cluster, and turns its errors into faults."""
        try:
            return action()
        except Exception as error:  # our work never raises, so this is Ray's
            # The cluster cannot be reached; the remote client has errors of its own for that.
            grpc = sys.modules.get("grpc")
            is_connection_error = isinstance(error, ConnectionError) or (
                grpc is not None and isinstance(error, grpc.RpcError)
            )
            is_lost = is_connection_error or not self._ray.is_initialized()
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise Fault(reason, engine_lost=is_lost) from error


def _fetch(wrapped: list[Any]) -> bytes:
    """Fetches the packed work, in a worker."""
    import ray

    return bytes(ray.get(wrapped[0]))


def _join(address: str, settings: dict[str, Any]) -> None:
    """Connects from outside, in several tries.

    A busy head may give up on its client server after half a minute.
    """
    import ray

    for tries_left in reversed(range(_JOIN_TRIES)):
        try:
            ray.init(address=address, **settings)
            return
        except ConnectionAbortedError:
            if not tries_left:
                raise
