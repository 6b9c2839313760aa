"""Mechanisms that are services: JSON over HTTP, one request per output or many outputs per request."""

import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from epsilometer.claims.base import check_at_least, check_positive
from epsilometer.errors import InputError, MechanismError, discreet, public_address, secrets_of, shown, without
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.features import as_features
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.storage import code_digest
from epsilometer.storage.exchange import decode, read_json, to_json

# The server, or a gateway before it, says that it did not do the work. Everything else might have drawn an output
# that was lost on the way, and asking again would replace outputs by others: a bias if losing depends on the output.
_NOT_DONE = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 10.0
_PIECE = 1 << 16


# Characters that an address may hold. Others, such as letters with accents, are sent in UTF-8 with percent signs.
_AS_IT_IS = "%/?:@!$&'()*+,;=-._~[]|^`{}\\\""


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
        connection.response_class = _Response
        began = time.monotonic()
        with closing(connection):
            try:
                connection.connect()
            except (ConnectionError, TimeoutError, socket.gaierror) as error:
                raise _TryAgain(f"cannot connect: {error}") from error
            except (OSError, ValueError) as error:  # also an invalid certificate, or a name that no host can have
                raise MechanismError(f"cannot connect to {self.place}: {error}") from error
            with _Watch(connection, self.timeout - (time.monotonic() - began)) as watch:
                return self._exchange(connection, body, watch)

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes, watch: "_Watch") -> bytes:
        target = quote((self.url.path or "/") + (f"?{self.url.query}" if self.url.query else ""), safe=_AS_IT_IS)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        try:
            connection.request("POST", target, body, {**headers, **self.headers})
            with connection.getresponse() as response:
                answer = self._read(response)
        except (http.client.HTTPException, OSError, ValueError) as error:
            # On a busy machine the socket's own limit, which is never shorter, may be noticed before the watch rings.
            if watch.rang or isinstance(error, TimeoutError):
                why = f"no whole answer within timeout={self.timeout:g} s"
            elif isinstance(error, http.client.IncompleteRead):
                why = f"{error.expected} bytes less than announced, after {self.told(error.partial)}"
            else:
                why = without(type(error).__name__ + (f": {error}" if str(error) else ""), self.secrets)
            # Not "from error": what the standard library says may quote a header, or the address with its key.
            lost = "this is not tried again, since an output may have been drawn and lost"
            raise MechanismError(f"{self.place} broke off: {why}; {lost}") from None
        if watch.rang:
            raise MechanismError(f"{self.place} broke off: no whole answer within timeout={self.timeout:g} s")
        if response.status in _NOT_DONE:
            after = response.getheader("Retry-After") or ""
            pause = float(after) if after.isdigit() and len(after) < 6 else None
            raise _TryAgain(f"status {response.status}: {self.told(answer)}", pause)
        if response.status != 200:
            place = without(public_address(response.getheader("Location") or "nowhere")[:200], self.secrets)
            status = f"status {response.status}" + (f" to {place}" if 300 <= response.status < 400 else "")
            raise MechanismError(f"{self.place} answered with {status}: {self.told(answer, 200)}")
        return answer

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        answer = bytearray()
        while piece := response.read(min(_PIECE, self.most + 1 - len(answer))):
            answer += piece
            if len(answer) > self.most:
                start = self.told(bytes(answer[:80]))
                raise MechanismError(f"{self.place} answered with more than {self.most} bytes, beginning with {start}")
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
        self.rang, self._socket = False, connection.sock
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


_SINGLE_CHUNK, _BATCH_CHUNK = 64, 1000
# One answer may be as long as this, and this much per output is allowed to a batch on top of it.
_MOST_SINGLE, _MOST_PER_OUTPUT = 4 << 20, 4096


class HttpMechanism(Mechanism):
    """A service that is asked once per output."""

    is_seeded = False

    def __init__(self, client: Client, chunk_size: int, name: str | None) -> None:
        self.client, self.chunk_size, self.place = client, chunk_size, client.place
        self.name = name or self.place

    def digest(self) -> str:
        """Of the address and the headers; what the service itself does cannot be known."""
        return code_digest((type(self).__name__, self.client.url.geturl(), sorted(self.client.headers.items())))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Sends n requests."""
        body = f'{{"dataset": {to_json(dataset)}}}'
        return self._read([_unwrapped(self._ask(body), "output") for _ in range(n)], n)

    def _ask(self, body: str) -> Any:
        source, answer = f"the answer of {self.place}", self.client.post(body)
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
            raise MechanismError(f"{self.place} gave {len(values)} outputs where {n} were asked for")
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
) -> HttpMechanism:
    """A mechanism from a service that is asked by POST, in JSON.

    Args:
        url: http or https.
        batch: the request is `{"n": …, "dataset": …}` and the answer a list of n outputs (or `{"outputs": […]}`).
            Otherwise the request is `{"dataset": …}` and the answer one output (or `{"output": …}`).
        headers: sent with every request, e.g. Authorization.
        timeout: seconds per request, from connecting to the last byte.
        retries: how often a request is sent again when the connection is refused or the status is 429, 502, 503 or
            504. No other failure is tried again: an output may have been drawn and lost, and replacing it by
            another one would bias the audit if losing depends on the output.
        pause: seconds before the first retry, doubled for each further one; a Retry-After header is respected.
        chunk_size: outputs per request of a batch service, and per piece of work for other processes.
        max_output: bytes of one answer.
        name: its name in reports.
        features: a function of one output, see `from_batch`.

    The service draws its own randomness, so its audits cannot be repeated from the seed; keep the draws with
    `audit(…, record=path)`. Proxies of the environment are not used.

    Example:
        >>> mechanism = em.from_http("http://localhost:8000/draw", batch=True)
        >>> mechanism.name
        'http://localhost:8000/draw'
    """
    kind: Callable[..., HttpMechanism] = BatchHttpMechanism if batch else HttpMechanism
    chunk = (_BATCH_CHUNK if batch else _SINGLE_CHUNK) if chunk_size is None else chunk_size
    most = (_MOST_SINGLE + (chunk * _MOST_PER_OUTPUT if batch else 0)) if max_output is None else max_output
    for setting, value in {"timeout": timeout, "chunk_size": chunk, "max_output": most}.items():
        check_positive(setting, value)
    for setting, value in {"pause": pause, "retries": retries}.items():
        check_at_least(setting, value, 0.0)
    if headers is not None and not isinstance(headers, Mapping):
        raise InputError(f"headers of type {type(headers).__name__} must be a dict of texts")
    for header, text in (headers or {}).items():  # an error names the wrong one and keeps its value to itself
        if not isinstance(header, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header):
            raise InputError("headers holds a name that cannot be one: use letters, digits and -")
        if not isinstance(text, str) or not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", text):
            why = "its value, which may be secret, has another character or a line break"
            hint = "(read from a file? use .strip())"
            raise InputError(f"headers[{header!r}] must be one line of Latin-1 text; {why} {hint}")
    client = Client(_check_url(url), dict(headers or {}), float(timeout), int(retries), float(pause), int(most))
    return kind(client, int(chunk), name).with_features(as_features(features))


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
        raise InputError("url must not hold a name and password; give headers={'Authorization': …} instead")
    return parts


def _unwrapped(value: Any, key: str) -> Any:
    """The value itself, or the only entry of an object of that name."""
    return value[key] if isinstance(value, dict) and set(value) == {key} else value
