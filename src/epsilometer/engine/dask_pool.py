"""Workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import count
from typing import Any
from uuid import uuid4

from epsilometer.engine.parcels import Fault, run_parcel
from epsilometer.errors import EngineError

# A scheduler that does not answer in so many seconds is not there.
_CONNECT_SECONDS = 5
# Workers may still be starting, or starting again, for so many seconds.
_WORKER_SECONDS = 60
# How often a long wait looks whether there still are workers.
_PULSE_SECONDS = 5


class DaskPool:
    """A scheduler and its workers. Dask itself runs a task again when its worker dies, a few times."""

    def __init__(self, engine: Any) -> None:
        is_address = isinstance(engine, str)
        self.address = engine.replace("dask://", "tcp://", 1) if is_address else engine.scheduler.address
        self.asked = f"engine={engine!r}" if is_address else f"engine=Client({self.address!r})"
        self._given = None if is_address else engine
        self._client: Any = None
        self._was_open = False
        self._out: dict[str, Any] = {}
        self._answers: dict[str, bytes] = {}
        self._numbers = count()
        self._name = f"epsilometer-{uuid4().hex}"

    def open(self) -> int:
        """Connects and waits for workers."""
        if self._client is None:
            self._client = self._given or self._connect()
            self._was_open = True
        self._check_alive()
        deadline = time.monotonic() + _WORKER_SECONDS
        while not (threads := self._count_threads()):
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{self.asked}: the scheduler has no workers; start some with: dask worker {self.address}"
                )
            time.sleep(0.1)
        return threads

    def ship(self, key: str, content: bytes) -> Any:
        """A task that brings the parcel; workers get it from one another, and Dask does it again when it is lost.

        Data that is scattered would be lost with its worker, and sending it to all workers hangs if one dies meanwhile.
        """
        name = f"{self._name}-parcel-{next(self._numbers)}"
        return self._guarded(lambda: self._client.submit(bytes, content, key=name, pure=False))

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """A future of Dask's. Every try has a name of its own, or Dask would answer with an earlier one."""
        name = f"{self._name}-{next(self._numbers)}"
        ticket = self._guarded(lambda: self._client.submit(_run_here, key, shipped, task, key=name, pure=False))
        self._out[name] = ticket
        return ticket

    def collect(self, ticket: Any) -> bytes:
        """Waits for the future, as long as there is somebody to do the work."""
        self._out.pop(ticket.key, None)
        if ticket.key in self._answers:
            return self._answers.pop(ticket.key)
        while True:
            try:
                answer: bytes = self._guarded(lambda: ticket.result(timeout=_PULSE_SECONDS))
                break
            except _StillWaiting:
                self.open()
        self._fetch_ready()
        return answer

    def has_answer(self, ticket: Any) -> bool:
        """Other answers are with the workers until they are collected."""
        return ticket.key in self._answers

    def drop(self) -> None:
        """Lets go of the connection."""
        self._out.clear()
        self.close()

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Tells the scheduler, if it can still be told."""
        waiting = list(tickets)
        self._out.clear()
        self._answers.clear()
        if waiting and self._client is not None and self._client.status == "running":
            self._guarded(lambda: self._client.cancel(waiting))

    def withdraw(self, shipped: Any) -> None:
        """Dask forgets what has no future here."""
        shipped.release()

    def close(self) -> None:
        """Ends a connection that was made here; a client that was given stays open."""
        client, self._client = self._client, None
        if client is not None and client is not self._given:
            client.close(timeout=_CONNECT_SECONDS)

    def _fetch_ready(self) -> None:
        """Brings along what else is ready: one answer takes as long as many."""
        ready = {name: ticket for name, ticket in self._out.items() if ticket.status == "finished"}
        try:
            self._answers |= self._guarded(lambda: self._client.gather(ready))
        except Fault:
            return  # whatever it is, it concerns a later task
        for name in ready:
            del self._out[name]

    def _connect(self) -> Any:
        from distributed import Client

        try:
            return Client(self.address, timeout=_CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:  # also its TimeoutError
            if self._was_open:  # one that went away may come back
                raise Fault(f"the scheduler at {self.address} is gone", engine_lost=True) from error
            raise EngineError(
                f"{self.asked}: no Dask scheduler answers at {self.address}; start one with: dask scheduler"
            ) from error

    def _count_threads(self) -> int:
        return int(sum(self._guarded(self._client.nthreads).values()))

    def _check_alive(self) -> None:
        if self._client.status != "running":
            raise Fault(f"the connection to {self.address} is {self._client.status}", engine_lost=True)

    def _guarded(self, action: Any) -> Any:
        """Does something with the client, and turns what goes wrong with the cluster into faults."""
        from distributed import KilledWorker

        try:
            return action()
        except KilledWorker as error:
            raise Fault(f"workers died, too often for Dask: {error}".split("\n")[0], is_final=True) from error
        except ImportError as error:
            raise EngineError(
                f"{self.asked}: the workers cannot import {error.name}; install the same packages for them as here"
            ) from error
        except TimeoutError as error:
            self._check_alive()
            raise _StillWaiting(f"{self.address} did not answer in time") from error
        # Our work never raises, so this is Dask's: a scheduler hands on whatever it stumbles over when a worker dies.
        except (Exception, asyncio.CancelledError) as error:
            self._check_alive()
            raise Fault(f"{type(error).__name__}: {error}") from error


class _StillWaiting(Fault):
    """Nothing came yet: a fault only for those who cannot wait."""


def _run_here(key: str, content: bytes, task: Any) -> bytes:
    """Does one task in a worker, which has the parcel already."""
    return run_parcel(key, lambda: content, task)
