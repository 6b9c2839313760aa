"""The functions of the published Rényi tester: polynomials themselves, their bound C, their estimate."""

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.optimize import minimize

import epsilometer as em
from epsilometer.methods.published.auditorium.bounded_functions import (
    ChebyshevPolynomial,
    learn_bounded,
)
from epsilometer.methods.published.auditorium.families import Options
from epsilometer.methods.published.auditorium.renyi_variational import published_divergence
from epsilometer.methods.published.auditorium.variational_error import published_error
from epsilometer.outputs import read_outputs

ORDER = 2.0


def gaussians(rng, n=20_000):
    return rng.normal(1.0, 1.0, n), rng.normal(0.0, 1.0, n)


def learned(left, right, options, flipped=False, n_fresh=20_000, rng=None):
    return learn_bounded(
        read_outputs(left),
        read_outputs(right),
        ORDER,
        options,
        directions=(flipped,),
        n_fresh=n_fresh,
        failure_probability=0.05,
        rng=rng or np.random.default_rng(0),
    )


def literal_estimate(h_p, h_q, order):
    """(5) of the paper, word by word."""
    first = order / (order - 1) * math.log(np.mean(np.exp((order - 1) * h_p)))
    return first - math.log(np.mean(np.exp(order * h_q)))


@pytest.mark.paper("C5", "equal")
@pytest.mark.parametrize("family", ["bins", "chebyshev"])
@pytest.mark.parametrize("flipped", [False, True])
def test_the_estimate_is_the_formula_at_every_draw(family, flipped, rng):
    left, right = gaussians(rng)
    function = learned(left, right, Options(family=family, bound=3.0), flipped)
    fresh = [read_outputs(draws) for draws in gaussians(rng)]
    moments = [function.moments(outputs, side) for side, outputs in enumerate(fresh)]
    h_p, h_q = (function.evaluate(fresh[side]) for side in ((1, 0) if flipped else (0, 1)))
    assert function.estimate(*moments) == pytest.approx(
        literal_estimate(h_p, h_q, ORDER), rel=1e-12
    )
    expected = literal_estimate(h_p, h_q, ORDER) - published_error(ORDER, 3.0, 20_000, 0.05)
    assert published_divergence(function, *moments, 0.05) == pytest.approx(expected)


@pytest.mark.paper("C11", "equal")
@pytest.mark.parametrize("degree", [1, 3, 5])
def test_the_polynomial_is_evaluated_itself(degree, rng):
    coefficients = rng.normal(size=(1, degree))
    polynomial = ChebyshevPolynomial(np.array([-2.0]), np.array([6.0]), coefficients)
    places = rng.uniform(-2.0, 6.0, 1000)
    expected = chebyshev.chebval((places - 2.0) / 4.0, [0.0, *coefficients[0]])
    assert polynomial.evaluate(read_outputs(places)) == pytest.approx(expected)
    ends = polynomial.evaluate(read_outputs(np.array([-9.0, -2.0, 6.0, 50.0])))
    assert ends[0] == ends[1]
    assert ends[2] == ends[3]


@pytest.mark.paper("C11", "equal")
@pytest.mark.parametrize("degree", [1, 2])
def test_the_fitted_polynomial_is_the_best_of_its_degree(degree, rng):
    """Beside a search that shares no code with ours, on the same draws."""
    left, right = gaussians(rng)
    bound = 2.5
    function = learned(left, right, Options(family="chebyshev", degree=degree, bound=bound))
    ours = literal_estimate(
        function.evaluate(read_outputs(left)), function.evaluate(read_outputs(right)), ORDER
    )
    low, high = function.function.low[0], function.function.high[0]

    def loss(coefficients):
        h = [
            chebyshev.chebval(
                np.clip(2.0 * (draws - low) / (high - low) - 1.0, -1.0, 1.0), coefficients
            )
            for draws in (left, right)
        ]
        return -literal_estimate(*np.clip(h, -bound, bound), ORDER)

    # The log-ratio of the two Gaussians is x − ½, from where the search begins.
    truth = np.array([0.5 * (low + high) - 0.5, 0.5 * (high - low), 0.0])[: 1 + degree]
    best = -minimize(loss, truth, method="Nelder-Mead", options={"maxiter": 400}).fun
    assert ours == pytest.approx(best, rel=0.01)


def test_the_polynomial_of_degree_one_is_the_log_ratio_of_gaussians(rng):
    left, right = gaussians(rng, 100_000)
    polynomial = learned(left, right, Options(family="chebyshev", degree=1, bound=6.0)).function
    slope = 2.0 * polynomial.coefficients[0, 0] / (polynomial.high[0] - polynomial.low[0])
    assert slope == pytest.approx(1.0, abs=0.1)


@pytest.mark.paper("C7", "equal")
@pytest.mark.parametrize("family", ["bins", "chebyshev", "auto"])
@pytest.mark.parametrize("bound", [0.4, 1.5, 3.0])
def test_the_given_bound_is_the_c_of_the_error(family, bound):
    """(9): η takes the C that was given, whatever the fitted function's own range is."""
    options = Options(family=family, degree=2, bound=bound, certificate="published")
    found = em.measure(
        em.zoo.gaussian(sigma=1.0),
        None,
        em.RenyiDP,
        order=ORDER,
        samples=20_000,
        seed=1,
        method="renyi-variational",
        options=options,
    ).findings[0]
    assert found.details["range"] == bound


def test_values_stay_within_the_bound(rng):
    left, right = gaussians(rng)
    function = learned(left, right, Options(family="auto", bound=0.7))
    assert np.abs(function.evaluate(read_outputs(left))).max() <= 0.7
    assert function.bound == pytest.approx(0.7)


def test_vectors_get_a_polynomial_per_column(rng):
    n = 20_000
    left = rng.normal([1.0, 0.0], 1.0, size=(n, 2))
    right = rng.normal(size=(n, 2))
    function = learned(left, right, Options(family="chebyshev", degree=2, bound=4.0))
    assert function.function.coefficients.shape == (2, 2)
    assert abs(function.function.coefficients[0, 0]) > 10 * abs(
        function.function.coefficients[1, 0]
    )


def test_names_have_no_polynomials():
    outputs = [["a", "b", "b", "c"] * 200, ["a", "a", "b", "c"] * 200]
    function = learned(*outputs, Options(family="chebyshev", bound=2.0))
    assert not isinstance(function.function, ChebyshevPolynomial)
    assert function.evaluate(read_outputs(["b"]))[0] > function.evaluate(read_outputs(["a"]))[0]


def test_other_shapes_and_numbers_that_are_not_finite_are_no_evidence(rng):
    left, right = gaussians(rng, 2000)
    function = learned(left, right, Options(family="chebyshev", degree=2, bound=4.0))
    strange = read_outputs([math.nan, "a name", (1.0, 2.0), math.inf])
    values = function.evaluate(strange)
    assert np.isfinite(values).all()
    assert values[1] == values[2]
