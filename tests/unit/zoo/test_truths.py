"""The exact laws against integrals by SciPy that share no code with them, and against the published figures."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer import zoo
from epsilometer.claims import ApproxDP, PureDP, RenyiDP
from epsilometer.zoo.distributions.sparse_vector import (
    Scheme,
    answer_probabilities,
    answers_distributions,
    compared_value_distributions,
    first_above_distributions,
)


def quad(function, pieces):
    """The integral over neighbouring pieces, each without a kink inside."""
    return sum(
        integrate.quad(function, low, high, epsabs=1e-12, epsrel=1e-11, limit=200)[0]
        for low, high in itertools.pairwise(sorted(pieces))
    )


def renyi_by_quad(p, q, order, pieces):
    forth = quad(lambda t: p(t) ** order * q(t) ** (1 - order), pieces)
    back = quad(lambda t: q(t) ** order * p(t) ** (1 - order), pieces)
    return math.log(max(forth, back)) / (order - 1)


# --- noise with a density -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "rate"), [(0.2, 0.115834), (0.7, 0.541662), (1.5, 1.399228)])
@pytest.mark.paper("A29", "equal")
def test_exponential_has_the_papers_rate(epsilon, rate):
    entry = zoo.exponential(epsilon)
    assert entry.mechanism.function.keywords["rate"] == pytest.approx(rate, abs=6e-7)
    assert entry.truth(PureDP) == pytest.approx(epsilon, abs=1e-9)


def exponential_density(rate, centre):
    total = quad(lambda t: math.exp(-rate * abs(t - centre)), (0, centre, centre + 60 / rate))
    return lambda t: math.exp(-rate * abs(t - centre)) / total


def test_exponential_truths_are_integrals():
    entry = zoo.exponential(1.5)
    rate = entry.mechanism.function.keywords["rate"]
    p, q = exponential_density(rate, 1.0), exponential_density(rate, 2.0)
    pieces = (0, 1, 2, 30)
    assert entry.truth(RenyiDP, order=3.0) == pytest.approx(
        renyi_by_quad(p, q, 3.0, pieces), abs=1e-8
    )
    crossing = 1 + (1.5 - 1.0) / (2 * rate)  # the log ratio falls from 1.5 with slope 2 * rate
    exact = quad(lambda t: p(t) - math.e * q(t), (0, 1, crossing))
    assert entry.truth(ApproxDP, epsilon=1.0) == pytest.approx(exact, abs=1e-6)


def max_density(count, scale, centre):
    law = stats.laplace(centre, scale)
    return lambda t: count * law.pdf(t) * law.cdf(t) ** (count - 1)


@pytest.mark.parametrize("epsilon", [0.7, 1.5])
@pytest.mark.paper("A28", "corrected")
def test_noisy_max_value_truths_are_integrals(epsilon):
    entry = zoo.noisy_max_value(epsilon)
    p, q = max_density(3, 3 / epsilon, 0.0), max_density(3, 3 / epsilon, 1.0)
    assert entry.truth() == pytest.approx(epsilon, abs=1e-9) == math.log(p(-1.0) / q(-1.0))
    pieces = (-40, 0, 1, 80)
    assert entry.truth(RenyiDP, order=2.0) == pytest.approx(
        renyi_by_quad(p, q, 2.0, pieces), abs=1e-7
    )


def test_released_maximum_breaks_report_noisy_max():
    assert zoo.report_noisy_max(1.5, output="value").truth() == pytest.approx(6 * 1.5 / 2, abs=1e-9)
    entry = zoo.report_noisy_max(1.5, output="value", noise="exponential")
    assert entry.truth() == math.inf
    impossible = (1 - math.exp(-0.75)) ** 6  # all six stay below 1
    assert entry.truth(ApproxDP, epsilon=60.0) == pytest.approx(impossible, abs=1e-9)


# --- the position of a noisy maximum --------------------------------------------------------------------------------


def winning_chance(noise, scale, queries, winner):
    laws = [noise(query, scale) for query in queries]

    def density(t):
        return laws[winner].pdf(t) * math.prod(
            law.cdf(t) for i, law in enumerate(laws) if i != winner
        )

    return quad(density, {-40 * scale, *queries, 40 * scale})


@pytest.mark.parametrize(
    ("noise", "law"), [("laplace", stats.laplace), ("exponential", stats.expon)]
)
@pytest.mark.parametrize("epsilon", [0.7, 1.5])
@pytest.mark.paper("A25", "equal")
def test_report_noisy_max_truth_is_an_integral(noise, law, epsilon):
    entry = zoo.report_noisy_max(epsilon, noise=noise)
    tables = [
        [winning_chance(law, 2 / epsilon, side, winner) for winner in (0, 1)]
        for side in (entry.worst_pair.left, entry.worst_pair.right)
    ]
    exact = max(abs(math.log(p / q)) for p, q in zip(*tables, strict=True))
    assert entry.truth() == pytest.approx(exact, abs=1e-7)


def test_report_noisy_max_matches_the_measured_figures():
    truths = [zoo.report_noisy_max(epsilon).truth() for epsilon in (0.2, 0.7, 1.5)]
    assert truths == pytest.approx([0.196, 0.693, 1.492], abs=5.1e-4)


# --- sparse vector --------------------------------------------------------------------------------------------------


def answer_chance(scheme, queries, answers):
    """One outcome without reset, by an integral over the threshold's noise."""
    threshold_noise = stats.laplace(0, scheme.threshold_scale)

    def density(rho):
        below = [
            stats.laplace.cdf(scheme.threshold + rho - query, 0, scheme.query_scale)
            for query in queries
        ]
        chances = [
            1 - chance if answer else chance for chance, answer in zip(below, answers, strict=False)
        ]
        return threshold_noise.pdf(rho) * math.prod(chances)

    kinks = {0.0, *(query - scheme.threshold for query in queries)}
    return quad(density, {-30 * scheme.threshold_scale, *kinks, 30 * scheme.threshold_scale})


