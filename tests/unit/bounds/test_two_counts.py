import math
import time
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest

from epsilometer.bounds import Counts, delta_lower, epsilon_lower, lower, upper
from epsilometer.bounds.supremum import NullLine, region_probability
from epsilometer.bounds.two_counts import delta_test, epsilon_test
from epsilometer.errors import InputError

COUNTS = [
    (Counts(30, 40), Counts(3, 40)),
    (Counts(700, 1000), Counts(300, 1000)),
    (Counts(60, 100_000), Counts(1, 50_000)),
    (Counts(50, 50), Counts(0, 50)),
    (Counts(900, 1000), Counts(20, 30)),
]


@pytest.mark.parametrize(("left", "right"), COUNTS)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_p_value_grows_with_epsilon(left, right, delta):
    test = epsilon_test(left, right, 0.05, delta)
    grid = np.linspace(0, 6, 13)
    q = np.linspace(*np.sqrt(test.q_range), 201) ** 2
    reached = [
        region_probability(test.region, NullLine(math.exp(e), delta).power(q), q, 64).max()
        for e in grid
    ]
    assert all(a <= b + 1e-9 for a, b in pairwise(reached))
    # The reported one is an upper bound that is refined only as far as the verdict needs: the verdict is monotone.
    reported = [test.p_value(epsilon, delta) for epsilon in grid]
    assert all(a >= b - 0.01 for a, b in zip(reported, reached, strict=True))
    verdicts = [test.rejects(epsilon, delta) for epsilon in grid]
    assert verdicts == sorted(verdicts, reverse=True)


@pytest.mark.parametrize(("left", "right"), COUNTS)
def test_what_is_returned_was_rejected(left, right):
    for delta in (0.0, 1e-4):
        bound = epsilon_lower(left, right, 0.05, delta)
        assert bound == 0 or epsilon_test(left, right, 0.05, delta).rejects(bound, delta)
    for epsilon in (0.0, 0.5):
        bound = delta_lower(left, right, 0.05, epsilon)
        assert bound == 0 or delta_test(left, right, 0.05, epsilon).rejects(epsilon, bound)


@pytest.mark.parametrize(("left", "right"), [COUNTS[0], COUNTS[1], COUNTS[2], COUNTS[4]])
def test_not_far_below_the_largest_rejected_value(left, right):
    bound = epsilon_lower(left, right, 0.05)
    test = epsilon_test(left, right, 0.05)
    beyond = bound + 0.03 * max(
        math.log(left.share / max(right.share, 0.05 / right.trials)) - bound, 0.05
    )
    assert not test.rejects(beyond + 0.02, 0.0)


@pytest.mark.parametrize(("left", "right"), COUNTS[:-1])
def test_sharper_than_two_separate_bounds(left, right):
    separate = math.log(lower(left, 0.025) / upper(right, 0.025))
    assert epsilon_lower(left, right, 0.05) > separate


def test_bounds_are_finite_and_not_negative_for_all_small_counts():
    for n, m in [(1, 1), (1, 6), (6, 1), (5, 5)]:
        for x in range(n + 1):
            for y in range(m + 1):
                for failure in (0.05, 0.5, 1e-6):
                    epsilon = epsilon_lower(Counts(x, n), Counts(y, m), failure, 0.01)
                    delta = delta_lower(Counts(x, n), Counts(y, m), failure, 0.3)
                    assert 0 <= epsilon < math.inf
                    assert 0 <= delta <= x / n


def test_nothing_seen_proves_nothing():
    for right in (Counts(0, 50), Counts(50, 50), Counts(0, 0)):
        assert epsilon_lower(Counts(0, 50), right, 0.05) == 0
        assert delta_lower(Counts(0, 50), right, 0.05, 0.1) == 0
    assert epsilon_lower(Counts(0, 0), Counts(0, 0), 0.05) == 0
    assert delta_lower(Counts(0, 0), Counts(0, 0), 0.05, 0.1) == 0


def test_always_seen_on_the_right_proves_nothing():
    assert epsilon_lower(Counts(50, 50), Counts(50, 50), 0.05) == 0
    assert delta_lower(Counts(50, 50), Counts(50, 50), 0.05, 0.0) == 0


def test_always_left_never_right_is_a_large_loss():
    # Not more than what the rule of three leaves possible: q ≤ 3/n.
    bound = epsilon_lower(Counts(1000, 1000), Counts(0, 1000), 0.05)
    assert math.log(1000 / 6) < bound < math.log(1000 / 2.9)
    assert delta_lower(Counts(1000, 1000), Counts(0, 1000), 0.05, 0.0) == pytest.approx(1, abs=0.01)


