"""The p-value of a certificate: consistent with the verdict, and no smaller than it may be."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import epsilometer as em
from epsilometer.auditing.judge import least_failure
from epsilometer.bounds import Counts
from epsilometer.bounds.ratio import epsilon_lower
from epsilometer.testing import assert_rare


def straight(z_crossing):
    """A bound that is a straight line over normal quantiles and crosses the claim 1 at a known one."""
    return lambda failure: 1.0 + 0.1 * (float(ndtri(failure)) - z_crossing)


@pytest.mark.parametrize("p", [0.4, 0.06, 0.04, 1e-3, 1e-12, 1e-200])
def test_of_a_bound_whose_crossing_is_known(p):
    bound_at = straight(float(ndtri(p)))
    found = least_failure(bound_at, 1.0, 0.05, bound_at(0.05))
    assert p <= found <= 1.2 * p
    assert bound_at(found) > 1.0
    assert (found <= 0.05) == (p < 0.05)


def test_beyond_what_is_looked_at():
    assert least_failure(lambda _: 2.0, 1.0, 0.05, 2.0) < 1e-299
    assert least_failure(lambda _: 0.5, 1.0, 0.05, 0.5) == 1.0
    assert least_failure(lambda _: 1.0, 1.0, 0.05, 1.0) == 1.0  # a bound of just the claim does not refute it


def test_of_the_exact_certificate():
    """The certificate at the p-value refutes, and at a slightly smaller failure probability it does not."""
    left, right = Counts(420, 700), Counts(130, 700)
    bound_at = lambda failure: epsilon_lower(left, right, failure)  # noqa: E731
    found = least_failure(bound_at, 1.0, 0.05, bound_at(0.05))
    assert bound_at(found) > 1.0 >= bound_at(found / 1.1)


def test_a_true_claim_has_small_p_values_rarely():
    """Laplace of ε = 1 keeps its claim: P(p ≤ level) ≤ level, whatever the level."""
    rng = np.random.default_rng(20)
    n, q = 80, 0.5 / math.e
    p_values = []
    for hits, misses in zip(rng.binomial(n, 0.5, 60), rng.binomial(n, q, 60), strict=True):
        left, right = Counts(int(hits), n), Counts(int(misses), n)
        bound_at = lambda failure, left=left, right=right: epsilon_lower(left, right, failure)  # noqa: E731
        # A level of its own decides which way to look: the p-value must not depend on it.
        p_values.append(least_failure(bound_at, 1.0, 0.05, bound_at(0.05)))
    for level in (0.01, 0.05, 0.2, 0.45):
        assert_rare(sum(value <= level for value in p_values), len(p_values), level)
    assert binom.cdf(sum(value <= 0.45 for value in p_values), len(p_values), 0.45) > 1e-9  # nor are they all 1


@pytest.mark.parametrize("claim", ["eps=1", "eps=2.2", "mu=1", "eps=0.9,order=2"])
@pytest.mark.parametrize("keywords", [{}, {"stop_early": True}], ids=["fixed", "stop early"])
def test_consistent_with_the_verdict(claim, keywords):
    result = em.audit(em.zoo.laplace(epsilon=2.0), None, claim, samples=2000, seed=3, **keywords)
    assert (result.p_value <= 0.05) == result.is_refuted
    again = em.AuditResult.from_json(result.to_json())
    assert again.p_value == result.p_value


def test_of_a_search_that_pays_for_several_certificates():
    finder = em.finders.Random(em.domains.Vector(3, low=0, high=1), trials=4, samples=1000, seed=0)
    result = em.audit(lambda x, rng: sum(x) + rng.laplace(scale=0.2), finder, em.PureDP(1.0), samples=2000, seed=0)
    assert result.is_refuted
    assert result.p_value <= 0.05


def test_none_where_there_is_none():
    assert em.measure(em.zoo.laplace(), samples=500, seed=0).p_value is None
    frozen = em.from_batch(lambda x, n: x + np.random.default_rng(1).laplace(size=n))
    result = em.audit(frozen, em.Pair(0, 1), em.PureDP(1.0), samples=500, seed=0)
    assert result.verdict is em.Verdict.INCONCLUSIVE
    assert result.p_value is None
