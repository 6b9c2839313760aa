"""The empirical Bernstein bound, by enumeration and against its formula."""

import math
import statistics

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds.bernstein import bernstein_lower
from epsilometer.errors import InputError


@pytest.mark.paper("C23", "corrected")
@pytest.mark.paper("C24", "corrected")
def test_it_is_the_formula_of_the_theorem():
    values = np.array([-1.5, 0.3, 2.0, 0.1, 1.9, 2.0])
    n, needed = len(values), math.log(2.0 / 0.1)
    spread = math.sqrt(2.0 * statistics.variance(values.tolist()) * needed / n)
    expected = statistics.mean(values.tolist()) - spread - 7.0 * 4.0 * needed / (3.0 * (n - 1))
    assert bernstein_lower(values, -2.0, 2.0, 0.1) == pytest.approx(max(expected, -2.0))


@pytest.mark.parametrize("n", [2, 10, 60, 200])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9, 0.99])
def test_coverage_by_enumeration(n, p):
    """Two outcomes: every count of successes."""
    failure = 0.2
    above = sum(
        binom.pmf(k, n, p)
        for k in range(n + 1)
        if bernstein_lower(np.repeat([1.0, 0.0], [k, n - k]), 0.0, 1.0, failure) > p
    )
    assert above <= failure


def test_values_without_spread_cost_only_the_last_term():
    assert bernstein_lower(np.ones(10_001), 0.0, 1.0, 0.05) == pytest.approx(
        1.0 - 7.0 * math.log(40) / 30_000
    )


def test_too_few_values_prove_nothing():
    assert bernstein_lower(np.array([1.0]), -2.0, 2.0, 0.05) == -2.0
    assert bernstein_lower(np.empty(0), -2.0, 2.0, 0.05) == -2.0


def test_values_outside_the_range_are_refused():
    with pytest.raises(InputError, match="between"):
        bernstein_lower(np.array([0.0, 3.0]), -2.0, 2.0, 0.05)
