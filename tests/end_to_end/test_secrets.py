"""Secrets are planted wherever a user may have to give one; nothing that is written or printed holds them."""

import json
import pickle
import subprocess
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import epsilometer as em
from epsilometer.cli import main

SECRET = "TOPSECRET"  # every planted value holds it
KEY, TOKEN, PASSWORD = f"{SECRET}-key-1", f"{SECRET}.token/2", f"{SECRET}'pass%20word3"


class Service(BaseHTTPRequestHandler):
    """Draws Laplace noise, or fails; its failures repeat all that it was sent, as many services do."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        way = self.path.strip("/").partition("?")[0]
        told = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        if way == "fine":
            draws = (
                np.random.default_rng()
                .laplace(request["dataset"], 0.5, request.get("n", 1))
                .tolist()
            )
            self.answer(200, json.dumps(draws if "n" in request else draws[0]).encode())
        elif way == "moved":
            self.answer(
                307, told, Location=f"http://user:{PASSWORD}@elsewhere.example/x{self.path}"
            )
        elif way == "garbage":
            self.answer(200, b"{" + told)
        elif way == "odd":
            self.answer(200, told)  # an object where a list is needed
        elif way == "cut":
            self.answer(200, told, length=10**6)
        elif way == "silent":
            self.server.stopping.wait(10)
        else:
            self.answer(int(way), self.path.encode() + told)

    def answer(self, status, body, length=None, **headers):
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    stopping = threading.Event()

    def handle_error(self, request, client_address):
        pass


@pytest.fixture(scope="module")
def url():
    server = Server(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.stopping.set()
    server.shutdown()
    thread.join()
    server.server_close()


def search(folder, *texts):
    """Complains about the first place at which a secret is."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "suite.toml":  # which the user wrote
            assert SECRET.encode() not in path.read_bytes(), path.name
    for text in texts:
        assert SECRET not in text, text


def query():
    return f"api_key={KEY}&sig={TOKEN}&plain={KEY}#{KEY}"


