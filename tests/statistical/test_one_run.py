"""Bounds and verdicts of one run rarely exceed the truth, however canaries depend on each other."""

import math

import numpy as np
import pytest
from scipy.special import expit

import epsilometer as em
from epsilometer.bounds.one_run import one_run_epsilon
from epsilometer.bounds.one_run_curves import one_run_mu
from epsilometer.claims import ApproxDP, GaussianDP, PureDP
from epsilometer.testing import assert_rare

M = 200
RUNS = 60

# A run may share its luck, and be warned of scores that point the wrong way.
pytestmark = pytest.mark.filterwarnings("ignore:exactly half", "ignore:the scores of members")


def shared_noise(mu):
    mechanism = em.zoo.shared_noise(mu, canaries=M).mechanism

    def scores(included, rng):
        return mechanism.function(included.astype(int), 1, rng)[0]

    return scores


def a_sure_tenth_shares(mu):
    """A tenth of the canaries share one draw; the scores of the others tell nothing."""

    def scores(included, rng):
        shared = shared_noise(mu)(included, rng)
        return np.where(np.arange(M) < M // 10, shared, 1e-9 * rng.normal(size=M))

    return scores


def laplace(included, rng):
    return included + rng.laplace(size=M)


def randomized_response(included, rng):
    is_right = rng.random(M) < expit(1.0)
    return np.where(is_right, included, ~included).astype(float)


def all_or_response(delta):
    """With probability δ the run tells everything; else it answers by randomised response."""

    def scores(included, rng):
        if rng.random() < delta:
            return np.where(included, 9.0, -9.0)
        return randomized_response(included, rng)

    return scores


def noise(included, rng):
    return rng.normal(size=M)


def constant(included, rng):
    return np.zeros(M)


CASES = {
    "shared noise .5": (shared_noise(0.5), [GaussianDP(0.5)]),
    "shared noise 1": (shared_noise(1.0), [GaussianDP(1.0), ApproxDP(4.38, 1e-5)]),
    "shared noise 2": (shared_noise(2.0), [GaussianDP(2.0), ApproxDP(6.0, 0.01)]),
    "a tenth shares": (a_sure_tenth_shares(1.0), [GaussianDP(1.0), ApproxDP(2.32, 0.01)]),
    "Laplace": (laplace, [PureDP(1.0), ApproxDP(1.0, 1e-5)]),
    "randomized response": (randomized_response, [PureDP(1.0), ApproxDP(1.0, 1e-5)]),
    "an atom of mass δ": (all_or_response(0.04), [ApproxDP(1.0, 0.04)]),
    "equal laws": (noise, [PureDP(0.0), GaussianDP(0.0)]),
    "constants": (constant, [PureDP(0.0), GaussianDP(0.0)]),
}


@pytest.mark.parametrize("guess", ["both", "in"])
@pytest.mark.parametrize("name", list(CASES))
def test_true_claims_are_rarely_refuted(name, guess, rng):
    scores, claims = CASES[name]
    refuted = np.zeros(len(claims), dtype=int)
    for _ in range(RUNS):
        included = rng.random(M) < 0.5
        # As a careless caller may have them: sorted, so that the order tells the coins.
        included.sort()
        audit = em.from_one_run(
            scores(included, rng), included, guess=guess, seed=int(rng.integers(2**32))
        )
        refuted += [audit.p_value(claim) < 0.05 for claim in claims]
    for count in refuted.tolist():
        assert_rare(count, RUNS, 0.05)


def test_what_an_audit_of_independent_canaries_would_say(rng):
    """The shared noise refutes a true claim for whoever counts its canaries as independent."""
    mu, refuted = 1.0, 0
    for _ in range(200):
        included = rng.random(M) < 0.5
        right = int(((shared_noise(mu)(included, rng) > 0) == included).sum())
        # Independent Gaussian canaries are guessed rightly with probability Φ(mu/2) = .69.
        z = (right - 0.6915 * M) / math.sqrt(M * 0.6915 * 0.3085)
        refuted += z > 1.645
    # A third of the runs, 68 of 200 with a standard deviation of 6.7; a valid test refutes 10.
    assert refuted > 26


def test_randomized_response_is_sharp(rng):
    epsilon, above = 1.0, 0
    for _ in range(400):
        right = int(rng.binomial(300, math.exp(epsilon) / (1 + math.exp(epsilon))))
        above += one_run_epsilon(300, 300, right, 0.0, 0.05) > epsilon
    assert_rare(above, 400, 0.05)
    assert above > 0  # sharp: about 4 % of the runs exceed the truth


def test_bounds_of_gaussian_scores(rng):
    """Means of 300 runs at m = 1000, δ = 1e-5, truth ε = 8: ε 2.97, μ .93."""
    mu, epsilons, mus = 1.666, [], []
    for _ in range(20):
        included = rng.random(1000) < 0.5
        audit = em.from_one_run(mu * included + rng.normal(size=1000), included)
        epsilons.append(audit.epsilon(1e-5))
        mus.append(audit.mu)
    assert max(mus) < mu
    # One run varies by .26 and .07: a mean of 20 is off by 6.5 standard errors once in 1e10.
    assert abs(np.mean(epsilons) - 2.97) < 0.05 * 2.97 + 6.5 * 0.26 / math.sqrt(20)
    assert abs(np.mean(mus) - 0.93) < 0.05 * 0.93 + 6.5 * 0.07 / math.sqrt(20)


def test_mu_of_gaussian_scores_of_one_run(rng):
    """m canaries with independent scores N(±μ/2, 1): guess the sign of the 100 most certain ones."""
    mu, above = 1.0, 0
    for _ in range(20):
        member = rng.random(400) < 0.5
        score = rng.normal((member - 0.5) * mu, 1.0)
        sure = abs(score).argsort()[-100:]
        right = int(((score[sure] > 0) == member[sure]).sum())
        above += one_run_mu(400, 100, right, 0.05) > mu
    assert_rare(above, 20, 0.05)
