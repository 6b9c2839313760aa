"""The supremum over the null against sums and grids that a child could write."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betainc, betaincc
from scipy.stats import binom

from epsilometer.bounds.supremum import (
    NullLine,
    Region,
    _chord_excess,
    greatest_probability,
    region_probability,
)

# Every value of Y is a block of its own where there are at most 40 draws on the right.
FINE = 64


def linear(slope, start):
    return lambda y: start + slope * y


REGIONS = [
    Region(linear(1.0, 2.0), 6, 6),
    Region(linear(1.7, 0.5), 12, 9),
    Region(linear(0.4, 3.0), 15, 40),
    Region(linear(3.0, 1.0), 40, 11),
    Region(linear(2.0, -1.0), 1, 1),
    Region(np.zeros_like, 5, 5),
    Region(linear(0.0, 99.0), 5, 5),
]


def naive(region, p, q):
    """P(X ≥ threshold(Y)) as a double sum."""
    total = 0.0
    for y in range(region.n_right + 1):
        least = float(region.threshold(np.array([float(y)]))[0])
        x = [k for k in range(region.n_left + 1) if k >= least - 1e-9]
        total += binom.pmf(y, region.n_right, q) * binom.pmf(x, region.n_left, p).sum()
    return total


@pytest.mark.parametrize("region", REGIONS)
def test_region_probability_is_the_double_sum(region):
    grid = np.array([0.0, 1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1.0])
    p, q = (axis.ravel() for axis in np.meshgrid(grid, grid))
    fast = region_probability(region, p, q, FINE)
    slow = [naive(region, a, b) for a, b in zip(p, q, strict=True)]
    assert fast == pytest.approx(
        slow, abs=1e-7
    )  # what lies far below the mean of Y is added in full
    assert np.all(fast >= np.array(slow) - 1e-13)
    assert np.all(fast <= 1.0)


@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("region", REGIONS)
def test_coarse_blocks_never_lose_probability(region, blocks):
    grid = np.array([0.0, 0.03, 0.3, 0.5, 0.9, 1.0])
    p, q = (axis.ravel() for axis in np.meshgrid(grid, grid))
    coarse = region_probability(region, p, q, blocks)
    assert np.all(coarse >= region_probability(region, p, q, FINE) - 1e-10)
    assert np.all(coarse <= 1.0)


def test_coarse_blocks_never_lose_probability_with_many_draws():
    region = Region(linear(1.3, 40.0), 30_000, 25_000)
    q = np.array([0.001, 0.1, 0.5])
    p = np.minimum(1.3 * q * 25_000 / 30_000 + 0.005, 1)
    fine = region_probability(region, p, q, 10_000)
    for blocks in (16, 96, 128):
        coarse = region_probability(region, p, q, blocks)
        assert np.all(coarse >= fine - 1e-9)
        assert coarse == pytest.approx(fine, abs=0.1)


@pytest.mark.parametrize("m", [10**4, 10**6, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("q", [0.01, 0.2, 0.5])
def test_no_probability_is_lost_with_huge_counts(m, q):
    # A step: the region is {Y < cut}, so its probability is a plain binomial one.
    for z in np.linspace(-4, 4, 161):
        cut = math.floor(m * q + z * math.sqrt(m * q * (1 - q)))

        def step(y, cut=cut):
            return np.where(y < cut, 0.0, 2.0)

        found = float(
            region_probability(Region(step, 1, m), np.array([0.5]), np.array([q]), 128)[0]
        )
        assert found >= binom.cdf(cut - 1, m, q) - 1e-12


def test_threshold_that_is_an_integer_up_to_rounding_belongs_to_the_region():
    exact = Region(linear(0.0, 3.0), 10, 1)
    just_above = Region(linear(0.0, 3.0 * (1 + 2e-16)), 10, 1)
    p = q = np.array([0.4])
    assert region_probability(just_above, p, q, 4) == region_probability(exact, p, q, 4)


def supremum_on_grid(region, null, q_range, points=4001):
    q = np.linspace(*q_range, points)
    return float(region_probability(region, null.power(q), q, FINE).max())


CASES = [
    (region, NullLine(math.exp(epsilon), delta), q_range)
    for region in REGIONS
    for epsilon in (0.0, 0.7, 2.0)
    for delta in (0.0, 0.05)
    for q_range in ((0.0, 1.0), (0.0, 0.01), (0.2, 0.6), (0.85, 1.0))
]


@pytest.mark.parametrize("level", [0.01, 0.049, 0.3])
def test_greatest_probability_is_never_below_a_dense_grid(level):
    for region, null, q_range in CASES:
        bound = greatest_probability(region, null, q_range, level=level, cuts=8, blocks=FINE)
        reached = supremum_on_grid(region, null, q_range, 801)
        assert bound >= reached - 1e-10
        assert bound <= 1.0 + 1e-9 or reached > level


def test_greatest_probability_is_close_where_the_level_needs_it():
    for region, null, q_range in CASES:
        reached = supremum_on_grid(region, null, q_range, 801)
        # Asked at a level a little above the supremum, it must not cry wolf.
        if 0 < reached < 0.9:
            level = reached + 0.02
            assert (
                greatest_probability(region, null, q_range, level=level, cuts=64, blocks=FINE)
                <= level
            )


def test_more_intervals_only_sharpen_the_answer():
    region, null, q_range = Region(linear(1.5, 4.0), 60, 60), NullLine(1.5, 0.0), (0.05, 0.4)
    found = [
        greatest_probability(region, null, q_range, level=0.05, cuts=intervals, blocks=61)
        for intervals in (4, 16, 64, 1024)
    ]
    assert all(coarse >= fine - 1e-12 for coarse, fine in pairwise(found))
    assert found[-1] == pytest.approx(supremum_on_grid(region, null, q_range), abs=0.02)


def test_power_is_cut_at_one():
    assert NullLine(3.0, 0.1).power(np.array([0.0, 0.1, 0.3, 0.9])) == pytest.approx(
        [0.1, 0.4, 1.0, 1.0]
    )


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("null", [NullLine(1.0, 0.0), NullLine(1.5, 0.0), NullLine(1.5, 0.05)])
def test_chord_bounds_the_second_derivative(region, null):
    """(b − a)²/8 · max |f''| on short intervals, with f'' by finite differences."""
    step = 1e-4
    top = min(0.95, (0.95 - null.shift) / null.slope)
    a = np.linspace(0.03, top - 0.03, 25)
    b = a + 0.01
    allowed = _chord_excess(region, null, a, b) * 8 / (b - a) ** 2
    for place in (a, 0.5 * (a + b), b):
        f = [
            region_probability(region, null.power(q), q, FINE)
            for q in (place - step, place, place + step)
        ]
        curvature = np.abs(f[0] - 2 * f[1] + f[2]) / step**2
        assert np.all(curvature <= allowed * (1 + 1e-6) + 1e-2)


def test_chord_says_nothing_at_the_ends():
    region = Region(linear(1.0, 1.0), 5, 5)
    touching = _chord_excess(
        region, NullLine(2.0, 0.0), np.array([0.0, 0.45, 0.6]), np.array([0.1, 0.55, 0.7])
    )
    assert touching == pytest.approx([1.0, 1.0, 1.0])


def slow_region_probability(region, p, q, edges):
    """Literally, with P(Y < edge) as the complement of the incomplete beta function."""
    below = np.array([betaincc(edge, region.n_right - edge + 1, q) for edge in edges])
    mass = np.diff(below, append=1.0)
    tail = [
        betainc(needed, region.n_left - needed + 1, p)
        for needed in np.ceil(region.threshold(edges))
    ]
    return below[0] + float(mass @ tail)


@pytest.mark.parametrize("trials", [100, 7000, 700_000, 20_000_000])
@pytest.mark.parametrize("q", [0.2, 0.5, 0.95])
def test_the_fast_form_is_that_of_a_slow_twin(trials, q):
    # P(X ≥ threshold) is about 0.05 and less: in the tails, where rounding 1 − q would show first.
    spread = math.sqrt(trials * q * (1.0 - q))
    region = Region(lambda y: np.minimum(y + 2.0 * spread, trials), trials, trials)
    edges = np.unique(np.round(trials * q + spread * np.linspace(-8.0, 1.5, 60)))
    edges = edges[edges >= 1.0]
    found = float(region_probability(region, np.array([q]), np.array([q]), edges)[0])
    assert found == pytest.approx(slow_region_probability(region, q, q, edges), rel=2.5e-11)