@pytest.mark.parametrize(
    "scheme",
    [Scheme(2 / 0.7, 4 / 0.7, 1), Scheme(4.0, 4 / 3, 2), Scheme(2.0, 2.0, None, threshold=0.3)],
)
@pytest.mark.paper("C38", "equal")
def test_answer_probabilities_are_integrals(scheme):
    queries = [2.0, 0.0, 1.0]
    table = answer_probabilities(scheme, queries)
    assert sum(table.values()) == pytest.approx(1.0, abs=1e-12)
    for answers, probability in table.items():
        assert probability == pytest.approx(answer_chance(scheme, queries, answers), abs=1e-9)


def test_a_threshold_that_is_noised_anew_makes_the_rounds_independent():
    scheme = Scheme(2.0, 3.0, 2, reset_scale=5.0)
    later = Scheme(5.0, 3.0, 1)
    queries = [0.5, 1.5, 2.5]
    table = answer_probabilities(scheme, queries)
    assert sum(table.values()) == pytest.approx(1.0, abs=1e-12)
    first = answer_chance(Scheme(2.0, 3.0, 1), queries, (0, 1))
    assert table[(0, 1, 1)] == pytest.approx(
        first * answer_chance(later, queries[2:], (1,)), abs=1e-9
    )
    first = answer_chance(Scheme(2.0, 3.0, 1), queries, (1,))
    assert table[(1, 0, 1)] == pytest.approx(
        first * answer_chance(later, queries[1:], (0, 1)), abs=1e-9
    )


@pytest.mark.parametrize(
    ("make", "figures"),
    [
        (zoo.svt1, [0.196, 0.680, 1.424]),
        (zoo.svt2, [0.196, 0.680, 1.424]),
        (zoo.svt6, [0.8495, 3.092, 6.858]),
        (zoo.svt5, [math.inf] * 3),
    ],
)
@pytest.mark.paper("A26", "equal")
def test_sparse_vectors_match_the_measured_figures(make, figures):
    assert [make(epsilon).truth() for epsilon in (0.2, 0.7, 1.5)] == pytest.approx(
        figures, abs=5.1e-4
    )


@pytest.mark.paper("C38", "equal")
def test_version_4_nearly_reaches_its_known_level():
    """(1 + 6c)/4 epsilon is what it keeps."""
    for epsilon, cutoff in itertools.product((0.2, 0.7, 1.5), (1, 2)):
        level = (1 + 6 * cutoff) / 4 * epsilon
        assert 0.85 * level < zoo.svt4(epsilon, cutoff).truth() <= level


def test_truths_do_not_drown_in_rounding_at_the_greatest_epsilon():
    assert 0.9 * 1.75 * 50 < zoo.svt4(50.0).truth() <= 1.75 * 50
    assert zoo.svt3(50.0).truth() == pytest.approx(4.5 * 50, abs=1e-6)
    assert 0.95 * 5 * 50 < zoo.svt6(50.0).truth() < 5 * 50


