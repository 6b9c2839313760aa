"""The floating-point view finds naive noise and leaves careful noise alone."""

from dataclasses import replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.result import OnRequest

PAIR = (0.0, 1.0)


def rounded(dataset, n, rng):
    return np.round((dataset + rng.laplace(0.0, 1.0, n)) * 2**20) / 2**20


def whole(dataset, n, rng):
    ratio = np.exp(-1 / 1024)
    return (
        int(dataset * 1024) + rng.geometric(1 - ratio, n) - rng.geometric(1 - ratio, n)
    ) / 1024.0


@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_naive_noise_is_found(noise):
    mechanism = em.from_batch(
        lambda dataset, n, rng: dataset + getattr(rng, noise)(0.0, 1.0, n), name=noise
    )
    result = em.audit(mechanism, PAIR, "eps=1", samples=40_000, seed=0, representation="bits")
    assert result.lower_bound > 6.0
    assert "low-order bits" in result.witness.event.describe()
    again = em.replay(em.AuditResult.from_json(result.to_json()), mechanism, samples=20_000, seed=1)
    assert again.lower_bound > 5.0


@pytest.mark.parametrize("mechanism", [rounded, whole])
def test_careful_noise_is_rarely_refuted(mechanism, rarely):
    noise, settings = em.from_batch(mechanism), {"samples": 4000, "representation": "bits"}
    rarely(lambda seed: em.audit(noise, PAIR, "eps=1", seed=seed, **settings).is_refuted, 0.05, 0.5)


def test_a_finding_beside_does_not_decide():
    entry = em.zoo.laplace()
    plain = em.audit(entry, samples=40_000, seed=0)
    result = em.audit(entry, samples=40_000, seed=0, representation="all")
    result = replace(
        result, on_request=OnRequest()
    )  # which is rehearsed for seconds, and is not the point here
    assert result.verdict is plain.verdict is em.Verdict.NOT_REFUTED
    values, bits = result.findings
    assert (values.method, bits.method) == ("events", "bits")
    assert bits.lower_bound > 5.0
    # Both pay: together they spend what the audit may.
    assert (1 - values.confidence) + (1 - bits.confidence) == pytest.approx(0.05)
    assert plain.lower_bound - 0.02 < values.lower_bound <= plain.lower_bound + 0.02
    assert "does not decide" in " ".join(str(result).split())
    assert em.AuditResult.from_json(result.to_json()).to_dict() == result.to_dict()


def test_values_never_use_the_bits():
    assert em.audit(em.zoo.laplace(), samples=40_000, seed=0).lower_bound < 1.1


def test_too_little_noise_is_found_along_the_gaussian_curve():
    claim = em.GaussianDP.from_approx(4.3771781, 1e-5)
    mechanism = em.from_batch(lambda dataset, n, rng: rng.normal(dataset, 0.8, n), name="noise")
    result = em.audit(mechanism, PAIR, claim, samples=50_000, seed=0)
    assert result.is_refuted
    mu, epsilon = result.findings
    assert mu.guarantee == "exact"
    assert epsilon.guarantee == "conditional: if the noise is Gaussian"
    assert (epsilon.claim.epsilon, epsilon.claim.delta) == pytest.approx((4.3771781, 1e-5))
    assert epsilon.lower_bound == pytest.approx(em.GaussianDP(mu.lower_bound).epsilon(1e-5))
    assert "if the noise is Gaussian" in " ".join(str(result).split())


def test_group_claims_are_scaled():
    entry = em.zoo.laplace(epsilon=0.5)
    far = (0.0, 4.0)
    assert em.audit(entry, far, "eps=.5", samples=5000, seed=0).is_refuted
    result = em.audit(entry, far, "eps=.5", samples=5000, seed=0, distance=4)
    assert not result.is_refuted
    assert result.claim == em.PureDP(2.0)
