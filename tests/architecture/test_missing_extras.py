"""A test that lacks an optional package is skipped with the name of its extra; any other missing module fails."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "test_collected.py": "import optuna\n\n\ndef test_never():\n    assert False\n",
    "test_run.py": """
import pytest
from epsilometer.errors import MissingExtraError


def test_extra():
    import optuna


def test_our_own_word():
    raise MissingExtraError("optuna", "search", "a surrogate")


def test_something_else():
    import no_such_module


def test_an_extra_that_is_there():
    raise MissingExtraError("pytest", "present", "a test")
""",
}
# Makes the package look as if it were not installed.
HIDE = """
import importlib.machinery as machinery

_find = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = lambda name, *rest: None if name == "optuna" else _find(name, *rest)
"""


def test_what_is_skipped(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "dev.in", tmp_path / "requirements")
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    there = declared.replace(
        "[project.optional-dependencies]", '[project.optional-dependencies]\npresent = ["pytest"]'
    )
    (tmp_path / "pyproject.toml").write_text(there, encoding="utf-8")
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "tests" / "conftest.py").write_text(HIDE + conftest, encoding="utf-8")
    for name, text in TESTS.items():
        (tmp_path / "tests" / name).write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "pythonpath=",
        "tests",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 3 skipped" in done.stdout, done.stdout + done.stderr
    assert "needs the extra search, which is not installed" in done.stdout
    assert "a surrogate needs the package optuna" in done.stdout
    assert "FAILED tests/test_run.py::test_something_else" in done.stdout
    assert "FAILED tests/test_run.py::test_an_extra_that_is_there" in done.stdout
