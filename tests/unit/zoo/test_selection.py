"""The private median and the most popular element: exact laws, and seeded draws (false alarm ≤ 1e-9)."""

import math

import numpy as np
import pytest
from scipy import stats

from epsilometer import zoo

RUNS = 200_000
FALSE_ALARM = 1e-9


def assert_counts(hits, chances):
    for count, chance in zip(hits, chances, strict=True):
        tails = stats.binom.cdf(count, RUNS, chance), stats.binom.sf(count - 1, RUNS, chance)
        assert min(tails) >= FALSE_ALARM / (4 * len(hits)), f"{count}/{RUNS}, exact {chance:.6g}"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 9.0])
@pytest.mark.paper("C37", "equal")
def test_the_median_has_its_closed_truth(epsilon):
    between = -math.log(0.95 * math.exp(-epsilon) + 0.05)
    assert zoo.joint_median(epsilon).truth() == pytest.approx(
        max(between, epsilon - between), abs=1e-12
    )


def test_the_median_of_five_values_follows_its_weights(rng):
    values = [0.1, 0.2, 0.2, 0.7, 1.3]
    outputs = zoo.joint_median(2.0).mechanism.function(values, RUNS, rng)
    edges = np.array([0.0, 0.1, 0.2, 0.7, 1.0])
    # Values below minus values above, between the edges; the last value is clipped to 1.
    weights = np.diff(edges) * np.exp(-np.abs([-5.0, -3.0, 1.0, 3.0]))
    assert_counts(np.histogram(outputs, edges)[0], weights / weights.sum())


@pytest.mark.parametrize("side", [0, 1])
def test_draws_of_the_median_have_the_law_of_its_entry(side, rng):
    entry = zoo.joint_median()
    outputs = entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng)
    law = entry.distributions
    assert_counts(
        np.histogram(outputs, [0.0, 0.475, 0.525, 1.0])[0], law.right if side else law.left
    )


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.paper("C37", "equal")
def test_the_most_popular_element_is_the_maximum_of_gumbel_noise(side, rng):
    """Its draws against the noisy maximum that it stands for, by the exact law of the latter."""
    entry = zoo.noisy_max(1.5)
    votes = entry.worst_pair.side(side)
    weights = [math.exp(0.75 * votes.count(element)) for element in range(5)]
    hits = np.bincount(entry.mechanism.function(votes, RUNS, rng), minlength=5)
    noisy = np.bincount(votes, minlength=5) + rng.gumbel(0.0, 2 / 1.5, (RUNS, 5))
    chances = np.array(weights) / sum(weights)
    assert_counts(hits, chances)
    assert_counts(np.bincount(noisy.argmax(axis=1), minlength=5), chances)


def test_many_votes_bring_the_truth_to_the_claim():
    truths = [zoo.noisy_max(1.0, votes=votes).truth() for votes in (1, 4, 12, 40)]
    assert truths == sorted(truths)
    assert truths[0] == pytest.approx(0.5)
    assert truths[-1] == pytest.approx(1.0, abs=1e-6)
