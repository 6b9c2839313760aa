"""The p-value of a certificate: consistent with the verdict, and no smaller than it may be."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import epsilometer as em
from epsilometer.bounds import Counts, certificate_p_value, nested_p_value
from epsilometer.testing import assert_rare


def straight(z_crossing):
    """A bound that is a straight line over normal quantiles and crosses the claim 1 at a known one."""
    return lambda failure: 1.0 + 0.1 * (float(ndtri(failure)) - z_crossing)


@pytest.mark.parametrize("p", [0.4, 0.06, 0.04, 1e-3, 1e-12, 1e-200])
def test_of_a_bound_whose_crossing_is_known(p):
    bound_at = straight(float(ndtri(p)))
    found = nested_p_value(bound_at, 1.0, 0.05)
    assert p <= found <= 1.2 * p
    assert bound_at(found) > 1.0
    assert (found <= 0.05) == (p < 0.05)


def test_beyond_what_is_looked_at():
    assert nested_p_value(lambda _: 2.0, 1.0, 0.05) < 1e-289
    assert nested_p_value(lambda _: 0.5, 1.0, 0.05) == 1.0
    assert (
        nested_p_value(lambda _: 1.0, 1.0, 0.05) == 1.0
    )  # a bound of just the claim does not refute it


def test_a_true_claim_has_small_p_values_rarely():
    """Laplace of ε = 1 keeps its claim: P(p ≤ level) ≤ level, whatever the level."""
    rng = np.random.default_rng(20)
    n, q = 80, 0.5 / math.e
    p_values = []
    for hits, misses in zip(rng.binomial(n, 0.5, 60), rng.binomial(n, q, 60), strict=True):
        left, right = Counts(int(hits), n), Counts(int(misses), n)
        p_values.append(certificate_p_value(em.PureDP(1.0), left, right, 0.05))
    for level in (0.01, 0.05, 0.2, 0.45):
        assert_rare(sum(value <= level for value in p_values), len(p_values), level)
    assert (
        binom.cdf(sum(value <= 0.45 for value in p_values), len(p_values), 0.45) > 1e-9
    )  # nor are they all 1


@pytest.mark.parametrize("claim", ["eps=1", "eps=2.2", "mu=1", "eps=0.9,order=2"])
@pytest.mark.parametrize("keywords", [{}, {"stop_early": True}], ids=["fixed", "stop early"])
def test_consistent_with_the_verdict(claim, keywords):
    result = em.audit(em.zoo.laplace(epsilon=2.0), None, claim, samples=2000, seed=3, **keywords)
    assert (result.p_value <= 0.05) == result.is_refuted
    again = em.AuditResult.from_json(result.to_json())
    assert again.p_value == result.p_value


def test_of_a_search_that_pays_for_several_certificates():
    finder = em.finders.Random(em.domains.Vector(3, low=0, high=1), trials=4, samples=1000, seed=0)
    result = em.audit(
        lambda x, rng: sum(x) + rng.laplace(scale=0.2), finder, em.PureDP(1.0), samples=2000, seed=0
    )
    assert result.is_refuted
    assert result.p_value <= 0.05


def test_none_where_there_is_none():
    assert em.measure(em.zoo.laplace(), samples=500, seed=0).p_value is None
    frozen = em.from_batch(lambda x, n: x + np.random.default_rng(1).laplace(size=n))
    result = em.audit(frozen, em.Pair(0, 1), em.PureDP(1.0), samples=500, seed=0)
    assert result.verdict is em.Verdict.INCONCLUSIVE
    assert result.p_value is None


def coin(share):
    """One input shows 1 with probability ½, the other with this one."""
    return em.from_batch(lambda x, n, rng: (rng.random(n) < (share if x else 0.5)).astype(int))


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_every_way_in_has_a_p_value_that_agrees_with_the_verdict(share):
    pair, claim = em.Pair(0, 1), em.PureDP(0.2)
    audited = em.audit(coin(share), pair, claim, samples=1000, seed=5)
    outputs = [np.random.default_rng(7 + x).random(1000) < (share if x else 0.5) for x in (0, 1)]
    results = [
        audited,
        em.replay(audited, coin(share), samples=1000, seed=6),
        em.compare(*outputs, claim=claim, seed=0),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, stop_early=True),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, representation="all"),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, method="profile"),
        em.audit(
            coin(share), pair, em.RenyiDP(2.0, 0.02), samples=1000, seed=5, method="renyi-bet"
        ),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, method="mmd"),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, method="hockey-stick"),
        em.audit(coin(share), pair, claim, samples=1000, seed=5, method="renyi-variational"),
    ]
    for result in results:
        assert 0.0 < result.p_value <= 1.0
        assert (result.p_value <= 1.0 - result.confidence) == result.is_refuted
        assert em.AuditResult.from_json(result.to_json()).p_value == result.p_value
    assert [result.is_refuted for result in results[:5]] == [share == 0.8] * 5


def test_an_asymptotic_bound_has_no_p_value():
    result = em.audit(em.zoo.laplace(), samples=2000, seed=0, method="local")
    assert result.verdict is not None
    assert result.p_value is None
