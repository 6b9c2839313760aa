"""Eleven audits in one file: killed, gone on with, run again, compared."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

import epsilometer as em

COMMAND = [sys.executable, "-m", "epsilometer"]
ZOO = ["laplace", "randomized_response", "svt2"]
# So broken that a few thousand draws always show it.
BROKEN = ["svt5", "dp_mean", "laplace?epsilon=3"]
MINE = """
import os, time

def noisy(x, n, rng):
    while os.path.exists("wait"):
        open("waiting", "w").close()
        time.sleep(0.05)
    return rng.laplace(x, SCALE, n)

def crash(x):
    os._exit(7)
"""


@pytest.fixture
def run(suite, warm_python):
    """Runs the command in the folder of the suite."""
    return lambda *arguments: warm_python.run("-m", "epsilometer", *arguments, cwd=suite)


@pytest.fixture
def suite(tmp_path):
    """A folder with eleven audits, two of which do not work."""
    lines = ['title = "Eleven"', "samples = 4000", "seed = 3"]
    for name in ZOO:
        lines += ["[[audit]]", f'name = "{name}"', f'mechanism = "zoo:{name}"']
    for name in BROKEN:
        lines += [
            "[[audit]]",
            f'name = "{name}"',
            f'mechanism = "zoo:{name}"',
            "epsilon = 1",
            'expect = "refuted"',
        ]
    for number in range(3):
        lines += [
            "[[audit]]",
            f'name = "mine {number}"',
            'mechanism = "mine:noisy"',
            "batch = true",
        ]
        lines += [f"left = {number}", f"right = {number + 1}", "epsilon = 1"]
    lines += ["[[audit]]", 'mechanism = "mine:crash"', "left = 0", "right = 1", "epsilon = 1"]
    lines += [
        "[[audit]]",
        'name = "δ < 1"',
        'mechanism = "zoo:gaussian"',
        'notion = "approx"',
        "delta = 1e-3",
    ]
    (tmp_path / "suite.toml").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "mine.py").write_text(MINE.replace("SCALE", "1.0"))
    return tmp_path


def finished(folder):
    base = sqlite3.connect(folder / "suite.history.sqlite")
    rows = base.execute(
        "SELECT run, name, finished, verdict FROM outcomes ORDER BY run, rowid"
    ).fetchall()
    base.close()
    return rows


def kill_when_half_done(folder):
    """Starts the suite, which comes to a halt at the first audit of `mine`, and kills it there."""
    (folder / "wait").touch()
    command = [*COMMAND, "run", "suite.toml", "--jobs", "2"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        for _ in range(len(ZOO) + len(BROKEN)):
            assert running.stdout.readline().startswith("[")
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    (folder / "wait").unlink()


@pytest.mark.slow
def test_killed_then_finished_then_changed(suite, run):
    kill_when_half_done(suite)
    before = finished(suite)
    assert [row[1] for row in before if row[1] in ZOO + BROKEN] == [row[1] for row in before]
    assert len(before) == len(ZOO) + len(BROKEN)
    assert "interrupted" in run("history", "suite.toml").stdout

    done = run("run", "suite.toml", "--jobs", "2")
    assert done.returncode == 2, done.stderr  # one of them crashes
    assert done.stdout.startswith(f"resuming run 1: {len(before)} of 11 audits are done")
    after = finished(suite)
    assert after[: len(before)] == before  # not audited again
    assert len(after) == 11
    assert {row[0] for row in after} == {1}
    assert "os._exit(7)" in done.stdout

    (suite / "mine.py").write_text(MINE.replace("SCALE", "0.3"))
    text = (suite / "suite.toml").read_text(encoding="utf-8")
    text = text.replace(
        'name = "svt2"\nmechanism = "zoo:svt2"', 'name = "svt2b"\nmechanism = "zoo:svt2"'
    )
    (suite / "suite.toml").write_text(text, encoding="utf-8")
    again = run("run", "suite.toml", "--junit", "junit.xml", "--markdown", "summary.md")
    assert again.returncode == 2
    assert again.stdout.count("not refuted → refuted") == 3
    assert (
        "run 2: 6 refuted, 3 not refuted, 1 measured, 1 with an error; 5 changed since run 1"
        in again.stdout
    )
    assert "svt2: gone; was not refuted" in again.stdout
    check_files(suite, run)


def check_files(suite, run):
    pages = sorted(path.name for path in (suite / "epsilometer-report").glob("*.html"))
    index = (suite / "epsilometer-report" / "index.html").read_text(encoding="utf-8")
    assert (
        len(pages) == 12
    )  # 10 audits, the index, and the page of an audit that has another name now
    assert index.count("<li class=") == 11
    assert index.count('class="chart bar"') == 10
    assert all(path.stat().st_size < 500_000 for path in (suite / "epsilometer-report").iterdir())
    stored = json.loads(
        (suite / "epsilometer-report" / "004-svt5.json").read_text(encoding="utf-8")
    )
    assert stored["verdict"] == "refuted"
    results = sorted((suite / "epsilometer-report").glob("*.json"))
    assert [path.name for path in results if em.verify(path).holds is not True] == []
    cases = ElementTree.parse(suite / "junit.xml").getroot()[0]
    assert (cases.get("tests"), cases.get("failures"), cases.get("errors")) == ("11", "3", "1")
    summary = (suite / "summary.md").read_text(encoding="utf-8")
    assert summary.count("\n| ") == 12
    assert summary.count("as expected") == len(BROKEN)
    history = run("history", "suite.toml", "--audit", "mine 0").stdout
    assert history.splitlines()[1].split()[3:5] == ["not", "refuted"]
    assert history.splitlines()[2].split()[3] == "refuted"
    assert "not refuted → refuted" in run("history", "suite.toml", "--run", "2").stdout


def test_two_runs_at_once_are_refused(suite, run):
    (suite / "suite.toml").write_text(
        'mechanism = "mine:noisy"\nbatch = true\nleft = 0\nright = 1\nepsilon = 2\nsamples = 1000\nseed = 3\n'
    )
    (suite / "wait").touch()
    command = [*COMMAND, "run", "suite.toml"]
    with subprocess.Popen(command, cwd=suite, stdout=subprocess.PIPE) as first:
        while not (suite / "waiting").exists():
            assert first.poll() is None
            time.sleep(0.05)
        second = run("run", "suite.toml")
        os.unlink(suite / "wait")
        assert first.wait() == 0
    assert second.returncode == 2
    assert "another run of this suite is under way" in second.stderr
