"""A search pays for every certificate: a true claim is rarely refuted, however many pairs are tried."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.testing import Coin, assert_rare
from epsilometer_experiments.auditorium.rare_leak import hidden_coin

COIN = Coin(0.5, 0.25)
# Every pair of different coins is exactly as bad as claimed, so every trial is a chance to err.
TRUE_CLAIM = em.PureDP(COIN.truth(em.PureDP(0.0)))
COINS = em.domains.Category([0.5, 0.25])


def toss(dataset, n, rng):
    return rng.random(n) < dataset


@pytest.mark.parametrize("confidence", [2 / 3, 0.95])
def test_a_true_claim_is_rarely_refuted(confidence, rarely):
    def is_refuted(seed):
        finder = em.finders.Random(COINS, trials=8, samples=100, seed=seed)
        settings = {"samples": 300, "seed": seed, "confidence": confidence}
        return em.audit(em.from_batch(toss), finder, TRUE_CLAIM, **settings).is_refuted

    rarely(is_refuted, 1.0 - confidence, 0.45 if confidence > 0.9 else 0.75)


def test_a_bayesian_search_refutes_a_true_claim_no_more_often(rarely):
    def is_refuted(seed):
        finder = em.finders.Bayesian(COINS, trials=10, samples=100, seed=seed)
        return em.audit(
            em.from_batch(toss), finder, TRUE_CLAIM, samples=300, seed=seed, confidence=0.7
        ).is_refuted

    rarely(is_refuted, 0.3, 0.8)


def test_bounds_of_searches_hold():
    mechanism = em.from_batch(toss)
    runs = [
        em.measure(
            mechanism,
            em.finders.Grid(COINS, samples=100),
            em.PureDP,
            samples=400,
            seed=seed,
            confidence=0.7,
        )
        for seed in range(40)
    ]
    assert_rare(sum(run.lower_bound > TRUE_CLAIM.value for run in runs), len(runs), 0.3)
    assert np.mean([run.lower_bound for run in runs]) > 0.3


def test_a_rare_leak_is_found_within_sixty_trials(rarely):
    """One pair in forty leaks; a random search of sixty trials misses it in about every second run."""

    def is_missed(seed):
        finder = em.finders.Bayesian(em.domains.Vector(4), trials=60, samples=2000, seed=seed)
        return not em.audit(
            em.from_batch(hidden_coin(seed)), finder, "eps=1", samples=6000, seed=seed
        ).is_refuted

    rarely(is_missed, 0.3, 0.95)


def test_weak_leaks_are_certified_when_a_rehearsal_succeeds():
    """Noise that is 6 % too small: the prediction alone is too careful to certify it in some of the trials."""

    def noisy_sum(dataset, n, rng):
        return rng.laplace(float(np.sum(dataset)), 0.94, n)

    def certifies(seed):
        finder = em.finders.Random(em.domains.Vector(2), trials=60, samples=5000, seed=seed)
        result = em.audit(em.from_batch(noisy_sum), finder, "eps=1", samples=20_000, seed=seed)
        certified = [
            each for each in result.findings[0].details["search"] if each["certified"] is not None
        ]
        return any(each["predicted"] < 1.0 < each["certified"] for each in certified)

    assert any(certifies(seed) for seed in range(8))
