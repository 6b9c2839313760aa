"""Mechanisms that are services: JSON over HTTP, or what a template makes of a dataset.

A service is asked once per output, or for many outputs per request.
"""

import http.client
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from epsilometer.claims.base import check_at_least, check_flag, check_positive
from epsilometer.errors import InputError, MechanismError, discreet, short_repr
from epsilometer.inputs import Pair
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.callables import OnError, failed_run
from epsilometer.mechanisms.drawing_log import current_log, draw_one_by_one
from epsilometer.mechanisms.features import as_features
from epsilometer.mechanisms.transmission import check_transmitted
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.redaction import public_address, secrets_of, without
from epsilometer.storage import code_digest
from epsilometer.storage.formats import decode, quotable, read_json, to_argument, to_json

# A service that limits its callers says so before it does any work.
_TOO_MANY_REQUESTS = 429
# A service that says when to come back has turned the request away; without that, it may have
# failed in the middle.
_UNAVAILABLE = 503
# A gateway has no answer of the service behind it, which may have drawn an output all the same.
_NO_ANSWER_BEHIND = (502, 504)
# Seconds that a service may ask us to wait before a request is sent again, at most.
_LONGEST_PAUSE = 10.0
# Digits of the seconds in a header Retry-After, at most: longer numbers are ignored.
_MAX_PAUSE_DIGITS = 5
# Bytes that are read at a time.
_BUFFER_SIZE = 1 << 16
# Bytes of an answer that are quoted in a message.
_QUOTED_BYTES = 80
# The same for an answer with an error status, which explains more.
_QUOTED_STATUS_BYTES = 200
# Keys of an answer that a message lists.
_MAX_LISTED_KEYS = 8
# Characters that an address may hold. Others, such as letters with accents, are sent in UTF-8 with
# percent signs.
_ADDRESS_CHARACTERS = "%/?:@!$&'()*+,;=-._~[]|^`{}\\\""
_LOST_OUTPUT = "this is not tried again, since an output may have been drawn and lost"


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
    """A failure before any work was done.

    Attributes:
        pause: seconds to wait before the next try, if the service says so.
    """

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to a service.

    Attributes:
        url: its address, in its parts.
        headers: sent with every request.
        method: of the requests: "POST", "GET", …
        timeout: seconds per request, from connecting to the last byte.
        retries: how often a request is sent again when it was not served.
        pause: seconds before the first of these; doubled for each further one.
        max_bytes: of an answer.
    """

    url: SplitResult = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    method: str
    timeout: float
    retries: int
    pause: float
    max_bytes: int

    @property
    def place(self) -> str:
        """The address as it may be published: its query may hold a key."""
        return public_address(self.url.geturl())

    def quote_answer(self, answer: bytes, n_bytes: int = _QUOTED_BYTES) -> str:
        """Returns the beginning of an answer, for messages, without secrets.

        Services like to repeat the key that they refuse.
        """
        return without(short_repr(quotable(answer[:n_bytes])), self.secrets)

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be in any message: all headers, and what the address holds."""
        return secrets_of(self.url.geturl(), values=self.headers.values())

    def ask(self, request: "Request") -> bytes:
        """Sends one request and returns the answer.

        The request is sent again only when the service did no work for it.

        Raises:
            RequestFailed: if it was sent and not served.
            MechanismError: if nothing was served in any of the tries.
        """
        failures: list[str] = []
        log = current_log()
        log.add(requests=1)
        for attempt in range(self.retries + 1):
            try:
                return self._ask(request)
            except _TryAgain as failure:
                if not failures and self.retries:
                    log.add(retried=1)
                failures.append(str(failure))
                if attempt < self.retries:
                    pause = failure.pause or self.pause * 2**attempt
                    time.sleep(min(_LONGEST_PAUSE, pause))
        raise MechanismError(
            f"{self.place} did not answer in {len(failures)} tries; the last one: {failures[-1]}"
        )

    def _ask(self, request: "Request") -> bytes:
        """Sends one request, once."""
        is_secure = self.url.scheme == "https"
        connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        connection = connect(str(self.url.hostname), self.url.port, timeout=self.timeout)
        connection.response_class = _Response
        began = time.monotonic()
        with closing(connection):
            try:
                connection.connect()
            except (ConnectionError, TimeoutError, socket.gaierror) as error:
                pass_on(error)  # a TimeoutError may be the caller's
                raise _TryAgain(f"cannot connect: {error}") from error
            except (OSError, ValueError) as error:
                # This may also be an invalid certificate, or a name that no host can have.
                raise MechanismError(f"cannot connect to {self.place}: {error}") from error
            seconds_left = self.timeout - (time.monotonic() - began)
            with _Watch(connection, seconds_left) as watch:
                return self._exchange(connection, request, watch)

    def _exchange(
        self, connection: http.client.HTTPConnection, request: "Request", watch: "_Watch"
    ) -> bytes:
        """Sends the request over an open connection and returns the answer."""
        headers = {"Accept": "application/json", "Connection": "close"}
        if request.body is not None:
            headers["Content-Type"] = _JSON_TYPE
        given_names = {name.lower() for name in self.headers}
        headers = {name: text for name, text in headers.items() if name.lower() not in given_names}
        headers.update(self.headers)
        out_of_time = f"no whole answer within timeout={self.timeout:g} s"
        try:
            connection.request(self.method, request.target, request.body, headers)
            with connection.getresponse() as response:
                answer = self._read(response)
        except (http.client.HTTPException, OSError, ValueError) as error:
            # On a busy machine the socket's own limit, which is never shorter, may be noticed
            # before the watch rings.
            kind = "BrokenOff"
            if watch.rang or isinstance(error, TimeoutError):
                kind = "TimedOut"
                reason = out_of_time
            elif isinstance(error, http.client.IncompleteRead):
                start = self.quote_answer(error.partial)
                reason = f"{error.expected} bytes less than announced, after {start}"
            else:
                reason = type(error).__name__
                if str(error):
                    reason += f": {error}"
                reason = without(reason, self.secrets)
            # Not "from error": the text of the standard library may quote a header, or the address
            # with its key.
            raise RequestFailed(kind, f"{self.place} broke off: {reason}; {_LOST_OUTPUT}") from None
        if watch.rang:
            raise RequestFailed("TimedOut", f"{self.place} broke off: {out_of_time}")
        if response.status != 200:
            self._refuse(response, answer)
        return answer

    def _refuse(self, response: http.client.HTTPResponse, answer: bytes) -> NoReturn:
        """Raises what a status other than 200 means: try again, or a failure."""
        status = response.status
        retry_after = response.getheader("Retry-After")
        was_turned_away = status == _UNAVAILABLE and retry_after is not None
        if status == _TOO_MANY_REQUESTS or was_turned_away:
            seconds = (retry_after or "").strip()
            is_usable = seconds.isdigit() and len(seconds) <= _MAX_PAUSE_DIGITS
            pause = float(seconds) if is_usable else None
            raise _TryAgain(f"status {status}: {self.quote_answer(answer)}", pause)
        message = f"{self.place} answered with status {status}"
        if 300 <= status < 400:
            location = public_address(response.getheader("Location") or "nowhere")
            message += " to " + without(location[:200], self.secrets)
        message += f": {self.quote_answer(answer, _QUOTED_STATUS_BYTES)}"
        if status in _NO_ANSWER_BEHIND or status == _UNAVAILABLE:
            message += (
                f'; {_LOST_OUTPUT}: from_http(…, on_error="outcome"), with one output per request, '
                "counts such a run as an output"
            )
        raise RequestFailed(f"Status{status}", message)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """Reads an answer, up to one byte more than it may have."""
        answer = bytearray()
        while True:
            n_wanted = min(_BUFFER_SIZE, self.max_bytes + 1 - len(answer))
            received = response.read(n_wanted)
            if not received:
                break
            answer += received
            if len(answer) > self.max_bytes:
                start = self.quote_answer(bytes(answer[:_QUOTED_BYTES]))
                raise RequestFailed(
                    "TooMuchOutput",
                    f"{self.place} answered with more than {self.max_bytes} bytes, "
                    f"beginning with {start}",
                )
        if response.length:
            raise http.client.IncompleteRead(bytes(answer[:_QUOTED_BYTES]), response.length)
        return bytes(answer)


