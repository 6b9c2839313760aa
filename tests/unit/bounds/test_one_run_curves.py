"""The recursion for curves, against linear programmes and the closed form."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from epsilometer.bounds.inverse_curves import inverse_of_hull
from epsilometer.bounds.one_run import Guesses, exact_p_value
from epsilometer.bounds.one_run_curves import curve_mu, curve_p_value, curve_refutes, one_run_mu
from epsilometer.claims import ApproxDP, GaussianDP, TradeOffDP


def greatest_by_lines(m, r, v, mu):
    """The greatest P(≥ v right) under many tangents of the Gaussian curve, for all sets of counts."""
    epsilons = np.linspace(0.0, 8.0, 60)
    deltas = np.array([GaussianDP(mu).delta(e) for e in epsilons])
    n_counts = r + 1
    n_variables = n_counts + len(epsilons) * r
    rows, limits = [], []
    for number, (epsilon, delta) in enumerate(zip(epsilons, deltas, strict=True)):
        first = n_counts + number * r
        for i in range(1, r + 1):
            row = np.zeros(n_variables)
            row[i], row[i - 1], row[first + i - 1] = i, -np.exp(epsilon) * (r - i + 1), -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(n_variables)
        row[first : first + r] = 1.0
        rows.append(row)
        limits.append(m * delta)
    objective = np.zeros(n_variables)
    objective[v:n_counts] = -1.0
    total = np.zeros((1, n_variables))
    total[0, :n_counts] = 1.0
    return -linprog(objective, np.array(rows), limits, total, [1.0], bounds=(0, None)).fun


@pytest.mark.parametrize(("m", "r", "v", "mu"), [(12, 12, 10, 0.5), (30, 10, 9, 1.0)])
def test_never_below_what_a_mechanism_may_do(m, r, v, mu):
    p_value = curve_p_value(inverse_of_hull(GaussianDP(mu)), m, [Guesses(r, v)])
    linear = greatest_by_lines(m, r, v, mu)
    assert linear - 1e-6 <= p_value <= 1.5 * linear


@pytest.mark.parametrize(("r", "v", "delta"), [(40, 33, 1e-3), (200, 150, 1e-5), (100, 60, 1e-2)])
def test_on_two_lines_it_is_close_to_the_closed_form(r, v, delta):
    """Tails only: valid for (ε, δ) too, and therefore never below the closed form."""
    for epsilon in (0.2, 0.8):
        exact = exact_p_value(200, r, v, epsilon, delta)
        recursion = curve_p_value(inverse_of_hull(ApproxDP(epsilon, delta)), 200, [Guesses(r, v)])
        assert exact * (1 - 1e-6) - 1e-14 <= recursion


def test_the_p_value_pays_for_every_number_of_guesses():
    least_q = inverse_of_hull(GaussianDP(0.3))
    alone = curve_p_value(least_q, 500, [Guesses(100, 90)])
    with_another = curve_p_value(least_q, 500, [Guesses(50, 25), Guesses(100, 90)])
    assert with_another == pytest.approx(2 * alone)


def test_the_bound_on_mu_is_where_the_p_value_crosses():
    guesses = [Guesses(30, 28), Guesses(300, 210)]
    mu = curve_mu(1000, guesses, 0.05)
    assert 0.2 < mu < 2.0
    assert curve_p_value(inverse_of_hull(GaussianDP(mu - 1e-4)), 1000, guesses) < 0.05
    assert curve_p_value(inverse_of_hull(GaussianDP(mu + 1e-4)), 1000, guesses) > 0.05
    assert curve_mu(500, guesses, 0.05) > mu
    assert one_run_mu(1000, 1000, 500, 0.05) == 0.0


def test_certainty_is_refuted_at_every_level():
    assert curve_refutes(inverse_of_hull(GaussianDP(0.0)), 100, 100, 100, 1e-9)
    assert not curve_refutes(inverse_of_hull(GaussianDP(20.0)), 100, 100, 100, 0.05)
    assert curve_p_value(inverse_of_hull(GaussianDP(1.0)), 100, [Guesses(100, 0)]) == 1.0


@pytest.mark.parametrize("revealed", [0.02, 0.036, 0.05])
@pytest.mark.parametrize("m", [4, 20])
def test_coins_that_are_all_revealed_now_and_then(revealed, m):
    """All coins are told with a small probability, and nothing otherwise: p-values are none too small.

    The claim is the curve of this mechanism, and begins after 0: an event that only one side gives
    has the probability `revealed`, any other less than the first point's.
    """
    first = 0.99 * revealed
    claim = TradeOffDP(([first, 1.0 - revealed, 1.0], [1.0 - revealed, 0.0, 0.0]))
    for v in range(m // 2, m + 1):
        probability = revealed + (1.0 - revealed) * float(binom.sf(v - 1, m, 0.5))
        p_value = curve_p_value(inverse_of_hull(claim), m, [Guesses(m, v)])
        assert p_value >= probability * (1.0 - 1e-9)
