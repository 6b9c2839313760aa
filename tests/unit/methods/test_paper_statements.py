"""Definitions, lemmas and formulas of the papers that our methods rest on, by enumeration or integration."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import erfinv, logsumexp
from scipy.stats import binom

import epsilometer as em
from epsilometer.claims.renyi import RenyiDP
from epsilometer.methods.published.auditorium.hockey_stick import published_excess
from epsilometer.methods.published.local.kernels import KERNELS
from epsilometer.methods.published.renyi.bound import Floor, floored_divergence
from epsilometer.outputs.scores import kernel_matrix

GRID = np.linspace(-40.0, 40.0, 80_001)


def laws(rng, size=6):
    return rng.dirichlet(np.ones(size), size=2)


def events(size):
    return (np.array(bits, dtype=bool) for bits in itertools.product((False, True), repeat=size))


def loss(p, q, event):
    """(2) of the local approach."""
    return abs(math.log(p[event].sum()) - math.log(q[event].sum()))


def hockey_stick(p, q, epsilon):
    """(10) of DP-Auditorium."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def divergence(p, q, order):
    return float(logsumexp(order * np.log(p) + (1.0 - order) * np.log(q))) / (order - 1.0)


# --- the local approach ----------------------------------------------------------------------------------------------


@pytest.mark.paper("A2", "equal")
def test_an_event_loses_at_most_what_one_of_its_parts_does(rng):
    p, q = laws(rng)
    for event in events(6):
        for part in events(6):
            one, other = event & part, event & ~part
            if one.any() and other.any():
                assert loss(p, q, event) <= max(loss(p, q, one), loss(p, q, other)) + 1e-12


@pytest.mark.paper("A2", "equal")
@pytest.mark.paper("A3", "equal")
def test_the_greatest_loss_of_an_event_is_that_of_a_single_output(rng):
    """Theorem 1, for a discrete algorithm."""
    p, q = laws(rng)
    over_events = max(loss(p, q, event) for event in events(6) if event.any())
    assert over_events == pytest.approx(np.abs(np.log(p / q)).max())


def test_small_intervals_come_near_the_greatest_loss_of_densities():
    """Theorem 1, for a continuous algorithm: an interval around t, shrinking, has the loss of the densities at t."""
    gaussian = [
        math.log(np.exp(-0.5 * (t - 1) ** 2).sum() / np.exp(-0.5 * t**2).sum())
        for t in _windows(3.0)
    ]
    assert abs(gaussian[-1] - 2.5) < abs(gaussian[0] - 2.5)
    assert gaussian[-1] == pytest.approx(2.5, abs=1e-3)


def _windows(centre):
    return [np.linspace(centre - half, centre + half, 2001) for half in (0.5, 0.05, 0.005)]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.paper("A20", "corrected")
def test_the_noisy_maximum_has_k_times_the_loss_of_one_component(k):
    """Example 1. The loss kλ is attained for t ≤ 0, not for large t as printed."""
    rate, t = 0.7, np.linspace(-8.0, 12.0, 2001)

    def log_density(centre):
        below = np.where(
            t < centre, 0.5 * np.exp(rate * (t - centre)), 1.0 - 0.5 * np.exp(-rate * (t - centre))
        )
        return math.log(k * rate / 2) - rate * np.abs(t - centre) + (k - 1) * np.log(below)

    found = np.abs(log_density(0.0) - log_density(1.0))
    assert found.max() == pytest.approx(k * rate, abs=1e-9)
    assert found[t <= 0.0] == pytest.approx(k * rate)
    if k > 1:
        assert found[-1] < k * rate - 0.1


def test_the_gaussian_mechanism_has_no_greatest_loss():
    """Figure 2: the wider the region, the greater the loss of N(0, 1) against N(1, 1); it keeps no pure claim."""
    assert em.zoo.gaussian(sigma=1.0).truth(em.PureDP) == math.inf
    left, right = (
        side + np.sqrt(2) * erfinv(np.linspace(-1, 1, 20_001)[1:-1]) for side in (0.0, 1.0)
    )
    found = [
        em.local.loss_function(left, right, region=(-end, end + 1)).estimate
        for end in (0.5, 1.5, 2.5)
    ]
    assert found == pytest.approx([1.0, 2.0, 3.0], rel=0.15)


