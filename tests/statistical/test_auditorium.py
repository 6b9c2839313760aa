"""DP-Auditorium's mechanisms: the broken ones are refuted where theory says so, the private ones are not.

Every test states the greatest probability of a miss per run, and the one that it notices with 99 % probability.
"""

import pytest

import epsilometer as em
from epsilometer import zoo

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
