"""The thresholds that pure privacy sets for a Rényi divergence."""

import math

import numpy as np
import pytest

from epsilometer.bounds.pure_by_renyi import greatest_divergence, least_epsilon
from epsilometer.claims.renyi import bernoulli_divergence
from epsilometer.errors import InputError

ORDERS = (1.01, 1.5, 2.0, 7.0, 64.0)
LEVELS = (1e-3, 0.1, 1.0, 4.0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", LEVELS)
def test_tight_is_randomized_response(order, epsilon):
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    exact = float(bernoulli_divergence(np.array(p), np.array(1.0 - p), np.array(order)))
    assert greatest_divergence(epsilon, order) == pytest.approx(exact, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("order", ORDERS[:4])
@pytest.mark.parametrize("epsilon", LEVELS[1:])
def test_tight_is_the_quotient_of_hyperbolic_sines(order, epsilon):
    quotient = (math.sinh(order * epsilon) - math.sinh((order - 1.0) * epsilon)) / math.sinh(
        epsilon
    )
    assert greatest_divergence(epsilon, order) == pytest.approx(
        math.log(quotient) / (order - 1.0), rel=1e-6
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.paper("C8", "corrected")
@pytest.mark.paper("C12", "equal")
def test_published_is_never_smaller_than_tight(order, epsilon):
    published = greatest_divergence(epsilon, order, "published")
    assert published == pytest.approx(min(epsilon, 2.0 * order * epsilon**2))
    assert greatest_divergence(epsilon, order) <= published + 1e-12


@pytest.mark.parametrize("threshold", ["tight", "published"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", LEVELS)
def test_least_epsilon_is_the_inverse_from_below(threshold, order, epsilon):
    divergence = greatest_divergence(epsilon, order, threshold)
    found = least_epsilon(divergence, order, threshold)
    assert found == pytest.approx(epsilon, rel=1e-6)
    assert greatest_divergence(found * (1.0 - 1e-9), order, threshold) <= divergence


def test_no_divergence_no_epsilon():
    assert least_epsilon(0.0, 2.0) == 0.0
    assert least_epsilon(-1.0, 2.0, "published") == 0.0


def test_large_epsilon_does_not_overflow():
    assert greatest_divergence(800.0, 64.0) == pytest.approx(800.0)
    assert least_epsilon(800.0, 64.0) == pytest.approx(800.0)


def test_order_must_be_above_one():
    with pytest.raises(InputError):
        greatest_divergence(1.0, 1.0)
