"""The first picture of a report: both distributions of outputs, with the event shaded."""

import json
import re

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.plot_summaries import pictured_outputs
from epsilometer.outputs import read_outputs
from epsilometer.report.html import render_html
from epsilometer.report.outputs_svg import outputs_svg
from epsilometer.report.panels import outputs_panels


def numbers(x, rng):
    return x + rng.laplace(scale=0.3)


def colours(x, rng):
    return str(rng.choice(["red", "green", "blue"], p=[0.1, 0.3, 0.6] if x else [0.6, 0.3, 0.1]))


def records(x, rng):
    return {"total": x + rng.laplace(scale=0.2), "count": rng.laplace()}


def vectors(x, rng):
    return x + rng.laplace(size=3, scale=0.5)


def mixed(x, rng):
    return None if rng.random() < 0.1 + 0.6 * x else [float(rng.normal())]


@pytest.fixture(
    scope="module",
    params=[numbers, colours, records, vectors, mixed],
    ids=lambda make: make.__name__,
)
def result(request):
    return em.audit(request.param, em.Pair(0, 1), em.PureDP(1.0), samples=600, seed=3)


def test_the_picture_is_small_and_survives_storage(result):
    stored = em.AuditResult.from_json(result.to_json())
    assert len(json.dumps(result.findings[0].details["outputs"])) < 8_000
    first, again = outputs_panels(result)[0], outputs_panels(stored)[0]
    assert first.bins == again.bins
    assert first.left.sum() == pytest.approx(1.0)
    assert first.right.sum() == pytest.approx(1.0)
    assert 0.0 < first.inside.max() <= 1.0
    assert first.inside.min() < 1.0


def test_it_comes_first_and_tells_its_figures_without_a_script(result):
    page = render_html(result)
    assert page.index("What came out") < page.index(
        "counterexample" if result.is_refuted else "strongest evidence"
    )
    assert re.search(r"<title>[^<]*: left [\d.]+%, right [\d.]+%, [^<]*in the event</title>", page)
    assert "<script" not in page


def test_it_is_in_the_notebook(result):
    assert "<title>" in result._repr_html_()
    assert result.plot("outputs")._repr_png_().startswith(b"\x89PNG")


def test_a_result_without_it_is_shown_all_the_same(result):
    data = json.loads(result.to_json())
    for damaged in (
        {},
        {"outputs": [{"name": "x"}]},
        {"outputs": 3},
        {"outputs": [{"n": [0, 0], "left": "?"}]},
    ):
        data["findings"][0]["details"] = damaged
        old = em.AuditResult.from_dict(data)
        assert outputs_panels(old) == []
        assert "What came out" not in render_html(old)


def test_names_of_values_are_escaped():
    event = em.audit(colours, em.Pair(0, 1), em.PureDP(1.0), samples=300, seed=3).witness.event
    evil = "<script>alert(1)</script>"
    data = pictured_outputs(event, read_outputs([evil, "red"]), read_outputs(["red", "red"]))
    assert evil in data[0]["values"]
    result = em.audit(lambda x, rng: evil if rng.random() < 0.1 + 0.8 * x else "no", em.Pair(0, 1), em.PureDP(1.0),
                      samples=300, seed=3)  # fmt: skip
    assert "<script" not in outputs_svg(outputs_panels(result)[0])


def test_the_shaded_bins_are_those_of_the_event():
    result = em.audit(numbers, em.Pair(0, 1), em.PureDP(1.0), samples=2000, seed=3)
    panel = outputs_panels(result)[0]
    middles = (panel.edges[1:] + panel.edges[:-1]) / 2
    clear = (panel.inside < 0.01) | (panel.inside > 0.99)
    assert np.array_equal(result.witness.event.contains(middles[clear]), panel.inside[clear] > 0.5)


def test_the_loss_picture_of_a_kept_claim_shows_the_claim_and_no_mark():
    from epsilometer.report.loss_panel import loss_panel

    kept = em.audit(em.zoo.laplace(epsilon=1.0), samples=3000, seed=1)
    panel = loss_panel(kept)
    assert panel.claimed == 1.0
    assert "at the mark" not in render_html(kept)
    assert "claimed: 1" in render_html(kept)
    broken = em.audit(em.zoo.laplace(epsilon=3.0), claim=em.PureDP(1.0), samples=3000, seed=1)
    assert loss_panel(broken).claimed is None


def test_evidence(monkeypatch):
    monkeypatch.setenv("EPSILOMETER_RUN_BY", "Ada <ada@example.org>")
    result = em.audit(numbers, em.Pair(0, 1), em.PureDP(1.0), samples=200, seed=3)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", result.date)
    assert result.identity["code_digest"]
    assert result.identity["file"].endswith("test_outputs_svg.py")
    assert not result.identity["file"].startswith("/")
    page = render_html(result)
    for part in (
        result.identity["code_digest"][:16],
        result.date[:10],
        "Ada &lt;ada@example.org&gt;",
        "numpy",
    ):
        assert part in page
    other = em.audit(
        lambda x, rng: x + rng.laplace(scale=0.4),
        em.Pair(0, 1),
        em.PureDP(1.0),
        samples=200,
        seed=3,
    )
    assert other.identity["code_digest"] != result.identity["code_digest"]
    assert em.AuditResult.from_json(result.to_json()).identity == result.identity
