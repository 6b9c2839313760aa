"""Known values of the curves. What all curves share is in the conformance suite."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from epsilometer.claims.renyi import _ZCDP_ORDERS, bernoulli_divergence

Q = np.concatenate([np.geomspace(1e-6, 0.05, 12), np.linspace(0.06, 0.94, 23)])


def type_two(claim, error):
    return 1.0 - claim.max_power(error)


class TestPure:
    @pytest.mark.paper("A1", "equal")
    def test_known_values(self):
        claim = PureDP(math.log(3))
        assert claim.max_power(0.1) == pytest.approx(0.3)
        assert claim.max_power(0.25) == pytest.approx(0.75)
        assert claim.max_power(0.7) == pytest.approx(0.9)  # by the complement: 1 − 0.3/3
        assert claim.max_power(0.0) == 0.0
        assert claim.max_power(1.0) == 1.0

    def test_least_value_uses_event_or_complement(self):
        assert PureDP(0.0).least_value(0.2, 0.1) == pytest.approx(math.log(2))
        assert PureDP(0.0).least_value(0.9, 0.8) == pytest.approx(math.log(2))
        assert PureDP(0.0).least_value(0.3, 0.0) == math.inf
        assert PureDP(0.0).least_value(1.0, 0.5) == math.inf

    def test_zero_epsilon_allows_guessing_only(self):
        assert np.allclose(PureDP(0.0).max_power(Q), Q)

    @pytest.mark.parametrize("epsilon", [50.0, 709.0, 710.0, 1e6])
    def test_large_epsilon_does_not_overflow(self, epsilon):
        power = PureDP(epsilon).max_power(np.array([0.0, 1e-300, 0.5, 1.0]))
        assert power[0] == 0
        assert power[2] == pytest.approx(1)
        assert np.all((power >= 0) & (power <= 1))


class TestApprox:
    def test_known_values(self):
        claim = ApproxDP(math.log(2), 0.1)
        assert claim.max_power(0.0) == pytest.approx(0.1)
        assert claim.max_power(0.2) == pytest.approx(0.5)
        assert claim.max_power(0.6) == pytest.approx(0.85)
        assert claim.max_power(0.95) == 1.0

    def test_zero_delta_is_pure(self):
        assert np.array_equal(ApproxDP(0.8, 0.0).max_power(Q), PureDP(0.8).max_power(Q))

    def test_both_ways_of_asking_have_one_curve(self):
        assert np.array_equal(
            ApproxDP(0.8, 0.05).max_power(Q), ApproxDeltaDP(0.8, 0.05).max_power(Q)
        )
        assert ApproxDP(0.8, 0.05).value == 0.8
        assert ApproxDeltaDP(0.8, 0.05).value == 0.05

    def test_least_delta(self):
        assert ApproxDeltaDP(0.0, 0.0).least_value(0.7, 0.4) == pytest.approx(0.3)
        assert ApproxDeltaDP(math.log(2), 0.0).least_value(0.7, 0.3) == pytest.approx(0.1)
        assert ApproxDeltaDP(3.0, 0.0).least_value(0.7, 0.4) == 0.0

    @pytest.mark.parametrize("epsilon", [700.0, 1000.0])
    def test_least_delta_at_a_huge_epsilon(self, epsilon):
        assert ApproxDeltaDP(epsilon, 0.0).least_value(0.9, 0.1) == 0.0
        assert ApproxDeltaDP(epsilon, 0.0).least_value(0.9, 0.0) == pytest.approx(0.9)


class TestGaussian:
    def test_known_values(self):
        assert GaussianDP(1.0).max_power(0.05) == pytest.approx(norm.sf(norm.isf(0.05) - 1.0))
        assert GaussianDP(2.0).max_power(0.0) == 0.0
        assert GaussianDP(2.0).max_power(1.0) == 1.0

    def test_least_value(self):
        assert GaussianDP(0.0).least_value(norm.cdf(1.2), 0.5) == pytest.approx(1.2)
        assert GaussianDP(0.0).least_value(0.4, 0.5) == 0.0
        assert GaussianDP(0.0).least_value(0.5, 0.0) == math.inf
        assert GaussianDP(0.0).least_value(1.0, 0.5) == math.inf


class TestRenyi:
    @pytest.mark.paper("B1", "equal")
    @pytest.mark.paper("D1", "equal")
    @pytest.mark.paper("C2", "equal")
    def test_divergence_of_two_coins(self):
        p, q, order = 0.7, 0.4, 3.0
        expected = math.log(
            p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        ) / (order - 1)
        assert float(
            bernoulli_divergence(np.array(p), np.array(q), np.array(order))
        ) == pytest.approx(expected)

    def test_certain_and_impossible_coins(self):
        def divergence(p, q):
            return float(bernoulli_divergence(np.array(p), np.array(q), np.array(2.0)))

        assert divergence(1.0, 0.5) == pytest.approx(math.log(2))
        assert divergence(0.0, 0.5) == pytest.approx(math.log(2))
        assert divergence(0.5, 0.0) == math.inf
        assert divergence(0.5, 1.0) == math.inf
        assert divergence(0.0, 0.0) == divergence(1.0, 1.0) == 0.0

    @pytest.mark.paper("C2", "equal")
    def test_both_directions_count(self):
        claim = RenyiDP(2.0, 0.1)
        p, q = np.array(0.97), np.array(0.5)
        backward = float(bernoulli_divergence(q, p, np.array(2.0)))
        assert backward > float(bernoulli_divergence(p, q, np.array(2.0)))
        assert claim.least_value(0.97, 0.5) == pytest.approx(backward)

    def test_high_order_approaches_pure_privacy(self):
        high = RenyiDP(1e5, 0.7)
        for q in (0.01, 0.2, 0.7):
            assert high.max_power(q) == pytest.approx(PureDP(0.7).max_power(q), rel=1e-3)

    def test_the_curve_is_never_below_the_truth(self):
        # p on the returned curve must not be allowed strictly below it.
        claim = RenyiDP(2.0, 0.3)
        for q in Q:
            assert claim.least_value(float(claim.max_power(float(q))), float(q)) >= 0.3 * (
                1 - 1e-12
            )


class TestZeroConcentrated:
    def test_at_most_every_renyi_order(self):
        claim = ZCDP(0.2)
        ours = claim.max_power(Q)
        for order in _ZCDP_ORDERS[::20]:
            assert np.all(ours <= RenyiDP(order, 0.2 * order).max_power(Q) + 1e-12)
        for order in (1.3, 2.0, 7.7, 100.0):  # not on the grid
            assert np.all(ours <= RenyiDP(order, 0.2 * order).max_power(Q) + 1e-4)

    def test_least_value_is_the_supremum_over_orders(self):
        for p, q in [(0.6, 0.4), (0.05, 0.001), (0.999, 0.9), (0.9, 1e-5)]:
            orders = 1 + np.geomspace(1e-6, 1e6, 20_001)
            both = np.maximum(
                bernoulli_divergence(np.array(p), np.array(q), orders),
                bernoulli_divergence(np.array(q), np.array(p), orders),
            )
            best = float((both / orders).max())
            found = ZCDP(0.0).least_value(p, q)
            assert best * (1 - 2e-3) <= found <= best * (1 + 1e-6)

    def test_gaussian_events_stay_within(self):
        # N(0, 1) and N(μ, 1) are exactly μ²/2 concentrated, so their events prove no more.
        for mu in (0.3, 1.0, 2.0):
            for q in Q:
                assert (
                    ZCDP(0.0).least_value(float(GaussianDP(mu).max_power(float(q))), float(q))
                    <= mu**2 / 2 + 1e-12
                )


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.5),
        PureDP(4.0),
        ApproxDP(1.0, 0.01),
        ApproxDP(0.0, 0.3),
        GaussianDP(0.4),
        GaussianDP(2.5),
    ],
)
def test_trade_off_curves_are_their_own_inverse(claim):
    for error in np.linspace(0.001, 0.999, 200):
        second = type_two(claim, float(error))
        if 1e-9 < second < 1 - 1e-9:
            assert type_two(claim, second) == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize("claim", [RenyiDP(2.0, 0.5), ZCDP(0.1)])
def test_renyi_curves_are_symmetric_too(claim):
    for error in (0.01, 0.1, 0.4, 0.8):
        assert type_two(claim, type_two(claim, error)) == pytest.approx(error, abs=1e-6)
