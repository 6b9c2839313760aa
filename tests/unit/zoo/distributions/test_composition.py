"""The claim of composed subsampled Gaussian steps: never tighter than what is exact, and near it."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from epsilometer.claims import GaussianDP
from epsilometer.zoo.distributions.composition import composed_claim
from epsilometer.zoo.distributions.exact import SubsampledGaussianDistributions

TYPE_ONE = np.concatenate([np.geomspace(1e-6, 0.01, 20), np.linspace(0.01, 0.99, 50)])


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 10), (3.0, 40)])
def test_nearly_all_records_are_the_gaussian_curve(sigma, steps):
    # A rate that is 1 up to rounding takes the way of all other rates.
    power = composed_claim(1.0 - 1e-12, sigma, steps).max_power(TYPE_ONE)
    exact = ndtr(ndtri(TYPE_ONE) + math.sqrt(steps) / sigma)
    assert np.min(power - exact) >= 0.0
    # Losses are rounded up by 5e-5 per step in the mean.
    assert np.max(power - exact) < 5e-5 + 5e-5 * steps


def test_all_records_are_exactly_gaussian():
    assert composed_claim(1.0, 0.5, 4) == GaussianDP(4.0)


@pytest.mark.parametrize(("rate", "sigma"), [(0.2, 1.0), (0.1, 0.5), (0.5, 2.0), (0.01, 0.35)])
def test_one_step_is_never_tighter_than_the_exact_deltas(rate, sigma):
    exact = SubsampledGaussianDistributions(sigma, rate)
    claim = composed_claim(rate, sigma, 1)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        delta = exact.delta(epsilon)
        # What the exact (ε, δ) allows at type-I errors where it is the tightest of all claims.
        least_slack = np.min(delta + math.exp(epsilon) * TYPE_ONE - claim.max_power(TYPE_ONE))
        assert least_slack > -5e-3
        allowed = np.max(claim.max_power(TYPE_ONE) - math.exp(epsilon) * TYPE_ONE)
        assert allowed >= delta - 5e-3
    # The power of the best half-line, which an attacker really has.
    threshold = np.linspace(-5 * sigma, 1 + 5 * sigma, 400)
    without = ndtr(-threshold / sigma)
    with_record = (1 - rate) * without + rate * ndtr((1 - threshold) / sigma)
    assert np.all(claim.max_power(without) >= with_record - 1e-12)
    assert np.all(claim.max_power(1 - with_record) >= 1 - without - 1e-12)


def test_the_published_epsilon_of_ten_steps():
    # dp-accounting gives 4.98 at δ = 1e-5 for ten steps at rate .2 with noise multiplier 1.
    claim = composed_claim(0.2, 1.0, 10)
    grid = np.geomspace(1e-9, 1.0, 4000)
    power = claim.max_power(grid)
    assert np.max(power - math.exp(4.97) * grid) > 1e-5
    assert np.max(power - math.exp(5.0) * grid) < 1.01e-5


def test_more_steps_and_less_noise_allow_more():
    fewer = composed_claim(0.2, 1.0, 5).max_power(TYPE_ONE)
    more = composed_claim(0.2, 1.0, 10).max_power(TYPE_ONE)
    louder = composed_claim(0.2, 2.0, 10).max_power(TYPE_ONE)
    assert np.all(more >= fewer)
    assert np.all(more >= louder)
