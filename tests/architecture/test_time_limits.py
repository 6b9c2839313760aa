"""A test that hangs fails, says where it hangs, and keeps nobody else from running."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The first can be interrupted. The second cannot: it never comes back to the interpreter.
TESTS = """
import ctypes, threading, pytest
import epsilometer.engine.seeds  # which sets up tests: on a busy machine, to load it takes longer than the limit

@pytest.mark.time_limit(2)
def test_waits_for_ever():
    threading.Event().wait()

def test_is_deaf():
    if DEAF:
        ctypes.PyDLL(None).pause()

def test_is_well():
    pass
"""


def run(folder, *options, deaf):
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "conftest.py")
    (folder / "test_some.py").write_text(TESTS.replace("DEAF", str(deaf)), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        ROOT / "pyproject.toml",
        "--rootdir",
        folder,
        folder,
        *options,
    ]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ}
    )


@pytest.mark.parametrize("processes", ["0", "2"])
def test_one_that_waits_for_ever_fails_and_shows_its_stack(tmp_path, processes):
    done = run(tmp_path, "-n", processes, deaf=False)
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout
    assert "took longer than 2 s" in done.stdout
    assert "in test_waits_for_ever" in done.stdout.partition("Captured stderr")[2]


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="calls pause() of the C library")
def test_one_that_cannot_be_interrupted_costs_its_process_and_no_other_test(tmp_path):
    done = run(tmp_path, "-n", "1", "-o", "faulthandler_timeout=5", deaf=True)
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "crashed while running 'test_some.py::test_is_deaf'" in done.stdout
    assert "in test_is_deaf" in done.stderr
