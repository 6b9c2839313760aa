"""Kernels in several dimensions: products and functions of the distance, against integrals and literal sums."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.local.densities import MarginGrid, kernel_density
from epsilometer.methods.published.local.kernels import KERNELS, find_kernel, find_space_kernel
from epsilometer.methods.published.local.options import Box


def triangle(u):
    return np.maximum(1.0 - np.abs(u), 0.0)


@pytest.mark.parametrize("shape", ["product", "spherical"])
@pytest.mark.parametrize("name", ["epanechnikov", "biweight", "laplace", triangle])
def test_a_kernel_in_the_plane_integrates_to_1_with_its_roughness(shape, name):
    kernel = find_space_kernel(name, shape, 2)
    reach = 14.0 if name == "laplace" else 1.1
    axis = np.linspace(-reach, reach, 1401)
    step = axis[1] - axis[0]
    values = kernel.evaluate(np.stack(np.meshgrid(axis, axis), axis=-1))
    assert values.sum() * step**2 == pytest.approx(1.0, abs=2e-3)
    assert (values**2).sum() * step**2 == pytest.approx(kernel.roughness, rel=2e-3)
    assert values.max() == pytest.approx(kernel.peak, rel=1e-3)


@pytest.mark.paper("A8", "equal")
@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_spherical_kernels_have_their_closed_forms(d):
    """(K1): K depends on |u| alone. Epanechnikov's is (d + 2)/(2·V_d)·(1 − |u|²) on the unit ball, of volume V_d."""
    volume = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    rng = np.random.default_rng(d)
    u = rng.normal(size=(500, d)) / math.sqrt(d)
    distance = np.linalg.norm(u, axis=1)
    found = find_space_kernel("epanechnikov", "spherical", d)
    literal = (d + 2) / (2 * volume) * np.maximum(1 - distance**2, 0)
    assert found.evaluate(u) == pytest.approx(literal, rel=1e-9)
    # ∫K² = 2(d + 2)/((d + 4)·V_d).
    assert found.roughness == pytest.approx(2 * (d + 2) / ((d + 4) * volume), rel=1e-9)
    assert find_space_kernel("epanechnikov", "product", d).evaluate(u) != pytest.approx(literal)
    # The Gaussian is both.
    gaussian = find_space_kernel("gaussian", "spherical", d).evaluate(u)
    assert gaussian == pytest.approx(
        np.exp(-(distance**2) / 2) / (2 * math.pi) ** (d / 2), rel=1e-9
    )


@pytest.mark.paper("A8", "equal")
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
@pytest.mark.parametrize("d", [2, 3, 6])
def test_tkde_with_a_spherical_kernel_is_algorithm_1(kernel, d, rng):
    """(8), term by term: n⁻¹h⁻ᵈ Σ K((t − X_i)/h), in any number of dimensions."""
    sample, t, h = rng.normal(size=(40, d)), np.full(d, 0.2), 1.3
    profile = find_kernel(kernel).evaluate
    radius = np.linspace(0, 60, 600_001)
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    constant = 1 / (sphere * np.trapezoid(profile(radius) * radius ** (d - 1), radius))
    total = 0.0
    for x in sample:
        total += constant * float(profile(np.array([np.linalg.norm((t - x) / h)]))[0])
    found = em.local.tkde(
        sample, t, bandwidth=h, kernel=kernel, floor=1e-12, kernel_shape="spherical"
    )
    assert found == pytest.approx(total / (len(sample) * h**d), rel=1e-6)


@pytest.mark.parametrize("kernel", ["epanechnikov", "laplace"])
@pytest.mark.parametrize("d", [2, 3])
def test_a_grid_has_the_densities_of_the_sums(kernel, d, rng):
    rows = rng.normal(size=(300, d))
    h = np.full(d, 1.5 if kernel == "epanechnikov" else 0.5)
    found = find_space_kernel(kernel, "spherical", d)
    grid = MarginGrid.over(np.full(d, -1.0), np.full(d, 1.2), np.stack([h, h]), found)
    for limits in (None, Box(np.full(d, -1.0), np.full(d, np.inf))):
        binned = grid.density(rows, h, found, limits)
        chosen = slice(None, None, max(1, len(binned) // 40))
        direct = kernel_density(rows, grid.places()[chosen], h, found, limits)
        assert np.allclose(binned[chosen], direct, rtol=0.08, atol=0.02 * direct.max())


def test_the_stretch_in_one_dimension_is_that_of_the_line():
    for name in ("epanechnikov", "biweight", "laplace"):
        assert find_space_kernel(name, "spherical", 1).stretch == KERNELS[name].stretch
    # In the plane the spherical Epanechnikov kernel is a little narrower than the product.
    assert 2.0 < find_space_kernel("epanechnikov", "spherical", 2).stretch < 2.6


def test_a_kernel_without_a_positive_integral_is_refused():
    with pytest.raises(em.InputError, match="over 3 dimensions is not positive"):
        em.local.tkde(
            np.zeros((5, 3)), np.zeros(3), 0.5, kernel="silverman", kernel_shape="spherical"
        )
    with pytest.raises(em.InputError, match="kernel_shape='round'"):
        em.local.Options(kernel_shape="round")


@pytest.mark.parametrize("shape", ["product", "spherical"])
@pytest.mark.parametrize("dimension", [2, 5])
def test_vectors_are_bounded_with_either_shape(shape, dimension):
    entry = em.zoo.laplace_vector(2.0, dimension)
    found = em.local.mpl(
        entry,
        [entry.worst_pair],
        n=4000,
        N=20_000,
        kernel="epanechnikov",
        kernel_shape=shape,
        select="bound",
        seed=0,
    )
    assert 0.3 < found.lower_bound < 2.0
    assert len(found.location) == dimension
    assert found.finding.details["kernel_shape"] == shape


def test_places_in_many_dimensions_do_not_count_themselves(rng):
    """Six coordinates, 200 draws: a draw that counted itself would see a density on its own side alone."""
    left, right = rng.normal(size=(2, 2000, 6))
    loss = em.local.loss_function(
        left, right, bandwidth=0.05, floor=1e-9, kernel="epanechnikov", kernel_shape="spherical"
    )
    assert loss.points.shape[1] == 6
    assert loss.n == (1800, 1800)
    # With so small a bandwidth no place has another draw: both densities are the floor.
    assert loss.estimate == 0.0
