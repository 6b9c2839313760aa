"""An audit that is killed, again and again, decides as one that was left alone."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from functools import partial

import pytest

MODULE = """
import os
import random
import time


def count_call():
    # The call that comes to a closed gate says so, and waits: for the gate to open, or to be stopped.
    with open("calls.txt", "a") as file:
        file.write(".")
    while os.path.exists("gate"):
        with open("gate") as file:
            gate = file.read()
        if os.path.getsize("calls.txt") <= int(gate):
            return
        open(f"waiting-{gate}", "w").close()
        time.sleep(0.01)


def coin(dataset, rng):
    count_call()
    return bool(rng.random() < dataset)


def noisy(dataset, n, rng):
    count_call()
    return rng.laplace(dataset, 1.0, n)


def deadly(dataset, n, rng):
    values = rng.laplace(dataset, 1.0, n)
    if values[0] > 2.5 and not os.path.exists("healed"):
        os._exit(1)
    return values


def unseeded(dataset):
    count_call()
    return random.gauss(dataset, 1.0)
"""
INPUTS = ["--left", "0.5", "--right", "0.3", "--epsilon", "0.45"]
# A claim that is refuted: else every audit of all samples rehearses for seconds what it could have refuted.
REFUTED = [*INPUTS[:-1], "0.1"]
EARLY = ["coins:coin", *INPUTS, "--samples", "1500", "--seed", "11", "--stop-early"]
PLAIN = [
    "coins:noisy",
    *REFUTED,
    "--samples",
    "3000000",
    "--seed",
    "11",
    "--batch",
    "--no-stop-early",
]
DEADLY = [
    "coins:deadly",
    *REFUTED,
    "--samples",
    "3000000",
    "--seed",
    "11",
    "--batch",
    "--no-stop-early",
    "--jobs",
    "2",
]
# Its draws are another time's every time, so the claim is one that 6000 of them cannot refute, whatever they are.
UNSEEDED = [
    "coins:unseeded",
    *INPUTS[:-1],
    "20",
    "--samples",
    "6000",
    "--seed",
    "11",
    "--method",
    "events",
]
STOPS = [signal.SIGKILL, signal.SIGINT, signal.SIGKILL]


def command(name, settings):
    files = ["--json", f"{name}.json", "--checkpoint", f"{name}.checkpoint"]
    return ["-m", "epsilometer", "audit", *settings, *files]


@pytest.fixture
def start(tmp_path, warm_python):
    """Starts a program in a folder with mechanisms."""
    (tmp_path / "coins.py").write_text(MODULE, encoding="utf-8")
    return partial(warm_python.start, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})


def ended(program):
    """Its exit status, and what it said when it was left alone."""
    said = program.communicate()[1]
    return program.returncode, said


def calls_in(folder):
    calls = folder / "calls.txt"
    return calls.stat().st_size if calls.exists() else 0


def run_whole(name, settings, start, folder):
    """An audit that is left alone; its exit status and its number of calls."""
    (folder / "calls.txt").unlink(missing_ok=True)
    status, said = ended(start(*command(name, settings)))
    assert status in (0, 1), said
    return status, calls_in(folder)


def run_with_stops(name, settings, start, folder, step):
    """Stops an audit three times, each time after it has got on and has kept something of it; then its exit status."""
    (folder / "calls.txt").unlink(missing_ok=True)
    for how in STOPS:
        stop_once(name, settings, start, folder, step, how)
    (folder / "gate").unlink()
    return ended(start(*command(name, settings)))[0]


def stop_once(name, settings, start, folder, step, how):
    let_through(
        folder, 1
    )  # when it comes to the second call it has opened its checkpoint, and kept nothing yet
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = start(*command(name, settings), **quiet, start_new_session=True)
    try:
        wait_at_gate(folder, process)
        kept = what_is_kept(folder, name)
        while what_is_kept(folder, name) == kept:
            time.sleep(
                0.6
            )  # draws are kept twice a second at most: now the next chunk is due, however slow we are
            let_through(folder, step)
            wait_at_gate(folder, process)
        process.send_signal(how)
        process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):  # workers that outlive a kill for a while
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def let_through(folder, calls):
    (folder / "gate.new").write_text(str(calls_in(folder) + calls), encoding="utf-8")
    (folder / "gate.new").replace(folder / "gate")


def wait_at_gate(folder, process):
    gate = (folder / "gate").read_text(encoding="utf-8")
    while not (folder / f"waiting-{gate}").exists():
        assert process.poll() is None, "got through before it was stopped"
        time.sleep(0.01)


def what_is_kept(folder, name):
    """Changes when more is kept. The file is locked while it is written to, so only its bytes can be looked at."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{name}.checkpoint*")}


def stored(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def decisions(folder, name):
    result = stored(folder, name)
    details = result["findings"][0]["details"]
    return result["verdict"], result["samples_used"], details["wealth"], details["bound_over_time"]


def test_killed_and_interrupted_runs_go_on(start, tmp_path):
    status, calls = run_whole("whole", EARLY, start, tmp_path)
    assert run_with_stops("killed", EARLY, start, tmp_path, calls // 12) == status
    assert decisions(tmp_path, "killed") == decisions(tmp_path, "whole")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_audit_of_all_samples_comes_to_the_identical_result(start, tmp_path, jobs):
    status, calls = run_whole("whole", PLAIN, start, tmp_path)
    assert (
        run_with_stops("killed", [*PLAIN, "--jobs", jobs], start, tmp_path, calls // 12) == status
    )
    results = [stored(tmp_path, name) for name in ("killed", "whole")]
    for result in results:
        del (
            result["seconds"],
            result["date"],
            result["settings"]["jobs"],
            result["settings"]["json"],
        )
    assert results[0] == results[1]


def test_what_was_completed_is_kept_when_the_engine_gives_up(start, tmp_path):
    status, said = ended(start(*command("kept", DEADLY)))
    assert status == 2
    assert "work was lost" in said
    with contextlib.closing(sqlite3.connect(tmp_path / "kept.checkpoint")) as journal:
        kept = journal.execute(
            "SELECT (SELECT count(*) FROM outputs) + (SELECT total(chunks) FROM folded)"
        ).fetchone()
    assert kept[0] > 0
    (tmp_path / "healed").touch()
    for name in ("kept", "whole"):
        status, said = ended(start(*command(name, DEADLY)))
        assert status in (0, 1), said
    results = [stored(tmp_path, name) for name in ("kept", "whole")]
    for result in results:
        del result["seconds"], result["date"], result["settings"]["json"]
    assert results[0] == results[1]


def test_without_a_seed_no_draw_is_counted_twice_or_lost(start, tmp_path):
    assert run_with_stops("killed", UNSEEDED, start, tmp_path, 1000) == 0
    result = stored(tmp_path, "killed")
    assert result["samples_used"] == [6000, 6000]
    # Each stop takes the chunk under way with it, and the draws that were not kept yet: at most since the gate before.
    assert 12_000 <= calls_in(tmp_path) <= 12_000 + len(STOPS) * 1300


def test_an_interrupted_command_says_how_it_goes_on(start, tmp_path):
    let_through(tmp_path, 100)
    process = start(*command("stopped", UNSEEDED))
    wait_at_gate(tmp_path, process)
    process.send_signal(signal.SIGINT)
    status, said = ended(process)
    assert status == 130
    resumes = "nothing was decided, but the same command resumes from the checkpoint"
    assert re.fullmatch(rf"epsilometer: interrupted after \d+ of 12,000 draws; {resumes}\n", said)
