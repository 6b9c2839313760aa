"""The promise of the kernel, by enumeration of every pair of counts: no sampling, no approximation."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds import Counts, certified_value, delta_lower, epsilon_lower
from epsilometer.bounds.two_counts import delta_test, epsilon_test
from epsilometer.claims import ZCDP, GaussianDP, RenyiDP, TradeOffDP

EPSILONS = [0.0, 0.3, 1.0, 2.0]
DELTAS = [0.0, 0.01]
LEVELS = [0.05, 0.1]
# What is rounding and not a broken promise.
SLACK = 1e-10

ALL_COUNTS = [(1, 1), (3, 7), (8, 8), (12, 5), (20, 20)]
PAIRED = [(n, m, level) for n, m in ALL_COUNTS for level in LEVELS]


def null_boundary(epsilon, delta):
    """p = e^ε·q + δ on a fine grid of q that is dense near 0; cut at 1."""
    q = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 0.1, 60), np.linspace(0.1, 1.0, 240)]))
    return np.minimum(math.exp(epsilon) * q + delta, 1.0), q


def probability(inside, p, q):
    """P((X, Y) ∈ inside) for each (p, q); inside has shape (n + 1, m + 1)."""
    n, m = inside.shape[0] - 1, inside.shape[1] - 1
    left = binom.pmf(np.arange(n + 1)[:, None], n, p)
    right = binom.pmf(np.arange(m + 1)[:, None], m, q)
    return np.einsum("xk,xy,yk->k", left, inside.astype(float), right)


def rejected(make_test, n, m, epsilon, delta):
    """Which counts reject the claim: per right count all left counts from the least one on."""
    found = np.zeros((n + 1, m + 1), dtype=bool)
    for y in range(m + 1):
        low, high = 0, n + 1  # rejects nowhere below low, everywhere from high on
        while low < high:
            middle = (low + high) // 2
            if make_test(Counts(middle, n), Counts(y, m)).rejects(epsilon, delta):
                high = middle
            else:
                low = middle + 1
        found[low:, y] = True
    return found


@cache
def epsilon_bounds(n, m, level, delta):
    return np.array(
        [
            [epsilon_lower(Counts(x, n), Counts(y, m), level, delta) for y in range(m + 1)]
            for x in range(n + 1)
        ]
    )


@cache
def delta_bounds(n, m, level, epsilon):
    return np.array(
        [
            [delta_lower(Counts(x, n), Counts(y, m), level, epsilon) for y in range(m + 1)]
            for x in range(n + 1)
        ]
    )


@pytest.mark.parametrize(
    ("n", "m", "level"), [*PAIRED, (30, 30, 0.05), (30, 13, 0.1), (11, 30, 0.05)]
)
def test_size_of_the_epsilon_test(n, m, level):
    for delta in DELTAS if level == 0.05 else DELTAS[:1]:
        for epsilon in EPSILONS:
            inside = rejected(
                lambda x, y, d=delta: epsilon_test(x, y, level, d), n, m, epsilon, delta
            )
            size = probability(inside, *null_boundary(epsilon, delta)).max()
            assert size <= level + SLACK, (
                f"ε={epsilon}, δ={delta}: rejects a true claim with probability {size}"
            )


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("n", "m"), [(6, 6), (9, 4)])
def test_rejection_is_monotone_in_both_counts(n, m, delta, epsilon):
    """What `rejected` above takes for granted."""
    every = np.array(
        [
            [
                epsilon_test(Counts(x, n), Counts(y, m), 0.1, delta).rejects(epsilon, delta)
                for y in range(m + 1)
            ]
            for x in range(n + 1)
        ]
    )
    assert np.all(every[1:] >= every[:-1])
    assert np.all(every[:, 1:] <= every[:, :-1])
    assert np.array_equal(
        every, rejected(lambda x, y: epsilon_test(x, y, 0.1, delta), n, m, epsilon, delta)
    )


@pytest.mark.parametrize(
    ("n", "m", "level", "delta"),
    [
        *((n, m, level, delta) for n, m in ALL_COUNTS[:-1] for level in LEVELS for delta in DELTAS),
        # Large ones take seconds: each level with each delta.
        *((20, 20, 0.05, 0.01), (26, 26, 0.05, 0.0), (11, 30, 0.1, 0.01), (30, 11, 0.1, 0.0)),
    ],
)
def test_the_epsilon_bound_is_rarely_above_the_truth(n, m, level, delta):
    bounds = epsilon_bounds(n, m, level, delta)
    for epsilon in EPSILONS:
        p, q = null_boundary(epsilon, delta)
        full = p < 1.0
        missed = probability(bounds > epsilon + SLACK, p[full], q[full]).max()
        assert missed <= level + SLACK, (
            f"ε={epsilon}, δ={delta}: above the truth with probability {missed}"
        )
    # Where the line is cut, the truth is smaller than its ε.
    for q in (0.3, 0.6, 0.9, 1.0):
        truth = math.log((1.0 - delta) / q)
        assert (
            probability(bounds > max(truth, 0.0) + SLACK, np.ones(1), np.array([q]))[0]
            <= level + SLACK
        )


@pytest.mark.parametrize(("n", "m", "level"), [*PAIRED, (30, 13, 0.05)])
def test_the_delta_bound_is_rarely_above_the_truth(n, m, level):
    for epsilon in EPSILONS:
        bounds = delta_bounds(n, m, level, epsilon)
        for delta in (0.0, 0.01, 0.1, 0.5):
            p, q = null_boundary(epsilon, delta)
            truth = np.maximum(p - math.exp(epsilon) * q, 0.0)
            for value in np.unique(np.round(truth, 12)):
                same = np.isclose(truth, value, rtol=0.0, atol=1e-11)
                missed = probability(bounds > value + SLACK, p[same], q[same]).max()
                assert missed <= level + SLACK, (
                    f"ε={epsilon}, δ={value}: above the truth with probability {missed}"
                )


@pytest.mark.parametrize(
    ("n", "m", "level"), [(8, 8, 0.05), (8, 8, 0.1), (12, 5, 0.05), (12, 5, 0.1), (20, 20, 0.05)]
)
def test_size_of_the_delta_test(n, m, level):
    for epsilon in EPSILONS if n < 20 else EPSILONS[::2]:  # large ones take seconds
        for delta in (0.0, 0.01, 0.2):
            inside = rejected(
                lambda x, y, e=epsilon: delta_test(x, y, level, e), n, m, epsilon, delta
            )
            assert probability(inside, *null_boundary(epsilon, delta)).max() <= level + SLACK


@pytest.mark.parametrize("failure", [0.51, 0.6, 0.9])
def test_even_a_careless_confidence_is_kept(failure):
    """A confidence below one half is strange, but it is a promise too."""
    n, m = 10, 8
    bounds = epsilon_bounds(n, m, failure, 0.0)
    for epsilon in EPSILONS:
        p, q = null_boundary(epsilon, 0.0)
        assert probability(bounds > epsilon + SLACK, p[p < 1], q[p < 1]).max() <= failure + SLACK


def test_the_test_is_not_wasteful():
    """Exact, and yet close to its level somewhere on the boundary."""
    inside = rejected(lambda x, y: epsilon_test(x, y, 0.05), 40, 40, 1.0, 0.0)
    assert probability(inside, *null_boundary(1.0, 0.0)).max() >= 0.03


@pytest.mark.parametrize(("n", "m"), [(20, 20), (9, 30), (30, 9)])
@pytest.mark.parametrize("failure", [0.01, 0.05, 0.3])
def test_restricting_q_is_paid_for(n, m, failure):
    """Berger and Boos: what the interval of q misses and what the test spends add up to the failure probability."""
    for make in (
        lambda y: epsilon_test(Counts(n, n), y, failure),
        lambda y: delta_test(Counts(n, n), y, failure, 0.5),
    ):
        tests = [make(Counts(y, m)) for y in range(m + 1)]
        ends = np.array([test.q_range for test in tests])
        q = np.linspace(0.0, 1.0, 2001)[:, None]
        missed = (
            (binom.pmf(np.arange(m + 1), m, q) * ((q < ends[:, 0]) | (q > ends[:, 1])))
            .sum(axis=1)
            .max()
        )
        assert missed > 0.0  # q is restricted
        assert all(test.level + missed <= failure + SLACK for test in tests)


def test_what_only_the_price_keeps_is_kept():
    """A p-value between the level of the test and the whole failure probability does not refute."""
    test = epsilon_test(Counts(15, 20), Counts(5, 20), 0.3)
    claims = np.linspace(0.5, 1.0, 101)
    between = [claim for claim in claims if test.level < test.p_value(claim, 0.0) <= 0.3]
    assert between
    assert not any(test.rejects(claim, 0.0) for claim in between)


# Claims of whole curves at some values, the last one of points that are not convex.
CURVES = {
    "gaussian": (GaussianDP(0.0), [0.0, 0.4, 1.0, 2.0]),
    "renyi": (RenyiDP(2.0, 0.0), [0.0, 0.1, 0.5, 1.5]),
    "zcdp": (ZCDP(0.0), [0.0, 0.05, 0.4]),
    "tradeoff": (TradeOffDP(([0.0, 0.1, 0.3, 1.0], [0.9, 0.75, 0.4, 0.0])), [0.0, 0.1, 0.3]),
}


@pytest.mark.parametrize(
    # Good and bad guesses: rare and frequent events, and lines of either kind.
    ("name", "level", "expected"),
    [
        *((name, 0.05, (0.6, 0.1)) for name in CURVES),
        *(
            (name, 0.3, expected)
            for name in ("gaussian", "tradeoff")
            for expected in ((0.95, 0.6), (0.97, 0.05))
        ),
        ("renyi", 0.3, (0.95, 0.6)),
        ("renyi", 0.1, (0.97, 0.05)),
    ],
)
def test_the_bound_on_a_curve_is_rarely_above_the_truth(name, level, expected):
    """The size of the test of every value, too: it rejects a value when the bound is above it."""
    claim, values = CURVES[name]
    n, m = (6, 7) if level == 0.05 else (7, 5)
    bounds = np.array(
        [
            [
                certified_value(claim, Counts(x, n), Counts(y, m), level, expected)
                for y in range(m + 1)
            ]
            for x in range(n + 1)
        ]
    )
    assert bounds.max() > 0.0
    q = null_boundary(0.0, 0.0)[1]
    for value in values:
        power = claim.with_value(value).max_power(q)
        missed = probability(bounds > value + SLACK, power, q).max()
        assert missed <= level + SLACK, (
            f"{claim.symbol}={value}: above the truth with probability {missed}"
        )


@pytest.mark.parametrize("name", ["gaussian", "renyi", "tradeoff"])
def test_the_joint_test_of_a_curve_is_not_wasteful(name):
    """Two bounds spend a third of this."""
    claim, values = CURVES[name]
    n, expected = 9, (0.7, 0.2)
    bounds = np.array(
        [
            [
                certified_value(claim, Counts(x, n), Counts(y, n), 0.3, expected)
                for y in range(n + 1)
            ]
            for x in range(n + 1)
        ]
    )
    q = np.linspace(0.01, 0.6, 60)
    spent = [
        probability(bounds > value, claim.with_value(value).max_power(q), q).max()
        for value in values
    ]
    assert 0.13 <= max(spent) <= 0.3 + SLACK


@pytest.mark.parametrize(("delta", "least"), [(0.3, 0.03), (0.6, 0.035), (0.9, 0.02)])
def test_a_large_delta_gives_no_level_away(delta, least):
    """The size where Q(E) = 0; with the variance of rare events it was 0.0125, 0.0024 and 0 (SEAMS C2)."""
    n = 100
    inside = np.zeros((n + 1, 1), dtype=bool)
    for x in range(n + 1):
        inside[x, 0] = epsilon_test(Counts(x, n), Counts(0, n), 0.05, delta).rejects(0.0, delta)
    size = float(binom.pmf(np.arange(n + 1), n, delta) @ inside[:, 0])
    assert least <= size <= 0.05


@pytest.mark.parametrize("delta", [0.25, 0.6])
@pytest.mark.parametrize(("n", "m"), [(20, 20), (25, 11)])
def test_size_of_the_epsilon_test_with_a_large_delta(n, m, delta):
    for epsilon in (0.0, 1.0):
        inside = rejected(lambda x, y: epsilon_test(x, y, 0.05, delta), n, m, epsilon, delta)
        size = probability(inside, *null_boundary(epsilon, delta)).max()
        assert size <= 0.05 + SLACK, (
            f"ε={epsilon}, δ={delta}: rejects a true claim with probability {size}"
        )
