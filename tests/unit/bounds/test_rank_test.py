"""The exact rank test, against integrals and enumerations."""

import math

import numpy as np
import pytest
from scipy.special import betainc, betaincc
from scipy.stats import beta, binom, norm

from epsilometer.bounds.inverse_curves import least_q
from epsilometer.bounds.rank_test import _LEVELS, RankTest, Tails, _masses_at, ranks_of
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, GaussianDP, PureDP, TradeOffDP

GRID = (np.arange(300) + 0.5) / 300
SHIFTED = 1.0 + norm.ppf(GRID)
CENTRED = norm.ppf(GRID)


# Levels of the law of U, and how much of it is between them: dense near 0, where small p-values are
# decided.
LEVELS = np.concatenate([np.geomspace(1e-15, 0.02, 3000), np.linspace(0.02, 1.0, 3001)[1:]])


def integrated(claim, rank, n, count, m):
    """E[P(Binomial(m, g(U)) ≤ count)] for U ~ Beta(rank, n − rank + 1), by the midpoint rule."""
    middles = 0.5 * (LEVELS[1:] + LEVELS[:-1])
    masses = beta.ppf(middles, rank, n - rank + 1)
    return float(binom.cdf(count, m, least_q(claim, masses)) @ np.diff(LEVELS))


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(1.0, 0.01), GaussianDP(0.7)])
def test_the_p_value_is_the_integral_rounded_up(claim):
    test = RankTest.of_scores(SHIFTED, CENTRED)
    tails = test.right_way[0]
    exact = min(
        integrated(claim, int(rank), tails.n_own, int(count), tails.n_other)
        * len(tails.ranks)
        / tails.share
        for rank, count in zip(tails.ranks, tails.counts, strict=True)
    )
    # By symmetry of the scores and of the claims, lower tails of the right say the same.
    found = test.p_value(claim)
    assert exact <= found <= 1.5 * exact


@pytest.mark.parametrize("claim", [PureDP(0.0), PureDP(1.0), GaussianDP(1.0)])
@pytest.mark.parametrize("rank", [1, 5, 18])
def test_one_rank_is_super_uniform_where_the_claim_is_exhausted(claim, rank):
    """C has the law of its extreme case, so F(C) ≤ t has probability at most t, for every t."""
    n, m = 20, 12
    reached = np.array([integrated(claim, rank, n, count, m) for count in range(m + 1)])
    chances = np.diff(reached, prepend=0.0)
    for t in reached:
        assert chances[reached <= t + 1e-12].sum() <= t + 1e-9


@pytest.mark.parametrize("n", [10])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_two_valued_scores_enumerated(n, epsilon):
    """Randomized response has exactly this ε. Every outcome is added up: ties all over."""
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    refuted = 0.0
    for left_hits in range(n + 1):
        left = (np.arange(n) >= n - left_hits).astype(float)
        for right_hits in range(n + 1):
            right = (np.arange(n) >= n - right_hits).astype(float)
            if RankTest.of_scores(left, right).p_value(PureDP(epsilon)) <= 0.05:
                refuted += binom.pmf(left_hits, n, p) * binom.pmf(right_hits, n, 1.0 - p)
    assert refuted <= 0.05


def test_equal_scores_and_constants_refute_nothing():
    assert RankTest.of_scores(CENTRED, CENTRED).bound(GaussianDP(0.0), 0.05) == 0.0
    constants = RankTest.of_scores(np.ones(50), np.ones(80))
    assert constants.p_value(PureDP(0.0)) == 1.0
    assert constants.bound(PureDP(0.0), 0.5) == 0.0


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.0),
        ApproxDP(0.0, 0.01),
        ApproxDeltaDP(0.5, 0.0),
        GaussianDP(0.0),
        ZCDP(0.0),
        TradeOffDP(([0.0, 0.3, 1.0], [1.0, 0.5, 0.0])),
    ],
)
def test_the_bound_is_the_largest_value_that_is_refuted(claim):
    test = RankTest.of_scores(SHIFTED, CENTRED)
    bound = test.bound(claim, 0.05)
    assert bound > 0.0
    assert test.p_value(claim.with_value(bound)) <= 0.05
    assert test.p_value(claim.with_value(bound * 1.001 + 1e-6)) > 0.05
    assert test.bound(claim, 0.01) < bound


