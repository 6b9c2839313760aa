"""Small promises of the result, the claims and recordings that have no file of their own."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.outputs import Event, Partition
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import BlockPartition, Group
from epsilometer.report.html import render_html

COUNTS = np.arange(100)


@pytest.fixture
def compared():
    return em.compare(COUNTS, COUNTS * 1.0, em.PureDP(1.0), seed=0)


def test_arrays_of_different_numbers_are_compared_as_floats(compared):
    assert (
        compared.settings["note"] == "left holds int64, right float64; both are compared as float64"
    )
    assert not compared.is_refuted
    assert "note" not in em.compare(COUNTS, COUNTS, em.PureDP(1.0), seed=0).settings


def test_numbers_and_words_stay_what_they_are():
    assert "note" not in em.compare(COUNTS, COUNTS.astype(str), em.PureDP(1.0), seed=0).settings


def test_json_can_always_be_encoded(compared):
    result = replace(compared, settings={"mechanism": "\ud800 ε"})
    text = result.to_json()
    assert text.isascii()
    assert json.loads(text)["settings"]["mechanism"] == "\ud800 ε"


def test_a_notion_is_named_by_its_class():
    with pytest.raises(em.InputError, match="cannot measure PureDP with "):
        em.measure(em.zoo.laplace(epsilon=1.0), notion=em.PureDP, order=2.0)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([True, True, False, False], "any float output"),
        ([True, True, True, False], "any float output or NaN"),
        ([True, False, False, False], "output < 0.5"),
    ],
)
def test_a_whole_line_is_named_by_its_shape(chosen, text):
    block = BlockPartition("float", (None,), (Group((-1,), Line(np.array([0.5]))),))
    assert Event(Partition((block,)), np.array([*chosen, False])).describe() == text


def test_the_search_is_in_the_result():
    pairs = [(0.0, 0.2), (0.0, 1.0), (0.0, 0.5)]
    mechanism = em.from_batch(lambda x, n, rng: rng.laplace(x, 1.0, n))
    result = em.audit(mechanism, pairs, em.PureDP(2.0), samples=4000, seed=0)
    trials = result.findings[0].details["search"]
    assert {trial["pair"] for trial in trials if trial["round"] == 0} == {0, 1, 2}
    assert all(set(trial) == {"round", "pair", "draws", "predicted"} for trial in trials)
    assert (
        "search"
        not in em.audit(mechanism, pairs[1], em.PureDP(2.0), samples=400, seed=0)
        .findings[0]
        .details
    )


def test_a_result_has_no_truth_value(compared):
    with pytest.raises(TypeError, match="raise_if_refuted"):
        bool(compared)


def test_a_profile_has_no_truth_value():
    found = em.profile(em.zoo.laplace(epsilon=1.0), samples=500, seed=0)
    with pytest.raises(TypeError, match=r"profile\.mu"):
        bool(found)


@pytest.mark.parametrize("confidence", [0.9999, 0.99999, 1.0 - 1e-9, 1.0 - 1e-15])
def test_no_confidence_is_shown_as_certainty(confidence):
    result = em.compare(COUNTS, COUNTS + 0.5, em.PureDP(1.0), seed=0, confidence=confidence)
    found = em.profile(em.zoo.laplace(epsilon=1.0), samples=500, seed=0, confidence=confidence)
    for text in (str(result), result._repr_html_(), str(found)):
        assert "100%" not in re.sub(r'="[^"]*"', "", text)
    assert "99.99" in str(result)


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param(
            lambda rng: 1.7e18 + rng.laplace(0, 500, 4000), id="few floats between the ends"
        ),
        pytest.param(lambda rng: 1e300 * rng.standard_cauchy(4000), id="a range beyond the floats"),
        pytest.param(lambda rng: 5e-324 * rng.integers(0, 50, 4000), id="subnormal"),
        pytest.param(
            lambda rng: np.where(rng.random(4000) < 0.5, np.inf, rng.normal(size=4000)),
            id="infinities",
        ),
        pytest.param(lambda rng: np.full(4000, np.nan), id="nothing but NaN"),
        pytest.param(
            lambda rng: 1.0 + np.finfo(float).eps * rng.integers(0, 40, 4000),
            id="neighbouring floats",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_outputs_that_are_hard_to_draw_get_their_verdict_and_their_report(outputs):
    with np.errstate(over="ignore"):
        left, right = (outputs(np.random.default_rng(side)) for side in (0, 1))
    result = em.compare(left, right, em.PureDP(1.0), seed=0)
    assert result.verdict is not None
    assert "<html" in render_html(result)


def test_a_picture_that_fails_does_not_take_the_answer_with_it(monkeypatch):
    def fails(*_):
        raise ValueError("no picture of this")

    monkeypatch.setattr("epsilometer.auditing.judge.binned_densities", fails)
    assert em.compare(COUNTS, COUNTS + 1000, em.PureDP(1.0), seed=0).verdict is not None


def test_a_figure_that_fails_leaves_the_rest_of_the_report(monkeypatch):
    result = em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0)

    def fails(*_):
        raise ValueError("cannot draw <this>")

    monkeypatch.setattr("epsilometer.report.figures.draw", fails)
    page = render_html(result)
    assert "could not be drawn (ValueError: cannot draw &lt;this&gt;)" in page
    assert "REFUTED" in page.upper()
