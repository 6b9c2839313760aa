"""Lint, formatting, types and import contracts, beside all other tests: one process would wait for them half a minute.

`make check` runs the same by itself.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {
    "mypy": [],
    "lint-imports": ["--no-logo", "--no-cache"],
    "ruff check": ["."],
    "ruff format": ["--check", "."],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_the_checkout_passes(name):
    tool, *command = name.split()
    pytest.importorskip({"lint-imports": "importlinter"}.get(tool, tool))
    argv = [str(Path(sys.executable).with_name(tool)), *command, *CHECKS[name]]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