def test_bounds_are_below_the_truth_on_scores_at_the_quantiles():
    test = RankTest.of_scores(SHIFTED, CENTRED)
    assert 0.6 < test.bound(GaussianDP(0.0), 0.05) < 1.0
    band = test.band(0.05)
    assert 0.5 < band.mu < test.bound(GaussianDP(0.0), 0.05)
    truth = GaussianDP(1.0)
    for p, q in zip(band.p_lower, band.q_upper, strict=True):
        assert p <= truth.max_power(q)


def test_scores_that_point_the_wrong_way_are_seen_for_a_higher_price():
    right_way = RankTest.of_scores(SHIFTED, CENTRED)
    wrong_way = RankTest.of_scores(np.sort(-SHIFTED), CENTRED)
    bound = wrong_way.bound(GaussianDP(0.0), 0.05)
    assert 0.5 < bound < right_way.bound(GaussianDP(0.0), 0.05)
    assert 0.0 < wrong_way.band(0.05).mu < right_way.band(0.05).mu
    assert wrong_way.right_way_band(0.05).mu == 0.0


def test_the_sides_may_be_of_different_size():
    few = RankTest.of_scores(SHIFTED[::10], CENTRED)
    assert 0.0 < few.bound(GaussianDP(0.0), 0.05) < 1.0
    assert len(few.right_way[0].ranks) <= 8 < len(few.right_way[1].ranks)


@pytest.mark.parametrize(
    ("n", "most"), [(10, 8), (99, 8), (100, 12), (199_999, 12), (200_000, 24), (10**7, 24)]
)
def test_ranks_are_fixed_by_the_number_of_scores(n, most):
    ranks = ranks_of(n)
    assert most - 3 <= len(ranks) <= most
    assert (ranks[0], ranks[-1]) == (1, round(0.9 * n))


def test_a_high_confidence_can_be_reached():
    apart = RankTest.of_scores(np.ones(1000), np.zeros(1000))
    assert apart.p_value(PureDP(1.0)) < 1e-12
    assert apart.bound(PureDP(0.0), 1e-9) > 1.0


@pytest.mark.parametrize("n", [10, 1000, 200_000, 10**6, 10**8])
def test_masses_are_quantiles_or_less_however_many_scores(n):
    """The law of U is cut at levels; a mass above its quantile would make p-values too small."""
    levels = _LEVELS[1:-1]
    ranks = ranks_of(n)[:, None]
    reached = betainc(ranks.astype(float), n - ranks + 1.0, _masses_at(ranks, n, levels))
    assert np.all(reached <= levels)
    # … and hardly less, beside slices that are up to a third of their level wide.
    assert np.all(reached >= levels * 0.95)


@pytest.mark.parametrize("failure_probability", [1e-14, 1e-9, 0.01])
@pytest.mark.parametrize("n", [40, 10**6])
def test_limits_of_a_band_are_spent_at_their_share(failure_probability, n):
    counts = np.array([0, 3, n // 3])
    ranks = np.array([1, 4, n // 2])
    tails = Tails(ranks=ranks, n_own=n, counts=counts, n_other=n, share=1.0)
    least = tails.least_masses(failure_probability)
    greatest = tails.greatest_masses(failure_probability)
    # P(the k-th largest cuts off a mass below `least`), and P(counts or fewer | mass `greatest`).
    allowed = failure_probability * (1.0 + 1e-12)
    assert np.all(betainc(ranks.astype(float), n - ranks + 1.0, least) <= allowed)
    assert np.all(betaincc(counts + 1.0, n - counts.astype(float), greatest) <= allowed)
