"""Bets against claims: fair by enumeration, sharp against a slow twin."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from epsilometer.bounds import Counts
from epsilometer.bounds.anytime import anytime_lower, anytime_upper
from epsilometer.bounds.betting import growth_rate, place_bets, project
from epsilometer.bounds.supporting_lines import Lines, lines_of, supporting_lines
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.errors import InputError

CLAIMS = [
    PureDP(0.7),
    ApproxDP(0.5, 0.05),
    ApproxDeltaDP(0.5, 0.1),
    RenyiDP(2.0, 0.3),
    ZCDP(0.2),
    GaussianDP(1.0),
    TradeOffDP(lambda error: 1.0 - GaussianDP(0.8).max_power(error)),
]


def ids(claim):
    return claim.notion


@pytest.mark.parametrize("claim", CLAIMS, ids=ids)
def test_lines_lie_above_the_curve(claim):
    slopes, shifts = supporting_lines(claim)
    q = np.concatenate([[0.0], np.geomspace(1e-9, 0.01, 60), np.linspace(0.01, 1.0, 120)])
    power = np.array([claim.max_power(float(each)) for each in q])
    assert np.all(slopes[:, None] * q + shifts[:, None] >= power - 1e-12)


@pytest.mark.parametrize("claim", CLAIMS, ids=ids)
def test_some_line_comes_near_the_curve(claim):
    slopes, shifts = supporting_lines(claim)
    for q in (0.05, 0.2, 0.5):
        assert np.min(slopes * q + shifts) - claim.max_power(q) < 0.02


def test_projection_agrees_with_a_slow_twin():
    def divergence(a, b):
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    for (p1, q1), slope, shift, (n, m) in itertools.product(
        [(0.6, 0.1), (0.3, 0.02), (0.9, 0.4)], [1.5, 2.0], [0.0, 0.05], [(1, 1), (3, 7)]
    ):
        lines = Lines(np.array([[slope]]), np.array([[shift]]))
        p0, q0 = project(np.array([[p1]]), np.array([[q1]]), lines, n, m)

        def cost(q, p1=p1, q1=q1, slope=slope, shift=shift, n=n, m=m):
            return n * divergence(p1, slope * q + shift) + m * divergence(q1, q)

        twin = minimize_scalar(
            cost,
            bounds=(1e-9, (1 - 1e-9 - shift) / slope),
            method="bounded",
            options={"xatol": 1e-12},
        )
        if p1 > slope * q1 + shift:
            assert q0[0, 0] == pytest.approx(twin.x, abs=1e-5)
            assert p0[0, 0] == pytest.approx(slope * q0[0, 0] + shift)
        else:
            assert (p0[0, 0], q0[0, 0]) == (p1, q1)


@pytest.mark.parametrize("claim", CLAIMS, ids=ids)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 4), (3, 8)])
def test_no_bet_is_expected_to_win_below_the_curve(claim, n, m):
    """Every outcome of a small batch, at the claim's own boundary."""
    bets = place_bets(lines_of((claim,)), 0.7, 0.2, n, m)
    outcomes = list(itertools.product(range(n + 1), range(m + 1)))
    factor = np.array(
        [math.exp(bets.log_wealth(Counts(x, n), Counts(y, m))[0]) for x, y in outcomes]
    )
    assert factor.max() > 1.0
    for q in (0.0, 0.01, 0.1, 0.2, 0.35, 0.5, 0.8, 1.0):
        p = claim.max_power(q)
        chance = np.array([binom.pmf(x, n, p) * binom.pmf(y, m, q) for x, y in outcomes])
        assert chance @ factor <= 1.0 + 1e-9


def test_a_guess_that_is_no_violation_bets_nothing():
    bets = place_bets(lines_of((PureDP(1.0),)), 0.3, 0.2, 5, 5)
    assert bets.log_wealth(Counts(5, 5), Counts(0, 5))[0] == 0.0


def test_growth_is_the_expected_log_wealth():
    lines = lines_of((PureDP(0.7),))
    p, q = 0.5, 0.5 * math.exp(-1.4)
    bets = place_bets(lines, p, q, 1, 1)
    expected = sum(
        math.prod(((p, 1 - p)[1 - x], (q, 1 - q)[1 - y]))
        * bets.log_wealth(Counts(x, 1), Counts(y, 1))[0]
        for x in (0, 1)
        for y in (0, 1)
    )
    assert growth_rate(lines, np.array([p]), np.array([q]))[0] == pytest.approx(expected, rel=1e-6)
    # Wald: about ln 20 divided by the growth, pairs of draws.
    assert math.log(20) / expected == pytest.approx(80, abs=15)


def test_a_bet_needs_draws():
    with pytest.raises(InputError, match="n_left=0"):
        place_bets(lines_of((PureDP(1.0),)), 0.5, 0.1, 0, 3)


def test_anytime_bounds():
    counts = Counts(30, 100)
    low, high = anytime_lower(counts, 0.05), anytime_upper(counts, 0.05)
    assert 0.15 < low < 0.3 < high < 0.47
    assert anytime_lower(Counts(0, 10), 0.05) == 0.0
    assert anytime_upper(Counts(0, 50), 0.05) < 0.2
    assert anytime_lower(Counts(0, 0), 0.05) == 0.0