@pytest.mark.paper("A9", "equal")
def test_kernel_estimates_come_nearer_with_more_draws(rng):
    """(10) and (11) for β = 1, d = 1: the greatest error is of order √(ln n)·n^(−1/3) with h = n^(−1/3)."""
    places = np.linspace(-3, 3, 61)
    density = 0.5 * np.exp(-np.abs(places))
    in_rates = []
    for n in (500, 5_000, 50_000):
        errors = [
            np.abs(
                em.local.tkde(draws, places, bandwidth=n ** (-1 / 3), floor=1e-9) - density
            ).max()
            for draws in rng.laplace(size=(20, n))
        ]
        in_rates.append(np.mean(errors) / (math.sqrt(math.log(n)) * n ** (-1 / 3)))
    # About .23 at each size. At a slower rate the quotient would grow: by 2.9 at n^(−1/10).
    assert in_rates[2] < 1.5 * in_rates[0]
    assert max(in_rates) < 0.4


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_kernels_are_symmetric_and_fall_exponentially(name):
    """(K1) and (K2)."""
    kernel = KERNELS[name].evaluate
    u = np.linspace(0.0, 20.0, 401)
    assert kernel(u) == pytest.approx(kernel(-u))
    assert np.all(np.diff(kernel(u)) <= 0.0)
    assert np.all(kernel(u[u > 3]) <= np.exp(-u[u > 3]))


# --- Rényi lower bounds ----------------------------------------------------------------------------------------------


@pytest.mark.paper("D1", "equal")
@pytest.mark.paper("C12", "equal")
def test_the_divergence_grows_with_its_order_towards_the_pure_loss(rng):
    """Definition 2 there, Lemma 4.5 of DP-Auditorium: D_∞ is the greatest log ratio."""
    p, q = laws(rng)
    found = [divergence(p, q, order) for order in (1.01, 2.0, 5.0, 50.0, 2000.0)]
    assert np.all(np.diff(found) > 0.0)
    assert found[-1] == pytest.approx(np.log(p / q).max(), abs=0.01)


def test_the_gaussian_mechanism_keeps_a_renyi_claim_proportional_to_its_order():
    for order in (2.0, 5.0, 7.0):
        assert em.zoo.gaussian(sigma=1.0).truth(RenyiDP, order=order) == pytest.approx(order / 2)


@pytest.mark.paper("D6", "equal")
@pytest.mark.paper("D8", "equal")
def test_the_soft_floor_is_a_floor_near_the_hard_one():
    """(13), (17) and Appendix B: q_τ ≥ max(q, τ), within ln 2/β of it, with slope 1/(1 + e^(−β(q − τ)))."""
    floor, q = Floor(0.1, 200.0), np.linspace(0.0, 0.5, 1001)
    raised = floor.raised(q)
    hard = np.maximum(q, 0.1)
    assert np.all(raised >= hard)
    assert (raised - hard).max() == pytest.approx(math.log(2) / 200.0)
    slope = np.gradient(raised, q)
    assert floor.slope(q)[1:-1] == pytest.approx(slope[1:-1], abs=0.01)
    assert np.all((floor.slope(q) >= 0.0) & (floor.slope(q) <= 1.0))


def test_a_lower_floor_loses_less(rng):
    """(12): D(p, q_τ) comes near D(p, q) from below as τ falls."""
    p, q = laws(rng)
    found = [
        floored_divergence(p, q, 2.0, floor, sharpness=1e4 / floor) for floor in (0.2, 0.02, 1e-4)
    ]
    assert found[0] <= found[1] <= found[2] <= divergence(p, q, 2.0) + 1e-6
    assert found[2] == pytest.approx(divergence(p, q, 2.0), abs=1e-3)