class _Response(http.client.HTTPResponse):
    """An answer that refuses chunks of a negative size.

    The standard library reads -1 bytes as "all there is".
    """

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]  # not in the type stubs
        if size < 0:
            raise http.client.HTTPException(f"a piece of {size} bytes was announced")
        return size


class _Watch:
    """Ends a connection when the request as a whole takes too long.

    A socket's own limit restarts with every byte.
    """

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


_JSON_TYPE = "application/json"
# Stands for the dataset in an address or in the body of a request.
DATASET_PLACE = "{dataset}"
# Stands for the number of outputs that a batch service is asked for.
COUNT_PLACE = "{n}"
_PLACES = re.compile("|".join(map(re.escape, (DATASET_PLACE, COUNT_PLACE))))
# What is sent unless the user says otherwise.
_SINGLE_BODY = '{"dataset": {dataset}}'
_BATCH_BODY = '{"n": {n}, "dataset": {dataset}}'
# Put into the place of a dataset to see whether the result is JSON: with quotes, which would end a
# text that somebody wrote around the place.
_PROBE = '{"a": ["b"]}'
# Methods that have no body unless one is given.
_METHODS_WITHOUT_BODY = ("GET", "DELETE")
_METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE")
# Begins the value of a header that is read from a variable of the environment.
_FROM_ENVIRONMENT = "env:"


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for one dataset.

    Attributes:
        target: path and query of the address.
        body: None if there is none.
    """

    target: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """Turns datasets into requests.

    Attributes:
        target: path and query of the address, with {dataset} where it belongs there.
        body: a text with {dataset} and {n}; None for requests without a body.
        content_type: of the body; only JSON is written as JSON.
    """

    target: str = field(repr=False)
    body: str | None
    content_type: str

    def request(self, dataset: Any, n: int = 1) -> Request:
        """Returns the request for n outputs of a dataset.

        Places are filled in one pass: what a dataset holds is never taken for a place.
        """
        target = self.target
        if _PLACES.search(target):
            in_address = {
                DATASET_PLACE: lambda: quote(to_argument(dataset), safe=""),
                COUNT_PLACE: lambda: str(n),
            }
            target = _PLACES.sub(lambda place: in_address[place[0]](), target)
        body: str | None = None
        if self.body is not None:
            in_body = {DATASET_PLACE: lambda: self._written(dataset), COUNT_PLACE: lambda: str(n)}
            body = _PLACES.sub(lambda place: in_body[place[0]](), self.body)
        return Request(
            target=quote(target, safe=_ADDRESS_CHARACTERS),
            body=None if body is None else body.encode(),
        )

    def _written(self, dataset: Any) -> str:
        """Returns a dataset as the content type of the body wants it."""
        if "json" in self.content_type:
            return to_json(dataset)
        text = to_argument(dataset)
        return quote(text, safe="") if "urlencoded" in self.content_type else text


# Outputs per chunk of a service that is asked once per output: a chunk takes about as long as one
# of a program.
_SINGLE_CHUNK = 64
# Outputs per request of a batch service.
_BATCH_CHUNK = 1000
# Bytes that an answer may have.
_MAX_ANSWER_BYTES = 4 << 20
# Bytes per output that the answer of a batch service may have on top of them.
_MAX_BYTES_PER_OUTPUT = 4096


class HttpMechanism(Mechanism):
    """A service that is asked once per output."""

    is_seeded = False
    waits = True
    wrapper = "output"
    why_not_afresh = "a service cannot be started afresh from here"

    def __init__(
        self,
        client: Client,
        template: RequestTemplate,
        *,
        chunk_size: int,
        name: str | None,
        named_headers: Mapping[str, str],
        answer: tuple[str, ...] = (),
        on_error: OnError = "raise",
    ) -> None:
        self.client = client
        self.template = template
        self.chunk_size = chunk_size
        self.place = client.place
        self.name = name or self.place
        self.named_headers = named_headers
        self.answer = answer
        self.on_error = on_error

    def prepared(self, pairs: Sequence[Pair], samples: int) -> Mechanism:
        """Refuses pairs whose inputs reach the service as the same request."""
        check_transmitted(pairs, self.template.request, self.name)
        return self

    def digest(self) -> str:
        """Returns a digest of the address, the headers, and how requests and answers are read.

        The service itself cannot be inspected. Of a header that is read from the environment it has
        the name of the variable only.
        """
        headers = sorted(self.named_headers.items())
        call: tuple[Any, ...] = (type(self).__name__, self.client.url.geturl(), headers)
        if self.on_error != "raise":
            call = (*call, self.on_error)
        default_body = _BATCH_BODY if isinstance(self, BatchHttpMechanism) else _SINGLE_BODY
        form = (self.client.method, self.template.body, self.answer)
        if form != ("POST", default_body, ()):
            call = (*call, form)
        return code_digest(call)

    def weakening_facts(self) -> dict[str, Any]:
        """Returns those of every mechanism, and the part of the answers that is the output."""
        facts = super().weakening_facts()
        if self.answer:
            facts["answer"] = ".".join(self.answer)
        return facts

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Sends n requests."""
        request = self.template.request(dataset)
        values = draw_one_by_one(lambda: self._draw_one(request), n, self._read)
        return self._read(values, n)

    def _draw_one(self, request: Request) -> Any:
        """Sends one request, and returns its output, or the outcome of a failure."""
        try:
            return self._ask(request)
        except RequestFailed as failure:
            pass_on(failure)
            current_log().add(failed=1)
            return failed_run(failure.kind)

    def _ask(self, request: Request) -> Any:
        """Sends one request, and returns what its answer says."""
        source = f"the answer of {self.place}"
        try:
            answer = self.client.ask(request)
        except RequestFailed as failure:
            if self.on_error == "outcome":
                raise
            raise MechanismError(str(failure)) from None
        with discreet(self.client.secrets):
            value = read_json(decode(answer, source), source)
            if self.answer:
                return _part_of(value, self.answer, source)
            return _unwrapped(value, self.wrapper)

    def _read(self, values: list[Any], n: int) -> Outputs:
        with discreet(self.client.secrets):
            return (self.features or read_outputs)(values, n)