def test_known_values():
    # Laplace-like frequencies: what METHODS expects of 70 000 fresh draws per side.
    n = 70_000
    assert (
        0.66
        < epsilon_lower(Counts(n // 2, n), Counts(round(n / 2 * math.exp(-0.7)), n), 0.05)
        < 0.7
    )
    assert 0.19 < delta_lower(Counts(round(0.5 * n), n), Counts(round(0.3 * n), n), 0.05, 0.0) < 0.2


def test_more_hits_prove_more():
    n = 30
    for delta in (0.0, 0.05):
        by_left = [epsilon_lower(Counts(x, n), Counts(4, n), 0.05, delta) for x in range(n + 1)]
        by_right = [epsilon_lower(Counts(25, n), Counts(y, n), 0.05, delta) for y in range(n + 1)]
        assert all(a <= b + 0.02 for a, b in pairwise(by_left))
        assert all(a >= b - 0.02 for a, b in pairwise(by_right))


def test_a_larger_delta_proves_less():
    bounds = [
        epsilon_lower(Counts(300, 1000), Counts(30, 1000), 0.05, delta)
        for delta in (0, 0.01, 0.1, 0.25, 0.3)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0


def test_smaller_failure_probability_proves_less():
    bounds = [
        epsilon_lower(Counts(300, 1000), Counts(30, 1000), failure)
        for failure in (0.2, 0.05, 1e-3, 1e-6, 1e-9)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] > 0


@pytest.mark.parametrize("n", [10**5, 10**7, 10**9])
@pytest.mark.parametrize("p", [1e-3, 0.2, 0.6])
def test_huge_counts_are_quick_and_precise(n, p):
    left, right = Counts(round(p * n), n), Counts(round(p * n / 2), n)
    began = time.process_time()
    bound = epsilon_lower(left, right, 0.05)
    between = time.process_time()
    delta = delta_lower(left, right, 0.05, 0.1)
    assert between - began < 1.0
    assert time.process_time() - between < 1.0
    sd = math.sqrt(3 / (p * n))
    assert math.log(2) - 2.2 * sd < bound < math.log(2)
    assert 0 < delta < p - math.exp(0.1) * p / 2


def test_counts_beyond_32_bits():
    n = 5 * 10**9
    bound = epsilon_lower(Counts(n // 2, n), Counts(n // 4, n), 0.05)
    assert math.log(2) - 1e-3 < bound < math.log(2)


def test_very_unequal_sizes():
    assert 0.5 < epsilon_lower(Counts(90, 100), Counts(10**8, 10**9), 0.05) < math.log(9)
    assert 0.5 < epsilon_lower(Counts(9 * 10**8, 10**9), Counts(10, 100), 0.05) < math.log(9)


@pytest.mark.parametrize("epsilon", [20.0, 300.0, 700.0, 1000.0, 1e6])
def test_a_huge_epsilon_leaves_no_delta(epsilon):
    # With e^ε that large, any q that 1000 draws leave possible explains everything.
    assert delta_lower(Counts(1000, 1000), Counts(0, 1000), 0.05, epsilon) == 0.0


@pytest.mark.parametrize("failure", [0.0, 1.0, -1.0, math.nan])
def test_failure_probability_is_checked(failure):
    with pytest.raises(InputError):
        epsilon_lower(Counts(1, 2), Counts(0, 2), failure)
    with pytest.raises(InputError):
        delta_lower(Counts(1, 2), Counts(0, 2), failure, 0.0)


@pytest.mark.parametrize("failure_probability", [1e-12, 1e-17, 1e-24])
def test_extreme_confidences_are_proved_too(failure_probability):
    """Against the exact probability of the region, in decimals, at the bound and at many q."""
    left, right = Counts(58, 60), Counts(1, 70)
    bound = epsilon_lower(left, right, failure_probability)
    assert bound > 0.1
    test = epsilon_test(left, right, failure_probability)
    needed = [
        max(0, math.ceil(each - 1e-9)) for each in test.region.threshold(np.arange(71.0)).tolist()
    ]
    with localcontext(prec=60):
        for q in np.linspace(*test.q_range, 40).tolist():
            p = min(Decimal(q) * Decimal(bound).exp(), Decimal(1))
            masses = [binomial_mass(60, k, p) for k in range(61)]
            chances = [
                binomial_mass(70, y, Decimal(q)) * sum(masses[least:])
                for y, least in enumerate(needed)
            ]
            assert sum(chances) <= Decimal(test.level)


def binomial_mass(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k) if 0 < p < 1 else Decimal(k == n * p)


@pytest.mark.parametrize("failure_probability", [1e-299, 1e-305, 1e-320])
def test_no_confidence_is_too_high_to_be_asked_for(failure_probability):
    assert (
        0.0 <= epsilon_lower(Counts(9000, 10_000), Counts(100, 10_000), failure_probability) < 4.0
    )
    assert (
        0.0
        <= delta_lower(Counts(9000, 10_000), Counts(100, 10_000), failure_probability, 1.0)
        < 0.9
    )
