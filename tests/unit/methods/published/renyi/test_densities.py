"""Bandwidths, grids and counts, on samples without chance."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from epsilometer.errors import InputError
from epsilometer.methods.published.renyi.bound import lower_bound
from epsilometer.methods.published.renyi.densities import (
    EvenGrid,
    Smoothing,
    grid_over,
    plug_in_bandwidth,
    robust_scale,
    smooth,
    undersmoothed,
)
from epsilometer.methods.published.renyi.samples import read_densities


def quantiles(n, centre=0.0, scale=1.0):
    return centre + scale * ndtri((np.arange(n) + 0.5) / n)


def literal_functional(values, degree, bandwidth):
    """(1/n²)·ΣΣ K^(degree)((x − y)/h)/h^(degree + 1)."""
    z = (values[:, None] - values[None, :]) / bandwidth
    coefficients = [0.0] * degree + [1.0]
    kernel = (
        np.polynomial.hermite_e.hermeval(z, coefficients)
        * np.exp(-0.5 * z * z)
        / math.sqrt(2 * math.pi)
    )
    return float(kernel.mean() / bandwidth ** (degree + 1))


@pytest.mark.paper("D13", "equal")
def test_the_plug_in_rule_is_its_double_sum():
    """Two stages, without any binning, on a skewed sample."""
    values = np.exp(0.4 * quantiles(600))
    spread = min(values.std(), (np.quantile(values, 0.75) - np.quantile(values, 0.25)) / 1.349)
    scaled, n = values / spread, len(values)
    sixth = literal_functional(scaled, 6, (2 * math.sqrt(2) ** 9 / (7 * n)) ** (1 / 9))
    fourth = literal_functional(scaled, 4, (-3 * math.sqrt(2 / math.pi) / (sixth * n)) ** (1 / 7))
    expected = spread * (1 / (2 * math.sqrt(math.pi) * fourth * n)) ** 0.2
    grid = grid_over(values[:, None], values[:, None])
    found = plug_in_bandwidth(grid.count(values[:, None]), grid.spacings[0])
    assert found == pytest.approx(expected, rel=0.02)


def test_the_plug_in_rule_knows_the_normal_law():
    values = quantiles(20_000)[:, None]
    grid = grid_over(values, values)
    assert plug_in_bandwidth(grid.count(values), grid.spacings[0]) == pytest.approx(
        1.06 * 20_000**-0.2, rel=0.06
    )


@pytest.mark.paper("D14", "corrected")
def test_bandwidths_scale_with_their_units():
    widths = []
    for unit in (1.0, 1e6):
        values = unit * quantiles(5000)[:, None]
        grid = grid_over(values, values)
        counts = grid.count(values)
        h = plug_in_bandwidth(counts, grid.spacings[0])
        widths.append(undersmoothed(h, robust_scale(counts, grid.spacings[0])) / unit)
    assert widths[0] == pytest.approx(widths[1], rel=1e-9)
    assert widths[0] < h / 1e6  # undersmoothing narrows


@pytest.mark.parametrize(
    "kernel", ["gaussian", "laplace", "silverman", lambda u: np.maximum(1 - np.abs(u), 0)]
)
@pytest.mark.parametrize(
    "bandwidth", [None, "dpik", "nrd0", "nrd", 0.2, lambda draws: draws.std() * len(draws) ** -0.2]
)
@pytest.mark.paper("D5", "corrected")
def test_kernel_and_bandwidth_are_inputs(kernel, bandwidth):
    """N(0, 1) against N(0.5, 1): D_2 = 0.25, whichever kernel estimates the densities."""
    left, right = quantiles(20_000), quantiles(20_000, 0.5)
    found = lower_bound(left, right, 2.0, floor=1e-3, kernel=kernel, bandwidth=bandwidth)
    assert found.estimate == pytest.approx(0.25, abs=0.03)


def test_a_function_sees_the_draws_of_one_coordinate():
    counts = np.array([0.0, 2.0, 3.0, 0.0])
    seen = []
    Smoothing(bandwidth=lambda draws: seen.extend(draws) or 1.0).width(counts, 0.5, 1)
    assert seen == [0.5, 0.5, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "wrong", [{"bandwidth": "sj"}, {"bandwidth": -1.0}, {"kernel": "box"}, {"power": 0.5}]
)
def test_smoothing_that_makes_no_sense(wrong):
    with pytest.raises(InputError, match="|".join(["undersmoothing", *wrong])):
        Smoothing(**wrong)


@pytest.mark.paper("D13", "equal")
def test_binning_keeps_mass_and_mean():
    values = np.linspace(0.0, 1.0, 777)[:, None] ** 2
    grid = EvenGrid(((0.0, 1.0),))
    counts = grid.count(values)
    assert counts.sum() == pytest.approx(777)
    assert counts @ np.linspace(0, 1, 1000) / 777 == pytest.approx(values.mean(), abs=1e-12)


def test_values_beyond_the_grid_count_at_its_ends():
    counts = EvenGrid(((0.0, 1.0),)).count(np.array([[-5.0], [0.0], [1.0], [9.0]]))
    assert counts[0] == counts[-1] == 2.0


def test_smoothing_keeps_mass_and_narrow_kernels_change_nothing():
    counts = np.zeros(500)
    counts[250] = 10.0
    assert smooth(counts, 1.0, 7.0).sum() == pytest.approx(10.0, rel=1e-5)
    assert smooth(counts, 1.0, 7.0)[250] == pytest.approx(
        10.0 / (7.0 * math.sqrt(2 * math.pi)), rel=1e-5
    )
    np.testing.assert_array_equal(smooth(counts, 1.0, 0.1), counts)


@pytest.mark.paper("D5", "corrected")
def test_two_dimensions_are_a_product():
    x = quantiles(400)
    values = np.stack(np.meshgrid(x, 2.0 * x), axis=-1).reshape(-1, 2)
    found = read_densities(
        values + 1e-9 * np.arange(len(values))[:, None], values[::-1], Smoothing()
    )
    assert found.p.sum() * found.width == pytest.approx(1.0, abs=0.01)
    assert found.unit == pytest.approx(2.0, rel=0.05)


@pytest.mark.paper("D4", "equal")
def test_rows_are_counted():
    left = np.array([[0, 1], [0, 1], [1, 0], [0, 0]])
    right = np.array([[1, 0], [1, 0], [1, 1], [1, 1]], dtype=bool)
    found = read_densities(left, right.astype(int), Smoothing())
    assert sorted(zip(found.p, found.q, strict=True)) == [
        (0.0, 0.5),
        (0.25, 0.0),
        (0.25, 0.5),
        (0.5, 0.0),
    ]


def test_far_apart_whole_numbers_and_strings_are_counted_too():
    found = read_densities([0, 10**15, 0, 0], [10**15] * 3, Smoothing())
    assert sorted(found.p) == [0.25, 0.75]
    assert sorted(read_densities(["a", "b", "a"], ["b", "c", "b"], Smoothing()).q) == pytest.approx(
        [0.0, 1 / 3, 2 / 3]
    )


def test_whole_numbers_as_floats_are_discrete():
    assert len(read_densities([1.0, 2.0] * 50, [2.0, 3.0] * 50, Smoothing()).p) == 3


def test_one_number_has_no_density():
    with pytest.raises(InputError, match="one number"):
        grid_over(np.zeros((5, 1)), np.zeros((5, 1)))
