"""Screening of one pair: what a few draws show, coupled and independent."""

import math
import random

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.screening import PairScreener, ScreeningRequest
from epsilometer.auditing.screening_scores import CERTAIN
from epsilometer.mechanisms import as_mechanism


def clipped(value):
    return min(max(value, 0.0), 1.0) if isinstance(value, float) and value == value else 0.0


def right_sum(data, rng):
    return sum(map(clipped, data)) + rng.laplace()


def empty_is_exact(data, rng):
    return len(data) + rng.laplace() if data else 0.0


def nan_survives(data, rng):
    return sum(value if value != value else clipped(value) for value in data) + rng.laplace()


def fails_on_one(data, rng):
    if data:
        raise ValueError("too many")
    return rng.laplace()


def from_global_numpy(data):
    return len(data) + np.random.laplace()  # noqa: NPY002


def from_global_random(data):
    return len(data) + random.gauss(0, 1)


def from_own_entropy(data):
    return len(data) + np.random.default_rng().laplace()


def screen(mechanism, left, right, draws=0):
    screener = PairScreener(as_mechanism(mechanism), seed=0)
    request = ScreeningRequest(
        number=1, pair=em.Pair(left, right), draws=draws, claim=em.PureDP(1.0)
    )
    (result,) = screener([request])
    return result


@pytest.mark.parametrize(
    ("mechanism", "coupled"),
    [
        (right_sum, True),
        (from_global_numpy, True),
        (from_global_random, True),
        (from_own_entropy, False),
    ],
)
def test_whether_it_can_be_coupled_is_found_out(mechanism, coupled):
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert screen(mechanism, [1.0], []).is_coupled is coupled
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_coupled_screening_sees_movement_shapes_and_missing_noise():
    assert screen(right_sum, [0.5, 0.2], [0.2, 0.5]).score < 1e-9
    assert 0.3 < screen(right_sum, [1.0], []).score < 2.0
    assert screen(lambda data, rng: 50 * sum(data) + rng.laplace(), [1.0], []).score > 2.0
    assert screen(empty_is_exact, [1.0], []).score >= 1.0
    assert screen(lambda data, rng: len(data), [1.0], []).score == CERTAIN
    assert screen(lambda data, rng: [rng.laplace() for _ in data], [1.0], []).score == CERTAIN
    assert screen(nan_survives, [math.nan], []).score == CERTAIN
    assert screen(lambda data, rng: "abc"[len(data)], ["x"], []).score == CERTAIN


def test_plain_screening_compares_with_the_claim():
    assert screen(right_sum, [1.0], [], 300).score < 3.5
    assert (
        screen(lambda data, rng: rng.laplace(scale=5.0 if data else 1.0), [1.0], [], 300).score
        > 3.5
    )
    assert screen(lambda data, rng: 4 * len(data) + rng.laplace(), [1.0], [], 300).score > 5.0
    assert (
        screen(lambda data, rng: "ab"[int(rng.random() < 0.9 * len(data))], [1.0], [], 300).score
        > 5.0
    )


@pytest.mark.parametrize("draws", [0, 300])
def test_failed_sides_are_named(draws):
    left = screen(fails_on_one, [1.0], [], draws)
    assert (left.failed_sides, left.score) == ("left", 0.0)
    assert "too many" in left.error
    assert screen(fails_on_one, [], [1.0], draws).failed_sides == "right"


def test_a_coupled_screening_knows_whether_both_sides_failed():
    assert screen(fails_on_one, [1.0], [2.0]).failed_sides == "both"
