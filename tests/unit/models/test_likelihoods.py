"""The log-likelihood ratio of subsampled Gaussian steps."""

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.errors import InputError
from epsilometer.models import subsampled_score


@pytest.mark.parametrize(("rate", "sigma"), [(1.0, 1.0), (0.2, 1.0), (0.01, 0.35), (0.5, 3.0)])
def test_it_is_the_ratio_of_the_densities(rate, sigma):
    x = np.linspace(-3, 4, 8)
    with_canary = (1 - rate) * norm.pdf(x, 0, sigma) + rate * norm.pdf(x, 1, sigma)
    expected = np.log(with_canary / norm.pdf(x, 0, sigma)).sum()
    assert subsampled_score(x, rate, sigma) == pytest.approx(expected, abs=1e-9)


def test_one_number_per_run():
    runs = np.arange(6.0).reshape(3, 2)
    scores = subsampled_score(runs, 0.5, 1.0)
    assert scores.shape == (3,)
    assert scores[1] == subsampled_score(runs[1].tolist(), 0.5, 1.0)


def test_far_projections_do_not_overflow():
    assert subsampled_score([300.0], 0.2, 0.05) == pytest.approx(np.log(0.2) + 299.5 / 0.05**2)
    assert subsampled_score([-300.0], 0.2, 0.05) == pytest.approx(np.log(0.8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 0.0, 1.0), "rate=0"),
        (([1.0], 1.1, 1.0), r"rate=1\.1"),
        (([1.0], 0.5, 0.0), "noise_multiplier=0"),
        ((np.ones(2) * 1j, 0.5, 1.0), "complex"),
        ((["a"], 0.5, 1.0), "must be numbers"),
        ((1.0, 0.5, 1.0), "one number per step"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        subsampled_score(*arguments)


class Tensor:
    """A tensor of torch that requires a gradient."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self

    def double(self):
        return self

    def numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_tensors_are_projections_too():
    values = np.arange(6.0).reshape(3, 2)
    expected = subsampled_score(values, 0.5, 1.0).tolist()
    assert subsampled_score(Tensor(values), 0.5, 1.0).tolist() == expected
    assert subsampled_score([Tensor(row) for row in values], 0.5, 1.0).tolist() == expected


def test_what_is_no_number_stays_one():
    assert np.isnan(subsampled_score([np.nan, 1.0], 0.5, 1.0))