def test_version_5_has_the_likeliest_impossible_answer():
    for epsilon in (0.2, 0.7, 1.5):
        exact = -math.expm1(-epsilon / 2)
        assert zoo.svt5(epsilon).truth(ApproxDP, epsilon=100.0) == pytest.approx(exact, abs=1e-9)


D = 10
PATTERNS = [
    ([1] * D, [2] + [1] * 9),
    ([1] * D, [0] + [1] * 9),
    ([1] * D, [2] + [0] * 9),
    ([1] * D, [0] + [2] * 9),
    ([1] * D, [0] * 5 + [2] * 5),
    ([2] * 5 + [0] * 5, [1] * D),
    ([1] * D, [2] * D),
    ([1] * D, [0] * D),
    ([1] * 5 + [0] * 5, [0] * 5 + [1] * 5),
    ([1] + [0] * 9, [0] + [1] * 9),
    ([0] * 9 + [1], [1] * 9 + [0]),
]


@pytest.mark.parametrize("name", ["svt1", "svt4", "svt6"])
@pytest.mark.parametrize("epsilon", [0.7, 1.5])
def test_the_worst_pair_is_the_worst_of_the_usual_patterns(name, epsilon):
    entry = zoo.find(name, epsilon=epsilon)
    function = entry.mechanism.function
    scheme = function.scheme if hasattr(function, "scheme") else function.keywords["scheme"]
    assert (
        max(answers_distributions(scheme, *pair).pure_epsilon() for pair in PATTERNS)
        <= entry.truth() + 1e-9
    )


def test_the_pair_of_numerical_svt_is_the_worst_of_the_usual_patterns():
    entry = zoo.numerical_svt(0.7)
    function = entry.mechanism.function
    scheme = function.scheme if hasattr(function, "scheme") else function.keywords["scheme"]
    others = [first_above_distributions(scheme, *pair, 3 / 0.7).pure_epsilon() for pair in PATTERNS]
    assert max(others) <= entry.truth() + 1e-9 < 0.7
    assert entry.truth() == pytest.approx(0.6887, abs=1e-4)


def test_the_pair_of_version_3_gives_an_audit_most_to_find():
    """Other patterns have a larger loss, but on events that are too rare: delta at a high epsilon counts."""
    scheme = zoo.svt3(1.5).mechanism.function.keywords["scheme"]
    deltas = [compared_value_distributions(scheme, *pair).delta(3.2) for pair in PATTERNS]
    assert zoo.svt3(1.5).truth(ApproxDP, epsilon=3.2) == pytest.approx(max(deltas), rel=1e-9)


def compared_density(scheme, queries, position):
    """Density of (position, value) for the version that releases what it compared."""
    threshold_noise, query_noise = (
        stats.laplace(0, scheme.threshold_scale),
        stats.laplace(0, scheme.query_scale),
    )

    def reach(rho):
        earlier = queries[:position]
        return threshold_noise.pdf(rho) * math.prod(
            query_noise.cdf(scheme.threshold + rho - q) for q in earlier
        )

    def density(value):
        top = value - scheme.threshold
        kinks = {0.0, *(query - scheme.threshold for query in queries)}
        pieces = {min(-60.0, top - 40), *(kink for kink in kinks if kink < top), top}
        return query_noise.pdf(value - queries[position]) * quad(reach, pieces)

    return density


def compared_densities_on_a_grid(scheme, queries, grid):
    """The same for all positions at the values of an even grid, by Simpson's rule."""
    weight, rows = stats.laplace.pdf(grid - scheme.threshold, 0, scheme.threshold_scale), []
    for query in queries:
        reached = integrate.cumulative_simpson(weight, x=grid, initial=0.0)
        rows.append(stats.laplace.pdf(grid, query, scheme.query_scale) * reached)
        weight = weight * stats.laplace.cdf(grid, query, scheme.query_scale)
    return np.array(rows), integrate.simpson(weight, x=grid)