@pytest.mark.paper("D12", "equal")
def test_the_laplace_density_is_smooth_enough():
    """Appendix C: its weak derivative satisfies (∫(f'(u + t) − f'(u))² du)^½ ≤ L·|t|^½, so s = 1.5."""
    step = GRID[1] - GRID[0]

    def slope(u):
        return -0.5 * np.sign(u) * np.exp(-np.abs(u))

    ratios = [
        math.sqrt(float(((slope(GRID + t) - slope(GRID)) ** 2).sum()) * step) / math.sqrt(t)
        for t in (1e-2, 0.1, 1.0)
    ]
    assert max(ratios) < 1.1
    ordinary = [ratio * math.sqrt(t) / t for ratio, t in zip(ratios, (1e-2, 0.1, 1.0), strict=True)]
    assert ordinary[0] > 5.0  # not Lipschitz in the mean square: s = 2 would ask for that


@pytest.mark.paper("D12", "equal")
def test_silvermans_kernel_is_of_higher_order():
    """(K) of Appendix A: ∫u²K = 0."""
    values, step = KERNELS["silverman"].evaluate(GRID), GRID[1] - GRID[0]
    assert float(values.sum()) * step == pytest.approx(1.0, abs=1e-6)
    assert float((values * GRID**2).sum()) * step == pytest.approx(0.0, abs=1e-5)
    assert values.min() < 0.0


@pytest.mark.paper("D4", "equal")
def test_relative_frequencies_err_like_one_over_the_root():
    """(9) and Lemma 1 of Appendix A, by the exact variance of a binomial."""
    for n in (100, 10_000):
        k = np.arange(n + 1)
        spread = math.sqrt(float(binom.pmf(k, n, 0.3) @ (k / n - 0.3) ** 2))
        assert spread * math.sqrt(n) == pytest.approx(math.sqrt(0.3 * 0.7))


# --- DP-Auditorium ---------------------------------------------------------------------------------------------------


@pytest.mark.paper("C2", "equal")
def test_approximate_privacy_is_a_bounded_hockey_stick_divergence(rng):
    """Definition 2.3 and Lemma 4.7: P(A) ≤ e^ε·Q(A) + δ for all A iff H_ε ≤ δ."""
    p, q = laws(rng)
    for epsilon in (0.0, 0.1, 0.2):
        worst = max(p[event].sum() - math.exp(epsilon) * q[event].sum() for event in events(6))
        assert max(worst, 0.0) == pytest.approx(hockey_stick(p, q, epsilon))
        # The claim's curve: every event keeps it at that δ, and some event breaks any smaller one.
        for delta, keeps in ((worst + 1e-12, True), (worst - 1e-3, False)):
            claim = em.ApproxDP(epsilon, max(delta, 0.0))
            of_events = [
                p[event].sum() <= claim.max_power(float(q[event].sum())) + 1e-12
                for event in events(6)
            ]
            assert all(of_events) == keeps


@pytest.mark.paper("C16", "equal")
def test_no_function_between_0_and_1_beats_the_best_event(rng):
    """Lemma 4.8 and Proposition A.4."""
    p, q = laws(rng)
    best = hockey_stick(p, q, 0.5)
    for _ in range(200):
        g = rng.random(6)
        assert float(g @ p - math.exp(0.5) * g @ q) <= best + 1e-12


@pytest.mark.paper("C16", "equal")
def test_the_conjugate_of_the_hockey_stick():
    """The proof of Lemma 4.8: f*(y) = e^ε·y on [0, 1], infinite above."""
    x, grow = np.linspace(-50.0, 200.0, 250_001), math.exp(0.4)
    for y in (0.0, 0.3, 1.0):
        left = 0.0 if y else -math.inf  # y = 0 has its supremum anywhere below e^ε
        found = max(
            float((y * x - np.maximum(0.0, x - grow))[x >= (0.0 if y else -50.0)].max()), left
        )
        assert found == pytest.approx(grow * y, abs=1e-2)
    assert float((1.5 * x - np.maximum(0.0, x - grow)).max()) > 90.0


