"""p̂ of the hockey-stick tester: three bounds on a proportion, and any other."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import epsilometer as em
from epsilometer.bounds import Counts
from epsilometer.methods.published.auditorium.hockey_stick import mixture_size, published_excess
from epsilometer.methods.published.auditorium.proportions import (
    PROPORTIONS,
    chernoff,
    clopper_pearson,
    find_proportion,
    hoeffding,
)


@pytest.mark.paper("C18", "equal")
@pytest.mark.parametrize("name", PROPORTIONS)
@pytest.mark.parametrize("failure", [1 / 3, 0.05, 1e-4])
def test_coverage_by_enumeration(name, failure):
    """Definition 4.10: with probability 1 − β, p is at least p̂(S) − γ, for each of the named tools."""
    m = 80
    hits = np.arange(m + 1)
    bounds = np.array([find_proportion(name)(int(k), m, failure) for k in hits])
    for p in np.linspace(0.005, 0.995, 100):
        assert binom.pmf(hits[bounds > p], m, p).sum() <= failure


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (1, 10), (70, 100), (999, 1000), (50, 50)])
def test_hoeffding_is_the_loosest_and_the_exact_bound_the_largest(hits, trials):
    bounds = [bound(hits, trials, 0.1) for bound in (hoeffding, chernoff, clopper_pearson)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= hits / trials


def test_chernoff_solves_its_equation():
    share, m, failure = 0.7, 200, 0.01
    p = chernoff(140, m, failure)
    entropy = share * math.log(share / p) + (1 - share) * math.log((1 - share) / (1 - p))
    assert m * entropy == pytest.approx(math.log(1 / failure), rel=1e-9)
    assert chernoff(m, m, failure) == pytest.approx(failure ** (1 / m), rel=1e-9)


@pytest.mark.paper("C18", "equal")
@pytest.mark.parametrize("name", PROPORTIONS)
def test_the_published_bound_takes_any_of_them(name, rng):
    """Proposition 4.12 with an event that always tells the sides apart: all m answers are right."""
    n, epsilon, failure = 10_000, 0.5, 0.05
    m = mixture_size(n, n, epsilon)
    weight = math.exp(epsilon)
    found = published_excess(Counts(n, n), Counts(0, n), epsilon, failure, rng=rng, proportion=name)
    assert found == pytest.approx((1 + weight) * PROPORTIONS[name](m, m, failure) - weight)


def test_an_audit_takes_them_by_name_and_a_tighter_one_proves_more():
    bounds = []
    for name in PROPORTIONS:
        options = em.auditorium.hockey_stick.Options(certificate="published", proportion=name)
        result = em.audit(
            em.zoo.laplace(epsilon=2.0),
            None,
            em.PureDP(0.5),
            samples=4000,
            seed=3,
            method="hockey-stick",
            options=options,
        )
        assert result.guarantee == "exact"
        assert name in result.findings[0].details["certificate"]
        bounds.append(result.findings[0].details["excess_lower"])
    assert bounds == sorted(bounds)


def test_a_function_of_the_caller_makes_the_guarantee_conditional():
    options = em.auditorium.hockey_stick.Options(
        certificate="published", proportion=lambda hits, trials, failure: 0.9 * hits / trials
    )
    result = em.measure(
        em.zoo.laplace(epsilon=4.0), samples=2000, seed=0, method="hockey-stick", options=options
    )
    assert result.guarantee.startswith("conditional: ")


@pytest.mark.parametrize("unknown", ["wilson", None, 5, ["chernoff"], {"name": "chernoff"}])
def test_an_unknown_name_is_told(unknown):
    with pytest.raises(em.InputError, match=r"proportion=.*clopper-pearson"):
        em.auditorium.hockey_stick.Options(proportion=unknown)


@pytest.mark.parametrize("bound", [math.nan, 1.5, "0.9", None, True])
def test_a_function_that_bounds_no_proportion_is_told(bound):
    proportion = find_proportion(lambda hits, trials, failure: bound)
    with pytest.raises(em.InputError, match=r"proportion=.* returned"):
        proportion(9, 10, 0.05)


def test_a_function_that_takes_something_else_is_told():
    with pytest.raises(em.InputError, match=r"\(hits, trials, failure\)"):
        em.auditorium.hockey_stick.Options(proportion=lambda hits, trials: hits / trials)


def test_a_function_that_fails_is_blamed():
    proportion = find_proportion(lambda hits, trials, failure: hits / (trials - 10))
    with pytest.raises(em.InputError, match=r"proportion=.* failed.*ZeroDivisionError"):
        proportion(9, 10, 0.05)


@pytest.mark.parametrize("proportion", ["clopper-pearson", lambda hits, trials, failure: 0.0])
def test_a_setting_of_the_published_bound_is_not_ignored_by_the_exact_test(proportion):
    with pytest.raises(em.InputError, match=r"proportion=.*certificate='published'"):
        em.auditorium.hockey_stick.Options(proportion=proportion)
    em.auditorium.hockey_stick.Options(proportion="hoeffding")
