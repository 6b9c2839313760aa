"""Pictures: complete, repeatable, in the colours of the page."""

import re
from dataclasses import replace

import pytest

from epsilometer.errors import InputError
from epsilometer.report.figures import panel_svg, plot
from epsilometer.report.panels import panels
from epsilometer.result import Verdict


@pytest.fixture
def full_result(make_result):
    """With every kind of picture."""
    result = make_result()
    search = [{"predicted": value} for value in (0.1, 0.5, None, 0.7)]
    details = {"search": search, "wealth": [[10, 1.0], [20, 30.0]]}
    return replace(result, findings=(replace(result.findings[0], details=details),))


def test_every_panel_is_drawn_below_the_others(full_result):
    figure = plot(full_result)
    assert len(figure.axes) == len(panels(full_result)) == 4


@pytest.mark.parametrize("kind", ["trade-off", "profile", "search", "wealth"])
def test_one_kind(full_result, kind):
    assert len(full_result.plot(kind).axes) == 1


def test_what_cannot_be_drawn(make_result):
    with pytest.raises(InputError, match="kind='pie' must be one of 'outputs', 'trade-off'"):
        plot(make_result(), "pie")
    with pytest.raises(InputError, match="nothing to draw for kind='wealth'"):
        plot(make_result(), "wealth")
    with pytest.raises(InputError, match="nothing to draw"):
        plot(make_result(witness=False))


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, None])
def test_svg_follows_the_page(full_result, verdict):
    result = replace(full_result, verdict=verdict)
    for panel in panels(result):
        svg = panel_svg(panel, verdict)
        assert svg.startswith("<svg ")
        assert svg.endswith("</svg>")
        assert "http" not in svg
        assert "<style" not in svg
        assert set(
            re.findall(r"#[0-9a-f]{6}\b", re.sub(r'(?:id="|#)[mp][0-9a-f]{10}', "", svg))
        ) <= {"#000000"}
        assert "var(--tone)" in svg
        assert len(svg) < 60_000


def test_svg_is_the_same_every_time_and_has_no_common_ids(full_result):
    first, again = ([panel_svg(panel, None) for panel in panels(full_result)] for _ in range(2))
    assert first == again
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in first]
    assert sum(map(len, ids)) == len(set().union(*ids))


def test_descriptions_are_escaped(full_result):
    panel = replace(panels(full_result)[0], description='<script>"')
    assert 'aria-label="&lt;script&gt;&quot;"' in panel_svg(panel, None)
