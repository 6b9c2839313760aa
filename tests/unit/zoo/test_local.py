"""Local mechanisms: truths by enumeration and integration, draws against exact laws, Lipschitz constants on a grid."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from epsilometer import zoo
from epsilometer.claims import ApproxDP, PureDP, RenyiDP
from epsilometer.errors import InputError, MechanismError
from epsilometer.zoo.responses import bloom_bits

RUNS = 200_000
FALSE_ALARM = 1e-9
EPSILONS = [0.1, 1.0, 3.0]


def assert_counts(hits, probabilities, runs=RUNS):
    """Every number of hits is plausible for its probability, by exact binomial tails."""
    share = FALSE_ALARM / (2 * len(hits))
    for count, probability in zip(hits, probabilities, strict=True):
        low, high = (
            stats.binom.cdf(count, runs, probability),
            stats.binom.sf(count - 1, runs, probability),
        )
        assert min(low, high) >= share, (
            f"{count}/{runs} hits, exact {probability:.6g}: chance {min(low, high):.1e}"
        )


def assert_truths(entry, p, q):
    """The truths of an entry are those of two tables of probabilities."""
    p, q = np.asarray(p), np.asarray(q)
    assert p.sum() == pytest.approx(1.0) == q.sum()
    assert entry.truth(PureDP) == pytest.approx(np.abs(np.log(p / q)).max(), abs=1e-9)
    for order in (1.5, 2.0, 7.0):
        exact = max(
            math.log((a**order * b ** (1 - order)).sum()) / (order - 1) for a, b in ((p, q), (q, p))
        )
        assert entry.truth(RenyiDP, order=order) == pytest.approx(exact, abs=1e-9)
    exact = max(np.maximum(0, a - math.exp(0.3) * b).sum() for a, b in ((p, q), (q, p)))
    assert entry.truth(ApproxDP, epsilon=0.3) == pytest.approx(exact, abs=1e-9)


# --- truncated noise ------------------------------------------------------------------------------------------------

TRUNCATED = [zoo.truncated_laplace, zoo.truncated_gaussian]


@pytest.mark.parametrize("make", TRUNCATED)
@pytest.mark.parametrize(
    ("epsilon", "low", "high"), [(1.0, 0.0, 1.0), (0.1, -3.0, 1.0), (3.0, 0.0, 0.5)]
)
def test_truncated_densities_integrate_to_one_and_have_their_truths(make, epsilon, low, high):
    entry = make(epsilon, low, high)
    density = entry.mechanism.function.density
    p, q = (lambda t, end=end: float(density(end, np.array(t))) for end in (low, high))
    for centre in (low, 0.3 * low + 0.7 * high, high):
        total = integrate.quad(
            lambda t, x=centre: float(density(x, np.array(t))), low, high, points=[centre]
        )[0]
        assert total == pytest.approx(1.0, abs=1e-9)
    assert entry.truth() == pytest.approx(epsilon, abs=1e-9) == math.log(p(low) / q(low))
    exact = math.log(integrate.quad(lambda t: p(t) ** 3 / q(t) ** 2, low, high)[0]) / 2
    assert entry.truth(RenyiDP, order=3.0) == pytest.approx(exact, abs=1e-9)
    crossing = optimize.brentq(lambda t: p(t) - math.exp(0.05) * q(t), low, high)
    exact = integrate.quad(lambda t: p(t) - math.exp(0.05) * q(t), low, crossing)[0]
    assert entry.truth(ApproxDP, epsilon=0.05) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("make", TRUNCATED)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ends_are_the_worst_pair(make, epsilon):
    entry = make(epsilon)
    grid = np.linspace(0, 1, 41)
    logs = np.log([entry.mechanism.function.density(float(x), grid) for x in grid])
    assert (logs.max(axis=0) - logs.min(axis=0)).max() == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("make", TRUNCATED)
@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.0, 3.0])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
def test_lipschitz_constants_hold_and_that_of_outputs_is_sharp(make, epsilon, low, high):
    entry = make(epsilon, low, high)
    grid = np.linspace(low, high, 1001)
    table = np.array([entry.mechanism.function.density(float(x), grid) for x in grid])
    step = grid[1] - grid[0]
    in_output, in_input = (np.abs(np.diff(table, axis=axis)).max() / step for axis in (1, 0))
    assert 0.99 * entry.lipschitz <= in_output <= entry.lipschitz * (1 + 1e-9)
    assert 0.3 * entry.input_lipschitz <= in_input <= entry.input_lipschitz * (1 + 1e-9)
    assert entry.domain == entry.input_domain == (low, high)


@pytest.mark.parametrize("make", TRUNCATED)
@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
def test_truncated_draws_have_their_law(make, centre, rng):
    entry = make(2.0)
    noise = entry.mechanism.function
    edges = np.linspace(0, 1, 9)
    exact = [
        integrate.quad(
            lambda t: float(noise.density(centre, np.array(t))),
            a,
            b,
            points=[min(max(centre, a), b)],
        )[0]
        for a, b in itertools.pairwise(edges)
    ]
    outputs = noise(centre, RUNS, rng)
    assert outputs.min() >= 0
    assert outputs.max() <= 1
    assert_counts(np.histogram(outputs, edges)[0], exact)


def test_an_input_or_interval_that_makes_no_sense():
    with pytest.raises(InputError, match="low=1 must be below high=1"):
        zoo.truncated_laplace(low=1.0, high=1.0)
    with pytest.raises(MechanismError, match="from 0 to 1"):
        zoo.truncated_gaussian().mechanism.sample(1.5, 3, np.random.default_rng(0))


# --- unary encodings, Hadamard response, subset selection -----------------------------------------------------------


def unary_table(mechanism, category):
    rows = list(itertools.product((False, True), repeat=mechanism.keywords["categories"]))
    chances = [
        mechanism.keywords["true_one"] if i == category else mechanism.keywords["false_one"]
        for i in range(mechanism.keywords["categories"])
    ]
    return [
        math.prod(c if bit else 1 - c for bit, c in zip(row, chances, strict=True)) for row in rows
    ], rows


@pytest.mark.parametrize("make", [zoo.sue, zoo.oue])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_unary_encodings_by_enumeration(make, epsilon):
    entry = make(epsilon, categories=5)
    tables = [unary_table(entry.mechanism.function, category)[0] for category in (0, 1)]
    assert_truths(entry, *tables)
    assert entry.truth() == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("make", [zoo.sue, zoo.oue])
def test_unary_draws_have_their_law(make, rng):
    mechanism = make(1.0, categories=3).mechanism.function
    table, rows = unary_table(mechanism, 2)
    codes = mechanism(2, RUNS, rng) @ [4, 2, 1]
    assert [tuple(bool(code & bit) for bit in (4, 2, 1)) for code in range(8)] == rows
    assert_counts(np.bincount(codes, minlength=8), table)


def hadamard_table(epsilon, size, category):
    """From the Sylvester matrix itself."""
    matrix = np.array([[1]])
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    weights = np.where(matrix[category + 1] > 0, math.exp(epsilon), 1.0)
    return weights / weights.sum()


@pytest.mark.parametrize("categories", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_hadamard_response_by_the_matrix(categories, epsilon, rng):
    entry = zoo.hadamard_response(epsilon, categories)
    mechanism = entry.mechanism.function
    assert mechanism.keywords["size"] > categories
    assert_truths(
        entry,
        *(hadamard_table(epsilon, mechanism.keywords["size"], category) for category in (0, 1)),
    )
    last = categories - 1
    hits = np.bincount(mechanism(last, RUNS, rng), minlength=mechanism.keywords["size"])
    assert_counts(hits, hadamard_table(epsilon, mechanism.keywords["size"], last))


def subset_table(mechanism, epsilon, category):
    sets = list(
        itertools.combinations(range(mechanism.keywords["categories"]), mechanism.keywords["size"])
    )
    weights = np.array([math.exp(epsilon) if category in members else 1.0 for members in sets])
    return weights / weights.sum(), sets


@pytest.mark.parametrize("categories", [2, 3, 6, 7])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_subset_selection_by_enumeration(categories, epsilon, rng):
    entry = zoo.subset_selection(epsilon, categories)
    mechanism = entry.mechanism.function
    assert_truths(entry, *(subset_table(mechanism, epsilon, category)[0] for category in (0, 1)))
    exact, sets = subset_table(mechanism, epsilon, 1)
    codes = mechanism(1, RUNS, rng) @ (1 << np.arange(categories))
    counts = np.bincount(codes, minlength=1 << categories)
    assert_counts([counts[sum(1 << i for i in members)] for members in sets], exact)


@pytest.mark.parametrize("name", ["sue", "oue", "hadamard_response", "subset_selection"])
@pytest.mark.parametrize("dataset", [-1, 99, 0.5, "a", True, None])
def test_a_category_that_does_not_exist(name, dataset):
    with pytest.raises(MechanismError, match="whole number from 0 to"):
        zoo.find(name).mechanism.sample(dataset, 3, np.random.default_rng(0))


# --- RAPPOR ---------------------------------------------------------------------------------------------------------


def rappor_table(mechanism, value, places):
    """Probabilities of all results in the given places, by summing over the permanent bits."""
    true_bits = bloom_bits(value, mechanism.bits, mechanism.hashes)
    columns = []
    for place in places:
        one = mechanism.permanent_kept if place in true_bits else 1 - mechanism.permanent_kept
        counts = np.arange(mechanism.reports + 1)
        given_one, given_zero = (
            stats.binom.pmf(counts, mechanism.reports, chance)
            for chance in (mechanism.report_kept, 1 - mechanism.report_kept)
        )
        columns.append(one * given_one + (1 - one) * given_zero)
    return np.array([math.prod(cells) for cells in itertools.product(*columns)])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("hashes", [1, 2])
@pytest.mark.parametrize("reports", [1, 2, 5])
def test_rappor_by_enumeration(epsilon, hashes, reports):
    if reports == 1:
        entry = zoo.rappor(epsilon, hashes=hashes)
    else:
        entry = zoo.rappor_longitudinal(epsilon, hashes=hashes, reports=reports)
    mechanism, pair = entry.mechanism.function, entry.worst_pair
    places = [
        sorted(bloom_bits(value, mechanism.bits, hashes)) for value in (pair.left, pair.right)
    ]
    assert len({*places[0], *places[1]}) == 2 * hashes
    both = sorted(places[0] + places[1])
    assert_truths(
        entry, *(rappor_table(mechanism, value, both) for value in (pair.left, pair.right))
    )


def test_rappor_matches_the_published_formulas():
    """ε∞ = 2h·ln((1 − f/2)/(f/2)), ε1 = h·ln(q*(1 − p*)/(p*(1 − q*))), with f/2 the chance of a permanent flip."""
    mechanism = zoo.rappor(1.2, hashes=3).mechanism.function
    half_f = 1 - mechanism.permanent_kept
    assert 6 * math.log((1 - half_f) / half_f) == pytest.approx(2.4)
    q, p, f = mechanism.report_kept, 1 - mechanism.report_kept, 2 * half_f
    q_star, p_star = f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p
    assert 3 * math.log(q_star * (1 - p_star) / (p_star * (1 - q_star))) == pytest.approx(1.2)


def test_more_reports_come_near_the_permanent_level():
    truths = [
        zoo.rappor_longitudinal(2.0, reports=reports).truth() for reports in (2, 10, 100, 1000)
    ]
    assert truths == sorted(truths)
    assert truths[0] > 1.0
    assert truths[-1] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(
    "entry", [zoo.rappor(2.0), zoo.rappor_longitudinal(2.0, reports=3)], ids=lambda e: e.name
)
def test_rappor_draws_have_their_law(entry, rng):
    mechanism, value = entry.mechanism.function, entry.worst_pair.left
    first = min(bloom_bits(value, mechanism.bits, mechanism.hashes))
    other = next(
        i
        for i in range(mechanism.bits)
        if i not in bloom_bits(value, mechanism.bits, mechanism.hashes)
    )
    outputs = mechanism(value, RUNS, rng).astype(int)
    base = mechanism.reports + 1
    codes = outputs[:, first] * base + outputs[:, other]
    assert_counts(
        np.bincount(codes, minlength=base**2), rappor_table(mechanism, value, [first, other])
    )


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"bits": 3}, "bits"),
        ({"hashes": 0}, "hashes"),
        ({"reports": 1}, "reports"),
    ],
)
def test_rappor_that_makes_no_sense(parameters, named):
    with pytest.raises(InputError, match=named):
        zoo.rappor_longitudinal(**parameters)


@pytest.mark.parametrize("make", [zoo.blh, zoo.olh])
def test_the_law_of_local_hashing_is_that_of_its_draws(make):
    entry, n = make(1.5, categories=8), 40_000
    features = entry.mechanism.features.function
    for side, law in ((0, entry.distributions.left), (1, entry.distributions.right)):
        reports = entry.mechanism.function(side, n, np.random.default_rng(side))
        seen = [tuple(features(report).values()) for report in reports]
        counts = np.array(
            [
                seen.count(each)
                for each in ((True, True), (True, False), (False, True), (False, False))
            ]
        )
        # Six standard errors of each cell.
        assert np.all(np.abs(counts - n * law) < 6 * np.sqrt(n * law) + 1)
    assert entry.truth() == pytest.approx(1.5)
