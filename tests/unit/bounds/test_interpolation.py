"""The interpolated supremum against dense grids and intervals, and its bound in the complex plane against numbers."""

import math

import numpy as np
import pytest

from epsilometer.bounds import Counts
from epsilometer.bounds.interpolation import _growth, interpolated_supremum, needed_degree
from epsilometer.bounds.supremum import (
    NullLine,
    Region,
    common_edges,
    greatest_probability,
    region_probability,
)
from epsilometer.bounds.two_counts import epsilon_lower, epsilon_test

LEVEL = 0.049


def linear(slope, start):
    return lambda y: start + slope * y


REGIONS = [
    Region(linear(1.0, 2.0), 6, 6),
    Region(linear(1.7, 0.5), 12, 9),
    Region(linear(0.4, 3.0), 15, 40),
    Region(linear(3.0, 1.0), 40, 11),
    Region(linear(1.5, 30.0), 600, 500),
    Region(linear(0.0, 99.0), 5, 5),
]
CASES = [
    (region, NullLine(math.exp(epsilon), delta), q_range)
    for region in REGIONS
    for epsilon in (0.0, 1.1)
    for delta in (0.0, 0.05)
    for q_range in ((0.0, 0.01), (0.0, 0.1), (0.05, 0.15), (0.3, 0.4))
]


def on_grid(region, null, q_range, points=301):
    q = np.linspace(*q_range, points)
    return float(region_probability(region, null.power(q), q, 1000).max())


def test_it_applies_to_most_cases():
    found = [interpolated_supremum(*case, level=LEVEL, blocks=1000) for case in CASES]
    assert sum(value is not None for value in found) > 0.8 * len(CASES)


@pytest.mark.parametrize("level", [1e-6, LEVEL, 0.3])
def test_never_below_a_dense_grid_and_hardly_above(level):
    for region, null, q_range in CASES:
        found = interpolated_supremum(region, null, q_range, level=level, blocks=1000)
        if found is not None:
            reached = on_grid(region, null, q_range)
            assert reached <= found <= reached + 0.005 * level + 2e-3 * reached + 1e-7


COUNTS = [
    (Counts(700, 1000), Counts(300, 1000)),
    (Counts(60, 100_000), Counts(1, 50_000)),
    (Counts(300, 7000), Counts(100, 7000)),
    (Counts(35_000, 70_000), Counts(17_400, 70_000)),
    (Counts(2_250_000, 4_500_000), Counts(828_000, 4_500_000)),
]


@pytest.mark.parametrize("failure", [0.05, 1e-6])
@pytest.mark.parametrize(("left", "right"), COUNTS)
def test_sharper_than_intervals_and_above_a_grid_at_the_bound_itself(left, right, failure):
    test = epsilon_test(left, right, failure)
    null = NullLine(math.exp(epsilon_lower(left, right, failure)), 0.0)
    found = interpolated_supremum(test.region, null, test.q_range, level=test.level, blocks=128)
    q = np.linspace(*np.sqrt(test.q_range), 151) ** 2
    shared = region_probability(
        test.region, null.power(q), q, common_edges(test.region, test.q_range, 128)
    )
    assert found is not None
    assert shared.max() <= found <= shared.max() + 0.003 * test.level
    by_intervals = greatest_probability(
        test.region, null, test.q_range, level=test.level, cuts=64, blocks=128
    )
    assert (
        found <= by_intervals + 0.05 * test.level
    )  # blocks that all q share are a little coarser for some of them


def test_the_polynomial_errs_by_no_more_than_the_degree_promises():
    """The literal twin: Lagrange's polynomial through the nodes against the true values, between the nodes."""
    region, null, ends = Region(linear(1.5, 30.0), 600, 500), NullLine(1.5, 0.0), (0.4, 0.6)
    edges = common_edges(region, (ends[0] ** 2, ends[1] ** 2), 1000)
    for tolerance in (1e-2, 1e-4, 1e-6):
        degree = needed_degree(region, null, ends, tolerance)
        nodes = 0.5 + 0.1 * np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
        values = region_probability(region, null.power(nodes**2), nodes**2, edges)
        between = np.linspace(*ends, 173)
        guessed = [
            sum(value * lagrange(nodes, i, u) for i, value in enumerate(values)) for u in between
        ]
        true = region_probability(region, null.power(between**2), between**2, edges)
        assert np.max(np.abs(np.array(guessed) - true)) <= tolerance


def lagrange(nodes, number, u):
    others = np.delete(nodes, number)
    return float(np.prod((u - others) / (nodes[number] - others)))


@pytest.mark.parametrize(
    "line", [NullLine(1.0, 0.0), NullLine(2.5, 0.0), NullLine(1.3, 0.1), NullLine(40.0, 0.0)]
)
def test_growth_bounds_the_absolute_sum_in_the_complex_plane(line):
    for a in (0.0, 0.01, 0.1, 0.15, 0.4, 0.7):
        for b in (0.0, 1e-3, 0.05, 0.3, 1.0):
            promised = float(_growth(7, line, np.array([a * a]), np.array([b * b]))[0])
            for real in np.linspace(-a, a, 9):
                for imaginary in np.linspace(-b, b, 9):
                    p = line.slope * complex(real, imaginary) ** 2 + line.shift
                    assert 7 * math.log(abs(p) + abs(1 - p)) <= promised + 1e-12


def test_nothing_is_promised_where_the_null_is_cut():
    region, null = Region(linear(2.0, 5.0), 100, 100), NullLine(3.0, 0.0)
    assert interpolated_supremum(region, null, (0.2, 0.4), level=LEVEL, blocks=128) is None
    assert (
        interpolated_supremum(region, null, (0.2, 1 / 3 - 1e-3), level=LEVEL, blocks=128)
        is not None
    )


def test_tiny_growth_keeps_its_digits():
    # (|p| + |1 − p|)^n for p = u² and u = a + ib with tiny b is close to exp(2·n·b²/(1 − a²)).
    found = float(_growth(10**9, NullLine(1.0, 0.0), np.array([0.25]), np.array([1e-18]))[0])
    assert found == pytest.approx(2e9 * 1e-18 / 0.75, rel=1e-6)


def test_common_blocks_only_add_to_the_region():
    for region, null, q_range in CASES:
        q = np.linspace(*q_range, 12)
        fine = region_probability(region, null.power(q), q, 1000)
        for blocks in (3, 20, 128):
            edges = common_edges(region, q_range, blocks)
            assert np.all(np.diff(edges) > 0)
            assert np.all(region_probability(region, null.power(q), q, edges) >= fine - 1e-7)
