"""Simultaneous bands."""

import math

import numpy as np
import pytest
from scipy.stats import beta, norm

from epsilometer.bounds.bands import Band, band_from_counts
from epsilometer.claims import ApproxDP
from epsilometer.errors import InputError


def test_readings_of_one_event():
    band = Band((0.6,), (0.1,))
    assert band.epsilon(0.0) == pytest.approx(math.log(6))
    assert band.epsilon(0.1) == pytest.approx(math.log(5))
    assert band.delta(1.0) == pytest.approx(0.6 - math.e * 0.1)
    assert band.mu == pytest.approx(norm.ppf(0.6) - norm.ppf(0.1))
    assert band.value(ApproxDP(0.0, 0.1)) == band.epsilon(0.1)


def test_the_complement_counts_too():
    band = Band((0.99,), (0.5,))
    assert band.epsilon(0.0) == pytest.approx(math.log(50))


def test_an_event_without_a_gap_proves_nothing():
    band = Band((0.1,), (0.2,))
    assert (band.epsilon(0.0), band.mu, band.delta(0.0)) == (0.0, 0.0, 0.0)
    assert band.power(0.3) == pytest.approx(0.3)


def test_power_is_the_concave_hull_in_the_worse_direction():
    band = Band((0.4, 0.6), (0.1, 0.3))
    assert band.power(0.1) == pytest.approx(max(0.4, 0.1 / 0.4 * 0.7))
    assert band.power(0.2) == pytest.approx(0.5)
    assert band.power(0.0) == 0.0
    assert band.power(1.0) == 1.0
    grid = [band.power(q) for q in np.linspace(0, 1, 51)]
    assert np.all(np.diff(grid) >= 0)
    with pytest.raises(InputError, match="q="):
        band.power(1.5)


def test_counts_pay_for_every_event():
    band = band_from_counts([10, 50], 100, [1, 20], 100, 0.05, left_shares=[0.25, 0.5])
    assert band.p_lower == pytest.approx((beta.ppf(0.00625, 10, 91), beta.ppf(0.0125, 50, 51)))
    assert band.q_upper == pytest.approx((beta.isf(0.01875, 2, 99), beta.isf(0.0125, 21, 80)))
