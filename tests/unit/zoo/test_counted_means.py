"""Means over noisy counts: their laws against SciPy's integrals, and against seeded draws (false alarm ≤ 1e-9)."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer import zoo
from epsilometer.claims import ApproxDP, PureDP, RenyiDP
from epsilometer.zoo.distributions.counted_means import (
    UnequalGaussianDistributions,
    UnequalLaplaceDistributions,
    gaussian_mean_density,
    laplace_mean_density,
)

RUNS = 200_000
FALSE_ALARM = 1e-9
NAMES = (
    "dp_laplace",
    "dp_laplace_released",
    "nondp_laplace1",
    "nondp_laplace2",
    "nondp_gaussian1",
    "nondp_gaussian2",
)


def quad(function, pieces):
    return sum(
        integrate.quad(function, low, high, epsabs=1e-15, epsrel=1e-11, limit=200)[0]
        for low, high in itertools.pairwise(sorted(pieces))
    )


@pytest.mark.parametrize("count", [0.005, 0.5, 6.0])
@pytest.mark.parametrize("total", [0.0, 0.4, -1.5])
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.08, 1.0, -1.0, -40.0])
@pytest.mark.paper("C35", "equal")
def test_the_density_with_laplace_noise_is_an_integral(count, total, t):
    def integrand(y):
        return y / 4 * math.exp(-abs(y - count) - abs(y * t - total))

    crossing = total / t if total * t > 0 else count
    last = max(count, min(crossing, 60.0))
    pieces = {0.0, min(count, crossing), last, last + 1 / (1 + abs(t)), last + 60 / (1 + abs(t))}
    assert laplace_mean_density(np.array([t]), count, total)[0] == pytest.approx(
        quad(integrand, pieces), rel=1e-9, abs=1e-20
    )


@pytest.mark.parametrize("count", [0.005, 0.5, 6.0])
@pytest.mark.parametrize("distance", [0.0, 1e-4, 0.3, 7.0, 2000.0])
@pytest.mark.paper("C36", "corrected")
def test_the_density_with_gaussian_noise_is_an_integral(count, distance):
    def integrand(y):
        return y * stats.norm.pdf(y * distance) * math.exp(-abs(y - count)) / 2

    width = 1 / max(distance, 1 / 60)
    pieces = {0.0, count, *(place for place in (width, 3 * width, 12 * width) if place < 60), 60.0}
    exact = quad(integrand, pieces)
    assert gaussian_mean_density(np.array([distance]), count)[0] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "name", ["dp_laplace", "dp_laplace_released", "nondp_laplace2", "nondp_gaussian2"]
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
def test_nothing_of_the_law_is_lost(name, epsilon):
    law = zoo.find(name, epsilon=epsilon).distributions
    assert law.left.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.right.sum() == pytest.approx(1.0, abs=1e-9)


def events_of(name):
    """Events (name, contains, exact probabilities) at epsilon = 1, where the count's noise has scale 2."""
    drowned = [math.exp(-0.5) / 2, math.exp(-1.0) / 2]
    if name == "dp_laplace":
        return [("noise over a raised count", lambda t: np.abs(t) > 1e9, drowned)]
    if name == "dp_laplace_released":
        # Left of 0 the right dataset has 1/ñ for negative counts, and noise over positive ones.
        return [("next to nothing", lambda t: np.abs(t) < 5e-11, [drowned[0], 0.0])]
    if name == "nondp_laplace1":
        return [("tail", lambda t: t > 5, [math.exp(-2) / 2, math.exp(-5) / 2])]
    if name == "nondp_gaussian1":
        return [("tail", lambda t: t > 5, [stats.norm.sf(4 / 2), stats.norm.sf(5)])]
    return [("noise over a raised count", lambda t: np.abs(t) > 1e9, drowned)]


@pytest.mark.parametrize(
    "name",
    [
        "dp_laplace",
        "dp_laplace_released",
        "nondp_laplace1",
        "nondp_laplace2",
        "nondp_gaussian1",
        "nondp_gaussian2",
    ],
)
def test_events_have_their_exact_probabilities(name, rng):
    entry = zoo.find(name)
    for side in (0, 1):
        outputs = entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng)
        for _, contains, chances in events_of(name):
            hits, chance = int(np.count_nonzero(contains(outputs))), chances[side]
            tails = stats.binom.cdf(hits, RUNS, chance), stats.binom.sf(hits - 1, RUNS, chance)
            assert min(tails) >= FALSE_ALARM / 4, f"{hits}/{RUNS}, exact {chance:.6g}"


@pytest.mark.parametrize(
    ("name", "density"),
    [
        ("nondp_laplace2", lambda t, count, mean: laplace_mean_density(t - mean, count, 0.0)),
        ("nondp_gaussian2", lambda t, count, mean: gaussian_mean_density(t - mean, count)),
    ],
)
def test_draws_near_the_mean_have_their_exact_law(name, density, rng):
    """P(|t - mean of the other dataset| < .3), where the pair is most easily told apart."""
    entry = zoo.find(name)
    for side, (count, mean) in enumerate([(0.5, 1.0), (1.0, 0.0)]):
        nodes, weights = np.polynomial.legendre.leggauss(200)
        chance = float(density(0.3 * nodes, count, mean) @ weights * 0.3)
        outputs = entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng)
        hits = int(np.count_nonzero(np.abs(outputs) < 0.3))
        tails = stats.binom.cdf(hits, RUNS, chance), stats.binom.sf(hits - 1, RUNS, chance)
        assert min(tails) >= FALSE_ALARM / 4, f"{hits}/{RUNS}, exact {chance:.6g}"


