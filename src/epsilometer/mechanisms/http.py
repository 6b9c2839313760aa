"""Mechanisms that are services: JSON over HTTP, one request per output or many outputs per request."""

import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from epsilometer.claims.base import check_at_least, check_positive
from epsilometer.errors import (
    InputError,
    MechanismError,
    discreet,
    public_address,
    secrets_of,
    shown,
    without,
)
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.drawing_log import current_log, draw_one_by_one
from epsilometer.mechanisms.features import as_features
from epsilometer.mechanisms.functions import OnError, failed_run
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.storage import code_digest
from epsilometer.storage.exchange import decode, read_json, to_json

# A service that limits its callers says so before it does any work.
_TOO_MANY_REQUESTS = 429
# A service that says when to come back has turned the request away; without that, it may have
# failed in the middle.
_UNAVAILABLE = 503
# A gateway has no answer of the service behind it, which may have drawn an output all the same.
_NO_ANSWER_BEHIND = (502, 504)
# Seconds that a service may ask us to wait before a request is sent again.
_LONGEST_PAUSE = 10.0
_PIECE = 1 << 16


# Characters that an address may hold. Others, such as letters with accents, are sent in UTF-8 with
# percent signs.
_AS_IT_IS = "%/?:@!$&'()*+,;=-._~[]|^`{}\\\""


class RequestFailed(MechanismError):
    """A request was sent and not served: an output may have been drawn and lost.

    Attributes:
        kind: "Status500", "TimedOut", "BrokenOff" or "TooMuchOutput".
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, str(self))


class _TryAgain(Exception):
    """A failure before any work was done."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Client:
    """How to ask.

    Attributes:
        url: in its parts.
        headers: sent with every request.
        timeout: seconds per request, from connecting to the last byte.
        retries: how often a request is sent again when it was not served.
        pause: seconds before the first of these; doubled for each further one.
        most: bytes of an answer.
    """

    url: SplitResult = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    timeout: float
    retries: int
    pause: float
    most: int

    @property
    def place(self) -> str:
        """The address as it may be told: its query may hold a key."""
        return public_address(self.url.geturl())

    def told(self, answer: bytes, most: int = 80) -> str:
        """The beginning of an answer, for messages: services like to repeat the key that they refuse."""
        return without(shown(answer[:most]), self.secrets)

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be in any text."""
        return secrets_of(self.url.geturl(), self.headers)

    def post(self, body: str) -> bytes:
        """The answer to one request, which is sent again only when the service did no work for it.

        Raises:
            RequestFailed: if it was sent and not served.
            MechanismError: if nothing was served in any of the tries.
        """
        failures: list[str] = []
        log = current_log()
        log.add(requests=1)
        for turn in range(self.retries + 1):
            try:
                return self._ask(body.encode())
            except _TryAgain as failure:
                if not failures and self.retries:
                    log.add(retried=1)
                failures.append(str(failure))
                if turn < self.retries:
                    time.sleep(min(_LONGEST_PAUSE, failure.pause or self.pause * 2**turn))
        raise MechanismError(
            f"{self.place} did not answer in {len(failures)} tries; the last one: {failures[-1]}"
        )

    def _ask(self, body: bytes) -> bytes:
        kind = (
            http.client.HTTPSConnection
            if self.url.scheme == "https"
            else http.client.HTTPConnection
        )
        connection = kind(str(self.url.hostname), self.url.port, timeout=self.timeout)
        connection.response_class = _Response
        began = time.monotonic()
        with closing(connection):
            try:
                connection.connect()
            except (ConnectionError, TimeoutError, socket.gaierror) as error:
                pass_on(error)  # a TimeoutError may be the caller's
                raise _TryAgain(f"cannot connect: {error}") from error
            except (OSError, ValueError) as error:
                # also an invalid certificate, or a name that no host can have
                raise MechanismError(f"cannot connect to {self.place}: {error}") from error
            with _Watch(connection, self.timeout - (time.monotonic() - began)) as watch:
                return self._exchange(connection, body, watch)

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, watch: "_Watch"
    ) -> bytes:
        target = quote(
            (self.url.path or "/") + (f"?{self.url.query}" if self.url.query else ""),
            safe=_AS_IT_IS,
        )
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Connection": "close",
        }
        try:
            connection.request("POST", target, body, {**headers, **self.headers})
            with connection.getresponse() as response:
                answer = self._read(response)
        except (http.client.HTTPException, OSError, ValueError) as error:
            # On a busy machine the socket's own limit, which is never shorter, may be noticed
            # before the watch rings.
            kind = "BrokenOff"
            if watch.rang or isinstance(error, TimeoutError):
                kind = "TimedOut"
                why = f"no whole answer within timeout={self.timeout:g} s"
            elif isinstance(error, http.client.IncompleteRead):
                why = (
                    f"{error.expected} bytes less than announced, after {self.told(error.partial)}"
                )
            else:
                why = without(
                    type(error).__name__ + (f": {error}" if str(error) else ""), self.secrets
                )
            # Not "from error": what the standard library says may quote a header, or the address
            # with its key.
            lost = "this is not tried again, since an output may have been drawn and lost"
            raise RequestFailed(kind, f"{self.place} broke off: {why}; {lost}") from None
        if watch.rang:
            why = f"no whole answer within timeout={self.timeout:g} s"
            raise RequestFailed("TimedOut", f"{self.place} broke off: {why}")
        if response.status != 200:
            self._refuse(response, answer)
        return answer

    def _refuse(self, response: http.client.HTTPResponse, answer: bytes) -> NoReturn:
        """Raises what a status other than 200 means: try again, or a failure."""
        status = response.status
        after = response.getheader("Retry-After")
        if status == _TOO_MANY_REQUESTS or (status == _UNAVAILABLE and after is not None):
            seconds = (after or "").strip()
            pause = float(seconds) if seconds.isdigit() and len(seconds) < 6 else None
            raise _TryAgain(f"status {status}: {self.told(answer)}", pause)
        what = f"{self.place} answered with status {status}"
        if 300 <= status < 400:
            what += " to " + without(
                public_address(response.getheader("Location") or "nowhere")[:200], self.secrets
            )
        what += f": {self.told(answer, 200)}"
        if status in _NO_ANSWER_BEHIND or status == _UNAVAILABLE:
            what += "; this is not tried again, since an output may have been drawn and lost"
            what += ': from_http(…, on_error="outcome"), with one output per request, counts such a run as an output'
        raise RequestFailed(f"Status{status}", what)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        answer = bytearray()
        while piece := response.read(min(_PIECE, self.most + 1 - len(answer))):
            answer += piece
            if len(answer) > self.most:
                start = self.told(bytes(answer[:80]))
                what = f"{self.place} answered with more than {self.most} bytes, beginning with {start}"
                raise RequestFailed("TooMuchOutput", what)
        if response.length:
            raise http.client.IncompleteRead(bytes(answer[:80]), response.length)
        return bytes(answer)


class _Response(http.client.HTTPResponse):
    """An answer that refuses pieces of a negative size: the standard library reads -1 bytes as "all there is"."""

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]  # not in the type stubs
        if size < 0:
            raise http.client.HTTPException(f"a piece of {size} bytes was announced")
        return size


class _Watch:
    """Ends a connection when the whole request takes too long: a socket's own limit restarts with every byte."""

    def __init__(self, connection: http.client.HTTPConnection, seconds: float) -> None:
        self.rang = False
        self._socket = connection.sock
        self._timer = threading.Timer(max(0.0, seconds), self._ring)
        self._timer.daemon = True

    def __enter__(self) -> "_Watch":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _ring(self) -> None:
        self.rang = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


