"""Privacy of a pair of laws, against closed forms and against integrals by SciPy."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    GaussianDistributions,
    ProductDistributions,
    density_distributions,
    discrete_distributions,
    gaussian_delta,
    laplace_distributions,
)


def quad_laplace(shift, integrand):
    p, q = stats.laplace(0).pdf, stats.laplace(shift).pdf
    pieces = [(-60, 0), (0, shift / 2), (shift / 2, shift), (shift, 60)]
    return sum(
        integrate.quad(lambda t: integrand(p(t), q(t)), *piece, epsabs=1e-13)[0] for piece in pieces
    )


@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
@pytest.mark.paper("D1", "equal")
def test_renyi_of_laplace_is_the_integral(shift, order):
    exact = math.log(quad_laplace(shift, lambda p, q: p**order * q ** (1 - order))) / (order - 1)
    assert laplace_distributions(shift).renyi(order) == pytest.approx(exact, abs=1e-9)


def test_renyi_of_laplace_matches_the_published_figures():
    values = [laplace_distributions(1 / 5).renyi(order) for order in (2.0, 5.0, 7.0)]
    assert values == pytest.approx([0.037015, 0.084103, 0.107113], abs=6e-7)


def test_kullback_leibler_is_the_limit_of_order_one():
    exact = quad_laplace(1.3, lambda p, q: p * math.log(p / q))
    assert laplace_distributions(1.3).renyi(1.0) == pytest.approx(exact, abs=1e-9)
    assert laplace_distributions(1.3).renyi(1 + 1e-7) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 0.99])
def test_delta_of_laplace_is_the_integral(epsilon):
    exact = integrate.quad(
        lambda t: max(0.0, stats.laplace(0).pdf(t) - math.exp(epsilon) * stats.laplace(1).pdf(t)),
        -60,
        2,
        points=[0, (1 - epsilon) / 2, 1],
        epsabs=1e-12,
        limit=200,
    )[0]
    assert laplace_distributions(1.0).delta(epsilon) == pytest.approx(exact, abs=1e-9)


def test_laplace_beyond_its_epsilon_has_no_delta():
    law = laplace_distributions(1.0)
    assert law.delta(1.0) == 0.0
    assert law.delta(math.inf) == 0.0
    assert law.epsilon(0.0) == law.pure_epsilon() == 1.0
    assert law.epsilon(0.99) == 0.0


def test_epsilon_inverts_delta():
    for law in (
        laplace_distributions(2.0),
        GaussianDistributions(1.0),
        discrete_distributions(np.array([0.7, 0.3]), np.array([0.2, 0.8])),
    ):
        for delta in (1e-5, 0.01, 0.1):
            assert law.delta(law.epsilon(delta)) == pytest.approx(delta, rel=1e-9)


def test_gaussian_law_has_the_known_values():
    law = GaussianDistributions(1.0)
    assert law.pure_epsilon() == math.inf
    assert law.epsilon(1e-5) == pytest.approx(4.37717, abs=1e-4)
    assert (law.renyi(3.0), law.mu(), law.rho()) == (1.5, 1.0, 0.5)
    exact = stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5)
    assert law.delta(1.0) == pytest.approx(exact, abs=1e-15)
    assert gaussian_delta(1e-3, 700.0) == 0.0


def test_a_disjoint_cell_makes_everything_infinite_but_delta():
    law = discrete_distributions(np.array([0.1, 0.9, 0.0]), np.array([0.0, 0.9, 0.1]))
    assert law.pure_epsilon() == law.renyi(2.0) == law.mu() == law.rho() == math.inf
    assert law.delta(math.inf) == 0.1
    assert law.epsilon(0.05) == math.inf
    assert law.epsilon(0.2) == 0.0


def test_the_larger_direction_counts():
    forth = discrete_distributions(np.array([0.01, 0.99]), np.array([0.1, 0.9]))
    back = discrete_distributions(np.array([0.1, 0.9]), np.array([0.01, 0.99]))
    assert forth.renyi(3.0) == back.renyi(3.0)
    assert forth.delta(0.5) == back.delta(0.5) == pytest.approx(0.1 - math.exp(0.5) * 0.01)


def roc_mu(left, right):
    """Naive: the greatest distance in normal quantiles over the corners of the trade-off curve, both directions."""
    best = 0.0
    for p, q in ((left, right), (right, left)):
        order = np.argsort(-p / q)
        power, level = np.cumsum(p[order])[:-1], np.cumsum(q[order])[:-1]
        best = max(best, float((stats.norm.ppf(power) - stats.norm.ppf(level)).max()))
    return best


@pytest.mark.parametrize("left", [[0.2, 0.8], [0.5, 0.3, 0.2], [0.05, 0.05, 0.4, 0.5]])
def test_mu_of_a_discrete_law_lies_on_a_corner_of_its_trade_off_curve(left):
    p = np.array(left)
    assert discrete_distributions(p, p[::-1].copy()).mu() == pytest.approx(
        roc_mu(p, p[::-1]), abs=1e-6
    )


def test_mu_of_laplace_is_the_greatest_distance_along_its_trade_off_curve():
    t = np.linspace(-8, 9, 200_001)
    distances = stats.norm.isf(stats.laplace.sf(t, 0)) - stats.norm.isf(stats.laplace.sf(t, 1))
    assert laplace_distributions(1.0).mu() == pytest.approx(distances.max(), abs=1e-6)


def test_rho_is_the_greatest_divergence_per_order():
    law = discrete_distributions(np.array([0.2, 0.8]), np.array([0.1, 0.9]))
    orders = np.geomspace(1.0001, 1000, 20_000)
    assert law.rho() == pytest.approx(
        max(law.renyi(float(order)) / order for order in orders), abs=1e-5
    )


def test_cells_with_noise_agree_with_their_density():
    """Two cells with a Laplace number each, once in closed form and once as densities side by side."""
    left, right, shifts = np.array([0.3, 0.7]), np.array([0.6, 0.4]), np.array([1.0, 0.4])
    apart = 200.0  # the second cell's numbers lie there, far from the first one's

    def density(t, weights, centres):
        laws = [stats.laplace(centres[0]).pdf(t), stats.laplace(apart + centres[1]).pdf(t)]
        return weights[0] * laws[0] + weights[1] * laws[1]

    dense = density_distributions(
        lambda t: density(t, left, (0.0, 0.0)),
        lambda t: density(t, right, shifts),
        (0.0, 1.0, 100.0, apart, apart + 0.4),
        1.0,
    )
    cells = CellDistributions(left, right, shifts)
    for order in (1.0, 2.0, 5.0):
        assert cells.renyi(order) == pytest.approx(dense.renyi(order), abs=1e-9)
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5):
        assert cells.delta(epsilon) == pytest.approx(dense.delta(epsilon), abs=1e-6)
    assert cells.pure_epsilon() == pytest.approx(math.log(2) + 1)


def test_a_product_adds_divergences_and_knows_no_delta():
    law = ProductDistributions(laplace_distributions(0.3), 5)
    assert law.pure_epsilon() == pytest.approx(1.5)
    assert law.renyi(2.0) == pytest.approx(5 * laplace_distributions(0.3).renyi(2.0))
    assert law.rho() == pytest.approx(5 * laplace_distributions(0.3).rho())
    assert law.delta(0.5) is law.epsilon(0.1) is law.mu() is None


def test_solving_for_the_gaussian_shift_agrees_with_scipy():
    root = optimize.brentq(lambda shift: gaussian_delta(shift, 1.0) - 1e-5, 0.01, 2.0, xtol=1e-14)
    assert GaussianDistributions(root).epsilon(1e-5) == pytest.approx(1.0, abs=1e-9)
