"""The band holds everywhere at once, and comes near the truth."""

import numpy as np

import epsilometer as em
from epsilometer.bounds.bands import band_from_scores
from epsilometer.methods import Task
from epsilometer.methods.profile import ProfileMethod
from epsilometer.outputs import read_outputs
from epsilometer.testing import assert_rare


def exceeds(band, truth):
    return any(p > truth.max_power(q) + 1e-12 for p, q in zip(band.p_lower, band.q_upper, strict=True))


def gaussian_band(rng, n, n_train):
    method, task = ProfileMethod(), Task(em.GaussianDP(0.0), (n - n_train, n - n_train), 0.05)
    left, right = rng.normal(0, 1, n), rng.normal(1, 1, n)
    proposal = method.propose(read_outputs(left[:n_train]), read_outputs(right[:n_train]), task)
    tallies = proposal.tally(read_outputs(left[n_train:]), 0), proposal.tally(read_outputs(right[n_train:]), 1)
    return proposal.band(*tallies, 0.05)


def test_the_band_rarely_misses_anywhere(rng):
    misses = sum(exceeds(gaussian_band(rng, 2000, 600), em.GaussianDP(1.0)) for _ in range(200))
    assert_rare(misses, 200, 0.05)


def test_the_band_of_scores_rarely_misses_anywhere(rng):
    misses = 0
    for _ in range(400):
        band = band_from_scores(rng.normal(1, 1, 300), rng.normal(0, 1, 200), 0.05)
        misses += exceeds(band, em.GaussianDP(1.0))
    assert_rare(misses, 400, 0.05)


def test_the_band_of_tied_scores_rarely_misses(rng):
    """Whole-number scores: most of them tie. The truth is that of two binomial laws."""
    from scipy.stats import binom

    grid = np.arange(-1, 12)
    p, q = binom.sf(grid, 11, 0.6), binom.sf(grid, 11, 0.4)
    misses = 0
    for _ in range(300):
        band = band_from_scores(
            rng.binomial(11, 0.6, 200).astype(float), rng.binomial(11, 0.4, 200).astype(float), 0.05
        )
        power = np.interp(band.q_upper, q[::-1], p[::-1])
        misses += bool(np.any(np.array(band.p_lower) > power + 1e-12))
    assert_rare(misses, 300, 0.05)


def test_the_band_is_near_the_truth(rng):
    """At 2e5 draws μ is certified within 3 %: the shortfall of 20 runs is far below in every one of them."""
    bounds = [gaussian_band(rng, 200_000, 24_000).mu for _ in range(5)]
    assert min(bounds) > 0.95
    assert max(bounds) <= 1.01
