"""No claim that is accepted, however absurd, makes the kernel warn, or return what is no finite number."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import epsilometer as em
from epsilometer.bounds import Counts, certified_value, lower, two_bounds_value, upper
from epsilometer.bounds.bands import band_from_counts
from epsilometer.bounds.betting import place_bets
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.methods.sequential import Ladder, ladder_of

pytestmark = pytest.mark.filterwarnings("error")

JUST_BELOW_1 = math.nextafter(1.0, 0.0)
STEEP = TradeOffDP(([0.0, 1e-12, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0]))
CORNER = TradeOffDP(([0.0, 0.3, 1.0], [1.0, 0.3, 0.0]))
NOTHING_ALLOWED = TradeOffDP(([0.0, 1.0], [1.0, 0.0]))
EVERYTHING_ALLOWED = TradeOffDP(([0.0, 1.0], [0.0, 0.0]))

values = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-12, 1e-3, 45.0, 720.0, 1e6, 1e300]),
    st.floats(0.0, 50.0),
)
orders = st.sampled_from([math.nextafter(1.0, 2.0), 1.0 + 1e-15, 1.0 + 1e-9, 1.5, 64.0, 1e6, 1e300])
deltas = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-5, 0.25, 0.6, 1.0 - 1e-9, JUST_BELOW_1]), st.floats(0.0, 0.99)
)
claims = st.one_of(
    st.builds(PureDP, values),
    st.builds(ApproxDP, values, deltas),
    st.builds(ApproxDeltaDP, values, deltas),
    st.builds(GaussianDP, values),
    st.builds(RenyiDP, orders, values),
    st.builds(ZCDP, values),
    st.sampled_from([STEEP, CORNER, NOTHING_ALLOWED, EVERYTHING_ALLOWED]),
)


@st.composite
def counts(draw):
    trials = draw(st.one_of(st.sampled_from([1, 2, 7, 10**3, 10**6, 10**9]), st.integers(1, 10**9)))
    ends = [0, min(1, trials), trials // 2, trials - 1, trials]
    return Counts(draw(st.one_of(st.sampled_from(ends), st.integers(0, trials))), trials)


failures = st.sampled_from([1e-290, 1e-100, 1e-9, 0.001, 0.05, 0.5, 0.999])
guesses = st.one_of(st.none(), st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)))


def assert_bound(bound, what):
    assert math.isfinite(bound), what
    assert bound >= 0.0, what


@settings(max_examples=400)
@given(claims, counts(), counts(), failures, guesses)
@example(GaussianDP(45.0), Counts(10**9, 10**9), Counts(0, 10**9), 1e-290, (1.0, 0.0))
@example(PureDP(720.0), Counts(10**9, 10**9), Counts(0, 1), 0.05, None)
@example(ApproxDeltaDP(720.0, 0.0), Counts(10**9, 10**9), Counts(0, 1), 0.05, None)
@example(RenyiDP(1.0 + 1e-15, 0.01), Counts(1, 1), Counts(0, 10**9), 0.5, (0.999, 0.001))
@example(RenyiDP(1e6, 1.0), Counts(10**6, 10**6), Counts(0, 10**6), 1e-9, (1.0, 0.0))
@example(ApproxDP(1.0, JUST_BELOW_1), Counts(10, 10), Counts(0, 10), 0.05, None)
@example(ZCDP(1e-12), Counts(10**9, 10**9), Counts(0, 10**9), 0.05, (1.0, 1e-12))
@example(STEEP, Counts(500, 1000), Counts(0, 1000), 0.05, (0.5, 0.0))
def test_bounds_from_counts_are_finite(claim, left, right, failure, expected):
    assert_bound(certified_value(claim, left, right, failure, expected), "the joint test")
    assert_bound(two_bounds_value(claim, left, right, failure), "two separate bounds")
    assert 0.0 <= lower(left, failure) <= 1.0
    assert 0.0 <= upper(right, failure) <= 1.0


@settings(max_examples=200)
@given(claims, counts(), counts(), failures)
def test_readings_of_a_band_are_finite(claim, left, right, failure):
    band = band_from_counts([left.hits], left.trials, [right.hits], right.trials, failure)
    assert_bound(band.value(claim), "the band")


@settings(max_examples=150)
@given(claims, counts(), counts(), failures, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@example(GaussianDP(45.0), Counts(5, 5), Counts(0, 5), 0.05, 1.0, 0.0)
@example(PureDP(720.0), Counts(5, 5), Counts(0, 5), 0.05, 1.0, 0.0)
@example(PureDP(1e308), Counts(5, 5), Counts(0, 5), 0.05, 1.0, 0.0)
@example(ApproxDeltaDP(0.0, JUST_BELOW_1), Counts(5, 5), Counts(0, 5), 0.05, 1.0, 0.0)
@example(RenyiDP(1.0 + 1e-15, 1e300), Counts(5, 5), Counts(0, 5), 0.05, 1.0, 0.0)
def test_bets_are_finite(claim, left, right, failure, p, q):
    ladder = ladder_of(claim)
    bets = place_bets(ladder.lines, p, q, left.trials, right.trials)
    wealth = bets.log_wealth(left, right)
    assert np.isfinite(wealth).all()
    assert_bound(ladder.bound(wealth, failure), "the ladder")


def test_a_wealth_that_is_no_number_has_won_nothing():
    ladder = ladder_of(PureDP(1.0))
    wealth = np.full(len(ladder.values), np.nan)
    assert ladder.bound(wealth, 0.05) == 0.0
    wealth[:] = 100.0
    wealth[5] = np.nan
    assert ladder.bound(wealth, 0.05) == ladder.values[4]


ABSURD = [
    GaussianDP(45.0),
    PureDP(720.0),
    PureDP(1e300),
    RenyiDP(1.0 + 1e-15, 0.5),
    RenyiDP(1e6, 0.5),
    ApproxDP(0.5, JUST_BELOW_1),
    ApproxDP(0.5, 0.9),
    ApproxDeltaDP(0.5, JUST_BELOW_1),
    ZCDP(1e-12),
    STEEP,
]


@pytest.mark.parametrize("claim", ABSURD, ids=lambda claim: claim.describe())
@pytest.mark.parametrize("stop_early", [False, True])
def test_audits_of_absurd_claims_neither_warn_nor_fail(claim, stop_early):
    def leak(x, n, rng):
        return x * 1.0 + (rng.random(n) < 0.01)

    pair = em.Pair(0, 1)
    result = em.audit(em.from_batch(leak), pair, claim, samples=300, seed=1, stop_early=stop_early)
    assert_bound(result.lower_bound, "the audit")
    assert result.p_value is None or 0.0 < result.p_value <= 1.0


def test_ladders_have_finite_lines():
    for claim in ABSURD:
        ladder = ladder_of(claim)
        assert isinstance(ladder, Ladder)
        assert np.isfinite(ladder.lines.slopes).all()
        assert np.isfinite(ladder.lines.shifts).all()
