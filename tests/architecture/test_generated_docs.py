"""What the documentation takes from the code and from measurements is as they are now; the notebook runs."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages_with_places():
    return [
        page
        for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
        if "<!-- generated:" in page.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize(
    "page", pages_with_places(), ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_are_up_to_date(generate, page):
    """If this fails: make figures."""
    text = page.read_text(encoding="utf-8")
    assert generate.filled(text, json.loads(generate.FIGURES.read_text(encoding="utf-8"))) == text


def test_every_place_is_closed_and_every_text_is_used(generate):
    text = "".join(page.read_text(encoding="utf-8") for page in pages_with_places())
    assert text.count("<!-- generated:") == text.count("<!-- /generated -->")
    assert set(re.findall(r"<!-- generated: ([\w/-]+) -->", text)) == set(generate.MADE)


def test_the_picture_of_the_readme_is_what_the_demo_prints(generate):
    """If this fails: make figures."""
    picture = generate._picture()
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.draw()


def test_the_picture_shows_the_figures_of_the_readme(generate):
    """The sentence below the picture and the picture are of the same audits."""
    stored = json.loads(generate.FIGURES.read_text(encoding="utf-8"))["demo"]
    drawn = generate._picture().PICTURE.read_text(encoding="utf-8").replace("&#160;", " ")
    for bound in stored["lower_bound"]:
        assert f"ε is at least {generate.figure_down(bound)}" in drawn
    noticed = generate.figure_up(stored["detectable"], 3)
    assert re.search(rf"{re.escape(noticed)} or more", drawn)


@pytest.mark.parametrize("name", ["demo", "svt5", "confidence"])
def test_quick_figures_are_what_is_measured_now(generate, name):
    """If this fails: make figures ARGS="--measure svt5 confidence", and look at what changed them."""
    stored = json.loads(generate.FIGURES.read_text(encoding="utf-8"))[name]
    assert generate.MEASURED[name]()["lower_bound"] == pytest.approx(
        stored["lower_bound"], rel=1e-3
    )


def test_every_remark_on_draws_has_its_paragraph():
    named = set()
    for path in (ROOT / "src" / "epsilometer").rglob("*.py"):
        named |= set(re.findall(r'HealthReport\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8")))
    from epsilometer.engine.health import CHECKS

    page = (DOCS / "reference" / "health.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE))
    assert named | set(CHECKS) == headings


def test_the_notebook_runs(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(DOCS / "tutorials" / "five-minutes.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), (
        "stored without outputs: they would go stale"
    )
    client = nbclient.NotebookClient(
        notebook, timeout=600, startup_timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pages = [
        output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})
    ]
    assert any("refuted" in page.lower() for page in pages)
    assert (tmp_path / "report.html").is_file()


def test_progress_in_a_notebook(tmp_path):
    """A cell that takes a while shows a bar, which is gone when the work is done."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    slow = (
        "import time\nimport epsilometer as em\n"
        "def slow(x, rng):\n    time.sleep(0.01)\n    return x + rng.laplace()\n"
        "em.audit(slow, em.Pair(0, 1), em.PureDP(1.0), samples=100, seed=0).verdict"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(slow)])
    heard = []

    class Listening(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                heard.append(msg["content"]["data"].get("text/html", ""))
            return super().process_message(msg, cell, cell_index)

    Listening(
        notebook, timeout=600, startup_timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert any("<progress" in page and "of 200 draws" in page for page in heard)
    assert heard[-1] == ""