_SINGLE_CHUNK = 64
_BATCH_CHUNK = 1000
# One answer may be as long as this, and this much per output is allowed to a batch on top of it.
_MOST_SINGLE = 4 << 20
_MOST_PER_OUTPUT = 4096


class HttpMechanism(Mechanism):
    """A service that is asked once per output."""

    is_seeded = False

    def __init__(
        self, client: Client, chunk_size: int, name: str | None, on_error: OnError = "raise"
    ) -> None:
        self.client = client
        self.chunk_size = chunk_size
        self.place = client.place
        self.name = name or self.place
        self.on_error = on_error

    def digest(self) -> str:
        """Digest of the address, the headers and what becomes of failures; the service itself cannot be known."""
        called = type(self).__name__, self.client.url.geturl(), sorted(self.client.headers.items())
        return code_digest(called if self.on_error == "raise" else (*called, self.on_error))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Sends n requests."""
        body = f'{{"dataset": {to_json(dataset)}}}'
        return self._read(draw_one_by_one(lambda: self._one(body), n, self._read), n)

    def _one(self, body: str) -> Any:
        try:
            return _unwrapped(self._ask(body), "output")
        except RequestFailed as failure:
            pass_on(failure)
            current_log().add(failed=1)
            return failed_run(failure.kind)

    def _ask(self, body: str) -> Any:
        source = f"the answer of {self.place}"
        try:
            answer = self.client.post(body)
        except RequestFailed as failure:
            if self.on_error == "outcome":
                raise
            raise MechanismError(str(failure)) from None
        with discreet(self.client.secrets):
            return read_json(decode(answer, source), source)

    def _read(self, values: list[Any], n: int) -> Outputs:
        with discreet(self.client.secrets):
            return (self.features or read_outputs)(values, n)


class BatchHttpMechanism(HttpMechanism):
    """A service that is asked for many outputs at once."""

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Sends one request."""
        values = _unwrapped(self._ask(f'{{"n": {n}, "dataset": {to_json(dataset)}}}'), "outputs")
        if not isinstance(values, list):
            said = without(shown(values), self.client.secrets)
            raise MechanismError(f"{self.place} must answer with a list of {n} outputs, not {said}")
        if len(values) != n:
            raise MechanismError(
                f"{self.place} gave {len(values)} outputs where {n} were asked for"
            )
        return self._read(values, n)