def test_the_published_figures_of_the_docstrings():
    assert zoo.nondp_laplace2(0.01).truth() == pytest.approx(1.391, abs=5e-4)
    assert zoo.nondp_laplace2(1.0).truth() == pytest.approx(1.832, abs=5e-4)
    assert zoo.nondp_gaussian2(0.01).truth() == pytest.approx(1.031, abs=5e-4)
    assert zoo.nondp_gaussian2(1.0).truth() == pytest.approx(1.518, abs=5e-4)
    assert zoo.dp_laplace(1.0).truth() == pytest.approx(1.0, abs=1e-9)
    assert zoo.dp_laplace_released(1.0).truth() > 26


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 1.0])
def test_gaussian_delta_over_a_noisy_count_is_an_integral(epsilon):
    """The positive part by SciPy on a fine grid of the same density, the raised counts by hand."""
    entry = zoo.nondp_gaussian2(epsilon)
    half = epsilon / 2
    places = np.concatenate(
        [-np.geomspace(1e-9, 1e12, 15_001)[::-1], [0.0], np.geomspace(1e-9, 1e12, 15_001)]
    )
    grid = np.unique(np.concatenate([places, 1 + places]))
    p, q = gaussian_mean_density(grid - 1, half), gaussian_mean_density(grid, 2 * half)
    drowned = math.exp(-half) / 2 - math.exp(epsilon) * math.exp(-2 * half) / 2
    forth = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), grid) + max(0.0, drowned)
    back = np.trapezoid(np.maximum(q - math.exp(epsilon) * p, 0), grid)
    assert entry.truth(ApproxDP, epsilon=epsilon) == pytest.approx(max(forth, back), abs=2e-5)


# --- noises of different widths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 1.9, 1.0])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_unequal_laplace_renyi_is_an_integral(order, shift):
    law = UnequalLaplaceDistributions(shift, (2.0, 1.0))
    p, q = stats.laplace(0.0, 2.0).logpdf, stats.laplace(shift, 1.0).logpdf
    assert law.renyi(order) == pytest.approx(
        renyi_by_quad(p, q, order, {-700, -30, 0, shift, 30, 700}), abs=1e-7
    )
    assert law.renyi(2.0) == math.inf


@pytest.mark.parametrize("order", [1.2, 1.0])
def test_unequal_gaussian_renyi_is_an_integral(order):
    law = UnequalGaussianDistributions(1.0, (2.0, 1.0))
    p, q = stats.norm(0.0, 2.0).logpdf, stats.norm(1.0, 1.0).logpdf
    assert law.renyi(order) == pytest.approx(
        renyi_by_quad(p, q, order, {-60, -8, 0, 1, 8, 60}), abs=1e-7
    )
    assert law.renyi(1.5) == math.inf
    assert UnequalGaussianDistributions(1.0, (1.5, 1.0)).renyi(1.5) < math.inf


def renyi_by_quad(p, q, order, pieces):
    return max(one_way(p, q, order, pieces), one_way(q, p, order, pieces))


def one_way(p, q, order, pieces):
    if order == 1.0:
        return quad(lambda t: math.exp(p(t)) * (p(t) - q(t)), pieces)
    return math.log(quad(lambda t: math.exp(order * p(t) + (1 - order) * q(t)), pieces)) / (
        order - 1
    )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
@pytest.mark.parametrize(
    ("law", "densities"),
    [
        (
            UnequalLaplaceDistributions(1.0, (2.0, 1.0)),
            (stats.laplace(0, 2).pdf, stats.laplace(1, 1).pdf),
        ),
        (
            UnequalGaussianDistributions(1.0, (2.0, 1.0)),
            (stats.norm(0, 2).pdf, stats.norm(1, 1).pdf),
        ),
        (
            UnequalGaussianDistributions(0.5, (1.0, 1.1)),
            (stats.norm(0, 1).pdf, stats.norm(0.5, 1.1).pdf),
        ),
    ],
    ids=["laplace", "gaussian", "nearly equal"],
)
def test_unequal_deltas_are_integrals(law, densities, epsilon):
    grid = np.linspace(-90, 90, 1_800_001)
    p, q = (density(grid) for density in densities)
    excess = [
        np.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), grid) for a, b in ((p, q), (q, p))
    ]
    assert law.delta(epsilon) == pytest.approx(max(excess), abs=2e-6)


def test_a_large_epsilon_does_not_overflow():
    assert zoo.nondp_gaussian1(50.0).truth() > 50
    assert UnequalGaussianDistributions(1.0, (2.0, 1.0)).delta(1e4) == 0.0
    assert zoo.nondp_laplace1(1.0).truth(RenyiDP, order=1.5) < zoo.nondp_laplace1(1.0).truth(PureDP)


def test_an_output_of_a_count_that_is_raised_still_reveals_the_sum():
    """Noise 2e12 about 0 against the same noise about 1e12: below 0 all of epsilon, on e^(-1/2)/4 of the draws."""
    entry, n = zoo.dp_laplace(1.0), 40_000
    left, right = (
        entry.mechanism.function(entry.worst_pair.side(side), n, np.random.default_rng([7, side]))
        < -1e9
        for side in (0, 1)
    )
    p, q = math.exp(-0.5) / 4, math.exp(-1.5) / 4
    for share, chance in ((left.mean(), p), (right.mean(), q)):  # once in 1e10 times
        assert abs(share - chance) < 6.5 * math.sqrt(chance * (1 - chance) / n)
    for epsilon in (0.0, 0.5, 0.9):
        assert entry.truth(ApproxDP, epsilon=epsilon) >= p - math.exp(epsilon) * q
