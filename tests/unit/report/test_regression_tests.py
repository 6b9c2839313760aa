"""Counterexamples as words about records, and as files for pytest."""

import ast
import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epsilometer as em
from epsilometer.report.ci import literal
from epsilometer.report.wording import differences
from epsilometer.storage.digests import content_digest

_NAMES = {"np": np, "pd": pd, "pl": pl, "datetime": datetime, "float": float}


def _witness(left, right):
    result = em.audit(lambda dataset, rng: rng.random(), em.Pair(left, right), em.PureDP(1.0), samples=1000, seed=0)
    return result.witness


@pytest.mark.parametrize(
    ("left", "right", "lines"),
    [
        ([0.5, 0.1, 0.2], [0.5, 0.1, math.nan], ["record 3: 0.2 → nan"]),
        ([1, 2], [1, 2.0], ["record 2: 2 → 2.0"]),
        ([0.0], [-0.0], ["record 1: 0.0 → -0.0"]),
        (["a", "b", "a"], ["a", "a"], ["record 2: 'b' only on the left"]),
        ([], [None], ["record 1: None only on the right"]),
        ([1, 1], [1], ["record 2: 1 only on the left"]),
        ([{"age": 3, "ill": True}], [{"age": 9, "ill": True}], ["record 1: age 3 → 9"]),
        (np.array([1, 2]), np.array([1, 7]), ["record 2: 2 → 7"]),
        (pd.DataFrame({"x": [1, 2], "y": "a"}), pd.DataFrame({"x": [1, 3], "y": "a"}), ["record 2: x 2 → 3"]),
        (pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [2]}), ["record 1: {'x': 1} only on the left"]),
        ([0] * 9, [1] * 5 + [0] * 4, [f"record {i}: 0 → 1" for i in (1, 2, 3, 4)] + ["… and 1 more records"]),
        ([2.0, 2.0], [1.0, 1.0], []),  # answers of queries, say: the inputs themselves show it
        (0.0, 1.0, []),
    ],
)
def test_says_which_records_differ(left, right, lines):
    assert differences(_witness(left, right)) == lines


def test_a_dataset_that_resists_costs_no_report():
    class Hostile(list):
        def tolist(self):
            raise RuntimeError

    assert differences(_witness(Hostile([1]), Hostile([2]))) == []


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, 2**70, 0.1, -0.0, "a'\n\"\\", b"\0", (1, [2.0, {"a": None}]), {1, 2}),
        *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2)),
        *(np.float32(0.1), np.int8(-128), np.array([[1, 2]], "int8"), np.zeros((0, 3)), np.array(["a", "bc"])),
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
    for table in (pl.DataFrame({"a": [1.0, None], "b": ["x", "y"]}), pl.DataFrame({"a": pl.Series([], dtype=pl.Int8)})):
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
    [em.PureDP(1.0), em.ApproxDP(1.0, 1e-5), em.GaussianDP(0.5), em.TradeOffDP(lambda alpha: max(0.0, 0.9 - alpha))],
)
def test_the_test_runs_as_written_and_fails(claim):
    names = {}
    exec(compile(_audited(claim=claim).to_test(), "test", "exec"), names)
    with pytest.raises(em.PrivacyViolation):
        names["test_leaking_keeps_its_claim"]()


def test_the_test_survives_storage_and_keeps_how_the_function_was_used():
    result = em.AuditResult.from_json(_audited(em.from_callable(leaking, on_error="outcome")).to_json())
    assert f'from_callable({leaking.__module__}.leaking, on_error="outcome")' in result.to_test()


def test_texts_of_a_stranger_stay_comments():
    result = _audited(em.from_callable(leaking, name='x"""\nimport os; os.abort()'))
    assert "\nimport os" not in result.to_test()
    result.settings["identity"]["function"] = "os:abort(), 1 #"
    result.settings["target"] = "x'); import os"
    lines = [line for line in result.to_test().splitlines() if "import os" in line and not line.startswith("#")]
    assert all('open_target("x\'); import os"' in line for line in lines)


def test_what_no_test_could_import_is_said():
    with pytest.raises(em.InputError, match="no test could import"):
        _audited(lambda dataset, rng: leaking(dataset, rng)).to_test()
    with pytest.raises(em.InputError, match="only an audit"):
        em.measure(leaking, (0, 1), em.PureDP, samples=1000, seed=0).to_test()