def test_released_compared_value_has_an_integral_for_its_truth():
    scheme, left, right = Scheme(2.0, 1.0, 1), [0.0, 1.0, 2.0], [1.0, 0.0, 1.0]
    law = compared_value_distributions(scheme, left, right)
    grid = np.linspace(-70.0, 70.0, 280_001)  # a step of 1/2000, with the kinks 0, 1, 2 on it
    (p, p_silent), (q, q_silent) = (
        compared_densities_on_a_grid(scheme, side, grid) for side in (left, right)
    )

    def total(function):
        return float(integrate.simpson(function(p, q), x=grid).sum() + function(p_silent, q_silent))

    inside = slice(
        60_000, 220_000
    )  # |value| <= 40: further out Simpson's densities lose their digits
    losses = np.abs(np.log(p[:, inside] / q[:, inside]))
    p, q = p[:, inside], q[:, inside]
    grid = grid[inside]
    assert law.pure_epsilon() == pytest.approx(
        max(losses.max(), abs(math.log(p_silent / q_silent))), abs=1e-6
    )
    exact = max(total(lambda a, b: a**2 / b), total(lambda a, b: b**2 / a))
    assert law.renyi(2.0) == pytest.approx(math.log(exact), abs=1e-7)
    for epsilon in (0.0, 0.3, 1.0):
        grow = math.exp(epsilon)
        forth = total(lambda a, b, grow=grow: np.maximum(0, a - grow * b))
        back = total(lambda a, b, grow=grow: np.maximum(0, b - grow * a))
        assert law.delta(epsilon) == pytest.approx(max(forth, back), abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
def test_version_3_attains_its_truth_where_the_integral_says(epsilon):
    entry = zoo.svt3(epsilon)
    scheme, pair = entry.mechanism.function.keywords["scheme"], entry.worst_pair
    position, value = (9, 1.0) if epsilon < 0.5 else (8, -1.0)
    densities = [
        compared_density(scheme, queries, position)(value) for queries in (pair.left, pair.right)
    ]
    assert entry.truth() == pytest.approx(abs(math.log(densities[0] / densities[1])), abs=1e-6)


def test_fresh_noise_adds_the_losses_of_position_and_value():
    scheme, left, right = Scheme(3.0, 6.0, 1), [0.0, 1.0], [1.0, 0.0]
    outcomes = [(1,), (0, 1), (0, 0)]
    tables = [
        [answer_chance(scheme, queries, answers) for answers in outcomes]
        for queries in (left, right)
    ]
    losses = [abs(math.log(p / q)) for p, q in zip(*tables, strict=True)]
    exact = max(losses[0] + 1 / 3, losses[1] + 1 / 3, losses[2])
    assert first_above_distributions(scheme, left, right, 3.0).pure_epsilon() == pytest.approx(
        exact, abs=1e-9
    )


# --- the rest -------------------------------------------------------------------------------------------------------


def test_propose_test_release_in_closed_form():
    assert zoo.propose_test_release(distance=7).truth(PureDP) == pytest.approx(1.649, abs=5e-4)
    margin = 7 - math.log(500)
    exact = math.log((1 - math.exp(-margin) / 2) / (math.exp(margin - 1) / 2)) + 1
    assert zoo.propose_test_release(distance=7).truth(PureDP) == pytest.approx(exact, abs=1e-12)
    assert zoo.propose_test_release().truth(PureDP) == pytest.approx(2.0, abs=1e-12)


def test_clamping_loses_nothing():
    """Two atoms and the density between, integrated on their own."""
    p, q = stats.laplace(0).pdf, stats.laplace(1).pdf
    atoms = [(0.5, stats.laplace.cdf(-1)), (stats.laplace.sf(1), 0.5)]
    total = sum(a**2 / b for a, b in atoms) + quad(lambda t: p(t) ** 2 / q(t), (0, 1))
    assert zoo.clamped_laplace().truth(RenyiDP, order=2.0) == pytest.approx(
        math.log(total), abs=1e-9
    )


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_geometric_is_a_sum_over_all_whole_numbers(sensitivity):
    entry = zoo.geometric(0.8, sensitivity)
    ratio = math.exp(-0.8 / sensitivity)
    k = np.arange(-400, 400)
    p, q = ((1 - ratio) / (1 + ratio) * ratio ** np.abs(k - centre) for centre in (0, sensitivity))
    assert entry.truth(RenyiDP, order=2.0) == pytest.approx(math.log((p**2 / q).sum()), abs=1e-12)
    assert entry.truth(ApproxDP, epsilon=0.3) == pytest.approx(
        np.maximum(0, p - math.exp(0.3) * q).sum(), abs=1e-12
    )


def test_randomized_response_matches_the_published_figures():
    values = [zoo.randomized_response(1.5).truth(RenyiDP, order=order) for order in (2.0, 5.0, 7.0)]
    assert values == pytest.approx([1.309634, 1.449647, 1.466431], abs=6e-7)


def test_wrong_scale_of_the_histogram_and_of_the_mean():
    assert zoo.noisy_histogram(0.1, scale="wrong").truth() == pytest.approx(10.0)
    assert zoo.dp_mean(0.7).truth() == pytest.approx(1.4)
