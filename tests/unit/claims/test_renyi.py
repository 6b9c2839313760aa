"""Rényi divergences of two coins, from orders next to 1 to huge ones, without cancellation."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds.pure_by_renyi import greatest_divergence, least_epsilon
from epsilometer.claims import RenyiDP, bernoulli_divergence

ORDERS = [1.0 + 2.0**-52, 1.0 + 1e-14, 1.0 + 1e-9, 1.0 + 1e-4, 1.5, 2.0, 30.0, 1e6]
COINS = [
    (0.55, 0.5),
    (0.5, 0.55),
    (0.9, 1e-6),
    (1e-9, 0.3),
    (1.0 - 1e-12, 0.5),
    (0.5 + 1e-9, 0.5),
    (0.999, 0.001),
]


def exact(p, q, order):
    """The definition in 120 digits, of the very floats that are given."""
    with localcontext() as context:
        context.prec = 120
        context.Emax, context.Emin = MAX_EMAX, MIN_EMIN
        p, q, order = Decimal(p), Decimal(q), Decimal(order)
        heads = (order * p.ln() + (1 - order) * q.ln()).exp()
        tails = (order * (1 - p).ln() + (1 - order) * (1 - q).ln()).exp()
        return float((heads + tails).ln() / (order - 1))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("p", "q"), COINS)
def test_the_divergence_of_two_coins_keeps_its_digits_at_every_order(p, q, order):
    found = float(bernoulli_divergence(np.array(p), np.array(q), np.array(order)))
    assert found == pytest.approx(exact(p, q, order), rel=1e-12, abs=4e-15)


def test_the_largest_order_is_the_largest_log_ratio():
    found = bernoulli_divergence(np.array(0.9), np.array(0.3), np.array(1e300))
    assert float(found) == pytest.approx(math.log(3.0), rel=1e-12)


@pytest.mark.parametrize("order", [1.0 + 2.0**-52, 2.0, 1e300])
def test_impossible_and_certain_outcomes(order):
    orders = np.full(6, order)
    p = np.array([0.0, 1.0, 0.0, 1.0, 0.5, 0.5])
    q = np.array([0.0, 1.0, 0.25, 0.25, 0.0, 1.0])
    expected = [0.0, 0.0, -math.log(0.75), -math.log(0.25), math.inf, math.inf]
    assert bernoulli_divergence(p, q, orders) == pytest.approx(expected)


def test_next_to_order_1_the_claim_allows_what_kullback_leibler_allows():
    p = np.array([0.55])
    entropy = 0.55 * math.log(1.1) + 0.45 * math.log(0.9)
    assert RenyiDP(1.0 + 2.0**-52, 0.0).least_values(p, np.array([0.5]))[0] == pytest.approx(
        max(entropy, -0.5 * math.log(4 * 0.55 * 0.45)), rel=1e-9
    )


@pytest.mark.parametrize("order", [1.0 + 2.0**-52, 1.0 + 1e-14, 1.0 + 1e-12])
@pytest.mark.parametrize("stop_early", [False, True])
def test_a_true_claim_next_to_order_1_is_not_refuted(order, stop_early):
    """Two coins with KL 0.005 under a claim of 0.01: each of these audits refuted it before (SEAMS A3)."""

    def coin(x, n, rng):
        return (rng.random(n) < (0.55 if x else 0.5)).astype(int)

    for seed in range(2):
        result = em.audit(
            em.from_batch(coin),
            em.Pair(0, 1),
            RenyiDP(order, 0.01),
            samples=4000,
            seed=seed,
            confidence=1.0 - 1e-9,
            stop_early=stop_early,
        )
        assert not result.is_refuted
        assert result.lower_bound < 0.0051


def test_an_audit_next_to_order_1_has_power():
    def coin(x, n, rng):
        return (rng.random(n) < (0.8 if x else 0.3)).astype(int)

    claim = RenyiDP(1.0 + 1e-14, 0.1)  # KL 0.53
    result = em.audit(em.from_batch(coin), em.Pair(0, 1), claim, samples=4000, seed=0)
    assert result.is_refuted
    assert 0.4 < result.lower_bound < 0.54


@pytest.mark.parametrize("order", [1.0 + 2.0**-52, 1.0 + 1e-12, 1.0 + 1e-6, 1.001, 2.0, 50.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0])
def test_randomized_response_has_the_greatest_divergence_of_pure_privacy(order, epsilon):
    q = 1.0 / (1.0 + math.exp(epsilon))
    direct = float(bernoulli_divergence(np.array(1.0 - q), np.array(q), np.array(order)))
    assert greatest_divergence(epsilon, order) == pytest.approx(direct, rel=1e-7, abs=1e-15)
    assert least_epsilon(greatest_divergence(epsilon, order), order) == pytest.approx(
        epsilon, rel=1e-6
    )
