"""The floored divergence against its literal formulas."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.methods.published.renyi.bound import Floor, check_floor, estimate


def literal(p, q, order, tau, beta, width):
    """The formulas as they are printed, with the squared denominator; overflows where ours does not."""
    q_tau = np.log(np.exp(beta * q) + np.exp(beta * tau)) / beta
    pi = np.exp(beta * q) / (np.exp(beta * q) + np.exp(beta * tau))
    total = np.sum(p**order * q_tau ** (1 - order)) * width
    first = order**2 * (np.sum(p ** (2 * order - 1) * q_tau ** (2 - 2 * order)) * width - total**2)
    inner = np.sum(pi * q * q_tau ** (-order) * p**order) * width
    second = (order - 1) ** 2 * (
        np.sum(pi**2 * q_tau ** (-2 * order) * p ** (2 * order) * q) * width - inner**2
    )
    scale = ((order - 1) * total) ** 2
    return math.log(total) / (order - 1), first / scale, second / scale


@pytest.mark.parametrize("order", [1.3, 2.0, 5.0])
@pytest.mark.parametrize("tau", [1e-3, 0.05])
@pytest.mark.paper("D9", "corrected")
def test_probabilities_give_the_literal_formulas(order, tau):
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.4, 0.3, 0.29, 0.01])
    found = estimate(p, q, order, Floor(tau, 200.0), 1.0)
    expected = literal(p, q, order, tau, 200.0, 1.0)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.paper("D9", "corrected")
def test_densities_give_the_literal_formulas():
    x = np.linspace(-6, 7, 1000)
    p, q = (np.exp(-0.5 * (x - centre) ** 2) / math.sqrt(2 * math.pi) for centre in (0.0, 1.0))
    found = estimate(p, q, 2.0, Floor(1e-3, 1e3), x[1] - x[0])
    expected = literal(p, q, 2.0, 1e-3, 1e3, x[1] - x[0])
    assert found == pytest.approx(expected, rel=1e-9)
    assert 0.8 < found[0] < 1.0  # the floor takes the tail away


@pytest.mark.paper("D8", "equal")
def test_the_soft_floor_does_not_overflow():
    floor = Floor(1e-5, 1e5)
    q = np.array([0.0, 1e-5, 0.01, 0.9])
    np.testing.assert_allclose(floor.raised(q)[2:], q[2:])
    assert floor.raised(q)[1] == pytest.approx(1e-5 + math.log(2) / 1e5)
    np.testing.assert_allclose(floor.slope(q), [1 / (1 + math.e), 0.5, 1.0, 1.0])


def test_an_output_that_the_right_never_has_is_bounded_by_the_floor():
    bounded = em.renyi.floored_divergence([0.5, 0.5], [1.0, 0.0], 2.0, floor=1e-4)
    assert bounded == pytest.approx(math.log(0.25 + 0.25 / 1e-4), abs=0.4)
    assert em.renyi.floored_divergence([0.0, 1.0], [0.5, 0.5], 3.0) == pytest.approx(math.log(2.0))
    assert em.renyi.floored_divergence([0.5, 0.5], [0.5, 0.5], 3.0) == pytest.approx(0.0, abs=1e-9)


def test_the_floored_divergence_stays_below_the_divergence():
    p, q = np.array([0.6, 0.39, 0.01]), np.array([0.3, 0.699, 0.001])
    exact = math.log(np.sum(p**3 * q**-2.0)) / 2
    values = [em.renyi.floored_divergence(p, q, 3.0, floor=tau) for tau in (1e-1, 1e-2, 1e-3, 1e-5)]
    assert values == sorted(values)
    assert values[-2] < exact
    assert values[-1] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.inf, math.nan, "two", True])
def test_senseless_orders_are_refused(order):
    with pytest.raises(InputError, match="order"):
        em.renyi.floored_divergence([0.5, 0.5], [0.5, 0.5], order)


@pytest.mark.parametrize("floor", [0.0, -1e-5, math.inf, math.nan, "low"])
def test_senseless_floors_are_refused(floor):
    with pytest.raises(InputError, match="floor"):
        em.renyi.floored_divergence([0.5, 0.5], [0.5, 0.5], 2.0, floor=floor)


@pytest.mark.parametrize(
    ("p", "q"), [([], []), ([0.5, 0.5], [1.0]), ([-0.1, 1.1], [0.5, 0.5]), ([[1.0]], [[1.0]])]
)
def test_senseless_densities_are_refused(p, q):
    with pytest.raises(InputError, match=r"p has|q has"):
        em.renyi.floored_divergence(p, q, 2.0)


def test_the_sharpness_is_one_over_the_floor_unless_given():
    assert check_floor(1e-3) == Floor(1e-3, 1e3)
    assert check_floor(1e-3, 50.0) == Floor(1e-3, 50.0)
    with pytest.raises(InputError, match="sharpness"):
        check_floor(1e-3, 0.0)