class BatchHttpMechanism(HttpMechanism):
    """A service that is asked for many outputs at once."""

    wrapper = "outputs"

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Sends one request."""
        values = self._ask(self.template.request(dataset, n))
        if not isinstance(values, list):
            quoted = without(short_repr(values), self.client.secrets)
            raise MechanismError(
                f"{self.place} must answer with a list of {n} outputs, not {quoted}"
            )
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
    method: str = "POST",
    timeout: float = 30.0,
    body: str | None = None,
    answer: str | Sequence[str | int] | None = None,
    retries: int = 5,
    pause: float = 0.1,
    chunk_size: int | None = None,
    max_output: int | None = None,
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
    on_error: OnError = "raise",
) -> HttpMechanism:
    """A mechanism from a service that is asked over HTTP, in JSON unless you say otherwise.

    Args:
        url: http or https. `{dataset}` in its path or query stands for the dataset.
        batch: the request is `{"n": …, "dataset": …}` and the answer a list of n outputs (or
            `{"outputs": […]}`). Otherwise the request is `{"dataset": …}` and the answer one output
            (or `{"output": …}`).
        headers: sent with every request, e.g. Authorization. A value "env:VAR" is read from the
            variable VAR of the environment. No value is in any result, report or error.
        method: "POST", "GET", "PUT", "PATCH" or "DELETE". GET and DELETE have no body unless one is
            given.
        timeout: seconds per request, from connecting to the last byte.
        body: a template of the request, e.g. '{"records": {dataset}}', instead of the form above.
            `{dataset}` stands for the dataset as JSON, `{n}` for the number of outputs of a batch.
            If the headers name a Content-Type other than JSON, a number or a text is put in as it
            is.
        answer: where the output is in the answer, e.g. "result.values.0": names of keys and
            positions in lists. Of a batch, where the list of outputs is.
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
    check_flag("batch", batch)
    chunk = chunk_size
    if chunk is None:
        chunk = _BATCH_CHUNK if batch else _SINGLE_CHUNK
    max_bytes = max_output
    if max_bytes is None:
        max_bytes = _MAX_ANSWER_BYTES
        if batch:
            max_bytes += chunk * _MAX_BYTES_PER_OUTPUT
    check_positive("timeout", timeout)
    check_positive("chunk_size", chunk)
    check_positive("max_output", max_bytes)
    check_at_least("pause", pause, 0.0)
    check_at_least("retries", retries, 0.0)
    allowed_on_error = ("raise",) if batch else ("raise", "outcome")
    if on_error not in allowed_on_error:
        raise InputError(
            f"on_error={on_error!r} must be 'raise', or, for one output per request, 'outcome'"
        )
    _check_headers(headers)
    parts = _check_url(url)
    sent_headers = {name: _header_value(name, text) for name, text in (headers or {}).items()}
    _check_headers(sent_headers)
    client = Client(
        url=parts,
        headers=sent_headers,
        method=_check_method(method),
        timeout=float(timeout),
        retries=int(retries),
        pause=float(pause),
        max_bytes=int(max_bytes),
    )
    mechanism_class = BatchHttpMechanism if batch else HttpMechanism
    mechanism = mechanism_class(
        client,
        _open_template(parts, client, body, batch=batch),
        chunk_size=int(chunk),
        name=name,
        named_headers=dict(headers or {}),
        answer=_check_answer(answer),
        on_error=on_error,
    )
    return mechanism.with_features(as_features(features))


