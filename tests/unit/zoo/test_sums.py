"""Sums, subsampling, shuffling and descent: exact divergences against published figures, integrals and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer import zoo
from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP

ORDERS = (2, 5, 7)
FIGURES = {
    "laplace_sum": (zoo.laplace_sum(epsilon=0.2), (0.037015, 0.084103, 0.107113)),
    "gaussian_sum": (zoo.gaussian_sum(sigma=5.0), (0.04, 0.10, 0.14)),
    "subsampled_laplace": (zoo.subsampled_laplace(epsilon=0.2), (0.009383, 0.023060, 0.031493)),
    "subsampled_gaussian": (zoo.subsampled_gaussian(sigma=5.0), (0.010151, 0.026168, 0.037412)),
    "randomized_responses": (zoo.randomized_responses(epsilon=1.5), (1.309634, 1.449647, 1.466431)),
    "noisy_gradient_descent": (zoo.noisy_gradient_descent(), (0.007255, 0.018137, 0.025391)),
}


@pytest.mark.parametrize("name", list(FIGURES))
@pytest.mark.paper("D16", "equal")
@pytest.mark.paper("D17", "equal")
@pytest.mark.paper("D18", "equal")
@pytest.mark.paper("D19", "equal")
@pytest.mark.paper("D20", "equal")
@pytest.mark.paper("D21", "equal")
@pytest.mark.paper("D22", "equal")
@pytest.mark.paper("D23", "corrected")
def test_six_digits_of_the_papers_divergences(name):
    entry, figures = FIGURES[name]
    assert [entry.truth(RenyiDP, order=order) for order in ORDERS] == pytest.approx(
        figures, abs=6e-7
    )


@pytest.mark.paper("D24", "equal")
@pytest.mark.parametrize("order", ORDERS)
def test_subsampling_and_shuffling_reduce_the_divergence_as_stated(order):
    """By more than 70 % and by more than 60 %, at every order of the paper; that of the shuffle is of its direction."""

    def truth(entry):
        return entry.truth(RenyiDP, order=order)

    for noise in ("laplace", "gaussian"):
        assert truth(FIGURES[f"subsampled_{noise}"][0]) < 0.3 * truth(FIGURES[f"{noise}_sum"][0])
    law = zoo.shuffled_responses(epsilon=1.5).distributions
    shuffled = math.log(float((law.left**order * law.right ** (1.0 - order)).sum())) / (order - 1)
    assert shuffled < 0.4 * truth(FIGURES["randomized_responses"][0])


@pytest.mark.paper("D22", "equal")
def test_the_shuffled_divergence_from_left_to_right_is_the_published_sum():
    """Term i: C(order, i)·((e^(2ε) − 1)/(m·e^ε))^i·E(Z − m/(e^ε + 1))^i, Z binomial; the other direction is larger."""
    epsilon, users = 1.5, 10
    law = zoo.shuffled_responses(epsilon).distributions
    z = np.arange(users + 1)
    share = 1 / (math.exp(epsilon) + 1)
    weights = stats.binom.pmf(z, users, share)
    slope = (math.exp(2 * epsilon) - 1) / (users * math.exp(epsilon))
    for order, figure in zip(ORDERS, (0.239396, 0.437170, 0.530391), strict=True):
        terms = [
            math.comb(order, i) * slope**i * float(weights @ (z - users * share) ** i)
            for i in range(order + 1)
        ]
        exact = math.log(math.fsum(terms)) / (order - 1)
        ours = math.log(float((law.left**order * law.right ** (1.0 - order)).sum())) / (order - 1)
        assert ours == pytest.approx(exact, rel=1e-10)
        assert ours == pytest.approx(figure, abs=6e-7)
        assert zoo.shuffled_responses(epsilon).truth(RenyiDP, order=order) > ours


def test_vectors_and_counts_have_the_same_law():
    rows = [
        zoo.shuffled_responses(0.7, users=4, output=output).distributions
        for output in ("vector", "counts")
    ]
    np.testing.assert_array_equal(rows[0].left, rows[1].left)


def moment(p, q, order, edges):
    def integrand(x):
        return p(x) ** order * q(x) ** (1 - order)

    return sum(integrate.quad(integrand, *ends)[0] for ends in itertools.pairwise(edges))


@pytest.mark.parametrize(
    ("sigma", "rate", "order"), [(1.0, 0.5, 2.0), (0.7, 0.1, 1.5), (2.0, 0.9, 7.3), (1.0, 1.0, 3.0)]
)
@pytest.mark.paper("D20", "equal")
def test_the_subsampled_gaussian_is_an_integral(sigma, rate, order):
    p = lambda x: (1 - rate) * stats.norm.pdf(x, 0, sigma) + rate * stats.norm.pdf(x, 1, sigma)  # noqa: E731
    q = lambda x: stats.norm.pdf(x, 0, sigma)  # noqa: E731
    edges = np.linspace(-10 * sigma, order + 10 * sigma, 60)
    moments = [moment(p, q, order, edges), moment(q, p, order, edges)]
    expected = math.log(max(moments)) / (order - 1)
    entry = zoo.subsampled_gaussian(sigma=sigma, rate=rate, order=order)
    assert entry.truth() == pytest.approx(expected, rel=1e-7)
    grid = np.linspace(-14 * sigma, 15 * sigma + 1, 400_001)
    excess = max(
        float(np.maximum(a(grid) - math.exp(0.3) * b(grid), 0).sum() * (grid[1] - grid[0]))
        for a, b in ((p, q), (q, p))
    )
    assert entry.truth(ApproxDP, epsilon=0.3) == pytest.approx(excess, abs=1e-6)


def test_what_no_subsampling_hides():
    entry = zoo.subsampled_gaussian(sigma=2.0)
    assert entry.truth(GaussianDP) == 0.5
    assert entry.truth(ZCDP) == 0.125
    assert entry.truth(RenyiDP, order=400.0) / 400 == pytest.approx(0.125, rel=0.02)
    assert entry.truth(PureDP) == math.inf
    assert entry.truth(RenyiDP, order=1.0 + 1e-7) == pytest.approx(
        entry.distributions.renyi(1.0), rel=1e-4
    )


def test_subsampling_shrinks_epsilon():
    entry = zoo.subsampled_laplace(epsilon=1.0, rate=0.25)
    assert entry.truth(PureDP) == pytest.approx(math.log1p(0.25 * math.expm1(1.0)), abs=1e-9)


@pytest.mark.parametrize("scale", [0.5, 0.7, 0.9, 1.0])
@pytest.mark.paper("C44", "equal")
def test_the_scaled_descent_has_the_effective_multiplier(scale):
    entry = zoo.scaled_gd(scale=scale, sigma=2.0, steps=4, order=3.0)
    assert entry.claim.value == pytest.approx(3.0 * 4 / (2 * 2.0**2))
    assert entry.truth() == pytest.approx(entry.claim.value / scale**2)
    assert entry.keeps_claim == (scale >= 1)


RUNS = 200_000


def probability_of(hits, exact):
    low, high = stats.binom.cdf(hits, RUNS, exact), stats.binom.sf(hits - 1, RUNS, exact)
    return min(low, high)


def below(limit):
    return lambda outputs: outputs < limit


NORMAL = stats.norm.cdf
DESCENT = zoo.noisy_gradient_descent()
CONTRACTION = 0.8**10
SPREAD = math.sqrt(2 * (1 - CONTRACTION**2) / 1.8)
LIE = 1 / (1 + math.e)
EVENTS = {
    "laplace": (zoo.laplace_sum(), below(0), 0.5 / math.e, 0.5),
    "gaussian": (zoo.gaussian_sum(), below(0), NORMAL(-1), 0.5),
    "subsampled laplace": (
        zoo.subsampled_laplace(rate=0.3),
        below(0),
        0.7 * 0.5 + 0.3 * 0.5 / math.e,
        0.5,
    ),
    "subsampled gaussian": (
        zoo.subsampled_gaussian(rate=0.3),
        below(0),
        0.7 * 0.5 + 0.3 * NORMAL(-1),
        0.5,
    ),
    "responses": (
        zoo.randomized_responses(),
        lambda x: x[:, 0] & ~x[:, 9],
        (1 - LIE) ** 2,
        LIE * (1 - LIE),
    ),
    "shuffled": (
        zoo.shuffled_responses(users=2),
        lambda x: x[:, 0] & ~x[:, 1],
        *[((1 - LIE) ** 2 + LIE**2) / 2, LIE * (1 - LIE)],
    ),
    "counts": (
        zoo.shuffled_responses(users=2, output="counts"),
        lambda x: x == 2,
        LIE * (1 - LIE),
        LIE**2,
    ),
    "descent": (DESCENT, below(0), NORMAL(-0.1 * (1 - CONTRACTION) / SPREAD), 0.5),
    "scaled": (zoo.scaled_gd(scale=0.5), below(0), NORMAL(2.0), 0.5),
}


@pytest.mark.parametrize("case", list(EVENTS))
def test_draws_have_their_exact_law(case, rng):
    entry, event, *exact = EVENTS[case]
    for side in (0, 1):
        hits = int(
            np.count_nonzero(
                event(entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng))
            )
        )
        assert probability_of(hits, exact[side]) >= 1e-9 / 40
