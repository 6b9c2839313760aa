"""The one-run bound rarely exceeds the truth of randomized response, for which its theorem is sharp."""

import math

from epsilometer.bounds.binomial import one_run_epsilon, one_run_mu
from epsilometer.claims import GaussianDP
from epsilometer.testing import assert_rare


def test_randomized_response(rng):
    epsilon, above = 1.0, 0
    for _ in range(400):
        right = int(rng.binomial(300, math.exp(epsilon) / (1 + math.exp(epsilon))))
        above += one_run_epsilon(300, 300, right, 0.0, 0.05) > epsilon
    assert_rare(above, 400, 0.05)
    assert above > 0  # sharp: about 4 % of the runs exceed the truth


def test_gaussian_scores_of_one_run(rng):
    """m canaries with independent scores N(±μ/2, 1): guess the sign of the 100 most certain ones."""
    mu, above = 1.0, 0
    for _ in range(20):
        member = rng.random(400) < 0.5
        score = rng.normal((member - 0.5) * mu, 1.0)
        sure = abs(score).argsort()[-100:]
        right = int(((score[sure] > 0) == member[sure]).sum())
        above += one_run_mu(400, 100, right, 0.05) > mu
    assert_rare(above, 20, 0.05)
    assert GaussianDP(mu).epsilon(1e-5) > 4.0