def test_files_of_an_audit(url, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    files = [
        text
        for kind in ("json", "html", "junit", "markdown")
        for text in (f"--{kind}", f"result.{kind}")
    ]
    audit = [
        "audit",
        f"{url}/fine?{query()}",
        "--batch",
        "--left",
        "0",
        "--right",
        "1",
        "--epsilon",
        "1",
    ]
    assert main([*audit, "--samples", "3000", *files, "--checkpoint", "draws.checkpoint"]) == 1
    assert main(["replay", "result.json", f"{url}/fine?{query()}", "--batch", *files]) == 1
    assert (
        em.AuditResult.from_json((tmp_path / "result.json").read_text()).settings["target"]
        == f"{url}/fine?…"
    )
    search(tmp_path, *capfd.readouterr())


@pytest.mark.parametrize("jobs", [1, 2])
def test_recording_and_result(url, tmp_path, jobs, capfd):
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Api-Key": KEY, "Cookie": f"session={KEY}"}
    service = em.from_http(f"{url}/fine?{query()}", batch=True, headers=headers)
    settings = {"samples": 3000, "seed": 0, "jobs": jobs, "record": tmp_path / "draws.jsonl"}
    result = em.audit(service, em.Pair(0, 1), em.PureDP(1.0), **settings)
    assert result.is_refuted
    result.save_json(tmp_path / "result.json")
    search(
        tmp_path,
        *capfd.readouterr(),
        repr(result),
        repr(service),
        repr(service.client),
        service.name,
    )


def test_suite(url, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    program = f"{sys.executable} -c 'import sys; sys.exit(sys.argv[1:])' {{dataset}} --token {KEY} password={KEY}"
    targets = [
        f"{url}/fine?{query()}",
        f"{url}/401?{query()}",
        f"command:{program}",
        f"http://me:{PASSWORD}@host/",
    ]
    audits = [f"[[audit]]\nmechanism = {json.dumps(target)}" for target in targets]
    named = f'[[audit]]\nname = "of {url}?key={KEY}"\nmechanism = "zoo:laplace"'
    head = "left = 0\nright = 1\nepsilon = 1.0\nsamples = 200\n"
    (tmp_path / "suite.toml").write_text("\n".join([head, *audits, named]), encoding="utf-8")
    assert main(["run", "suite.toml", "--jobs", "2", "--junit", "j.xml", "--markdown", "m.md"]) == 2
    assert main(["history", "suite.toml"]) == 0
    assert (tmp_path / "suite.history.sqlite").exists()
    search(tmp_path, *capfd.readouterr())


WAYS = ["400", "401", "500", "503", "moved", "garbage", "odd", "cut", "silent"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("debug", [False, True])
def test_failing_services(url, way, debug, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # between tries
    headers = {"Authorization": f"Bearer {TOKEN}", "x-amz-security-token": KEY}
    settings = {"timeout": 0.3, "retries": 1, "pause": 0.01}
    service = em.from_http(f"{url}/{way}?{query()}", batch=True, headers=headers, **settings)
    with pytest.raises(em.MechanismError) as failure:
        service.sample(0, 2, np.random.default_rng(0))
    told = "".join(traceback.format_exception(failure.value))
    search(tmp_path, told, str(pickle.loads(pickle.dumps(failure.value))))
    assert f"{url}/{way}" in str(failure.value), "the path is no secret"
    if way == "silent":
        return  # the command line waits for half a minute
    arguments = [
        "audit",
        f"{url}/{way}?{query()}",
        "--left",
        "0",
        "--right",
        "1",
        "--epsilon",
        "1",
        "--batch",
    ]
    assert main([*arguments, *(["--debug"] if debug else [])]) == 2
    search(tmp_path, *capfd.readouterr())


def test_errors_of_workers(url, tmp_path, capfd):
    service = em.from_http(f"{url}/401?{query()}", headers={"Authorization": f"Basic {TOKEN}"})
    with pytest.raises(em.EpsilometerError) as failure:
        em.audit(service, em.Pair(0, 1), em.PureDP(1.0), samples=400, jobs=2)
    search(tmp_path, "".join(traceback.format_exception(failure.value)), *capfd.readouterr())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", f"Bearer {TOKEN}\n"),
        ("Authorization", f"Bearer {TOKEN}\r\nX: y"),
        ("X-Key", f"{KEY}€"),
        ("X-Key", f"{KEY}\0"),
        ("X-Key", KEY.encode()),
        (f"X-{KEY}\n", "x"),
    ],
)
def test_bad_headers(name, value, url):
    with pytest.raises(em.InputError) as failure:
        em.from_http(f"{url}/fine", headers={name: value})
    assert SECRET not in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize(
    "address",
    [
        f"http://user:{PASSWORD}@127.0.0.1:1/m",
        f"http://user:{SECRET}/with?odd#signs@127.0.0.1:1/m",
        f"http://{KEY}@127.0.0.1:1/m",
        f"http://user:{SECRET}@host:99999999/m?key={KEY}",
        f"http://user:{SECRET}@host/with space?key={KEY}",
        f"http://host:1/m?key={KEY} x",
        f"ftp://user:{SECRET}@host/",
        f"HTTP://user:{SECRET}@host/",
        f"http://[::1/m?key={KEY}",
        f"http://127.0.0.1:1/m?key={KEY}",
        f"https://127.0.0.1:1/m?key={KEY}ü",
        f"http://{'a' * 70}.example/m?key={KEY}",
        f"command:nowhere --token={KEY} {{dataset}}",
        f"command:nowhere --password {KEY} 'unclosed",
        f"command:nowhere --api-key {KEY}",
        f"command:curl -H 'Authorization: Bearer {TOKEN}' -u me:{KEY} http://x/?sig={KEY}",
    ],
)
def test_addresses_and_commands_that_do_not_work(address, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("time.sleep", lambda _: None)
    for debug in ([], ["--debug"]):
        assert (
            main(["audit", address, "--left", "0", "--right", "1", "--epsilon", "1", *debug]) == 2
        )
    assert main(["audit", "zoo:laplace", address]) == 2  # one argument too many
    said = capfd.readouterr()
    search(tmp_path, *said)
    assert "Traceback" in said.err


def test_a_bad_certificate(url, tmp_path, capfd):
    secure = url.replace("http:", "https:")  # whose other end does not speak TLS
    assert (
        main(["audit", f"{secure}/fine?{query()}", "--left", "0", "--right", "1", "--epsilon", "1"])
        == 2
    )
    search(tmp_path, *capfd.readouterr())


PROGRAM = "import sys, os; sys.stderr.write('x' * {fill} + ' ' + repr(sys.argv) + os.environ['DB_PASSWORD']); {end}"


@pytest.mark.parametrize("fill", [0, 1900, 1990, 2000])
@pytest.mark.parametrize(
    "end", ["sys.exit(3)", "print(sys.argv); sys.exit(0 * print(sys.argv))", "sys.exit()"]
)
@pytest.mark.parametrize("batch", [False, True])
def test_programs_that_repeat_their_arguments(fill, end, batch, tmp_path):
    code = PROGRAM.format(fill=fill, end=end)
    given = [
        "--token",
        KEY,
        f"--api-key={KEY}",
        f"password={PASSWORD}",
        "-H",
        f"Authorization: Bearer {TOKEN}",
    ]
    argv = [
        sys.executable,
        "-c",
        code,
        "{dataset}",
        *given,
        f"http://me:{PASSWORD}@host/?key={KEY}",
        "-u",
        f"me:{KEY}",
    ]
    program = em.from_command(argv, batch=batch, env={"DB_PASSWORD": KEY})
    search(tmp_path, program.name, repr(program))
    assert "--token …" in program.name.replace("'", "")
    try:
        program.sample("x", 2, np.random.default_rng(0))
    except em.MechanismError as failure:
        search(tmp_path, "".join(traceback.format_exception(failure)))


def test_uncaught_errors_in_a_program_of_a_user(url, tmp_path):
    """Python prints the whole chain of causes; nothing of it may hold the key."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    call = f"em.from_http({url + '/401?' + query()!r}, headers={headers!r})"
    code = f"import epsilometer as em\nem.audit({call}, (0, 1), em.PureDP(1))"
    (tmp_path / "run.txt").write_text(code, encoding="utf-8")
    # Of code without a file Python shows no lines, in which the user's own text would be.
    loader = "exec(compile(open('run.txt').read(), '<user>', 'exec'))"
    run = subprocess.run(
        [sys.executable, "-c", loader], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "MechanismError" in run.stderr
    assert SECRET not in run.stdout + run.stderr
