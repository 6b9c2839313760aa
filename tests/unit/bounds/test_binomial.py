import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import beta, binom

from epsilometer.bounds import Counts, lower, upper
from epsilometer.errors import InputError

FAILURES = [0.5, 0.1, 0.05, 1e-3, 1e-9]


class TestCounts:
    def test_hits_lie_between_zero_and_trials(self):
        for hits, trials in [(-1, 3), (4, 3), (1, 0), (0, -1)]:
            with pytest.raises(InputError, match="hits="):
                Counts(hits, trials)

    def test_add(self):
        assert Counts(1, 3) + Counts(2, 5) == Counts(3, 8)

    def test_share(self):
        assert Counts(1, 4).share == 0.25
        assert Counts(0, 0).share == 0.0


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000, 10**6])
def test_equal_to_beta_quantiles(n, failure):
    for hits in sorted({0, 1, n // 3, n - 1, n} & set(range(n + 1))):
        counts = Counts(hits, n)
        expected_lower = beta.ppf(failure, hits, n - hits + 1) if hits else 0.0
        expected_upper = beta.isf(failure, hits + 1, n - hits) if hits < n else 1.0
        assert lower(counts, failure) == pytest.approx(expected_lower, rel=1e-9)
        assert upper(counts, failure) == pytest.approx(expected_upper, rel=1e-9)


@pytest.mark.parametrize("failure", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 2, 5, 17, 40])
def test_coverage_by_enumeration(n, failure):
    k = np.arange(n + 1)
    low = np.array([lower(Counts(int(i), n), failure) for i in k])
    high = np.array([upper(Counts(int(i), n), failure) for i in k])
    # The worst cases of a lower bound are just below its own values, those of an upper bound just above.
    for p in np.concatenate(
        [np.linspace(0.001, 0.999, 200), np.nextafter(low[1:], 0), np.nextafter(high[:-1], 1)]
    ):
        assert binom.pmf(k[low > p], n, p).sum() <= failure * (1 + 1e-9)
        assert binom.pmf(k[high < p], n, p).sum() <= failure * (1 + 1e-9)


def test_bounds_grow_with_hits_and_shrink_with_failure_probability():
    for n in (1, 13, 200):
        for failure in FAILURES:
            low = [lower(Counts(hits, n), failure) for hits in range(n + 1)]
            high = [upper(Counts(hits, n), failure) for hits in range(n + 1)]
            assert all(a < b for a, b in pairwise(low))
            assert all(a < b for a, b in pairwise(high))
            assert all(
                a <= k / n <= b
                for k, (a, b) in enumerate(zip(low, high, strict=True))
                if failure < 0.5
            )
        by_failure = [lower(Counts(n, n), failure) for failure in FAILURES]
        assert by_failure == sorted(by_failure, reverse=True)


def test_upper_is_the_complement_of_lower():
    for hits, n in [(0, 5), (3, 9), (12, 1000), (1000, 1000)]:
        assert upper(Counts(hits, n), 0.03) == pytest.approx(
            1 - lower(Counts(n - hits, n), 0.03), abs=1e-14
        )


def test_extreme_arguments_do_not_give_nan():
    # betaincinv(3, 1e8 - 2, 1e-300) is nan.
    found = lower(Counts(3, 10**8), 1e-300)
    assert 0 < found < 1e-100
    # P(at least 3 hits) ≈ (n·p)³/6 must be the failure probability.
    assert (found * 1e8) ** 3 / 6 == pytest.approx(1e-300, rel=1e-3)
    mirrored = upper(Counts(10**8 - 3, 10**8), 1e-300)
    assert 1 - 1e-7 < mirrored <= 1


@pytest.mark.parametrize("failure", [1e-300, 1e-100, 1e-12, 0.05, 0.999])
@pytest.mark.parametrize("hits", [0, 1, 10**9, 10**9 - 1, 5 * 10**8])
def test_huge_counts(hits, failure):
    n = 10**9
    low, high = lower(Counts(hits, n), failure), upper(Counts(hits, n), failure)
    assert 0 <= low <= 1
    assert 0 <= high <= 1
    if failure < 0.5:
        assert low <= hits / n <= high


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, 2.0, math.nan, math.inf])
def test_failure_probability_must_be_one(failure):
    for bound in (lower, upper):
        with pytest.raises(InputError, match="failure_probability="):
            bound(Counts(1, 2), failure)
