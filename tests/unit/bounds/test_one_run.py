"""One-run audits against linear programmes and the published procedure, written out literally."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from epsilometer.bounds.one_run import (
    exact_p_value,
    one_run_epsilon,
    one_run_p_value,
    steinke_epsilon,
    steinke_mu,
    steinke_p_value,
)
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError


def greatest_by_counts(m, r, v, epsilon, delta):
    """The greatest P(≥ v right) over all mechanisms that treat canaries alike: p_0 … p_r.

    A mechanism outputs r guesses. Flipping one coin turns i right guesses into i − 1. What exceeds
    e^ε times the other side, in either direction, sums to at most m·δ over all outputs and canaries.
    """
    ratio, n_counts = math.exp(epsilon), r + 1
    # Variables: p_0 … p_r, the excesses of i over i − 1, and those of i − 1 over i, i = 1 … r.
    n_variables = n_counts + 2 * r
    rows, limits = [], []
    for i in range(1, r + 1):
        for right, wrong, excess in ((i, -ratio * (r - i + 1), 0), (-ratio * i, r - i + 1, r)):
            row = np.zeros(n_variables)
            row[i], row[i - 1], row[n_counts + excess + i - 1] = right, wrong, -1.0
            rows.append(row)
            limits.append(0.0)
    rows.append(np.concatenate([np.zeros(n_counts), np.ones(2 * r)]))
    limits.append(m * delta)
    objective = np.concatenate([-(np.arange(n_counts) >= v).astype(float), np.zeros(2 * r)])
    total = np.concatenate([np.ones(n_counts), np.zeros(2 * r)])[None, :]
    solved = linprog(objective, np.array(rows), limits, total, [1.0], bounds=(0, None))
    assert solved.success
    return -solved.fun


def greatest_by_outputs(m, r, v, epsilon, delta):
    """The same over all mechanisms whatsoever: P(output | coins), an output being r guesses."""
    coins = list(itertools.product((0, 1), repeat=m))
    outputs = [
        dict(zip(chosen, guess, strict=True))
        for chosen in itertools.combinations(range(m), r)
        for guess in itertools.product((0, 1), repeat=r)
    ]
    place = {coin: position * len(outputs) for position, coin in enumerate(coins)}
    n_laws = len(coins) * len(outputs)
    neighbours = [
        (one, other)
        for one in coins
        for other in coins
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    ]
    n_variables = n_laws + len(neighbours) * len(outputs)
    ratio, rows, limits = math.exp(epsilon), [], []
    for position, (one, other) in enumerate(neighbours):
        first = n_laws + position * len(outputs)
        for output in range(len(outputs)):
            row = np.zeros(n_variables)
            row[place[one] + output], row[place[other] + output] = 1.0, -ratio
            row[first + output] = -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(n_variables)
        row[first : first + len(outputs)] = 1.0
        rows.append(row)
        limits.append(delta)
    totals = np.zeros((len(coins), n_variables))
    objective = np.zeros(n_variables)
    for number, coin in enumerate(coins):
        totals[number, place[coin] : place[coin] + len(outputs)] = 1.0
        for output, guess in enumerate(outputs):
            right = sum(coin[canary] == bit for canary, bit in guess.items())
            objective[place[coin] + output] = -(right >= v) / len(coins)
    solved = linprog(
        objective, np.array(rows), limits, totals, np.ones(len(coins)), bounds=(0, None)
    )
    assert solved.success
    return -solved.fun


@pytest.mark.parametrize(
    ("m", "r", "v", "epsilon", "delta"),
    [
        (12, 12, 10, 0.5, 1e-3),
        (12, 12, 7, 0.0, 1e-2),
        (20, 8, 7, 1.0, 1e-2),
        (30, 30, 24, 0.7, 1e-3),
        (40, 10, 10, 1.5, 1e-3),
        (50, 50, 40, 0.3, 5e-3),
        (60, 60, 45, 0.5, 1e-4),
        (60, 20, 17, 0.2, 1e-3),
    ],
)
def test_no_mechanism_has_more_and_one_has_as_much(m, r, v, epsilon, delta):
    exact = one_run_p_value(m, r, v, epsilon, delta)
    assert exact == pytest.approx(greatest_by_counts(m, r, v, epsilon, delta), abs=1e-5)


@pytest.mark.parametrize(
    ("m", "r", "v", "epsilon", "delta"),
    [(2, 2, 2, 0.4, 0.05), (3, 3, 2, 0.3, 0.02), (3, 2, 2, 0.5, 0.05), (3, 1, 1, 1.0, 0.1)],
)
def test_mechanisms_need_not_treat_canaries_alike(m, r, v, epsilon, delta):
    exact = one_run_p_value(m, r, v, epsilon, delta)
    assert exact == pytest.approx(greatest_by_outputs(m, r, v, epsilon, delta), abs=1e-5)


def test_never_above_steinke_and_monotone(rng):
    for _ in range(400):
        m = int(rng.integers(2, 2000))
        r = int(rng.integers(1, m + 1))
        v = int(rng.integers(0, r + 1))
        epsilon, delta = float(rng.uniform(0, 4)), float(10 ** rng.uniform(-7, -1))
        exact = one_run_p_value(m, r, v, epsilon, delta)
        published = steinke_p_value(m, r, v, epsilon, delta)
        if published < 0.5:
            assert exact <= published * (1 + 1e-6)
        assert exact <= one_run_p_value(m, r, v, epsilon + 0.1, delta) * (1 + 1e-9)
        assert exact <= one_run_p_value(m, r, v, epsilon, 2 * delta) * (1 + 1e-9)


def test_a_tail_that_underflows_leaves_the_price_of_delta():
    assert exact_p_value(3000, 2000, 2000, 0.1, 1e-6) == pytest.approx(1.5e-6, rel=1e-3)
    assert exact_p_value(3000, 2000, 1990, 0.1, 1e-6) == pytest.approx(1.5e-6, rel=2e-2)


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
    assert steinke_epsilon(m, r, v, delta, 0.05) == pytest.approx(
        literal_epsilon(m, r, v, delta, 0.05), abs=1e-6
    )
    for epsilon in (0.0, 0.5, 2.0):
        assert steinke_p_value(m, r, v, epsilon, delta) == pytest.approx(
            literal_p_value(m, r, v, epsilon, delta), abs=1e-9
        )


def test_values_printed_in_the_paper():
    """Appendix D: p-value 0.553 at ε = ln 3, and the bounds 0.702 and 0.699."""
    assert steinke_p_value(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.553, abs=5e-4)
    assert steinke_epsilon(100, 100, 75, 0.0, 0.05) == pytest.approx(0.702, abs=5e-4)
    assert steinke_epsilon(100, 100, 75, 1e-4, 0.05) == pytest.approx(0.699, abs=5e-4)
    assert one_run_epsilon(100, 100, 75, 0.0, 0.05) == pytest.approx(0.702, abs=5e-4)
    assert 0.699 < one_run_epsilon(100, 100, 75, 1e-4, 0.05) < 0.702


def test_mu_is_refuted_by_one_of_its_points():
    mu = steinke_mu(1000, 600, 560, 0.05)
    assert mu > 0.5
    below = GaussianDP(0.99 * mu)
    assert min(steinke_p_value(1000, 600, 560, e / 5, below.delta(e / 5)) for e in range(81)) < 0.05


def test_guessing_proves_nothing():
    assert one_run_epsilon(1000, 1000, 500, 1e-5, 0.05) == 0.0
    assert steinke_mu(1000, 1000, 500, 0.05) == 0.0
    assert one_run_p_value(10, 0, 0, 1.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("m", "r", "v"), [(10, 11, 5), (10, 5, 6), (0, 0, 0), (10, 5, -1), (10.0, 5, 5), (True, 1, 1)]
)
def test_impossible_guesses(m, r, v):
    with pytest.raises(InputError):
        one_run_p_value(m, r, v, 1.0, 0.0)
