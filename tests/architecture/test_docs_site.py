"""The documentation site: every page is in it, every link leads somewhere, nothing is loaded from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

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
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if f'href="{page}.html"' not in home} == set()


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        outside = [
            each for each in Loaded(page.read_text(encoding="utf-8")).addresses if re.match(r"(https?:)?//", each)
        ]
        assert outside == [], page


def test_the_reference_has_the_public_names(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for name in ("audit", "measure", "compare", "replay", "PureDP", "AuditResult", "Pair", "from_batch", "InputError"):
        assert re.search(rf'id="epsilometer[a-z_.]*\.{name}"', text), name
