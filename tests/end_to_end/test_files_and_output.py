"""What the command writes and prints: nothing old is lost, nothing foreign gets in, and a crash is no verdict."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "epsilometer"]
FILES = ("r.json", "r.html", "r.xml", "r.md")
INPUTS = ["--left", "0", "--right", "1"]
# Every way to print that we know of: Python's, its original stream, the descriptor, C, a child, a thread, at exit.
CHATTER = """
import atexit, ctypes, os, subprocess, sys, threading, time
C = ctypes.CDLL(None)
print("chatter of the import")
subprocess.run(["echo", "chatter of a child"])
atexit.register(print, "chatter at exit")
def forever():
    while True:
        print("chatter of a thread", flush=True)
        time.sleep(0.0005)
threading.Thread(target=forever, daemon=True).start()
def noisy(x, rng):
    print("chatter")
    print("chatter", file=sys.__stdout__)
    os.write(1, b"chatter of a descriptor\\n")
    C.puts(b"chatter of C")
    return x + rng.laplace()
"""
ENDS = """
import os, sys
def leave(x, rng): raise SystemExit(0)
def stop(x, rng): raise GeneratorExit
def interrupt(x, rng): raise KeyboardInterrupt
def vanish(x, rng): os._exit(0)
def spoil(x, rng):
    sys.stdout = sys.stderr = None
    return x + rng.laplace()
def close(x, rng):
    sys.stdout.close(), sys.stderr.close(), os.closerange(0, 3)
    return x + rng.laplace()
"""


@pytest.fixture
def run(tmp_path, warm_python):
    """Runs the command in an empty folder; as a user does where something is done to its process before it starts."""

    def run(*arguments, **settings):
        if "preexec_fn" not in settings:
            return warm_python.run("-m", "epsilometer", *arguments, cwd=tmp_path, **settings)
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, text=True, check=False, **settings)

    return run


def laplace(*more):
    """Stops early, and so does not work out what else could have been refuted, which takes a second."""
    return [
        "audit",
        "zoo:laplace",
        "--epsilon",
        "1",
        "--samples",
        "400",
        "--seed",
        "0",
        "--stop-early",
        *more,
    ]


def closed(descriptor):
    return lambda: os.close(descriptor)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.mark.parametrize("size", [1, 3000, 30_000])
def test_a_full_disk_leaves_whole_files_and_is_no_verdict(run, tmp_path, size):
    for name in FILES:
        (tmp_path / name).write_text("OLD")
    flags = zip(("--json", "--html", "--junit", "--markdown"), FILES, strict=True)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run(
        *laplace(*(each for flag in flags for each in flag)), file_size=size, env=environment
    )
    assert ended.returncode == 2
    assert "r.html cannot be written: File too large" in ended.stderr
    assert (
        ended.stderr.count("epsilometer: ") == 1
    )  # beside signs of life, which it gives on a busy machine
    assert ended.stdout.startswith("NOT REFUTED")  # what was found out is not lost
    for name, end in zip(FILES, ("}\n", "</html>", "</testsuites>\n", "\n"), strict=True):
        text = (tmp_path / name).read_text()
        assert text == "OLD" or (
            len(text) <= size and text.rstrip("\n").endswith(end.rstrip("\n"))
        ), name
    assert names(tmp_path) == sorted(FILES)


def test_a_profile_and_its_picture_survive_a_full_disk(run, tmp_path):
    for name in ("p.json", "p.svg"):
        (tmp_path / name).write_text("OLD")
    arguments = [
        "profile",
        "zoo:laplace",
        "--samples",
        "400",
        "--json",
        "p.json",
        "--plot",
        "p.svg",
    ]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run(*arguments, file_size=500, env=environment)
    assert ended.returncode == 2
    assert "p.json cannot be written" in ended.stderr
    assert "p.svg cannot be written" in ended.stderr
    assert [(tmp_path / name).read_text() for name in names(tmp_path)] == ["OLD", "OLD"]


def test_a_suite_survives_a_full_disk(run, tmp_path):
    (tmp_path / "s.toml").write_text(
        'samples = 400\nseed = 0\n[[audit]]\nmechanism = "zoo:laplace"\n'
    )
    assert run("run", "s.toml", "--jobs", "1").returncode == 0
    out = tmp_path / "epsilometer-report"
    before = {path: path.read_bytes() for path in out.iterdir()}
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run("run", "s.toml", "--jobs", "1", file_size=500, env=environment)
    assert ended.returncode == 2
    assert "s.history.sqlite" in ended.stderr
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert run("history", "s.toml").stdout.count("1 not refuted") == 1


@pytest.mark.parametrize("extra", [[], ["--jobs", "2"]], ids=["here", "workers"])
def test_json_on_standard_output_is_nothing_but_json(run, tmp_path, extra):
    (tmp_path / "m.py").write_text(CHATTER)
    ended = run(
        "audit", "m:noisy", *INPUTS, "--epsilon", "9", "--samples", "400", "--json", "-", *extra
    )
    assert json.loads(ended.stdout)["verdict"] == "not refuted"
    assert ended.returncode == 0
    for text in ("the import", "a child", "a descriptor", "C"):
        assert f"chatter of {text}\n" in ended.stderr


LATE = """
import atexit, threading, time
over = threading.Event()
def last_words():
    over.wait()
    print("x" * 1_000_000, flush=True)
