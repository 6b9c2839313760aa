"""The report in a real browser: light, dark, on a phone. No error on the console, no request leaves the page.

`make screenshots` keeps the pictures. Chromium is Debian's package; it is installed if it is missing and we may.
"""

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import epsilometer as em

# The first of them may have to install the browser.
pytestmark = pytest.mark.time_limit(500)
SIZES = {
    "light": (1100, 900, False),
    "dark": (1100, 900, True),
    "phone": (390, 844, False),
    "phone-dark": (390, 844, True),
}
EVIL = "</code></style><script>console.error(1)</script><img src=http://127.0.0.1:9/x onerror=console.error(2)>\"'`"
# Every text of the page against what is behind it: the contrast of WCAG, and what sticks out on the right.
LOOK = """
(() => {
  const numbers = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = numbers(c).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
      if (numbers(c)[3] !== 0) return c; } return 'rgb(255, 255, 255)'; };
  const texts = [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length &&
      [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  const faint = texts.filter(e => { const svg = e.closest('svg'); const style = getComputedStyle(e);
      const a = light(svg ? style.fill : style.color), b = light(behind(svg || e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5; });
  return JSON.stringify({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    faint: faint.map(e => e.outerHTML.slice(0, 120)), texts: texts.length,
    nameless: document.querySelectorAll('svg:not([aria-hidden]):not([aria-label])').length,
    headings: [...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1]),
    scripts: document.scripts.length, height: document.documentElement.scrollHeight,
    small: Math.min(...[...document.querySelectorAll('svg.plot text')].map(e =>
        parseFloat(getComputedStyle(e).fontSize) * e.closest('svg').getScreenCTM().a)),
  });
})()
"""


@dataclass
class Seen:
    """What happened while a page was open."""

    look: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)
    complaints: list = field(default_factory=list)
    picture: bytes = b""


class Browser:
    """Headless Chromium, spoken to over two pipes (its own file descriptors 3 and 4)."""

    def __init__(self, program, folder):
        told, self._tell = os.pipe()
        self._hear, says = os.pipe()
        # A small program moves the pipes to 3 and 4, where the browser looks for them; before that, both sit above 4.
        high = [os.dup2(each, 60 + at, inheritable=True) for at, each in enumerate((told, says))]
        move = "import os, sys; os.dup2(60, 3); os.dup2(61, 4); os.closerange(60, 62); os.execv(sys.argv[1], sys.argv[1:])"
        options = [
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ]
        options += [
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            f"--user-data-dir={folder}",
        ]
        command = [sys.executable, "-c", move, program, *options, "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for each in (told, says, *high):
            os.close(each)
        self._number, self._rest, self._events = 0, b"", []

    def close(self):
        self._process.terminate()
        self._process.wait()
        os.close(self._tell)
        os.close(self._hear)

    def call(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(
            self._tell,
            json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0",
        )
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._events.append(answer)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._read())

    def open(self, page, width, height, dark):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable", session)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", session, features=scheme)
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", session, **screen)
        self._events.clear()
        self.call("Page.navigate", session, url=page.as_uri())
        self.wait_for("Page.loadEventFired")
        seen = Seen(
            json.loads(self.call("Runtime.evaluate", session, expression=LOOK)["result"]["value"])
        )
        whole = {
            "x": 0,
            "y": 0,
            "width": width,
            "height": min(seen.look["height"], 8000),
            "scale": 1,
        }
        shot = self.call("Page.captureScreenshot", session, clip=whole, captureBeyondViewport=True)
        seen.picture = base64.b64decode(shot["data"])
        self._sort_events(seen, page)
        self.call("Target.closeTarget", targetId=target)
        return seen

    def _sort_events(self, seen, page):
        for event in self._events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if url != page.as_uri() and not url.startswith("data:"):
                    seen.requests.append(url)
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                seen.complaints.append(parameters)

    def _read(self):
        while b"\0" not in self._rest:
            piece = os.read(self._hear, 1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


def find_chromium():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        settings = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-yq", "--no-install-recommends", names[0]],
        ):
            subprocess.run(command, env=settings, capture_output=True, check=False)
        found = shutil.which(names[0])
    if found is None:
        pytest.fail(
            "the report is tested in a real browser: install Chromium (Debian: apt-get install chromium)"
        )
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_chromium()
    opened = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


def noisy(x, n, rng):
    return rng.laplace(x, 0.5, n)


def evil(x, rng):
    return EVIL + "A" * 1_000_000 if rng.random() < 0.2 + 0.6 * x else EVIL


@pytest.fixture(scope="module")
def pages(tmp_path_factory, warm_python):
    """A refutation after a search, a correct mechanism, hostile outputs, and the index of a suite."""
    folder = tmp_path_factory.mktemp("pages")
    pairs = [(0.0, 0.1 * step) for step in range(1, 11)]
    em.audit(em.from_batch(noisy), pairs, em.PureDP(1.0), samples=20_000, seed=0).save_html(
        folder / "refuted.html"
    )
    em.audit(em.zoo.laplace(epsilon=1.0), samples=20_000, seed=0).save_html(
        folder / "not-refuted.html"
    )
    em.audit(evil, em.Pair(0, 1), em.PureDP(1.0), samples=60, seed=0).save_html(
        folder / "hostile.html"
    )
    (folder / "suite.toml").write_text(
        "samples = 2000\nseed = 0\n"
        + "".join(f'[[audit]]\nmechanism = "zoo:{name}"\n' for name in ("laplace", "svt5"))
    )
    for _ in range(2):
        warm_python.run(
            "-m", "epsilometer", "run", "suite.toml", "--jobs", "1", "--out", ".", cwd=folder
        )
    return folder


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["refuted", "not-refuted", "hostile", "index"])
def test_page(browser, pages, name, size):
    page = pages / f"{name}.html"
    assert page.stat().st_size < 500_000
    seen = browser.open(page, *SIZES[size])
    keep(f"{name}-{size}.png", seen.picture)
    assert seen.complaints == []
    assert seen.requests == []
    assert seen.look["scripts"] == 0
    assert seen.look["wide"] <= 0, "the page is wider than the screen"
    assert seen.look["faint"] == []
    assert seen.look["nameless"] == 0
    assert seen.look["texts"] > 10
    headings = seen.look["headings"]
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))
    if name in ("refuted", "not-refuted"):
        assert seen.look["small"] >= 9  # letters of the pictures, in pixels


def test_the_browser_would_have_noticed(browser, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<meta charset=utf-8><h1 style='color:#eee;background:#fff;width:4000px'>faint</h1><svg></svg>"
        "<img src='http://127.0.0.1:9/x.png'><script>console.error('no')</script>"
    )
    seen = browser.open(page, *SIZES["phone"])
    assert seen.requests == ["http://127.0.0.1:9/x.png"]
    assert seen.complaints
    assert (seen.look["wide"] > 0, len(seen.look["faint"]), seen.look["nameless"]) == (True, 1, 1)


def keep(name, picture):
    folder = os.environ.get("EPSILOMETER_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / name).write_bytes(picture)
