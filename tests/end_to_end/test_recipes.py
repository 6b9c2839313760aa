"""The recipes for Opacus and jax_privacy: shown on their pages, and run where `make recipes` made their environments."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"opacus": "audit-opacus.md", "jax_privacy": "audit-jax-privacy.md"}
SCRIPTS = sorted((ROOT / "recipes").glob("*/*.py"))


def name_of(script):
    return script.relative_to(ROOT).as_posix()


def test_every_library_has_one_step_and_one_training():
    assert {name_of(script) for script in SCRIPTS} == {
        f"recipes/{library}/{kind}.py" for library in PAGES for kind in ("canaries", "step")
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_recipe_is_on_its_page(script):
    page = (ROOT / "docs" / "how-to" / PAGES[script.parent.name]).read_text(encoding="utf-8")
    assert f'--8<-- "{name_of(script)}"' in page
    compile(script.read_text(encoding="utf-8"), str(script), "exec")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_recipe_runs(script, tmp_path):
    environment = ROOT / "build" / "recipes" / script.parent.name
    if not (environment / ".ready").exists():
        pytest.skip(f"needs the environment of recipes/{script.parent.name}: make recipes")
    done = subprocess.run(
        [environment / "bin" / "python", script],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