@pytest.mark.paper("C16", "equal")
def test_the_divergence_is_the_accuracy_of_a_classifier(rng):
    """Lemmas 4.9 and A.3: H_ε = (1 + e^ε)·max_g D(g(X) = Y) − e^ε."""
    p, q = laws(rng)
    grow = math.exp(0.5)
    accuracy = max((grow * q[~g].sum() + p[g].sum()) / (1.0 + grow) for g in events(6))
    assert (1.0 + grow) * accuracy - grow == pytest.approx(hockey_stick(p, q, 0.5))


@pytest.mark.paper("C17", "equal")
def test_hoeffding_covers_by_enumeration():
    """Proposition 4.11 (and 4.12, which applies it): S/m − √(ln(1/β)/2m) exceeds p with probability at most β."""
    m, beta = 60, 0.1
    k = np.arange(m + 1)
    low = k / m - math.sqrt(math.log(1 / beta) / (2 * m))
    for p in np.linspace(0.01, 0.99, 99):
        assert binom.pmf(k[low > p], m, p).sum() <= beta


def test_the_published_excess_is_the_classifiers_bound(rng):
    from epsilometer.bounds import Counts

    found = published_excess(Counts(900, 1000), Counts(100, 1000), 0.5, 0.05, rng=rng)
    assert found <= 0.9 - math.exp(0.5) * 0.1
    assert found > 0.9 - math.exp(0.5) * 0.1 - 0.15


@pytest.mark.paper("C48", "equal")
def test_chernoffs_multiplicative_bounds_by_enumeration():
    """Theorem A.1, for a coin with values 0 and M."""
    n, top, chance = 80, 2.0, 0.3
    mean, k = top * chance, np.arange(n + 1)
    for eta in (0.1, 0.5, 1.0):
        above = binom.pmf(k[k * top / n >= (1 + eta) * mean], n, chance).sum()
        below = binom.pmf(k[k * top / n <= (1 - eta) * mean], n, chance).sum()
        assert above <= math.exp(-n * mean * eta**2 / (3 * top))
        assert below <= math.exp(-n * mean * eta**2 / (2 * top))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "polynomial"])
@pytest.mark.paper("C22", "equal")
def test_the_squared_discrepancy_is_the_mean_of_h(kernel, rng):
    """Theorem 4.14, by enumerating x, x', y, y'."""
    points = rng.normal(size=(4, 2))
    p, q = laws(rng, 4)
    gram = kernel_matrix(kernel, points, points)
    squared = float((p - q) @ gram @ (p - q))
    mean = sum(
        p[a] * p[b] * q[c] * q[d] * (gram[a, b] - 2 * gram[a, c] + gram[c, d])
        for a, b, c, d in itertools.product(range(4), repeat=4)
    )
    assert mean == pytest.approx(squared)


@pytest.mark.paper("C21", "equal")
def test_functions_of_norm_one_stay_within_one(rng):
    """(27): |f(x)| ≤ ‖f‖ when k(x, x) ≤ 1."""
    points = rng.normal(size=(20, 2))
    gram = kernel_matrix("laplace", points, points)
    weights = rng.normal(size=20)
    weights /= math.sqrt(weights @ gram @ weights)
    assert np.abs(gram @ weights).max() <= 1.0 + 1e-9


# --- local privacy ---------------------------------------------------------------------------------------------------


@pytest.mark.paper("B1", "equal")
def test_the_one_sided_level_is_that_of_the_larger_direction(rng):
    """(1) and (3) of the paper on local privacy: the two-sided level is the larger of two one-sided ones."""
    p, q = laws(rng)
    one, other = float(np.log(p / q).max()), float(np.log(q / p).max())
    assert max(one, other) == pytest.approx(float(np.abs(np.log(p / q)).max()))
