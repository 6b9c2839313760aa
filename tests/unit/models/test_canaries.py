"""Directions of gradient canaries."""

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.models import gradient_canaries


@pytest.mark.parametrize(("d", "m"), [(30, 1), (30, 7), (30, 30)])
def test_few_canaries_are_orthogonal(d, m):
    canaries = gradient_canaries(d, m, seed=2)
    np.testing.assert_allclose(canaries @ canaries.T, np.eye(m), atol=1e-12)
    assert np.array_equal(gradient_canaries(d, m, seed=2), canaries)


def test_many_canaries_have_length_one():
    canaries = gradient_canaries(5, 2000, seed=2)
    np.testing.assert_allclose(np.linalg.norm(canaries, axis=1), 1.0)
    # The mean of 2000 uniform directions: each coordinate is 0 ± .01.
    assert np.abs(canaries.mean(axis=0)).max() < 0.07


def test_sizes_are_checked():
    with pytest.raises(InputError, match="d=0"):
        gradient_canaries(0, 1)
    with pytest.raises(InputError, match=r"m=1\.5"):
        gradient_canaries(1, 1.5)
