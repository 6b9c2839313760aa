"""Scores: true claims are rarely refuted, false ones are found with few scores."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds.rank_test import RankTest
from epsilometer.claims import GaussianDP, PureDP


def laplace(rng, n):
    return rng.laplace(1.0, 1.0, n), rng.laplace(0.0, 1.0, n)


def rounded(rng, n):
    return tuple(np.round(side) for side in laplace(rng, n))


def mostly_zeros(rng, n):
    return tuple(np.where(rng.random(n) < 0.8, 0.0, side) for side in laplace(rng, n))


def equal(rng, n):
    return rng.normal(size=n), rng.normal(size=n)


def gaussian(rng, n):
    return rng.normal(1.0, 1.0, n), rng.normal(0.0, 1.0, n)


@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize(
    ("draw", "claim"),
    [
        (laplace, PureDP(1.0)),
        (rounded, PureDP(1.0)),
        (mostly_zeros, PureDP(1.0)),
        (equal, PureDP(0.0)),
        (gaussian, GaussianDP(1.0)),
    ],
)
def test_true_claims_are_rarely_refuted(draw, claim, n, rng, rarely):
    def is_refuted(_):
        left, right = draw(rng, n)
        return RankTest.of_scores(np.sort(left), np.sort(right)).p_value(claim) <= 0.05

    rarely(is_refuted, 0.05, 0.25)


def test_single_readings_and_the_interval_of_the_area_are_below_the_truth(rng, rarely):
    def misses(_):
        audit = em.from_scores(*gaussian(rng, 60))
        lower, upper = audit.auroc_interval
        area = 0.7602499389065233  # Φ(1/√2)
        return audit.mu > 1.0 or not lower <= area <= upper

    # The reading and the interval are two statements of 5 % each.
    rarely(misses, 0.1, 0.4)


def test_joint_readings_come_near_the_truth(rng):
    """The mean of five has a standard error of .01; it is .92, seven of them from either end."""
    bounds = [em.from_scores(*laplace(rng, 10_000)).epsilon(0.0) for _ in range(5)]
    assert 0.85 < np.mean(bounds) < 0.99


def test_a_stream_rarely_refutes_a_true_claim_however_often_one_looks(rng, rarely):
    def is_refuted(_):
        audit = em.ScoreStream("mu=1")
        for size in (8, 4, 4, 8, 16, 32):
            audit.add(rng.normal(1.0, 1.0, size), rng.normal(0.0, 1.0, size))
        return audit.state.is_refuted

    rarely(is_refuted, 0.05, 0.3)


def test_a_stream_finds_a_false_claim_in_few_pairs(rng):
    """Truth 3, claim 1: 20 pairs in the median, and more than 100 in fewer than a run of 100.

    So that six of eleven runs take more has a probability below 462/100^6.
    """
    needed = []
    for _ in range(11):
        audit = em.ScoreStream("mu=1")
        while not audit.state.is_refuted and audit.state.samples[0] < 200:
            audit.add(rng.normal(3.0, 1.0, 4), rng.normal(0.0, 1.0, 4))
        needed.append(audit.state.samples[0])
    assert np.median(needed) <= 100
