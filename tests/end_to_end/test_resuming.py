"""An audit that is killed, again and again, decides as one that was left alone."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

MODULE = """
import os
import random
import time


def slow_coin(dataset, rng):
    time.sleep(0.002)
    return bool(rng.random() < dataset)


def noisy(dataset, n, rng):
    time.sleep(0.3)
    return rng.laplace(dataset, 1.0, n)


def deadly(dataset, n, rng):
    values = rng.laplace(dataset, 1.0, n)
    if values[0] > 2.5 and not os.path.exists("healed"):
        os._exit(1)
    return values


def unseeded(dataset):
    with open("calls.txt", "a") as file:
        file.write(".")
    time.sleep(0.0005)
    return random.gauss(dataset, 1.0)
"""
INPUTS = ["--left", "0.5", "--right", "0.3", "--epsilon", "0.45"]
EARLY = ["coins:slow_coin", *INPUTS, "--samples", "1500", "--seed", "11", "--stop-early"]
PLAIN = ["coins:noisy", *INPUTS, "--samples", "1000000", "--seed", "11", "--batch", "--no-stop-early"]
DEADLY = ["coins:deadly", *INPUTS, "--samples", "3000000", "--seed", "11", "--batch", "--no-stop-early", "--jobs", "2"]
UNSEEDED = ["coins:unseeded", *INPUTS, "--samples", "3000", "--seed", "11", "--method", "events"]


def command(name, settings):
    files = ["--json", f"{name}.json", "--checkpoint", f"{name}.checkpoint"]
    return [sys.executable, "-m", "epsilometer", "audit", *settings, *files]


def folder_with_mechanisms(tmp_path):
    (tmp_path / "coins.py").write_text(MODULE, encoding="utf-8")
    return {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path)}}


def run_with_stops(name, settings, place, rng, patience=1.0):
    """Kills and interrupts an audit until it gets through; how often it was stopped, and its exit status."""
    for stops, how in enumerate([signal.SIGKILL, signal.SIGINT] * 20):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command(name, settings), **place, **quiet, start_new_session=True)
        try:
            # Longer from stop to stop, so that a busy machine gets through in the end.
            return stops, process.wait(timeout=patience + float(rng.random()) + 0.3 * stops)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            process.wait(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):  # workers that outlive a kill for a while
                os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError("never got through")


def stored(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def decisions(folder, name):
    result = stored(folder, name)
    details = result["findings"][0]["details"]
    return result["verdict"], result["samples_used"], details["wealth"], details["bound_over_time"]


def test_killed_and_interrupted_runs_go_on(tmp_path, rng):
    place = folder_with_mechanisms(tmp_path)
    whole = subprocess.run(command("whole", EARLY), **place, capture_output=True, check=False)
    assert whole.returncode in (0, 1), whole.stderr
    stops, status = run_with_stops("killed", EARLY, place, rng)
    assert stops >= 2
    assert status == whole.returncode
    assert decisions(tmp_path, "killed") == decisions(tmp_path, "whole")


@pytest.mark.parametrize(("jobs", "patience"), [("1", 1.0), ("2", 1.8)])  # workers have to be started, too
def test_an_audit_of_all_samples_comes_to_the_identical_result(tmp_path, rng, jobs, patience):
    place = folder_with_mechanisms(tmp_path)
    whole = subprocess.run(command("whole", PLAIN), **place, capture_output=True, check=False)
    assert whole.returncode in (0, 1), whole.stderr
    stops, status = run_with_stops("killed", [*PLAIN, "--jobs", jobs], place, rng, patience)
    assert stops >= 2
    assert status == whole.returncode
    results = [stored(tmp_path, name) for name in ("killed", "whole")]
    for result in results:
        del result["seconds"], result["settings"]["jobs"]
    assert results[0] == results[1]


def test_what_was_completed_is_kept_when_the_engine_gives_up(tmp_path):
    place = folder_with_mechanisms(tmp_path)
    failed = subprocess.run(command("kept", DEADLY), **place, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "work was lost" in failed.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "kept.checkpoint")) as journal:
        kept = journal.execute("SELECT (SELECT count(*) FROM outputs) + (SELECT total(chunks) FROM folded)").fetchone()
    assert kept[0] > 0
    (tmp_path / "healed").touch()
    for name in ("kept", "whole"):
        done = subprocess.run(command(name, DEADLY), **place, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
    results = [stored(tmp_path, name) for name in ("kept", "whole")]
    for result in results:
        del result["seconds"]
    assert results[0] == results[1]


def test_without_a_seed_no_draw_is_counted_twice_or_lost(tmp_path, rng):
    place = folder_with_mechanisms(tmp_path)
    stops, status = run_with_stops("killed", UNSEEDED, place, rng)
    assert stops >= 2
    assert status == 0
    result = stored(tmp_path, "killed")
    assert result["samples_used"] == [3000, 3000]
    # A kill takes the chunk under way with it, and what was drawn in the last half second or so.
    calls = (tmp_path / "calls.txt").stat().st_size
    assert 6000 <= calls <= 6000 + stops * 2500


def test_an_interrupted_command_says_how_it_goes_on(tmp_path):
    place = folder_with_mechanisms(tmp_path)
    process = subprocess.Popen(command("stopped", UNSEEDED), **place, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "calls.txt").exists():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said == "epsilometer: interrupted; nothing was decided, but the same command goes on from the checkpoint\n"
