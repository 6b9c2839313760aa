"""The paper's estimators, each in one direction and on fresh draws, beside literal readings."""

import math

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.methods.published.auditorium import estimators
from epsilometer.methods.published.auditorium.poisson_histogram import poisson_mean
from epsilometer.outputs import read_outputs

EPSILON = 0.5
# Of two Laplace distributions at distance 1: 1 − e^((ε − 1)/2).
TRUE_EXCESS = 1.0 - math.exp((EPSILON - 1.0) / 2.0)


class Source:
    """Draws, and remembers what it drew."""

    def __init__(self, draw):
        self.draw = draw
        self.drawn = []

    def __call__(self, n):
        self.drawn.append(self.draw(n))
        return read_outputs(self.drawn[-1])


def laplace(rng, shift=0.0):
    return Source(lambda n: shift + rng.laplace(size=n))


def gaussian(rng, shift=0.0):
    return Source(lambda n: shift + rng.normal(size=n))


@pytest.mark.paper("C17", "equal")
@pytest.mark.parametrize("proportion", ["hoeffding", "chernoff", "clopper-pearson"])
def test_the_hockey_stick_draws_the_mixture_twice(proportion, rng):
    """Algorithm 5: m draws of the mixture train, m others are classified; n is split by 1 : e^ε."""
    n = 20_000
    p, q = laplace(rng), laplace(rng, 1.0)
    found = estimators.HockeyStick(EPSILON, proportion)(p, q, n, 0.05, rng)
    assert [len(p.drawn[k]) + len(q.drawn[k]) for k in (0, 1)] == [n, n]
    share = len(p.drawn[1]) / n
    assert share == pytest.approx(1 / (1 + math.exp(EPSILON)), abs=0.025)
    assert TRUE_EXCESS - 0.07 < found < TRUE_EXCESS + 0.03


@pytest.mark.paper("C17", "equal")
def test_the_hockey_stick_bound_is_the_printed_formula(rng):
    """Separate values: all n answers are right, so that p̂ − γ = 1 − √(ln(1/β)/2n)."""
    zeros, ones = Source(np.zeros), Source(np.ones)
    found = estimators.HockeyStick(EPSILON)(zeros, ones, 500, 0.1, rng)
    accuracy = 1.0 - math.sqrt(math.log(10.0) / 1000.0)
    weight = math.exp(EPSILON)
    assert found == pytest.approx((1.0 + weight) * accuracy - weight)


@pytest.mark.paper("C9", "corrected")
def test_the_renyi_estimator_fits_and_evaluates_on_as_many_draws(rng):
    """Algorithm 2: n draws of each side fit h, n others evaluate it; method `renyi-variational` takes 30 and 70 %."""
    n = 20_000
    p, q = gaussian(rng, 1.0), gaussian(rng)
    found = estimators.Renyi(1.5, family="chebyshev", degree=1, bound=1.0)(p, q, n, 0.05, rng)
    assert [len(draws) for draws in (*p.drawn, *q.drawn)] == [n] * 4
    assert 0.3 < found < 0.75


def test_the_renyi_estimator_knows_its_direction(rng):
    """A wide distribution against a narrow one: the two divergences differ."""
    tester = estimators.Renyi(1.5, family="bins", bound=2.0)
    wide, narrow = Source(lambda n: rng.normal(0, 1.3, n)), gaussian(rng)
    forwards = tester(wide, narrow, 50_000, 0.3, rng)
    backwards = tester(narrow, wide, 50_000, 0.3, rng)
    assert forwards > backwards


@pytest.mark.paper("C14", "equal")
@pytest.mark.parametrize("failure", [1 / 3, 0.5])
def test_the_histogram_draws_a_poisson_number_that_follows_from_beta(failure, rng):
    """Algorithm 3: r ~ Poisson(λ), anew for each estimate, with β the failure probability."""
    cells, margin, runs = 10, 0.2, 400
    tester = estimators.Histogram(EPSILON, cells=cells, margin=margin, bounds=(0.0, 1.0))
    numbers = []
    for _ in range(runs):
        p, q = (Source(lambda n: np.full(n, 0.5)) for _ in range(2))
        tester(p, q, 1000, failure, rng)
        assert len(p.drawn[-1]) == len(q.drawn[-1])
        numbers.append(len(p.drawn[-1]))
    growth = 1 + math.exp(2 * EPSILON)
    mean = max(4 * cells * growth / failure**2, 12 * growth / margin**2)
    assert poisson_mean(cells, EPSILON, failure, margin) == pytest.approx(mean)
    # Seven standard errors each: mean and variance of a Poisson number are equal.
    assert np.mean(numbers) == pytest.approx(mean, abs=7 * math.sqrt(mean / runs))
    assert np.var(numbers) == pytest.approx(mean, rel=7 * math.sqrt(2 / runs))


