"""Services as mechanisms, against a real server on loopback that is slow, fails at times, and lies."""

import http.client
import json
import pickle
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import epsilometer as em
from epsilometer.cli import main


class Service(BaseHTTPRequestHandler):
    """Its paths are its ways to behave; the server counts requests per path."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = self.server.turn(self.path)
        self.server.seen.append((dict(self.headers), request))
        way = getattr(self, "way_" + self.path.strip("/").partition("?")[0].replace("-", "_"))
        way(request, turn)

    def answer(self, value, status=200, headers=(), length=None):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def draw(self, request, scale=0.5):
        with self.server.lock:
            return self.server.rng.laplace(
                float(request["dataset"]), scale, int(request.get("n", 1))
            ).tolist()

    def way_single(self, request, turn):
        self.answer(self.draw(request)[0])

    def way_cached(self, request, turn):
        """Noise that is drawn once per input, and kept."""
        with self.server.lock:
            value = float(request["dataset"])
            answers = self.server.__dict__.setdefault("answers", {})
            if value not in answers:
                answers[value] = value + float(self.server.rng.laplace())
            self.answer(answers[value])

    def way_wrapped(self, request, turn):
        self.answer({"output": self.draw(request)[0]})

    def way_batch(self, request, turn):
        self.answer({"outputs": self.draw(request)})

    def way_slow_and_failing(self, request, turn):
        """Every third request is turned away, each in another way, and every one takes its time."""
        time.sleep(0.02)
        if turn % 3:
            self.answer(self.draw(request))
        else:
            self.answer(b"busy", (503, 429)[turn % 2], [("Retry-After", "0")])

    def way_busy(self, request, turn):
        """Every third request is turned away, before any work is done."""
        if turn % 3:
            self.answer(self.draw(request)[0])
        else:
            self.answer(b"busy", 429)

    def way_one_sided(self, request, turn):
        """Turns away every request about one of the inputs, once."""
        if turn % 2 and request["dataset"] == 1.0:
            self.answer(b"busy", 503, [("Retry-After", "0")])
        else:
            self.answer(self.draw(request)[0])

    def way_gateway(self, request, turn):
        """A fair coin behind a gateway, which gives up on half of the 1s of one input and of the 0s of the other."""
        with self.server.lock:
            face, is_slow = (self.server.rng.random(2) < 0.5).tolist()
        if is_slow and face == (request["dataset"] == 1.0):
            self.answer(b"gateway timeout", 504)
        else:
            self.answer(int(face))

    def way_bad_gateway(self, request, turn):
        self.answer(b"no answer behind", 502)

    def way_gateway_timeout(self, request, turn):
        self.answer(b"no answer behind", 504)

    def way_unavailable(self, request, turn):
        self.answer(b"failed in the middle", 503)

    def way_down(self, request, turn):
        self.answer(b"<h1>down</h1>", 503, [("Retry-After", "0")])

    def way_wrong(self, request, turn):
        self.answer(b"no such dataset", 400)

    def way_moved(self, request, turn):
        self.answer(b"", 307, [("Location", "http://elsewhere.example/")])

    def way_crashing(self, request, turn):
        self.answer(b"Traceback: <script>", 500)

    def way_too_few(self, request, turn):
        self.answer(self.draw(request)[:-1])

    def way_too_many(self, request, turn):
        self.answer([*self.draw(request), 0.0])

    def way_no_list(self, request, turn):
        self.answer({"count": request["n"], "values": []})

    def way_garbage(self, request, turn):
        self.answer(b"{oops")

    def way_bytes(self, request, turn):
        self.answer(b"\xff\xfe")

    def way_endless(self, request, turn):
        self.answer(b"[" + b"1," * 5_000_000, length=10**12)

    def way_cut_off(self, request, turn):
        self.answer(b"[1, 2", length=1000)

    def way_silent(self, request, turn):
        self.server.stopping.wait()

    def way_negative_piece(self, request, turn):
        self.pieces(b"-5\r\n" + b"1," * 5_000_000)

    def way_huge_piece(self, request, turn):
        self.pieces(b"f" * 16 + b"\r\n" + b"[" + b"1," * 5_000_000)

    def way_no_piece(self, request, turn):
        self.pieces(b"zz\r\n[1]\r\n0\r\n\r\n")

    def way_negative_length(self, request, turn):
        self.answer(b"[" + b"1," * 5_000_000, length=-7)

    def way_long_length(self, request, turn):
        self.answer(b"[" + b"1," * 5_000_000, length="9" * 5000)

    def way_many_headers(self, request, turn):
        self.answer(b"[1]", headers=[(f"X-{number}", "x") for number in range(500)])

    def way_deep(self, request, turn):
        self.answer(b"[" * 100_000)

    def pieces(self, body):
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def way_dripping(self, request, turn):
        self.send_response(200)
        self.end_headers()
        while not self.server.stopping.wait(0.1):
            self.wfile.write(b" ")
            self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, **settings):
        super().__init__(("127.0.0.1", 0), Service, **settings)
        self.lock, self.turns, self.seen = threading.Lock(), {}, []
        self.rng = np.random.default_rng(0)
        self.stopping = threading.Event()

    def turn(self, path):
        with self.lock:
            self.turns[path] = self.turns.get(path, 0) + 1
            return self.turns[path]

    def handle_error(self, request, client_address):
        pass  # clients that hang up on us do so on purpose


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.stopping.set()
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.server_port}"


def sample(url, n=3, **settings):
    return em.from_http(url, **settings).sample(1.0, n, np.random.default_rng(0))


# True ε 2, claim 1, 14 000 fresh draws: the standard error of log p/q is .033, and 1.4 and 2.4 are at least 13 away.
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_broken_service_is_refuted(url, jobs):
    service = em.from_http(f"{url}/batch", batch=True)
    result = em.audit(service, em.Pair(0, 1), em.PureDP(1.0), samples=20_000, seed=0, jobs=jobs)
    assert result.is_refuted
    assert 1.4 < result.lower_bound < 2.4
    assert result.settings["seeded_mechanism"] is False
    assert result.settings["mechanism"] == f"{url}/batch"


def test_slow_and_failing_at_times(server, url):
    service = em.from_http(f"{url}/slow-and-failing?key=secret", batch=True, pause=0.01)
    result = em.audit(service, em.Pair(0, 1), em.PureDP(1.0), samples=20_000, seed=0)
    assert result.is_refuted
    assert (
        server.turns["/slow-and-failing?key=secret"] > 50
    )  # a third more than the 40 that were needed
    assert "secret" not in result.to_json()


def test_one_request_per_output(server, url):
    assert len(sample(f"{url}/single", 5, headers={"Authorization": "Bearer x"})) == 5
    assert sample(f"{url}/wrapped", 5).blocks[0].shape == "float"
    headers, request = server.seen[0]
    assert request == {"dataset": 1.0}
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer x"


@pytest.mark.parametrize(
    ("path", "requests", "reason"),
    [
        ("too-few", 1, "gave 2 outputs where 3 were asked for"),
        ("too-many", 1, "gave 4 outputs where 3 were asked for"),
        ("no-list", 1, r"must answer with a list of 3 outputs, not \{'count': 3.0"),
        ("garbage", 1, r"is not JSON: '\{oops'"),
        ("bytes", 1, r"not text in UTF-8: b'\\xff\\xfe'"),
        ("endless", 1, r"more than 1000000 bytes, beginning with '\[1,1,"),
        ("cut-off", 1, r"995 bytes less than announced, after '\[1, 2'; this is not tried again"),
        ("silent", 1, "no whole answer within timeout=0.7 s"),
        ("dripping", 1, "no whole answer within timeout=0.7 s"),
        ("wrong", 1, "answered with status 400: 'no such dataset'"),
        ("moved", 1, r"status 307 to http://elsewhere\.example/"),
        ("crashing", 1, "answered with status 500: 'Traceback"),
        ("bad-gateway", 1, r'status 502.*not tried again.*on_error="outcome"'),
        ("gateway-timeout", 1, r'status 504.*not tried again.*on_error="outcome"'),
        ("unavailable", 1, r'status 503.*not tried again.*on_error="outcome"'),
        ("down", 3, "did not answer in 3 tries; the last one: status 503: '<h1>down</h1>'"),
    ],
)
def test_services_that_misbehave_are_quoted_and_not_asked_again(
    server, url, path, requests, reason
):
    # Only those that never answer are not waited for; the others may take their time on a busy machine.
    timeout = 0.7 if path in ("silent", "dripping") else 100
    with pytest.raises(em.MechanismError, match=reason) as caught:
        sample(
            f"{url}/{path}", batch=True, timeout=timeout, retries=2, pause=0.01, max_output=10**6
        )
    while f"/{path}" not in server.turns:  # it may come to read the request after we have given up
        time.sleep(0.01)
    assert server.turns[f"/{path}"] == requests
    assert len(str(caught.value)) < 1000


def test_silence_has_one_name_whoever_notices_it_first(url, monkeypatch):
    # As on a busy machine, where the thread that keeps the time of the whole request gets its turn too late.
    monkeypatch.setattr("epsilometer.mechanisms.http._Watch._ring", lambda watch: None)
    with pytest.raises(
        em.MechanismError, match=r"broke off: no whole answer within timeout=0\.3 s; this is"
    ):
        sample(f"{url}/silent", timeout=0.3)


def test_nobody_listens():
    with socket.socket() as held:
        held.bind(
            ("127.0.0.1", 0)
        )  # a port that is bound but not listened at refuses, and nobody else gets it
        port = held.getsockname()[1]
        with pytest.raises(
            em.MechanismError,
            match=r"did not answer in 3 tries; the last one: cannot connect: .*refused",
        ):
            sample(f"http://127.0.0.1:{port}/", retries=2, pause=0.01)


def test_a_service_that_starts_late(monkeypatch):
    """A refused connection is tried again: nothing was drawn yet."""
    late, refused = Server(bind_and_activate=False), threading.Event()
    late.server_bind()
    connect = http.client.HTTPConnection.connect

    def noticed(connection):
        try:
            connect(connection)
        except ConnectionRefusedError:
            refused.set()
            raise

    def start():
        refused.wait()
        late.server_activate()
        late.serve_forever(poll_interval=0.02)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", noticed)
    thread = threading.Thread(target=start)
    thread.start()
    try:
        assert (
            len(sample(f"http://127.0.0.1:{late.server_port}/single", 1, retries=20, pause=0.05))
            == 1
        )
    finally:
        late.shutdown()
        thread.join()
        late.server_close()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("negative-piece", "a piece of -5 bytes was announced"),
        ("huge-piece", "more than 1000000 bytes"),
        ("no-piece", "broke off"),
        ("negative-length", "more than 1000000 bytes"),
        ("long-length", "more than 1000000 bytes"),
        ("many-headers", "broke off: HTTPException: got more than 100 headers"),
        ("deep", "is not JSON"),
    ],
)
def test_answers_that_lie_about_their_size(url, path, reason):
    # Noticed by itself: who waits for the time to be up gives another reason.
    with pytest.raises(em.MechanismError, match=reason):
        sample(f"{url}/{path}", 1, batch=True, max_output=1_000_000, timeout=200.0)


def test_addresses_that_are_not_ascii(server, url):
    assert len(sample(f"{url}/single?city=Köln&x=%20", 1)) == 1
    assert "/single?city=K%C3%B6ln&x=%20" in server.turns


@pytest.mark.parametrize(
    ("address", "settings", "reason"),
    [
        ("ftp://x/", {}, "must be an address like http"),
        ("no address", {}, "must be an address"),
        ("http://", {}, "must be an address"),
        ("http://host:99999/", {}, "must be an address"),
        ("http://a:b@host/", {}, "must not hold a name and password"),
        ("http://host/a b", {}, "must be an address"),
        (
            "http://host/",
            {"timeout": -1},
            "timeout=-1 must be a finite number above 0",
        ),
        (
            "http://host/",
            {"retries": -1},
            "retries=-1 must be a finite number of at least 0",
        ),
    ],
)
def test_bad_settings(address, settings, reason):
    with pytest.raises(em.InputError, match=reason):
        em.from_http(address, **settings)


def test_mechanisms_are_sent_to_workers_and_keep_their_keys_to_themselves(url):
    service = em.from_http(f"{url}/single", headers={"Authorization": "Bearer secret"})
    service.sample(0, 1, np.random.default_rng(0))
    assert len(pickle.loads(pickle.dumps(service)).sample(0, 2, np.random.default_rng(0))) == 2
    assert "secret" not in repr(service.client)


def test_from_the_command_line(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    audit = ["audit", f"{url}/batch", "--batch", "--left", "0", "--right", "1", "--samples", "5000"]
    assert main([*audit, "--epsilon", "1"]) == 1
    assert main([*audit, "--epsilon", "4", "--stop-early"]) == 0  # which rehearses nothing
    assert main(["audit", f"{url}/too-few", *audit[2:], "--epsilon", "1"]) == 2


class TestLostAndRetried:
    """An answer that was lost is never replaced by another one; what is sent again is on record."""

    PAIR = (0.0, 1.0)

    def test_a_gateway_that_loses_answers_by_their_content_refutes_nothing(self, url):
        """A2: equal laws, a fair coin on both inputs; what is lost depends on the output."""
        with pytest.raises(em.MechanismError, match="status 504"):
            em.audit(em.from_http(f"{url}/gateway"), self.PAIR, em.PureDP(0.1), samples=400, seed=0)

    def test_failures_are_outcomes_if_that_is_asked_for(self, url):
        source = em.from_http(f"{url}/gateway", on_error="outcome")
        result = em.audit(source, self.PAIR, em.PureDP(3.0), samples=400, seed=0)
        assert result.settings["on_error"] == "outcome"
        # A quarter of the answers of each side; 1e-9 of all fair coins are further away.
        assert all(50 < failed < 160 for failed in result.settings["failed"])
        assert "retried" not in result.settings
        assert not result.is_refuted

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_retries_are_counted_and_remarked(self, server, url, jobs, tmp_path):
        source = em.from_http(f"{url}/busy", pause=0.0, retries=100)
        how = {"samples": 200, "seed": 0, "jobs": jobs, "checkpoint": tmp_path / "c"}
        result = em.audit(source, self.PAIR, em.PureDP(0.1), **how)
        # Side by side, the same request may be turned away several times.
        left, right = result.settings["retried"]
        assert 0 < left <= 200
        assert 0 < right <= 200
        assert left + right <= server.turns["/busy"] - 400
        (report,) = [each for each in result.health if each.name == "retried-requests"]
        assert f"{left} of 200 left and {right} of 200 right" in report.message
        again = em.audit(source, self.PAIR, em.PureDP(0.1), **how)  # all of it from the checkpoint
        assert again.settings["retried"] == [left, right]

    def test_retries_of_one_side_are_not_trusted(self, url):
        source = em.from_http(f"{url}/one-sided", pause=0.0)
        result = em.audit(source, self.PAIR, em.PureDP(0.1), samples=300, seed=0, stop_early=True)
        assert result.verdict is em.Verdict.INCONCLUSIVE
        left, right = result.settings["retried"]
        assert left == 0
        assert right > 0
        (report,) = [each for each in result.health if each.name == "retried-requests"]
        assert report.untrusted

    def test_a_failure_in_a_worker_is_the_mechanisms(self, url):
        with pytest.raises(em.MechanismError, match="status 504"):
            em.audit(
                em.from_http(f"{url}/gateway-timeout"),
                self.PAIR,
                em.PureDP(0.1),
                samples=400,
                seed=0,
                jobs=2,
            )

    def test_a_batch_has_no_outcome_for_a_failure(self, url):
        with pytest.raises(em.InputError, match="on_error='outcome' must be 'raise'"):
            em.from_http(f"{url}/batch", batch=True, on_error="outcome")

    def test_a_time_limit_is_a_failure_and_never_a_redraw(self, server, url):
        source = em.from_http(f"{url}/silent", timeout=0.3, on_error="outcome")
        outputs = source.sample(0.0, 2, np.random.default_rng(0))
        assert [block.shape for block in outputs] == [outputs.blocks[0].shape]
        assert "TimedOut" in str(outputs.blocks[0])


class TestACachePerInput:
    def test_it_is_inconclusive_until_the_caller_says_that_there_is_no_noise(self, url):
        source = em.from_http(f"{url}/cached")
        result = em.audit(source, em.Pair(0.0, 1.0), em.PureDP(1.0), samples=200, seed=0)
        assert result.verdict is em.Verdict.INCONCLUSIVE
        (report,) = [report for report in result.health if report.name == "constant"]
        assert "a service cannot be started afresh from here" in report.message
        told = em.audit(
            source, em.Pair(0.0, 1.0), em.PureDP(1.0), samples=200, seed=0, constant="leak"
        )
        assert told.is_refuted

    def test_the_command_line(self, url, capsys):
        asked = ["audit", f"{url}/cached", "--left", "0", "--right", "1", "--epsilon", "1"]
        asked += ["--samples", "200"]
        assert main(asked) == 3
        assert "constant='leak'" in " ".join(capsys.readouterr().out.split())
        assert main([*asked, "--constant", "leak"]) == 1
        assert main([*asked, "--constant", "yes"]) == 2
