"""Rounds of bets on several events."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds.bet_rounds import BetOutcome, Guess, place_round
from epsilometer.bounds.betting import place_bets
from epsilometer.bounds.binomial import Counts
from epsilometer.bounds.supporting_lines import lines_of
from epsilometer.claims import GaussianDP, PureDP

GUESSES = [Guess(0.8, 0.3), Guess(0.4, 0.05)]


def test_a_round_of_one_bet_is_that_bet():
    lines = lines_of((GaussianDP(0.5),))
    only = place_round(lines, GUESSES[:1], sizes=[(5, 7)])
    bet = place_bets(lines, 0.8, 0.3, 5, 7)
    outcome = BetOutcome(Counts(4, 5), Counts(2, 7))
    assert only.shares == (1.0,)
    assert only.log_wealth([outcome]) == pytest.approx(bet.log_wealth(*outcome))


@pytest.mark.parametrize("weights", [None, [0.2, 0.8], [3.0, 1.0]])
@pytest.mark.parametrize("claim", [PureDP(0.5), GaussianDP(0.5)])
def test_the_expected_wealth_is_at_most_one_enumerated(weights, claim):
    """The two events are the same, at probabilities that exhaust the claim, with unequal sides."""
    n, m = 3, 5
    bets = place_round(lines_of((claim,)), GUESSES, sizes=[(n, m)] * 2, weights=weights)
    assert sum(bets.shares) == pytest.approx(1.0)
    for q in (0.05, 0.2, 0.5, 0.8):
        p = claim.max_power(q)
        expected = 0.0
        for a in range(n + 1):
            for b in range(m + 1):
                outcome = BetOutcome(Counts(a, n), Counts(b, m))
                chance = binom.pmf(a, n, p) * binom.pmf(b, m, q)
                expected += chance * math.exp(bets.log_wealth([outcome, outcome])[0])
        assert expected <= 1.0 + 1e-12


def test_shares_follow_the_growth_against_the_claim():
    lines = lines_of((PureDP(0.1), PureDP(0.5)))
    bets = place_round(lines, GUESSES, sizes=[(4, 4)] * 2, at_claim=1)
    growth = np.array([bet.growth[1] for bet in bets.bets])
    assert bets.shares == pytest.approx(growth / growth.sum())