@pytest.mark.paper("C13", "corrected")
def test_the_histogram_is_the_sum_over_its_cells(rng):
    """Σ max(0, (x_j − e^ε·y_j)/r) − η over the m cells; the print sums to r."""
    tester = estimators.Histogram(EPSILON, cells=20, margin=0.1, bounds=(-2.0, 3.0))
    p, q = laplace(rng), laplace(rng, 1.0)
    found = tester(p, q, 1000, 1 / 3, rng)
    edges = np.array([-np.inf, *np.linspace(-2.0, 3.0, 21)[1:-1], np.inf])
    x, y = (np.histogram(source.drawn[-1], edges)[0] for source in (p, q))
    literal = sum(
        max(0.0, (a - math.exp(EPSILON) * b) / x.sum()) for a, b in zip(x, y, strict=True)
    )
    assert found == pytest.approx(literal - 0.1)


@pytest.mark.paper("C26", "equal")
@pytest.mark.parametrize(
    ("epsilon", "passes"), [(0.3, False), (0.8, False), (0.9, True), (3.0, True)]
)
def test_mmd_passes_everything_above_its_limit(epsilon, passes, rng):
    """Algorithm 8 with the largest discrepancy there is: outputs that never coincide."""
    low, high = Source(np.zeros), Source(lambda n: np.full(n, 50.0))
    found = estimators.Mmd(epsilon, bandwidth=0.01)(low, high, 20_000, 1 / 3, rng)
    assert (found == 0.0) == passes
    assert [len(draws) for draws in low.drawn][-1] == 40_000


@pytest.mark.parametrize(("order", "bound"), [(2.0, 100.0), (2.0, 1e3), (1000.0, 10.0)])
def test_an_error_that_is_infinite_leaves_no_estimate(order, bound, rng):
    """Where e^(αC) overflows, R itself is no number; the estimate is still a bound, the least."""
    tester = estimators.Renyi(order, bound=bound)
    narrow = Source(lambda n: rng.normal(scale=0.1, size=n))
    assert tester(narrow, laplace(rng), 200, 0.05, rng) == -math.inf


def test_what_asks_for_too_much_is_told(rng):
    tester = estimators.Histogram(6.0, cells=100, margin=0.01, bounds=(0.0, 1.0))
    with pytest.raises(InputError, match=r"draws of each side with epsilon=6\.0"):
        tester(laplace(rng), laplace(rng), 100, 0.05, rng)


@pytest.mark.parametrize(
    "make",
    [
        lambda: estimators.HockeyStick(-1.0),
        lambda: estimators.HockeyStick(1.0, "wilson"),
        lambda: estimators.HockeyStick(1.0, classifier="forest"),
        lambda: estimators.Renyi(1.0),
        lambda: estimators.Renyi(2.0, family="trees"),
        lambda: estimators.Histogram(1.0, cells=1),
        lambda: estimators.Histogram(1.0, margin=0.0),
        lambda: estimators.Mmd(-0.1),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize(
    ("tester", "kind"),
    [
        (estimators.HockeyStick(1.0), "exact"),
        (estimators.HockeyStick(1.0, lambda *_: 0.0), "conditional"),
        (estimators.Renyi(2.0), "none"),
        (estimators.Histogram(1.0), "none"),
        (estimators.Mmd(0.5), "exact"),
        (estimators.Mmd(0.5, kernel=lambda x, y: np.exp(-np.abs(x - y).sum(-1))), "conditional"),
    ],
)
def test_each_says_what_it_promises(tester, kind):
    assert tester.guarantee.startswith(kind)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_fewest_draws_estimate_without_a_warning(n, rng):
    """A part of the mixture may be empty."""
    testers = [
        estimators.HockeyStick(0.5),
        estimators.HockeyStick(4.0),
        estimators.Renyi(2.0, family="bins"),
        estimators.Renyi(2.0, family="chebyshev"),
        estimators.Mmd(0.5),
        estimators.Histogram(0.1, cells=5, margin=0.2),
    ]
    for tester in testers:
        for _ in range(5):
            assert tester(laplace(rng), laplace(rng), n, 1 / 3, rng) <= 1.0
