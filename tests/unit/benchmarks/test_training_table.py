"""The table of what finds which bug of DP-SGD."""

import math

import pytest
from benchmarks import training

import epsilometer as em


def test_a_stream_ends_when_the_curve_is_refuted():
    entry = em.zoo.training.dp_sgd("noise_reused")
    assert training.runs_until_refuted(entry, entry.claim, seed=1) <= 40


def test_one_training_with_canaries_shows_what_moves_each_of_them():
    assert training.is_refuted_by_one_run(training.canary_entry("clip_after_average"), seed=3)
    assert not training.is_refuted_by_one_run(training.canary_entry("nan"), seed=3)


def test_a_row_says_how_many_streams_ended():
    row = training.Row(
        bug="nan",
        curve=(16.0, 20.0, math.inf),
        one_pair=(math.inf, math.inf),
        movement=math.inf,
        one_run=None,
        trainings=10,
    )
    assert str(row) == "| `nan` | 20 (2 of 3) | none in 2 × 480 | inf | – |"


def test_the_curve_as_one_pair():
    claim = em.GaussianDP(1.0)
    assert training.epsilon_of(claim) == pytest.approx(claim.epsilon(training.DELTA), rel=1e-3)
