"""What the documentation shows is run: Python blocks, and the commands in `sh` blocks.

Blocks of one page share their names and their folder, as a reader who types them one after the other has them.
Blocks marked `text` or `console` are shown, not run.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from epsilometer.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
VERDICTS = {0, 1, 3}  # not refuted, refuted, inconclusive; 2 is a usage error
INSTALLED = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands(page: Path) -> list[list[str]]:
    text = "".join(blocks(page, "sh")).replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [line for line in lines if line]


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def make_targets() -> set[str]:
    return set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )


# One program runs several pages: most of the time of a page of its own would be spent on starting Python.
RUN = """
import os, runpy, sys
for script in sys.argv[1:]:
    os.chdir(os.path.dirname(script))
    runpy.run_path(script, run_name="__main__")
"""
GROUPS = 4


@pytest.mark.parametrize("group", range(GROUPS))
def test_python_blocks_run(group, tmp_path):
    scripts = []
    for page in [page for page in PAGES if blocks(page, "python")][group::GROUPS]:
        scripts.append(tmp_path / page.relative_to(ROOT).with_suffix("") / "page.py")
        scripts[-1].parent.mkdir(parents=True)
        scripts[-1].write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-c", RUN, *map(str, scripts)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_as_a_reader(command: list[str]) -> int:
    done = subprocess.run(
        command, env=os.environ | {"PATH": INSTALLED}, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=page_id)
def test_commands_run(page, tmp_path, monkeypatch):
    """`make` commands must exist; `epsilometer` commands must end with a verdict and say nothing about a traceback.

    Those of the README are run as a reader runs them, the others without a process of their own.
    """
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        assert command[0] in {"make", "epsilometer"}, (
            f"not ours to run, mark the block as text: {command}"
        )
        if command[0] == "make":
            assert set(command[1:]) <= make_targets(), command
            continue
        status = run_as_a_reader(command) if page.name == "README.md" else main(command[1:])
        assert status in VERDICTS, command


def test_readme_begins_with_exactly_two_commands():
    assert commands(ROOT / "README.md")[:2] == [["make", "demo"], ["make", "test"]]
    assert blocks(ROOT / "README.md", "sh")[0].count("make ") == 2


def test_local_links_and_pictures_exist():
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        assert [t for t in targets if not (page.parent / t).exists()] == [], page
