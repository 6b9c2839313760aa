"""DP-Auditorium's mechanisms: the broken ones are refuted where theory says so, the private ones are not.

Every test states the greatest probability of a miss per run, and the one that it notices with 99 % probability.
"""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer import zoo
from epsilometer.outputs import read_outputs

# (entry, ε, samples): at least six times the draws that 99 % power needs with the best event known beforehand
# (`epsilometer_experiments.auditorium.draws_needed`); 40 seeds each were all refuted.
BROKEN = [
    ("nondp_laplace1", 0.01, 5_000),
    ("nondp_laplace1", 1.0, 5_000),
    ("nondp_laplace2", 0.01, 5_000),
    ("nondp_laplace2", 1.0, 10_000),
    ("nondp_gaussian1", 0.01, 5_000),
    ("nondp_gaussian1", 1.0, 5_000),
    ("nondp_gaussian2", 0.01, 5_000),
    ("nondp_gaussian2", 1.0, 10_000),
    ("dp_laplace_released", 0.01, 5_000),
    ("dp_laplace_released", 1.0, 5_000),
    ("svt5", 0.01, 50_000),
]
PRIVATE = ["dp_laplace", "joint_median", "noisy_max"]


@pytest.mark.parametrize(("name", "epsilon", "samples"), BROKEN)
def test_broken_mechanisms_are_refuted(name, epsilon, samples, rarely):
    entry = zoo.find(name, epsilon=epsilon)
    rarely(lambda seed: not em.audit(entry, samples=samples, seed=seed).is_refuted, 0.02, 0.91)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.paper("C39", "equal")
def test_private_mechanisms_are_refuted_as_rarely_as_promised(name, epsilon, rarely):
    entry = zoo.find(name, epsilon=epsilon)
    rarely(lambda seed: em.audit(entry, samples=2_000, seed=seed).is_refuted, 0.05, 0.35)


def test_the_released_private_mean_is_refuted_with_an_event_that_says_why():
    """A negative noisy count leaves the mean almost without noise: outputs at 0 that the other dataset never has."""
    entry = zoo.dp_laplace_released(1.0)
    result = em.audit(entry, samples=20_000, seed=1)
    assert result.is_refuted
    assert result.lower_bound > 1.5  # the truth is 26.8; 200 seeds gave at least 2.8
    again = em.replay(result, entry, samples=20_000, seed=2)
    assert again.is_refuted


@pytest.mark.paper("C17", "equal")
@pytest.mark.parametrize("proportion", ["hoeffding", "chernoff", "clopper-pearson"])
@pytest.mark.parametrize("n", [137, 700, 1814])
def test_the_published_hockey_stick_estimate_keeps_its_rate(proportion, n, rarely):
    """Proposition 4.12 at the boundary: the divergence is 0, and the estimate above it in at most β of the runs."""
    epsilon, failure = 0.5, 1.0 / 3.0
    estimator = em.auditorium.estimators.HockeyStick(epsilon, proportion)
    q = 0.1

    def is_above(seed):
        rng = np.random.default_rng(seed)
        of_p, of_q = rng.spawn(2)
        estimate = estimator(
            lambda size: read_outputs(of_p.random(size) < q * math.exp(epsilon)),
            lambda size: read_outputs(of_q.random(size) < q),
            n,
            failure,
            rng,
        )
        return estimate > 0.0

    rarely(is_above, failure, 0.6)


@pytest.mark.paper("C28", "equal")
def test_the_published_mmd_estimate_keeps_its_rate(rarely):
    """Theorem 4.15 for equal distributions."""
    estimator = em.auditorium.estimators.Mmd(0.0)

    def is_above(seed):
        rng = np.random.default_rng(seed)

        def draw(size):
            return read_outputs(rng.normal(size=size))

        return estimator(draw, draw, 200, 1.0 / 3.0, rng) > 0.0

    rarely(is_above, 1.0 / 3.0, 0.6)
