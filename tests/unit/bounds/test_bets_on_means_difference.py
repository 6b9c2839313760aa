"""The bet on a difference of means: fair under every claim that holds, and falling in what is claimed."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds.bets_on_means import MeanBet, bet_lower
from epsilometer.errors import InputError

TWO = np.array([-0.4, 0.9])


def literal_log_wealth(bet, left, right, difference):
    """One factor per draw."""
    n, m = sum(left), sum(right)
    total = 0.0
    for cell, count in enumerate(left):
        total += count * math.log(1.0 + bet.stake * (bet.lowest[cell] - bet.centre - difference))
    for cell, count in enumerate(right):
        total += count * math.log(1.0 - bet.stake * n / m * (bet.highest[cell] - bet.centre))
    return total


def test_the_wealth_is_the_product_of_its_factors():
    bet = MeanBet(np.array([-1.0, 0.1, 0.5]), np.array([0.1, 0.5, 1.0]), 0.1, 0.2)
    left, right = np.array([3, 5, 9]), np.array([8, 4, 2])
    assert bet.log_wealth(left, right, 0.2) == pytest.approx(
        literal_log_wealth(bet, left, right, 0.2)
    )


@pytest.mark.parametrize("stake", [0.05, 0.2, 0.4])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.8, 0.6), (0.3, 0.05)])
def test_expected_wealth_is_at_most_one_at_the_truth(stake, p, q):
    """By full enumeration of two outcomes, with different numbers of draws."""
    n, m = 9, 7
    bet = MeanBet(TWO, TWO, 0.2, stake)
    truth = (p - q) * float(TWO[1] - TWO[0])
    expected = 0.0
    for x in range(n + 1):
        for y in range(m + 1):
            chance = binom.pmf(x, n, p) * binom.pmf(y, m, q)
            expected += chance * math.exp(
                bet.log_wealth(np.array([n - x, x]), np.array([m - y, y]), truth)
            )
    assert expected <= 1.0 + 1e-12


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.8, 0.6), (0.9, 0.1)])
def test_the_bound_is_rarely_above_the_truth(p, q):
    n, m, failure = 12, 12, 0.1
    bet = MeanBet(TWO, TWO, 0.2, 0.3)
    truth = (p - q) * float(TWO[1] - TWO[0])
    above = sum(
        binom.pmf(x, n, p) * binom.pmf(y, m, q)
        for x in range(n + 1)
        for y in range(m + 1)
        if bet_lower(bet, np.array([n - x, x]), np.array([m - y, y]), failure) > truth
    )
    assert above <= failure


def test_a_coarser_function_gives_a_smaller_bound():
    counts = np.array([100, 300]), np.array([300, 100])
    fine = bet_lower(MeanBet(TWO, TWO, 0.2, 0.1), *counts, 0.05)
    coarse = bet_lower(MeanBet(TWO - 0.1, TWO + 0.1, 0.2, 0.1), *counts, 0.05)
    assert 0.0 < coarse < fine < 1.3


def test_nothing_drawn_nothing_proved():
    assert bet_lower(MeanBet(TWO, TWO, 0.2, 0.1), np.zeros(2, int), np.array([1, 1]), 0.05) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        (np.array([-2.0]), np.array([0.0]), 0.0, 0.1),
        (np.array([0.5]), np.array([0.1]), 0.0, 0.1),
        (TWO, TWO, 2.0, 0.1),
        (TWO, TWO, 0.0, 0.5),
        (TWO, TWO, 0.0, 0.0),
        (np.empty(0), np.empty(0), 0.0, 0.1),
    ],
)
def test_nonsense(arguments):
    with pytest.raises(InputError):
        MeanBet(*arguments)
