"""The bet on a Rényi divergence: against full enumeration, against a literal twin, and at its edges."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds.bets_on_means import JointBet, bet_lower
from epsilometer.errors import InputError


def divergence(p, q, order):
    """Of two coins."""
    return max(
        0.0,
        math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order))
        / (order - 1),
    )


def shifted(scores, p, order):
    """Scores with mean e^((order − 1)·h) = 1 under the coin p (first cell with probability p)."""
    weights = np.array([p, 1 - p])
    return scores - math.log(weights @ np.exp((order - 1) * scores)) / (order - 1)


def literal_wealth(bet, xs, ys, r):
    """The product over single draws, as in the docstring."""
    g = bet.order / (bet.order - 1)
    wealth = 1.0
    for x in xs:
        wealth *= 1 + bet.stake * g * (math.exp((bet.order - 1) * bet.scores[x]) - 1)
    for y in ys:
        wealth *= 1 - bet.stake * len(xs) / len(ys) * (
            math.exp(r) * math.exp(bet.order * bet.scores[y]) - 1
        )
    return wealth


@pytest.mark.parametrize("order", [1.2, 2.0, 7.0])
@pytest.mark.parametrize(("n", "m"), [(10, 10), (14, 6), (5, 18)])
@pytest.mark.parametrize(("p", "q"), [(0.7, 0.3), (0.5, 0.5), (0.95, 0.02), (0.2, 0.6)])
def test_the_bound_misses_as_rarely_as_promised_by_enumeration(order, n, m, p, q):
    failure = 0.1
    truth = divergence(p, q, order)
    likely_x, likely_y = binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q)
    guesses = [(0.7, 0.3), (0.9, 0.05)]  # the score need not fit the law
    for (a, b), stake_share in product(guesses, (0.1, 0.6)):
        scores = shifted(np.array([math.log(a / b), math.log((1 - a) / (1 - b))]), a, order)
        bet = JointBet(order, scores, stake_share * (order - 1) / order)
        missed = sum(
            likely_x[x] * likely_y[y]
            for x, y in product(range(n + 1), range(m + 1))
            if bet_lower(bet, np.array([x, n - x]), np.array([y, m - y]), failure) > truth
        )
        assert missed <= failure


def test_the_wealth_is_the_literal_product():
    bet = JointBet(3.0, np.array([0.4, -0.2, -1.0]), 0.2)
    xs, ys = [0, 0, 1, 2, 0], [2, 1, 2]
    for r in (0.0, 0.1, 0.15):
        expected = literal_wealth(bet, xs, ys, r)
        found = bet.log_wealth(np.bincount(xs, minlength=3), np.bincount(ys, minlength=3), r)
        assert math.exp(found) == pytest.approx(expected, rel=1e-12)


def test_the_expected_wealth_is_at_most_one_where_the_claim_holds():
    p, q, order, n, m = 0.6, 0.35, 2.5, 9, 14
    truth = divergence(p, q, order)
    scores = shifted(np.array([math.log(p / q), math.log((1 - p) / (1 - q))]), p, order)
    bet = JointBet(order, scores, 0.1)
    for r in (truth, truth + 0.05):
        assert r < bet.greatest(n, m)
        total = sum(
            binom.pmf(x, n, p)
            * binom.pmf(y, m, q)
            * math.exp(bet.log_wealth(np.array([x, n - x]), np.array([y, m - y]), r))
            for x, y in product(range(n + 1), range(m + 1))
        )
        assert total <= 1.0 + 1e-12


def test_the_wealth_falls_with_the_claim():
    bet = JointBet(2.0, np.array([0.5, -0.7]), 0.1)
    left, right = np.array([80, 20]), np.array([30, 70])
    values = [
        bet.log_wealth(left, right, r) for r in np.linspace(0.0, bet.greatest(100, 100) - 1e-9, 50)
    ]
    assert np.all(np.diff(values) < 0.0)
    assert bet.log_wealth(left, right, bet.greatest(100, 100) + 1e-9) == -math.inf


def test_the_bound_is_the_last_claim_that_is_rejected():
    bet = JointBet(2.0, np.array([0.5, -0.7]), 0.1)
    left, right = np.array([800, 200]), np.array([300, 700])
    bound = bet_lower(bet, left, right, 0.05)
    assert bound > 0.3
    assert bet.log_wealth(left, right, bound) >= math.log(20)
    assert bet.log_wealth(left, right, bound + 1e-6) < math.log(20)


def test_a_right_side_without_large_scores_stops_at_the_greatest_claim():
    bet = JointBet(2.0, np.array([0.1, -3.0]), 0.05)
    left, right = np.array([1000, 0]), np.array([0, 1000])
    assert bet_lower(bet, left, right, 0.05) == bet.greatest(1000, 1000)


def test_nothing_seen_proves_nothing():
    bet = JointBet(2.0, np.array([0.5, -0.7]), 0.1)
    assert bet_lower(bet, np.array([0, 0]), np.array([3, 4]), 0.05) == 0.0
    assert bet_lower(bet, np.array([1, 4]), np.array([0, 0]), 0.05) == 0.0
    assert bet_lower(bet, np.array([3, 7]), np.array([7, 3]), 0.05) == 0.0


@pytest.mark.parametrize(
    ("order", "scores", "stake"),
    [
        (1.0, [0.1], 0.1),
        (math.inf, [0.1], 0.1),
        (2.0, [math.inf], 0.1),
        (2.0, [], 0.1),
        (2.0, [0.1], 0.5),
        (2.0, [0.1], 0),
    ],
)
def test_senseless_bets_are_refused(order, scores, stake):
    with pytest.raises(InputError, match=r"order|scores|stake"):
        JointBet(order, np.array(scores), stake)