def _check_headers(headers: Any) -> None:
    """Refuses headers that cannot be sent.

    The error names the wrong one, but not its value, which may be secret.
    """
    if headers is not None and not isinstance(headers, Mapping):
        raise InputError(f"headers of type {type(headers).__name__} must be a dict of texts")
    for header, text in (headers or {}).items():
        if not isinstance(header, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header):
            raise InputError("headers holds a name that cannot be one: use letters, digits and -")
        if not isinstance(text, str):
            raise InputError(
                f"headers[{header!r}] of type {type(text).__name__} must be a text: write it in "
                "quotes"
            )
        if not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", text):
            raise InputError(
                f"headers[{header!r}] must be one line of Latin-1 text; its value, which may be "
                "secret, has another character or a line break (read from a file? use .strip())"
            )


def _header_value(name: str, text: str) -> str:
    """Returns the value of a header, from the environment if it begins with "env:"."""
    if not text.startswith(_FROM_ENVIRONMENT):
        return text
    variable = text.removeprefix(_FROM_ENVIRONMENT)
    if variable not in os.environ:
        raise InputError(
            f"headers[{name!r}]: the variable {variable!r} is not set in the environment; set it, "
            f"or write the value itself in the place of {text!r}"
        )
    return os.environ[variable]


def _check_method(method: object) -> str:
    checked = method.upper() if isinstance(method, str) else method
    if checked not in _METHODS:
        raise InputError(f"method={short_repr(method)} must be one of {', '.join(_METHODS)}")
    return str(checked)


