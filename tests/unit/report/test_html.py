"""The page is whole, needs nothing else, and shows foreign values as text."""

import re
from html.parser import HTMLParser

import pytest

import epsilometer as em
from epsilometer.inputs import Pair
from epsilometer.report.html import render_html, render_page
from epsilometer.result import Verdict

VOID = {"meta", "link", "rect", "line", "path", "circle", "br"}
ATTACK = (
    "</code></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'`\x1b\x00\u202e\ud800"
)


class Page(HTMLParser):
    """Checks that tags are balanced and collects what the page consists of."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_the_verdict_comes_first_and_the_page_is_balanced(make_result, verdict):
    page = Page(render_html(make_result(verdict)))
    headings = [tag for tag in page.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert "1.987" in page.text
    assert "4,000 of 10,000 draws (40%)" in page.text
    assert {"viewport", "color-scheme"} <= {
        value for _, name, value in page.attributes if name == "name"
    }


def test_nothing_is_loaded_and_nothing_runs(make_result):
    source = render_html(make_result())
    page = Page(source)
    assert "script" not in page.tags
    assert "http" not in source.replace("http-equiv", "")
    assert [
        value
        for _, name, value in page.attributes
        if name in ("src", "href") and value[:1] not in "#d"
    ] == []
    assert not re.search(r"url\((?!#)", source)  # clip paths of the pictures, on the page itself
    assert "@import" not in source


def test_hostile_values_are_text(make_result):
    result = make_result(
        pair=Pair(ATTACK, {ATTACK: ATTACK}),
        event=ATTACK,
        settings={"mechanism": ATTACK, ATTACK: ATTACK, "seed": ATTACK, "target": ATTACK},
        health=[(ATTACK, ATTACK, True)],
        guarantee=f"conditional: {ATTACK}",
    )
    source = render_html(result)
    page = Page(source)
    assert not {"script", "img"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", source)
    source.encode()


def test_long_values_are_cut(make_result):
    long = "z" * 1_000_000
    source = render_html(
        make_result(pair=Pair(long, [long]), event=long, health=[("drift", long, True)])
    )
    assert len(source) < 150_000


def test_several_results_have_a_table_of_contents(make_result):
    page = Page(render_page([make_result(), make_result(Verdict.NOT_REFUTED)], "Two results"))
    targets = [
        value
        for tag, name, value in page.attributes
        if tag == "a" and name == "href" and value.startswith("#")
    ]
    assert {target[1:] for target in targets} <= {
        value for _, name, value in page.attributes if name == "id"
    }
    assert len(targets) == 2
    assert page.tags.count("h1") == 1


def test_every_picture_has_words(make_result):
    page = Page(render_html(make_result(Verdict.NOT_REFUTED, bound=0.9, detectable=1.1)))
    assert page.text.count("Notches") == 1
    described = [
        value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"
    ]
    assert len(described) == 4
    assert all(described)


def test_rendering_is_repeatable(make_result):
    assert render_html(make_result()) == render_html(make_result())


def test_a_figure_that_fails_leaves_the_rest_of_the_report(monkeypatch):
    result = em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0)

    def fails(*_):
        raise ValueError("cannot draw <this>")

    monkeypatch.setattr("epsilometer.report.figures.draw", fails)
    page = render_html(result)
    assert "could not be drawn (ValueError: cannot draw &lt;this&gt;)" in page
    assert "REFUTED" in page.upper()
