"""Asks a service by POST: a limit on the time of the whole request, bounded answers, retries only where harmless."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import SplitResult

from epsilometer.errors import MechanismError
from epsilometer.mechanisms.base import shown

# The server, or a gateway before it, says that it did not do the work. Everything else might have drawn an output
# that was lost on the way, and asking again would replace outputs by others: a bias if losing depends on the output.
_NOT_DONE = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 10.0
_PIECE = 1 << 16


class _TryAgain(Exception):
    """A failure before any work was done."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Client:
    """How to ask.

    Attributes:
        url: taken apart.
        headers: sent with every request.
        timeout: seconds per request, from connecting to the last byte.
        retries: how often a request that was not done is sent again.
        pause: seconds before the first of these; doubled for each further one.
        most: bytes of an answer.
    """

    url: SplitResult
    headers: Mapping[str, str] = field(repr=False)
    timeout: float
    retries: int
    pause: float
    most: int

    @property
    def place(self) -> str:
        """The address without its query, which may hold a key."""
        return f"{self.url.scheme}://{self.url.netloc}{self.url.path}"

    def post(self, body: str) -> bytes:
        """The answer to one request, which is sent again only when the service did no work for it."""
        failures = []
        for turn in range(self.retries + 1):
            try:
                return self._ask(body.encode())
            except _TryAgain as failure:
                failures.append(str(failure))
                if turn < self.retries:
                    time.sleep(min(_LONGEST_PAUSE, failure.pause or self.pause * 2**turn))
        raise MechanismError(f"{self.place} did not answer in {len(failures)} tries; the last one: {failures[-1]}")

    def _ask(self, body: bytes) -> bytes:
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self.url.hostname), self.url.port, timeout=self.timeout)
        began = time.monotonic()
        try:
            self._connect(connection)
            with _Watch(connection, self.timeout - (time.monotonic() - began)) as watch:
                return self._exchange(connection, body, watch)
        finally:
            connection.close()

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except (ConnectionError, TimeoutError, socket.gaierror) as error:
            raise _TryAgain(f"cannot connect: {error}") from error
        except OSError as error:
            raise MechanismError(f"cannot connect to {self.place}: {error}") from error

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes, watch: _Watch) -> bytes:
        target = (self.url.path or "/") + (f"?{self.url.query}" if self.url.query else "")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        try:
            connection.request("POST", target, body, {**headers, **self.headers})
            with connection.getresponse() as response:
                answer = self._read(response)
        except (http.client.HTTPException, OSError) as error:
            # On a busy machine the socket's own limit, which is never shorter, may be noticed before the watch rings.
            is_late = watch.rang or isinstance(error, TimeoutError)
            why = f"no whole answer within timeout={self.timeout:g} s" if is_late else f"{_reason(error)}"
            raise MechanismError(
                f"{self.place} broke off: {why}; this is not tried again, since an output may have been drawn and lost"
            ) from error
        if watch.rang:
            raise MechanismError(f"{self.place} broke off: no whole answer within timeout={self.timeout:g} s")
        if response.status in _NOT_DONE:
            raise _TryAgain(f"status {response.status}: {shown(answer[:80])}", _retry_after(response))
        if response.status != 200:
            moved = f" to {response.getheader('Location')}" if 300 <= response.status < 400 else ""
            raise MechanismError(f"{self.place} answered with status {response.status}{moved}: {shown(answer[:200])}")
        return answer

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        answer = bytearray()
        while piece := response.read(min(_PIECE, self.most + 1 - len(answer))):
            answer += piece
            if len(answer) > self.most:
                start = shown(bytes(answer[:80]))
                raise MechanismError(f"{self.place} answered with more than {self.most} bytes, beginning with {start}")
        if response.length:
            raise http.client.IncompleteRead(bytes(answer[:80]), response.length)
        return bytes(answer)


class _Watch:
    """Ends a connection when the whole request takes too long: a socket's own limit starts anew with every byte."""

    def __init__(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        self.rang = False
        self._socket = connection.sock
        self._timer = threading.Timer(max(0.0, seconds), self._ring)
        self._timer.daemon = True

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _ring(self) -> None:
        self.rang = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def _retry_after(response: http.client.HTTPResponse) -> float | None:
    text = response.getheader("Retry-After") or ""
    return float(text) if text.isdigit() and len(text) < 6 else None


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return f"{error.expected} bytes less than announced, after {shown(error.partial[:80])}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
