"""What `make check` runs (lint, formatting, types, import contracts), beside all other tests instead of before them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = re.findall(
    r'^\t@echo "check: ([\w-]+)" && (.+)$',
    (ROOT / "Makefile").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "recipe"), RECIPES, ids=[name for name, _ in RECIPES])
def test_the_checkout_passes(name, recipe):
    pytest.importorskip(name.replace("-", ""))
    command = recipe.replace("$(VENV)/bin", str(Path(sys.executable).parent))
    done = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_no_check_is_left_out():
    assert {name for name, _ in RECIPES} >= {"ruff", "mypy", "import-linter"}
