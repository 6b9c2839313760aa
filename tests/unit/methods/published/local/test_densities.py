"""Floored densities against slow literal twins and closed forms."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.methods.published.local.densities import MarginGrid, kernel_density
from epsilometer.methods.published.local.kernels import (
    KERNELS,
    find_kernel,
    find_space_kernel,
    robust_scales,
    rule_of_thumb,
)
from epsilometer.methods.published.local.options import Box


def tkde_literally(sample, t, h, floor):
    """Algorithm 1 as it is printed."""
    out = 0.0
    for x in sample:
        out += math.exp(-0.5 * ((t - x) / h) ** 2) / math.sqrt(2 * math.pi)
    return max(out / (len(sample) * h), floor)


def tdde_literally(sample, t, floor):
    """Algorithm 2 as it is printed."""
    out = 0
    for x in sample:
        if x == t:
            out += 1
    return max(out / len(sample), floor)


@pytest.mark.paper("A7", "equal")
def test_tkde_is_algorithm_1():
    sample = np.linspace(-2, 3, 57) ** 3
    for t in (-8.0, 0.0, 1.3, 400.0):
        assert em.local.tkde(sample, t, bandwidth=0.7, floor=1e-3) == pytest.approx(
            tkde_literally(sample, t, 0.7, 1e-3), rel=1e-12
        )


def test_tkde_takes_many_places_and_dimensions():
    sample = np.stack([np.linspace(-1, 1, 40), np.linspace(2, -2, 40) ** 2], axis=1)
    many = em.local.tkde(sample, [[0.0, 1.0], [0.5, 2.0]], bandwidth=[0.3, 0.6], floor=1e-9)
    assert many.shape == (2,)
    single = em.local.tkde(sample, [0.5, 2.0], bandwidth=[0.3, 0.6], floor=1e-9)
    assert single == pytest.approx(many[1])
    by_hand = np.mean(
        [tkde_literally([x], 0.5, 0.3, 0) * tkde_literally([y], 2.0, 0.6, 0) for x, y in sample]
    )
    assert single == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.paper("A10", "equal")
def test_tdde_is_algorithm_2():
    sample = [3, 1, 3, 3, 2, 7]
    for t in (1, 2, 3, 9):
        assert em.local.tdde(sample, t, 0.05) == tdde_literally(sample, t, 0.05)
    assert em.local.tdde(["a", "b", "a"], "a", 0.1) == pytest.approx(2 / 3)
    assert em.local.tdde(np.array([[0, 1], [0, 1], [1, 1]]), [0, 1], 0.1) == pytest.approx(2 / 3)
    assert em.local.tdde(sample, np.array([1, 3]), 0.05).tolist() == [1 / 6, 0.5]
    assert em.local.tdde([np.nan, 1.0], np.nan, 0.1) == 0.5


@pytest.mark.paper("A13", "corrected")
def test_the_floor_is_chosen_from_the_draws():
    assert em.local.tdde(np.arange(1000), -5) == pytest.approx(20 / 1000)
    far = em.local.tkde(np.linspace(0, 1, 1000), 100.0, bandwidth=0.1)
    assert far == pytest.approx(20 / (2 * math.sqrt(math.pi)) / (1000 * 0.1))


@pytest.mark.parametrize("name", list(KERNELS))
def test_kernels_are_densities_with_their_roughness(name):
    kernel = KERNELS[name]
    u = np.linspace(-40, 40, 800_001)
    values = kernel.evaluate(u)
    step = u[1] - u[0]
    assert values.sum() * step == pytest.approx(1.0, abs=1e-6)
    assert (values**2).sum() * step == pytest.approx(kernel.roughness, abs=1e-6)
    assert values.max() == pytest.approx(kernel.peak)
    assert kernel.evaluate(np.array([kernel.reach])) < 1e-5


@pytest.mark.paper("A31", "equal")
def test_rule_of_thumb_is_that_of_r():
    # bw.nrd0(c(1, 2, 3, 4, 10)) is 0.9 * min(sd, IQR/1.34) * 5^-0.2 with R's quartiles 2 and 4.
    sample = np.array([1.0, 2, 3, 4, 10])[:, None]
    expected = 0.9 * min(np.std(sample, ddof=1), 2 / 1.34) * 5**-0.2
    assert rule_of_thumb(robust_scales(sample), 5, KERNELS["gaussian"])[0] == pytest.approx(
        expected
    )


def triangle(u):
    return np.maximum(1.0 - np.abs(u), 0.0)


@pytest.mark.parametrize("name", list(KERNELS))
def test_a_function_gets_the_constants_of_the_kernel_it_is(name):
    known = KERNELS[name]
    found = find_kernel(lambda u: known.evaluate(u))
    assert found.roughness == pytest.approx(known.roughness, rel=1e-4)
    assert found.peak == pytest.approx(known.peak)
    assert found.stretch == pytest.approx(known.stretch, rel=2e-3)
    assert found.reach == pytest.approx(known.reach, rel=0.15)


@pytest.mark.parametrize("kernel", [*KERNELS, triangle])
def test_tkde_is_its_sum_for_every_kernel(kernel):
    """Algorithm 1, term by term."""
    sample, t, h, floor = [0.1, 0.4, 0.45, 2.0], 0.3, 0.5, 1e-3
    K = find_kernel(kernel).evaluate
    literal = max(sum(float(K(np.array((t - x) / h))) for x in sample) / (len(sample) * h), floor)
    assert em.local.tkde(sample, t, bandwidth=h, kernel=kernel, floor=floor) == pytest.approx(
        literal
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda u: np.exp(-(u**2)), "integral"),
        (lambda u: (u > 0) * np.exp(-np.abs(u)), "must equal"),
        (lambda u: 1.0, "finite number for each"),
        (lambda u: u.nothing, "failed"),
        ("boxcar", "or give a function"),
    ],
)
def test_functions_that_are_no_kernels(function, message):
    with pytest.raises(InputError, match=message):
        em.local.tkde([0.0, 1.0], 0.5, bandwidth=0.1, kernel=function)


def test_a_bandwidth_is_a_number_a_rule_or_a_function(rng):
    sample = rng.normal(size=500)
    by_rule = em.local.tkde(sample, 0.3, bandwidth="nrd0")
    assert by_rule == em.local.tkde(sample, 0.3)
    assert by_rule != em.local.tkde(sample, 0.3, bandwidth="nrd")
    assert em.local.tkde(sample, 0.3, bandwidth=lambda draws: 0.2) == em.local.tkde(
        sample, 0.3, bandwidth=0.2
    )
    seen = []
    em.local.tkde(
        rng.normal(size=(50, 2)),
        [0.0, 0.0],
        bandwidth=lambda draws: seen.append(draws.shape) or [0.3, 0.4],
    )
    assert seen == [(50, 2)]
    for wrong in (
        "mean",
        lambda draws: 0.0,
        lambda draws: [1.0, 2.0, 3.0],
        lambda draws: draws.nothing,
    ):
        with pytest.raises(InputError, match="bandwidth"):
            em.local.tkde(sample, 0.3, bandwidth=wrong)


@pytest.mark.parametrize("kernel", ["laplace", "silverman", triangle])
def test_every_kernel_bounds_the_loss_in_an_audit(kernel):
    options = em.local.Options(kernel=kernel, region=(-1, 1), proof_bandwidth=lambda draws: 0.15)
    result = em.audit(
        em.zoo.laplace(1.0),
        None,
        em.PureDP(0.5),
        samples=30_000,
        seed=0,
        method="local",
        options=options,
    )
    assert result.is_refuted
    assert result.lower_bound < 1.1
    assert result.findings[0].details["kernel"] == (
        kernel if isinstance(kernel, str) else "triangle"
    )


def test_rule_of_thumb_survives_constant_samples():
    assert robust_scales(np.zeros((5, 1)))[0] == 1.0
    assert robust_scales(np.full((5, 1), -3.0))[0] == 3.0
    assert robust_scales(np.array([0.0] * 9 + [1.0])[:, None])[0] > 0


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_binned_densities_are_near_the_direct_ones(dimension, rng):
    rows = rng.normal(size=(300, dimension))
    low, high = np.full(dimension, -1.0), np.full(dimension, 1.2)
    h = np.full(dimension, 0.6)
    kernel = find_space_kernel("gaussian", "product", dimension)
    grid = MarginGrid.over(low, high, np.stack([h, h]), kernel)
    binned = grid.density(rows, h, kernel)
    chosen = slice(None, None, max(1, len(binned) // 50))
    direct = kernel_density(rows, grid.places()[chosen], h, kernel)
    assert np.allclose(
        binned[chosen], direct, rtol=0.03 if dimension > 2 else 0.01, atol=1e-4 * direct.max()
    )


@pytest.mark.parametrize("shape", ["product", "spherical"])
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_a_region_that_is_tiny_next_to_a_bandwidth_needs_no_memory(dimension, shape, rng):
    """The margin of a grid grows with bandwidth over region; its memory with a power of that."""
    rows = rng.normal(size=(300, dimension))
    low = np.full(dimension, -1e-3)
    h = np.full(dimension, 0.6)
    kernel = find_space_kernel("epanechnikov", shape, dimension)
    limits = Box(np.full(dimension, -np.inf), np.full(dimension, 0.5))
    grid = MarginGrid.over(low, -low, np.stack([h, h]), kernel)
    densities = grid.density(rows, h, kernel, limits)
    direct = kernel_density(rows, grid.places(), h, kernel, limits)
    assert np.allclose(densities, direct)


def test_reflection_repairs_the_density_at_an_end_of_the_support():
    sample = -np.log(1 - (np.arange(4000) + 0.5) / 4000)  # quantile-spaced exponential draws
    plain = em.local.tkde(sample, 0.0, bandwidth=0.05, floor=1e-6)
    mended = em.local.tkde(sample, 0.0, bandwidth=0.05, floor=1e-6, support=(0, None))
    assert plain == pytest.approx(0.48, abs=0.03)
    assert mended == pytest.approx(0.96, abs=0.03)
    loss = em.local.loss_function(
        sample, 2 * sample, support=(0.0, math.inf), region=(0, 1), bandwidth=0.05
    )
    assert loss(0.0) == pytest.approx(math.log(2), abs=0.05)
    assert np.interp(0.0, loss.points, loss.loss) == pytest.approx(float(loss(0.0)), abs=1e-3)


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("support", [(0, None), (None, 0.5), (-0.1, 0.1)])
def test_draws_outside_the_support_are_told(support, dimension, rng):
    """Reflection doubles them: what is estimated then is no density of the outputs."""
    sample = rng.normal(size=(200, dimension)) if dimension > 1 else rng.normal(size=200)
    place = [0.0] * dimension if dimension > 1 else 0.0
    calls = [
        lambda: em.local.tkde(sample, place, support=support),
        lambda: em.local.loss_function(sample, sample + 1.0, support=support),
        lambda: em.local.interval(sample, sample + 1.0, place, support=support),
        lambda: em.local.mpl(
            em.from_batch(lambda x, n, rng: x + rng.normal(size=n)),
            em.Pair(0.0, 1.0),
            n=100,
            N=200,
            support=support,
        ),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"\d+ of \d+ outputs lie outside support=\("):
            call()


def test_the_ends_of_the_support_belong_to_it():
    sample = np.array([0.0, 0.0, 0.2, 0.5, 1.0])
    assert em.local.tkde(sample, 0.5, support=(0, 1), bandwidth=0.1) > 0.0
