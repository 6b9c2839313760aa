"""Floored divergences of mixed distributions against sums and integrals."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import epsilometer as em
from epsilometer.methods.published.renyi.bound import Floor, estimate
from epsilometer.methods.published.renyi.densities import Densities, Smoothing
from epsilometer.methods.published.renyi.mixtures import find_mixed_view
from epsilometer.methods.published.renyi.samples import read_densities
from epsilometer.outputs import read_outputs


def laplace_quantiles(centre, n=40_000):
    u = (np.arange(n) + 0.5) / n
    return centre + np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))


def clamped(centre, low=-0.5, high=1.5):
    return np.clip(laplace_quantiles(centre), low, high)


def clamped_divergence(order, low=-0.5, high=1.5):
    """D_order of Laplace noise at 0 from that at 1, both clamped: two probabilities and an integral."""

    def density(t, centre):
        return math.exp(-abs(t - centre)) / 2

    below = [math.exp(low - centre) / 2 for centre in (0, 1)]
    above = [math.exp(centre - high) / 2 for centre in (0, 1)]
    masses = sum(p**order * q ** (1 - order) for p, q in (below, above))
    between = quad(
        lambda t: density(t, 0) ** order * density(t, 1) ** (1 - order), low, high, points=[0, 1]
    )[0]
    return math.log(masses + between) / (order - 1)


@pytest.mark.parametrize("order", [2.0, 5.0])
def test_the_divergence_is_a_sum_and_an_integral(order):
    found = em.renyi.lower_bound(clamped(0.0), clamped(1.0), order, floor=1e-4)
    assert found.estimate == pytest.approx(clamped_divergence(order), rel=0.02)
    assert found.lower_bound < found.estimate


def test_the_unit_of_the_outputs_does_not_matter():
    bounds = [
        em.renyi.lower_bound(unit * clamped(0.0), unit * clamped(1.0), 2.0)
        for unit in (1.0, 1000.0)
    ]
    assert bounds[0].lower_bound == pytest.approx(bounds[1].lower_bound, rel=1e-6)
    assert bounds[0].floor == pytest.approx(50 / 40_000)


def test_parts_are_joined_in_their_own_units():
    masses = Densities(np.array([0.5]), np.array([0.25]), 1.0, (100, 100))
    density = Densities(np.array([0.1, 0.3]), np.array([0.2, 0.55]), 1.25, (100, 100), unit=4.0)
    joined = Densities.joined([masses, density])
    assert joined.p @ joined.width == pytest.approx(1.0)
    found = estimate(joined.p, joined.q, 2.0, Floor(1e-9, 1e9), joined.width)
    expected = math.log(0.5**2 / 0.25 + 1.25 * (0.1**2 / 0.2 + 0.3**2 / 0.55))
    assert found.divergence == pytest.approx(expected, rel=1e-6)


def test_the_variance_is_that_of_resampled_draws(rng):
    """4000 samples of a point mass beside a uniform density: the relative error of a variance is 2.3 %."""
    n, order = 4000, 2.0
    left, right = 0.4, 0.2
    values = []
    for a, b in zip(rng.binomial(n, left, 4000), rng.binomial(n, right, 4000), strict=True):
        p = np.array([a / n, 1 - a / n])
        q = np.array([b / n, 1 - b / n])
        values.append(estimate(p, q, order, Floor(1e-4, 1e4), np.array([1.0, 1.0])).divergence)
    p, q = np.array([left, 1 - left]), np.array([right, 1 - right])
    # The uniform density of height .6/2 and .8/2 on an interval of length 2, as ten cells.
    joined = Densities.joined(
        [
            Densities(p[:1], q[:1], 1.0, (n, n)),
            Densities(np.full(10, p[1] / 2), np.full(10, q[1] / 2), 0.2, (n, n), unit=1.0),
        ]
    )
    found = estimate(joined.p, joined.q, order, Floor(1e-4, 1e4), joined.width)
    assert n * np.var(values) == pytest.approx(found.left_variance + found.right_variance, rel=0.14)


def test_counts_of_chunks_add_up():
    left, right = read_outputs(clamped(0.0)), read_outputs(clamped(1.0))
    view = find_mixed_view(left, right)
    assert len(view.point_masses) == 2
    whole = view.count(left)
    assert whole.sum() == pytest.approx(len(left))
    parts = [view.count(left.take(slice(a, a + 7777))) for a in range(0, len(left), 7777)]
    assert sum(parts) == pytest.approx(whole, abs=1e-6)


def test_a_column_of_categories_beside_a_number():
    """A bit that leaks and a number that does not: the divergence is that of the bit."""
    x = laplace_quantiles(0.0, 8000)
    left = np.stack([(np.arange(8000) % 4 == 0).astype(float), x], axis=1)
    right = np.stack([(np.arange(8000) % 2 == 0).astype(float), x + 1e-5], axis=1)
    found = read_densities(left, right, Smoothing())
    assert found.p @ np.broadcast_to(found.width, found.p.shape) == pytest.approx(1.0, abs=0.02)
    bound = em.renyi.lower_bound(left, right, 2.0, floor=1e-4)
    exact = math.log(0.25**2 / 0.5 + 0.75**2 / 0.5)
    assert bound.estimate == pytest.approx(exact, abs=0.02)


def test_a_density_on_one_side_only():
    left = np.concatenate([np.zeros(8000), laplace_quantiles(0.0, 2000)])
    found = em.renyi.lower_bound(left, np.zeros(10_000), 2.0, floor=1e-3)
    assert found.lower_bound > 1.0
    back = em.renyi.lower_bound(np.zeros(10_000), left, 2.0)
    assert back.estimate == pytest.approx(-math.log(0.8), abs=1e-3)


def test_a_number_or_nothing_from_lists():
    """Half of the answers are withheld on the left, a quarter on the right: a point mass beside a density."""
    n = 8000
    x, y = laplace_quantiles(0.0, n), laplace_quantiles(1.0, n)
    order = np.random.default_rng(0).permutation(n)
    left = [None if place % 2 == 0 else float(x[place]) for place in order]
    right = [None if place % 4 == 0 else float(y[place]) for place in order]
    found = em.renyi.lower_bound(left, right, 2.0, floor=1e-3)
    plain = em.zoo.laplace(1.0).truth(em.RenyiDP, order=2.0)
    exact = math.log(0.5**2 / 0.25 + 0.5**2 / 0.75 * math.exp(plain))
    assert found.estimate == pytest.approx(exact, abs=0.03)
    assert found.lower_bound < found.estimate


def test_names_beside_numbers_from_lists_of_tuples():
    x = laplace_quantiles(0.0, 4000)
    left = [("a" if place % 4 else "b", float(value)) for place, value in enumerate(x)]
    right = [("a" if place % 2 else "b", float(value)) for place, value in enumerate(x)]
    found = em.renyi.lower_bound(left, right, 2.0, floor=1e-3)
    assert found.estimate == pytest.approx(math.log(0.25**2 / 0.5 + 0.75**2 / 0.5), abs=0.03)


def test_names_or_nothing_are_counted():
    left, right = ["yes"] * 600 + [None] * 400, ["yes"] * 300 + [None] * 700
    found = em.renyi.lower_bound(left, right, 2.0, floor=1e-4)
    assert found.estimate == pytest.approx(math.log(0.6**2 / 0.3 + 0.4**2 / 0.7), abs=1e-3)


@pytest.mark.parametrize("outputs", [[object(), object(), None], [[None, 1.0], [2.0, lambda: 0]]])
def test_outputs_that_cannot_be_read_are_told(outputs):
    with pytest.raises(em.InputError, match="left_outputs"):
        em.renyi.lower_bound(outputs, [1.0, 2.0, 3.0], 2.0)
