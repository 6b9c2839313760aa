"""Small promises of the result, the claims and recordings that have no file of their own."""

import json
from dataclasses import replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.outputs import Event, Partition
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import BlockPartition, Group

COUNTS = np.arange(100)


@pytest.fixture
def compared():
    return em.compare(COUNTS, COUNTS * 1.0, em.PureDP(1.0), seed=0)


def test_arrays_of_different_numbers_are_compared_as_floats(compared):
    assert compared.settings["note"] == "left holds int64, right float64; both are compared as float64"
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
        ([True, True, True, False], "any float output or output is NaN"),
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
    assert "search" not in em.audit(mechanism, pairs[1], em.PureDP(2.0), samples=400, seed=0).findings[0].details
