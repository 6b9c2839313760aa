"""Claims about groups, about several runs, and along the Gaussian curve."""

import math

import pytest

import epsilometer as em
from epsilometer.claims import from_dict


def test_group_claims():
    assert em.PureDP(0.5).scaled(3) == em.PureDP(1.5)
    assert em.GaussianDP(0.5).scaled(2) == em.GaussianDP(1.0)
    assert em.ZCDP(0.1).scaled(3).rho == pytest.approx(0.9)
    approx = em.ApproxDP(1.0, 1e-6).scaled(3)
    assert approx.epsilon == 3.0
    assert approx.delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))


def test_group_claim_of_a_curve_contains_the_exact_one():
    curve = em.TradeOffDP(lambda error: 1.0 - em.GaussianDP(0.5).max_power(error)).scaled(2)
    for q in (1e-4, 0.01, 0.1, 0.5):
        exact = em.GaussianDP(1.0).max_power(q)
        assert exact - 1e-9 <= curve.max_power(q) <= exact + 0.02


def test_composition():
    assert em.PureDP(0.5).composed(4) == em.PureDP(2.0)
    assert em.ApproxDP(0.5, 1e-3).composed(2) == em.ApproxDP(1.0, 2e-3)
    assert em.GaussianDP(0.5).composed(4) == em.GaussianDP(1.0)
    assert em.ZCDP(0.1).composed(2) == em.ZCDP(0.2)
    assert em.RenyiDP(2.0, 0.1).composed(3).epsilon == pytest.approx(0.3)


def test_what_does_not_follow_is_refused():
    with pytest.raises(em.InputError, match="distance=2"):
        em.RenyiDP(2.0, 0.1).scaled(2)
    with pytest.raises(em.InputError, match="times=2"):
        em.TradeOffDP(([0, 1], [1, 0])).composed(2)
    with pytest.raises(em.InputError, match="allows everything"):
        em.ApproxDP(3.0, 0.1).scaled(5)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(em.InputError, match="whole number"):
            em.PureDP(1.0).scaled(wrong)
    assert em.RenyiDP(2.0, 0.1).scaled(1) == em.RenyiDP(2.0, 0.1)


def test_from_approx_is_the_analytic_calibration():
    assert em.GaussianDP.from_approx(4.3771781, 1e-5).mu == pytest.approx(1.0, abs=1e-6)
    claim = em.GaussianDP.from_approx(1.0, 1e-6)
    assert claim.delta(1.0) == pytest.approx(1e-6, rel=1e-9)
    assert claim.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)
    assert from_dict(claim.to_dict()) == claim
    assert claim.with_value(2.0).at_delta == 1e-6
    with pytest.raises(em.InputError, match="delta"):
        em.GaussianDP.from_approx(1.0, 0.0)


def test_gaussian_delta_against_the_formula():
    from scipy.stats import norm

    for mu in (0.1, 1.0, 5.0):
        for epsilon in (0.0, 0.5, 3.0):
            exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
                -mu / 2 - epsilon / mu
            )
            assert em.GaussianDP(mu).delta(epsilon) == pytest.approx(exact, abs=1e-12)
    assert em.GaussianDP(0.0).delta(0.5) == 0.0
    assert em.GaussianDP(0.1).epsilon(0.5) == 0.0
