"""The documentation site: every page is in it, every link leads somewhere, nothing is loaded from elsewhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

import epsilometer as em
import epsilometer.testing

ROOT = Path(__file__).resolve().parents[2]


class Loaded(HTMLParser):
    """What a page loads by itself."""

    def __init__(self, source):
        super().__init__()
        self.addresses = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        names = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
        self.addresses += [value for name, value in attrs if names.get(tag) == name and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")}
    pages -= {"index", "reference/api/index", "explanation/decisions/README"}
    assert {page for page in pages if f'href="{page}.html"' not in home} == set()
    for folder in ("reference/api", "explanation/decisions"):
        assert f'href="{folder}/index.html"' in home


def test_every_page_is_in_one_of_the_four_folders():
    docs = ROOT / "docs"
    folders = {
        path.relative_to(docs).parts[0] for path in docs.rglob("*.md") if path.parent != docs
    }
    assert folders == {"tutorials", "how-to", "reference", "explanation"}
    assert {path.name for path in docs.glob("*.md")} == {"index.md", "architecture.md"}


def test_the_search_prefers_tutorials_and_how_tos(site):
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))[
        "docs"
    ]
    boosts = {}
    for entry in entries:
        page = entry["location"].partition("#")[0]
        folder = page.rpartition("/")[0]
        boosts.setdefault(folder, set()).add(entry.get("boost", 1))
    assert boosts["tutorials"] == {3}
    assert boosts["how-to"] == {2}
    assert boosts["reference"] == boosts["explanation"] == boosts["reference/api"] == {1}
    assert boosts["explanation/decisions"] == {0.5}
    assert not any(folder.startswith("source") for folder in boosts), (
        "pages of code are not searched"
    )


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        outside = [
            each
            for each in Loaded(page.read_text(encoding="utf-8")).addresses
            if re.match(r"(https?:)?//", each)
        ]
        assert outside == [], page


def is_module(name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, and it is a class
        return False


@pytest.mark.parametrize("page", ["index", "claims", "mechanisms", "inputs", "results"])
def test_the_reference_of_users_has_public_names_only(site, page):
    text = (site / "reference" / "api" / f"{page}.html").read_text(encoding="utf-8")
    parts = [title.rsplit(".", 1) for title in re.findall(r'<h\d id="(epsilometer[\w.]*)"', text)]
    shown = {name for parent, name in parts if is_module(parent)}
    places = [em, em.domains, em.finders, em.methods, em.zoo, em.testing]
    public = {name for place in places for name in place.__all__}
    # Classes that users meet as arguments or attributes, but make by other means.
    met = {"HealthReport", "Mechanism", "ZooEntry", "Coordinate", "check_relation", "Interval"}
    met |= {"ApproxDeltaDP", "Claim", "Event"}
    assert shown - public - met == set()
    assert len(shown) > 5


def test_the_search_works_when_the_site_is_opened_as_a_file(site):
    """A browser reads no JSON and starts no worker from a file: both are scripts of the site."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert json.loads(script.removeprefix("var __index = ")) == index
    loaded = Loaded((site / "index.html").read_text(encoding="utf-8")).addresses
    assert "javascripts/iframe-worker.js" in loaded
    assert (site / "javascripts" / "iframe-worker.js").is_file()


def test_the_reference_has_the_public_names(site):
    text = "".join(
        page.read_text(encoding="utf-8") for page in (site / "reference" / "api").glob("*.html")
    )
    for name in (
        "audit",
        "measure",
        "compare",
        "replay",
        "PureDP",
        "AuditResult",
        "Pair",
        "from_batch",
        "InputError",
    ):
        assert re.search(rf'id="epsilometer[a-z_.]*\.{name}"', text), name