threading.Thread(target=last_words, daemon=True).start()
atexit.register(time.sleep, 0.2)  # the thread gets hold of the stream
atexit.register(over.set)
def noisy(x, rng): return x + rng.laplace()
"""


def test_a_thread_that_prints_at_the_end_does_not_cost_the_exit_status(tmp_path):
    """Python aborts if one does so for a second longer while it shuts down."""
    (tmp_path / "m.py").write_text(LATE)
    command = [*COMMAND, "measure", "m:noisy", *INPUTS, "--samples", "100", "--json", "-"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    buffered = {
        name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"
    }  # streams with locks
    with subprocess.Popen(command, cwd=tmp_path, env=buffered, **pipes) as program:
        assert json.loads(program.stdout.read())
        time.sleep(2.0)  # nobody reads what it prints: the thread must wait
        assert len(program.stderr.read()) >= 1_000_000
    assert program.returncode == 0


@pytest.mark.parametrize("command", ["measure", "profile", "replay", "compare", "run"])
def test_no_command_lets_a_mechanism_print(run, tmp_path, command):
    (tmp_path / "m.py").write_text(CHATTER)
    flags = ["--samples", "400", "--json", "-"]
    if command == "replay":
        assert run("measure", "zoo:laplace", "--samples", "400", "--json", "r.json").returncode == 0
        ended = run("replay", "r.json", "m:noisy", *flags)
    elif command == "compare":
        (tmp_path / "x.json").write_text(json.dumps(list(range(300))))
        ended = run("compare", "x.json", "x.json", "--epsilon", "1", "--json", "-")
    elif command == "run":
        (tmp_path / "s.toml").write_text(
            'samples = 400\n[[audit]]\nmechanism = "m:noisy"\nleft = 0\nright = 1\nepsilon = 9\n'
        )
        ended = run("run", "s.toml", "--jobs", "1")
    else:
        ended = run(command, "m:noisy", *INPUTS, *flags)
    assert ended.returncode in (0, 3), ended.stderr[-500:]
    assert "chatter" not in ended.stdout
    if command != "run":
        json.loads(ended.stdout)


def test_names_of_standard_output_mean_ours(run, tmp_path):
    (tmp_path / "m.py").write_text(CHATTER)
    arguments = [
        "audit",
        "m:noisy",
        *INPUTS,
        "--epsilon",
        "0.01",
        "--samples",
        "400",
        "--json",
        "-",
        "--markdown",
    ]
    piped = run(*arguments, "/dev/stdout").stdout
    with (tmp_path / "out").open("w") as out:
        run(*arguments, "/dev/stdout", stdout=out)
    for text in (piped, (tmp_path / "out").read_text()):
        markdown, brace, stored = text.partition("{\n")
        assert "| m\\:noisy |" in markdown
        assert "chatter" not in markdown
        json.loads(brace + stored)


@pytest.mark.parametrize(
    ("function", "extra", "status"),
    [
        *((name, [], 2) for name in ("leave", "stop")),
        ("interrupt", [], 130),
        *((name, ["--jobs", "2"], 2) for name in ("leave", "stop", "vanish")),
        ("close", [], 0),
        ("spoil", [], 0),
    ],
)
def test_a_mechanism_cannot_end_us_with_a_verdict(run, tmp_path, function, extra, status):
    (tmp_path / "m.py").write_text(ENDS)
    ended = run("audit", f"m:{function}", *INPUTS, "--epsilon", "9", "--samples", "100", *extra)
    assert ended.returncode == status, ended.stderr
    assert not status or ended.stderr.splitlines()[-1].startswith("epsilometer: ")


@pytest.mark.parametrize(
    "arguments", [laplace(), laplace("--json", "-"), ["zoo"], ["audit", "--help"], ["--version"]]
)
def test_an_answer_that_nobody_got_is_none(run, arguments):
    with open("/dev/full", "w") as full:
        ended = run(*arguments, stdout=full)
    assert ended.returncode == 2
    assert ended.stderr == "epsilometer: standard output: No space left on device\n"
    ended = run(*arguments, preexec_fn=closed(1), stdout=None)
    assert ended.returncode == 2
    assert "standard output is closed" in ended.stderr


def test_a_reader_that_goes_away_takes_no_file_with_it(run, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(*laplace("--json", "r.json", "--html", "r.html"), stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")
    assert names(tmp_path) == ["r.html", "r.json"]


def test_an_error_stays_one_without_anybody_to_tell(run, tmp_path):
    (tmp_path / "m.py").write_text(ENDS)
    bad = ["audit", "m:leave", *INPUTS, "--epsilon", "9"]
    with open("/dev/full", "w") as full:
        assert run(*bad, stderr=full).returncode == 2
        assert run(*laplace(), stderr=full).returncode == 0
    assert run(*bad, preexec_fn=closed(2), stderr=None).returncode == 2
    (tmp_path / "chatter.py").write_text(CHATTER)
    arguments = [
        "audit",
        "chatter:noisy",
        *INPUTS,
        "--epsilon",
        "9",
        "--samples",
        "400",
        "--json",
        "-",
    ]
    fine = run(*arguments, preexec_fn=closed(2), stderr=None)
    assert fine.returncode == 0
    json.loads(fine.stdout)


def test_a_mechanism_that_changes_the_folder_moves_nothing(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "m.py").write_text(
        "import os\nos.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'elsewhere'))\n"
        "def noisy(x, rng):\n    os.chdir('/')\n    return x + rng.laplace()\n"
    )
    flags = [
        each
        for pair in zip(("--json", "--html", "--junit", "--markdown"), FILES, strict=True)
        for each in pair
    ]
    for number, extra in enumerate(([], ["--stop-early"], ["--jobs", "2"])):
        arguments = ["audit", "m:noisy", *INPUTS, "--epsilon", "0.01", "--samples", "200", *extra]
        ended = run(*arguments, *flags, "--checkpoint", f"c{number}")
        assert ended.returncode in (0, 1), ended.stderr
    (tmp_path / "s.toml").write_text(
        "samples = 200\nleft = 0\nright = 1\nepsilon = 0.01\n"
        '[[audit]]\nname = "a"\nmechanism = "m:noisy"\n[[audit]]\nname = "b"\nmechanism = "m:noisy"\n'
    )
    ended = run("run", "s.toml", "--jobs", "1", "--junit", "s.xml")
    assert ended.returncode in (0, 1), ended.stdout
    assert names(tmp_path / "elsewhere") == []
    made = {*FILES, "c0", "c1", "c2", "s.xml", "s.history.sqlite", "epsilometer-report"}
    assert set(names(tmp_path)) == made | {"elsewhere", "m.py", "s.toml"}


@pytest.mark.parametrize("extra", [[], ["--stop-early"]], ids=["whole", "early"])
def test_who_holds_a_checkpoint_is_named(tmp_path, run, extra):
    (tmp_path / "m.py").write_text(
        "import time\ndef f(x, rng):\n"
        "    open('begun', 'w').close()\n    time.sleep(.002)\n    return x + rng.laplace()\n"
    )
    arguments = [
        "audit",
        "m:f",
        *INPUTS,
        "--epsilon",
        "1",
        "--samples",
        "20000",
        "--checkpoint",
        "c",
        *extra,
    ]
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL) as first:
        _wait_for(tmp_path / "begun")
        second = run(*arguments)
        first.kill()
    assert second.returncode == 2
    assert second.stderr.endswith(f"is in use by another audit, process {first.pid}\n")


def test_a_history_cannot_steer_a_terminal(run, tmp_path):
    (tmp_path / "s.toml").write_text(
        'samples = 400\nseed = 0\n[[audit]]\nmechanism = "zoo:laplace"\n'
    )
    assert run("run", "s.toml", "--jobs", "1").returncode == 0
    evil = "\x1b[2J\x9b31m\u202e\x07"
    with sqlite3.connect(tmp_path / "s.history.sqlite") as base:
        base.execute("UPDATE runs SET began = ?, ended = ?", (evil, evil))
        base.execute("UPDATE outcomes SET name = ?, finished = ?, verdict = ?", (evil, evil, evil))
        base.execute(
            "INSERT INTO outcomes VALUES (1, 'x', '', ?, ?, NULL, NULL, ?, NULL)",
            (evil, evil, evil),
        )
    for more in (
        [],
        ["--run", "1"],
        ["--audit", evil],
        ["--audit", "x"],
        ["--audit", "\x1bmissing"],
    ):
        ended = run("history", "s.toml", *more)
        assert not set(evil) & set(ended.stdout + ended.stderr) - set("[2J31m"), more
        assert ended.returncode == (2 if "\x1bmissing" in more else 0)


def _wait_for(path):
    """The time limit of the test ends this wait if the file is never made."""
    while not path.exists():
        time.sleep(0.05)