def from_http(
    url: str,
    *,
    batch: bool = False,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    retries: int = 5,
    pause: float = 0.1,
    chunk_size: int | None = None,
    max_output: int | None = None,
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
    on_error: OnError = "raise",
) -> HttpMechanism:
    """A mechanism from a service that is asked by POST, in JSON.

    Args:
        url: http or https.
        batch: the request is `{"n": …, "dataset": …}` and the answer a list of n outputs (or
            `{"outputs": […]}`). Otherwise the request is `{"dataset": …}` and the answer one output
            (or `{"output": …}`).
        headers: sent with every request, e.g. Authorization.
        timeout: seconds per request, from connecting to the last byte.
        retries: how often a request is sent again when no connection was made, or when the status
            is 429, or 503 with a header Retry-After. No other failure is tried again, least of all
            502 and 504: an output may have been drawn and lost, and replacing it by another one
            would bias the audit if losing depends on the output. Retries are counted per side, in
            `settings["retried"]`; if they depend on the side, no verdict is given.
        pause: seconds before the first retry, doubled for each further one; a Retry-After header is
            respected.
        chunk_size: outputs per request of a batch service, and per piece of work for other
            processes.
        max_output: bytes of one answer.
        name: its name in reports.
        features: a function of one output, see `from_batch`.
        on_error: "outcome" counts a failed request (a status other than 200, a time limit, an
            answer that breaks off or is too long) as a separate output instead of stopping the
            audit; not with batch. A service that turns away all tries of a request stops the audit
            in any case.

    The service draws its own randomness, so its audits cannot be repeated from the seed; keep the
    draws with `audit(…, record=path)`. Proxies of the environment are not used.

    Example:
        >>> mechanism = em.from_http("http://localhost:8000/draw", batch=True)
        >>> mechanism.name
        'http://localhost:8000/draw'
    """
    kind: Callable[..., HttpMechanism] = BatchHttpMechanism if batch else HttpMechanism
    chunk = (_BATCH_CHUNK if batch else _SINGLE_CHUNK) if chunk_size is None else chunk_size
    most = (
        (_MOST_SINGLE + (chunk * _MOST_PER_OUTPUT if batch else 0))
        if max_output is None
        else max_output
    )
    for setting, value in {"timeout": timeout, "chunk_size": chunk, "max_output": most}.items():
        check_positive(setting, value)
    for setting, value in {"pause": pause, "retries": retries}.items():
        check_at_least(setting, value, 0.0)
    if on_error not in (("raise",) if batch else ("raise", "outcome")):
        raise InputError(
            f"on_error={on_error!r} must be 'raise', or, for one output per request, 'outcome'"
        )
    if headers is not None and not isinstance(headers, Mapping):
        raise InputError(f"headers of type {type(headers).__name__} must be a dict of texts")
    # an error names the wrong one and keeps its value to itself
    for header, text in (headers or {}).items():
        if not isinstance(header, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header):
            raise InputError("headers holds a name that cannot be one: use letters, digits and -")
        if not isinstance(text, str) or not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", text):
            why = "its value, which may be secret, has another character or a line break"
            hint = "(read from a file? use .strip())"
            raise InputError(f"headers[{header!r}] must be one line of Latin-1 text; {why} {hint}")
    client = Client(
        _check_url(url), dict(headers or {}), float(timeout), int(retries), float(pause), int(most)
    )
    return kind(client, int(chunk), name, on_error).with_features(as_features(features))


def _check_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        usable = False
    if not usable or not url.isprintable() or " " in url:
        named = public_address(url) if isinstance(url, str) else f"of type {type(url).__name__}"
        raise InputError(f"url={shown(named)} must be an address like http://host:port/path")
    if parts.username is not None:
        raise InputError(
            "url must not hold a name and password; give headers={'Authorization': …} instead"
        )
    return parts


def _unwrapped(value: Any, key: str) -> Any:
    """The value itself, or the only entry of an object of that name."""
    return value[key] if isinstance(value, dict) and set(value) == {key} else value
