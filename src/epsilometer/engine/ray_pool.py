"""Workers of a Ray cluster."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

from epsilometer.engine.parcels import Fault, run_parcel
from epsilometer.errors import EngineError, InputError

# A cluster that does not answer in so many seconds is not there.
_CONNECT_SECONDS = 5
_JOIN_TRIES = 3


class RayPool:
    """A running cluster: that of a client server (ray://host:port), or the one of this machine (ray://auto).

    A connection that the program has made itself is used as it is, and left open.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.asked = f"engine={engine!r}"
        self._is_ours = False
        self._was_open = False
        self._run: Any = None

    def open(self) -> int:
        """Connects and counts the cores of the cluster."""
        import ray

        if not ray.is_initialized():
            self._connect()
            self._is_ours = self._was_open = True
        elif not self._is_ours and self.engine != "ray://auto":
            raise InputError(
                f"{self.asked}: the program is connected to a Ray cluster already; use engine='ray://auto'"
            )
        if self._run is None:
            # Tries are counted in one place: ours.
            self._run = ray.remote(max_retries=0, num_cpus=1)(run_parcel)
        return max(1, int(self._guarded(ray.cluster_resources).get("CPU", 1)))

    def ship(self, key: str, content: bytes) -> Any:
        """Puts the parcel into the object store."""
        import ray

        return self._guarded(lambda: ray.put(content))

    def submit(self, key: str, shipped: Any, task: Any) -> Any:
        """A reference of Ray's. The parcel's own reference is wrapped, so that a worker fetches it once, not always."""
        return self._guarded(lambda: self._run.remote(key, partial(_fetch, [shipped]), task))

    def collect(self, ticket: Any) -> bytes:
        """Waits for the answer."""
        import ray

        answer: bytes = self._guarded(lambda: ray.get(ticket))
        return answer

    def has_answer(self, ticket: Any) -> bool:
        """Answers are with the cluster until they are collected."""
        return False

    def drop(self) -> None:
        """Lets go of the connection, also if the program made it: it is broken."""
        import ray

        ray.shutdown()
        self._is_ours, self._run = False, None

    def cancel(self, tickets: Iterable[Any]) -> None:
        """Calls back what has not begun."""
        import ray

        if ray.is_initialized():
            for ticket in tickets:
                self._guarded(partial(ray.cancel, ticket, force=False))

    def withdraw(self, shipped: Any) -> None:
        """Ray forgets what has no reference; the dispatch has the last one."""

    def close(self) -> None:
        """Ends a connection that was made here."""
        if self._is_ours:
            self.drop()

    def _connect(self) -> None:
        import ray

        place = self.engine.removeprefix("ray://")
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if place == "auto":
                ray.init(address="auto", **quiet)
            else:
                _knock(place)
                _join(self.engine, quiet)
        except (OSError, ValueError, RuntimeError) as error:
            if self._was_open:  # one that went away may come back
                raise Fault(f"the cluster is gone: {error}", engine_lost=True) from error
            raise EngineError(
                f"{self.asked}: no Ray cluster answers ({error}); start one with: ray start --head, and give the port "
                "of its client server (10001 unless set otherwise)"
            ) from error

    def _guarded(self, action: Any) -> Any:
        """Does something with the cluster, and turns what goes wrong with it into faults."""
        import ray

        try:
            return action()
        except Exception as error:  # our work never raises, so this is Ray's
            is_lost = isinstance(error, _connection_errors()) or not ray.is_initialized()
            text = f"{type(error).__name__}: {error}".split("\n")[0]
            raise Fault(text, engine_lost=is_lost) from error


def _connection_errors() -> tuple[type[Exception], ...]:
    """What is raised when the cluster cannot be reached; the client from outside has errors of its own."""
    grpc = sys.modules.get("grpc")
    return (ConnectionError,) if grpc is None else (ConnectionError, grpc.RpcError)


def _fetch(wrapped: list[Any]) -> bytes:
    """The content of a parcel, in a worker."""
    import ray

    content: bytes = ray.get(wrapped[0])
    return content


def _join(address: str, settings: dict[str, Any]) -> None:
    """Connects from outside. A busy head gives up on its own client server after half a minute, but is there."""
    import ray

    for left in reversed(range(_JOIN_TRIES)):
        try:
            ray.init(address=address, **settings)
            return
        except ConnectionAbortedError:
            if not left:
                raise


def _knock(place: str) -> None:
    """Ray itself would try for half a minute."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except ValueError as error:
        raise ValueError(f"{place!r} is not host:port") from error
