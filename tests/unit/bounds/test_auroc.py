"""The area under the ROC curve."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds.auroc import auroc_interval, observed_auroc, wrong_way_deviate


def test_observed_area_against_a_literal_twin():
    left, right = np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.0, 0.0, 1.0])
    pairs = list(itertools.product(left, right))
    wins = sum((a > b) + 0.5 * (a == b) for a, b in pairs)
    assert observed_auroc(left, right) == wins / len(pairs)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.9, 0.2), (0.99, 0.5), (0.1, 0.8)])
def test_the_interval_misses_rarely_enumerated(p, q):
    """Two-valued scores: the true area is (1 + p − q)/2, and every outcome is added up."""
    n, m, failure = 12, 15, 0.1
    truth = 0.5 * (1.0 + p - q)
    missed = 0.0
    for a in range(n + 1):
        for b in range(m + 1):
            left = (np.arange(n) >= n - a).astype(float)
            right = (np.arange(m) >= m - b).astype(float)
            lower, upper = auroc_interval(observed_auroc(left, right), n, m, failure)
            if not lower <= truth <= upper:
                missed += binom.pmf(a, n, p) * binom.pmf(b, m, q)
    assert missed <= failure


def test_the_interval_contains_what_was_observed_and_narrows():
    few = auroc_interval(0.8, 100, 300, 0.05)
    many = auroc_interval(0.8, 10_000, 10_000, 0.05)
    assert few[0] < many[0] < 0.8 < many[1] < few[1]
    assert auroc_interval(1.0, 50, 50, 0.05)[1] == 1.0
    assert auroc_interval(0.0, 50, 50, 0.05)[0] == 0.0


def test_the_deviate_is_that_of_mann_and_whitney():
    from scipy.stats import mannwhitneyu, norm

    left = np.array([0.0, 0, 1, 1, 2, 2, 3, 4, 4, 5])
    right = np.array([1.0, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9])
    one_sided = mannwhitneyu(
        left, right, alternative="less", method="asymptotic", use_continuity=False
    )
    assert wrong_way_deviate(left, right) == pytest.approx(norm.isf(one_sided.pvalue))
    assert wrong_way_deviate(np.ones(10), np.ones(12)) == 0.0
