"""Canaries that share their noise."""

import numpy as np
import pytest
from scipy import stats

from epsilometer import zoo
from epsilometer.errors import InputError


def test_all_scores_of_an_output_are_equally_large(rng):
    outputs = zoo.shared_noise(1.0, canaries=7).mechanism.function([1, 0, 1, 0, 0, 1, 1], 50, rng)
    np.testing.assert_allclose(np.abs(outputs), np.abs(outputs[:, :1]).repeat(7, axis=1))
    assert len(np.unique(np.abs(outputs[:, 0]))) == 50


@pytest.mark.parametrize(("coin", "mean"), [(0, -0.75), (1, 0.75)])
def test_every_canary_by_itself_sees_gaussian_noise(coin, mean, rng):
    outputs = zoo.shared_noise(1.5, canaries=2).mechanism.function([coin, 0], 4000, rng)
    assert stats.kstest(outputs[:, 0], "norm", args=(mean, 1.0)).pvalue > 1e-9


def test_truth_and_parameters():
    entry = zoo.find("shared_noise", mu="2", canaries="30")
    assert entry.truth() == 2.0
    assert len(entry.worst_pair.left) == 30
    for wrong in ({"mu": 0.0}, {"canaries": 0}, {"canaries": 2.5}):
        with pytest.raises(InputError):
            zoo.find("shared_noise", **wrong)