def _check_answer(answer: str | Sequence[str | int] | None) -> tuple[str, ...]:
    """Returns the steps of a path into an answer."""
    if answer is None:
        return ()
    if isinstance(answer, str):
        steps = answer.split(".")
    else:
        steps = [str(step) for step in answer] if isinstance(answer, list | tuple) else []
    if not steps or not all(steps):
        raise InputError(
            f"answer={short_repr(answer)} must name keys and positions, with dots between them: "
            "'result.values.0'"
        )
    return tuple(steps)


def _open_template(
    parts: SplitResult, client: Client, body: str | None, *, batch: bool
) -> RequestTemplate:
    """Returns the template of all requests, or raises if no dataset gets into them."""
    if body is not None and not isinstance(body, str):
        raise InputError(
            f"body={short_repr(body)} must be a text with a place for the dataset: "
            "'{\"records\": {dataset}}'"
        )
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    is_in_address = DATASET_PLACE in target
    if body is None and not is_in_address and client.method not in _METHODS_WITHOUT_BODY:
        body = _BATCH_BODY if batch else _SINGLE_BODY
    is_in_body = body is not None and DATASET_PLACE in body
    if not is_in_address and not is_in_body:
        raise InputError(
            f"the service never sees its input: write {DATASET_PLACE} into "
            + ("body" if body is not None else f"the address of {client.method}, or into body")
        )
    if batch and COUNT_PLACE not in target and COUNT_PLACE not in (body or ""):
        raise InputError(
            f"a batch service must be told how many outputs to draw: write {COUNT_PLACE} into body"
        )
    given_type = next(
        (text for name, text in client.headers.items() if name.lower() == "content-type"),
        _JSON_TYPE,
    )
    template = RequestTemplate(target=target, body=body, content_type=given_type.lower())
    if body is not None and "json" in template.content_type:
        probed = body.replace(DATASET_PLACE, _PROBE).replace(COUNT_PLACE, "1")
        try:
            json.loads(probed)
        except ValueError as error:
            raise InputError(
                f"body={without(short_repr(body), client.secrets)} is not JSON once the dataset is "
                f"in its place ({error}): write {DATASET_PLACE} without quotes, or name another "
                "Content-Type in the headers"
            ) from None
    return template


def _check_url(url: str) -> SplitResult:
    """Returns the parts of an address, or raises if it cannot be used."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        named = public_address(url) if isinstance(url, str) else f"of type {type(url).__name__}"
        raise InputError(
            f"url={short_repr(named)} must be an address like http://localhost:8000/path"
        )
    if parts.username is not None:
        raise InputError(
            "url must not hold a name and password; give headers={'Authorization': …} instead"
        )
    return parts


def _part_of(value: Any, steps: Sequence[str], source: str) -> Any:
    """Returns the part of an answer to which a path leads.

    Raises:
        MechanismError: if there is no such part; the message says how far the path leads.
    """
    for number, step in enumerate(steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            path = ".".join(steps)
            if isinstance(value, dict):
                there = f"the keys {', '.join(map(str, list(value)[:_MAX_LISTED_KEYS]))}"
            elif isinstance(value, list):
                there = f"a list of {len(value)}"
            else:
                there = short_repr(value)
            raise MechanismError(
                f"{source} has no {path!r}: there is no {step!r} in "
                f"{'it' if number == 0 else repr('.'.join(steps[:number]))}, which is {there}"
            )
    return value


def _unwrapped(value: Any, key: str) -> Any:
    """Returns the value itself, or the entry of an object that has only this key."""
    is_wrapped = isinstance(value, dict) and set(value) == {key}
    return value[key] if is_wrapped else value
