"""Of two outcomes one event has the whole divergence: the default certifies it, and does not bet."""

import pytest

import epsilometer as em


@pytest.mark.parametrize("claim", [em.RenyiDP(2.0, 0.05), em.ZCDP(0.05)])
def test_a_coin_is_certified_by_an_event(claim):
    def coin(x, n, rng):
        return (rng.random(n) < (0.7 if x else 0.3)).astype(int)

    pair = em.Pair(0, 1)
    mechanism = em.from_batch(coin)
    found = em.audit(mechanism, pair, claim, samples=600, seed=0)
    bet = em.audit(mechanism, pair, claim, samples=600, seed=0, method="renyi-bet")
    assert found.findings[0].method == "events"
    assert found.lower_bound > bet.lower_bound


def test_more_outcomes_may_be_bet_on():
    found = em.audit(em.zoo.gaussian(), None, em.RenyiDP(1.5, 0.01), samples=20_000, seed=0)
    assert found.findings[0].method == "renyi-bet"
