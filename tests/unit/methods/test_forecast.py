"""Forecasts of bounds from training draws, and the penalty for having chosen the best one."""

import math

import numpy as np
import pytest

from epsilometer.bounds import Counts, certified_value
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.methods import Task
from epsilometer.methods.forecast import (
    expected_bounds,
    expected_positive_bound,
    predict,
    selection_penalty,
)

CLAIMS = [
    PureDP(0.1),
    ApproxDP(0.1, 0.01),
    ApproxDeltaDP(0.1, 0.01),
    RenyiDP(2.0, 0.01),
    ZCDP(0.01),
    GaussianDP(0.1),
    TradeOffDP(([0, 1], [1, 0]), 0.01),
]


def task(claim=None, n=7000):
    return Task(claim or PureDP(0.0), (n, n), 0.05)


class TestPrediction:
    def test_epsilon(self):
        p, q, n = np.array([0.4]), np.array([0.1]), (4000, 5000)
        predicted, spread = predict(task(PureDP(1.0)), p, q, n_train=n, n_fresh=(7000, 8000))
        sd = math.sqrt(0.6 / (0.4 * 4000) + 0.9 / (0.1 * 5000))
        fresh = math.sqrt(0.6 / (0.4 * 7000) + 0.9 / (0.1 * 8000))
        assert spread == pytest.approx([sd])
        assert predicted == pytest.approx([math.log(4) - 1.6448536 * fresh - sd])

    def test_delta(self):
        p, q, n = np.array([0.4]), np.array([0.1]), (4000, 5000)
        predicted, spread = predict(
            task(ApproxDeltaDP(math.log(2), 0.0)), p, q, n_train=n, n_fresh=(7000, 8000)
        )
        sd = math.sqrt(0.24 / 4000 + 4 * 0.09 / 5000)
        assert spread == pytest.approx([sd])
        assert predicted == pytest.approx(
            [0.2 - 1.6448536 * math.sqrt(0.24 / 7000 + 4 * 0.09 / 8000) - sd]
        )

    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    def test_below_what_the_probabilities_prove(self, claim):
        p, q = np.array([0.5, 0.9, 0.01, 0.3]), np.array([0.2, 0.6, 0.001, 0.3])
        predicted, spread = predict(task(claim), p, q, n_train=(3000, 3000), n_fresh=(7000, 7000))
        assert np.all(spread >= 0)
        assert all(
            a <= claim.least_value(x, y) + 1e-12 for a, x, y in zip(predicted, p, q, strict=True)
        )

    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    def test_extreme_frequencies_are_no_accident(self, claim):
        p, q = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 1e-9, 1.0, 1e-9])
        predicted, spread = predict(task(claim), p, q, n_train=(3000, 3000), n_fresh=(7000, 7000))
        assert not np.isnan(predicted).any()
        assert not np.isnan(spread[np.isfinite(predicted)]).any()

    @pytest.mark.parametrize("q", [0.9, 0.99, 1.0])
    def test_a_curve_is_only_asked_inside_its_domain(self, q):
        def curve(error):
            assert 0.0 <= error <= 1.0
            return 1.0 - error

        predict(
            task(TradeOffDP(curve)),
            np.array([1.0]),
            np.array([q]),
            n_train=(10, 10),
            n_fresh=(10, 10),
        )

    @pytest.mark.parametrize("claim", CLAIMS[3:], ids=lambda claim: claim.notion)
    @pytest.mark.parametrize(("p", "q"), [(0.4, 0.1), (0.97, 0.8), (0.05, 0.01)])
    def test_without_penalty_it_is_near_the_joint_certificate(self, claim, p, q):
        n = 7000
        ((predicted,), _) = predict(
            task(claim),
            np.array([p]),
            np.array([q]),
            n_train=(3000, 3000),
            n_fresh=(n, n),
            penalty=0.0,
        )
        proved = certified_value(
            claim, Counts(round(p * n), n), Counts(round(q * n), n), 0.05, (p, q)
        )
        estimate = claim.least_value(p, q)
        assert abs(predicted - proved) <= 0.3 * (estimate - proved) + 1e-9


class TestFewDraws:
    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    @pytest.mark.parametrize(("hits", "misses"), [(20, 0), (19, 1), (15, 2), (20, 5)])
    def test_is_near_the_certificate_of_the_expected_counts(self, claim, hits, misses):
        left, right = Counts(hits, 20), Counts(misses, 20)
        proved = certified_value(claim, left, right, 0.05, (left.share, right.share))
        p, q = np.array([left.share]), np.array([right.share])
        (predicted,) = expected_bounds(
            task(claim), p, q, n_train=(10, 10), n_fresh=(20, 20), penalty=0.0
        )
        # Of an event that was never missed it is cautious: a line proves more than two limits.
        assert proved - (0.75 if hits == 20 else 0.25) <= predicted <= proved + 0.25


class TestSelectionPenalty:
    def test_one_candidate_pays_nothing(self):
        assert selection_penalty(1) == 0.0

    def test_it_is_the_median_of_the_largest_of_normal_errors(self, rng):
        for n_candidates in (4, 16, 100):
            largest = rng.normal(size=(20_000, n_candidates)).max(axis=1)
            # The standard error of a median of 20,000 is below .01.
            assert selection_penalty(n_candidates) == pytest.approx(np.median(largest), abs=0.06)


def test_where_nothing_is_expected_the_surest_event_is_not_the_best():
    bounds, spreads = np.array([-0.001, -0.02, -9.0]), np.array([0.002, 0.04, 0.1])
    assert np.argmax(expected_positive_bound(bounds, spreads)) == 1
    assert expected_positive_bound(np.array([5.0, -3.0]), np.array([0.5, 0.5])) == pytest.approx(
        [5.0, 0.0], abs=1e-9
    )
