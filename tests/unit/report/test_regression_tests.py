"""What a search tried, in words, and counterexamples as files for pytest."""

import ast
import dataclasses
import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epsilometer as em
from epsilometer.report.html import render_html
from epsilometer.report.regression_tests import literal
from epsilometer.report.wording import search_rows
from epsilometer.storage.digests import content_digest

_NAMES = {"np": np, "pd": pd, "pl": pl, "datetime": datetime, "float": float}


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, 2**70, 0.1, -0.0, "a'\n\"\\", b"\0", (1, [2.0, {"a": None}]), {1, 2}),
        *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2)),
        *(
            np.float32(0.1),
            np.int8(-128),
            np.array([[1, 2]], "int8"),
            np.zeros((0, 3)),
            np.array(["a", "bc"]),
        ),
        np.array([0.1, -0.0, 1e-310], "float64"),
    ],
)
def test_what_is_written_makes_an_equal_value(value):
    assert content_digest(_made(literal(value))) == content_digest(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_without_a_literal(value):
    assert repr(_made(literal(value))) == repr(value)
    assert repr(_made(literal(np.array([value, 1.0])))) == repr(np.array([value, 1.0]))


def test_data_frames_are_written():
    frame = pd.DataFrame({"a": [1.0, math.nan], "b": ["x", None], "n": np.array([1, 2], "int8")})
    pd.testing.assert_frame_equal(_made(literal(frame)), frame)
    empty = pd.DataFrame({"a": pd.Series([], dtype="float64")})
    pd.testing.assert_frame_equal(_made(literal(empty)), empty)
    for table in (
        pl.DataFrame({"a": [1.0, None], "b": ["x", "y"]}),
        pl.DataFrame({"a": pl.Series([], dtype=pl.Int8)}),
    ):
        assert _made(literal(table)).equals(table)
        assert _made(literal(table)).schema == table.schema


def test_what_cannot_be_written_is_said():
    with pytest.raises(em.InputError, match="type object cannot be written"):
        literal(object())


def _made(source):
    # Our own text, which is what this test is about.
    return eval(compile(ast.parse(source, mode="eval"), "test", "eval"), _NAMES)


def leaking(dataset, rng):
    return float(np.sum(dataset)) + rng.laplace(scale=0.3)


def _audited(mechanism=leaking, claim=None):
    pair = np.array([0.0]), np.array([1.0])
    return em.audit(mechanism, pair, claim or em.PureDP(1.0), samples=3000, confidence=0.99, seed=0)


@pytest.mark.parametrize(
    "claim",
    [
        em.PureDP(1.0),
        em.ApproxDP(1.0, 1e-5),
        em.GaussianDP(0.5),
        em.TradeOffDP(lambda alpha: max(0.0, 0.9 - alpha)),
    ],
)
def test_the_test_runs_as_written_and_fails(claim):
    names = {}
    exec(compile(_audited(claim=claim).to_test(), "test", "exec"), names)
    with pytest.raises(em.PrivacyViolation):
        names["test_leaking_keeps_its_claim"]()


def test_the_test_survives_storage_and_keeps_how_the_function_was_used():
    result = em.AuditResult.from_json(
        _audited(em.from_callable(leaking, on_error="outcome")).to_json()
    )
    assert f'from_callable({leaking.__module__}.leaking, on_error="outcome")' in result.to_test()


def test_texts_of_a_stranger_stay_comments():
    result = _audited(em.from_callable(leaking, name='x"""\nimport os; os.abort()'))
    assert "\nimport os" not in result.to_test()
    result.settings["recipe"]["function"] = "os:abort(), 1 #"
    result.settings["target"] = "x'); import os"
    lines = [
        line
        for line in result.to_test().splitlines()
        if "import os" in line and not line.startswith("#")
    ]
    assert all('open_target("x\'); import os"' in line for line in lines)


def test_what_no_test_could_import_is_said():
    with pytest.raises(em.InputError, match="no test could import"):
        _audited(lambda dataset, rng: leaking(dataset, rng)).to_test()
    with pytest.raises(em.InputError, match="only an audit"):
        em.measure(leaking, (0, 1), em.PureDP, samples=1000, seed=0).to_test()


def _searched(make_result, **changes):
    families = {
        "typical data": {"tried": 20, "refused": 0, "best": 1.0},
        "<b>": {"tried": 5, "refused": 3, "best": 0.0},
        "beyond: NaN": {"tried": 2, "refused": 0, "best": 0.0},
    }
    tried = {"relation": "replace", "beyond": False, "looks": 27, "families": families, **changes}
    pair = em.Pair([0], [1], note="all at a bound", within=True)
    result = make_result(verdict=em.Verdict.NOT_REFUTED, pair=pair)
    return dataclasses.replace(
        result, findings=(dataclasses.replace(result.findings[0], details={"tried": tried}),)
    )


def test_every_report_says_what_was_tried(make_result):
    result = _searched(make_result)
    rows = search_rows(result)
    assert rows[:4] == [
        ("searched", "27 pairs, neighbours by 'replace'"),
        ("tried", "typical data (20), <b> (5, refused 3)"),
        ("beyond domain", "NaN (2); in passing, they do not decide"),
        ("this pair", "all at a bound; within the domain"),
    ]
    assert rows[4][0] == "not tried"
    for text in (str(result), result._repr_html_(), render_html(result)):
        assert "typical data (20)" in " ".join(text.split())
    assert "<b> (5" not in render_html(result)
    assert (
        result.to_dict()["findings"][0]["details"]["tried"]["families"]["typical data"]["tried"]
        == 20
    )


def test_what_a_stored_search_says_is_not_trusted(make_result):
    for changes in ({"families": 3}, {"families": {"a": 3}}, {"looks": None, "relation": ["x"]}):
        assert "NOT REFUTED" in str(_searched(make_result, **changes))


def test_other_results_say_nothing_about_a_search(make_result):
    assert search_rows(make_result()) == []
