"""One-run audits against the published procedure, written out literally."""

import math

import pytest
from scipy import stats

from epsilometer.bounds.binomial import one_run_epsilon, one_run_mu, one_run_p_value
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError


def literal_p_value(m, r, v, epsilon, delta):
    """Theorem 5.2 as Corollary 5.4 states it, term by term."""
    accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))

    def tail(k):
        return stats.binom.sf(k - 1, r, accuracy)

    steepest = max(((tail(v - i) - tail(v)) / i for i in range(1, v + 1)), default=0.0)
    return min(tail(v) + 2 * m * delta * steepest, 1.0)


def literal_epsilon(m, r, v, delta, failure):
    low, high = 0.0, 1.0
    while literal_p_value(m, r, v, high, delta) < failure:
        high += 1.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if literal_p_value(m, r, v, middle, delta) < failure else (low, middle)
        )
    return low


@pytest.mark.parametrize(
    ("m", "r", "v", "delta"),
    [
        (1000, 600, 600, 1e-5),
        (100, 100, 75, 0.0),
        (100, 100, 75, 1e-4),
        (5000, 300, 260, 1e-5),
        (1000, 1000, 520, 1e-5),
    ],
)
def test_agrees_with_the_published_formula(m, r, v, delta):
    assert one_run_epsilon(m, r, v, delta, 0.05) == pytest.approx(
        literal_epsilon(m, r, v, delta, 0.05), abs=1e-6
    )
    for epsilon in (0.0, 0.5, 2.0):
        assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(
            literal_p_value(m, r, v, epsilon, delta), abs=1e-9
        )


def test_values_printed_in_the_paper():
    """Appendix D: p-value 0.553 at ε = ln 3, and the bounds 0.702 and 0.699."""
    assert one_run_p_value(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.553, abs=5e-4)
    assert one_run_epsilon(100, 100, 75, 0.0, 0.05) == pytest.approx(0.702, abs=5e-4)
    assert one_run_epsilon(100, 100, 75, 1e-4, 0.05) == pytest.approx(0.699, abs=5e-4)


def test_mu_is_refuted_by_one_of_its_points():
    mu = one_run_mu(1000, 600, 560, 0.05)
    assert mu > 0.5
    below = GaussianDP(0.99 * mu)
    assert min(one_run_p_value(1000, 600, 560, e / 5, below.delta(e / 5)) for e in range(81)) < 0.05


def test_guessing_proves_nothing():
    assert one_run_epsilon(1000, 1000, 500, 1e-5, 0.05) == 0.0
    assert one_run_mu(1000, 1000, 500, 0.05) == 0.0
    assert one_run_p_value(10, 0, 0, 1.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("m", "r", "v"), [(10, 11, 5), (10, 5, 6), (0, 0, 0), (10, 5, -1), (10.0, 5, 5), (True, 1, 1)]
)
def test_impossible_guesses(m, r, v):
    with pytest.raises(InputError):
        one_run_p_value(m, r, v, 1.0, 0.0)
