"""p-values of counts are super-uniform, P(p ≤ t) ≤ t for every t, by enumeration of every pair of counts."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.bounds import Counts, certificate_p_value, certified_value
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)

# What is rounding and not a broken promise, as a share of t.
ROUNDING = 1e-9
LOPSIDED = TradeOffDP(([0.0, 0.1, 1.0], [0.9, 0.5, 0.0]))


def p_values(claim, n, m, failure, expected):
    return np.array(
        [
            [
                certificate_p_value(claim, Counts(x, n), Counts(y, m), failure, expected)
                for y in range(m + 1)
            ]
            for x in range(n + 1)
        ]
    )


def distribution(n, p):
    return binom.pmf(np.arange(n + 1)[:, None], n, p)


def largest_ratio(found, claim):
    """The largest P(p ≤ t)/t over all t, on the boundary of the claim and where both probabilities are equal."""
    n, m = found.shape[0] - 1, found.shape[1] - 1
    q = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 0.1, 40), np.linspace(0.1, 1.0, 120)]))
    worst, at = 0.0, None
    for p in (claim.max_power(q), q):
        left, right = distribution(n, p), distribution(m, q)
        order = np.argsort(found, axis=None)
        values = found.ravel()[order]
        joint = (left[:, None, :] * right[None, :, :]).reshape(-1, len(q))[order]
        total = np.cumsum(joint, axis=0)
        # At the last of equal p-values all of them are counted.
        last = np.append(values[1:] > values[:-1], True)
        ratios = total[last] / values[last][:, None]
        if ratios.max() > worst:
            worst, at = float(ratios.max()), values[last][np.argmax(ratios.max(axis=1))]
    return worst, at


CASES = [
    # The first two are those where the least failure probability that refutes was no p-value (SEAMS A4).
    (PureDP(0.0), 14, 14, None),
    (PureDP(0.0), 25, 12, None),
    (PureDP(0.0), 20, 20, None),
    (PureDP(1.0), 12, 16, None),
    (ApproxDP(0.5, 0.05), 14, 14, None),
    (ApproxDP(0.0, 0.6), 14, 9, None),
    (ApproxDeltaDP(0.5, 0.1), 12, 12, None),
    (GaussianDP(1.0), 12, 12, (0.6, 0.2)),
    (GaussianDP(0.5), 10, 14, (0.9, 0.7)),
    (RenyiDP(2.0, 0.3), 9, 8, (0.5, 0.15)),
    (RenyiDP(1.0 + 1e-14, 0.1), 7, 7, (0.5, 0.2)),
    (ZCDP(0.3), 7, 7, (0.6, 0.2)),
    (LOPSIDED, 12, 12, (0.9, 0.2)),
    (LOPSIDED, 12, 12, (0.97, 0.7)),
]


@pytest.mark.parametrize(("claim", "n", "m", "expected"), CASES)
def test_p_values_are_super_uniform(claim, n, m, expected):
    ratio, at = largest_ratio(p_values(claim, n, m, 0.05, expected), claim)
    assert ratio <= 1.0 + ROUNDING, f"P(p <= {at}) = {ratio}·{at}"


@pytest.mark.parametrize(("claim", "n", "m", "expected"), CASES)
def test_what_a_bound_refutes_has_a_small_p_value(claim, n, m, expected):
    """Up to coarseness. The p-value of a curve may be small without: its bound rests on a line above the curve."""
    for x in range(0, n + 1, 2):
        for y in range(0, m + 1, 2):
            left, right = Counts(x, n), Counts(y, m)
            bound = certified_value(claim, left, right, 0.05, expected)
            p_value = certificate_p_value(claim, left, right, 0.05, expected)
            if bound > claim.value:
                assert p_value <= 0.055
            elif isinstance(claim, PureDP | ApproxDP):
                assert p_value > 0.048


@pytest.mark.parametrize("failure", [0.5, 0.3, 1e-6])
def test_p_values_are_valid_whatever_the_failure_probability_of_the_audit(failure):
    ratio, at = largest_ratio(p_values(PureDP(0.4), 15, 11, failure, None), PureDP(0.4))
    assert ratio <= 1.0 + ROUNDING, f"P(p <= {at}) = {ratio}·{at}"


def test_p_values_fall_with_the_evidence():
    claim, right = PureDP(1.0), Counts(100, 700)
    found = [
        certificate_p_value(claim, Counts(x, 700), right, 0.05) for x in (270, 300, 330, 400, 600)
    ]
    assert found == sorted(found, reverse=True)
    assert 0.0 < found[-1] < 1e-6


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(0.5), ApproxDP(0.5, 0.01)])
def test_p_values_of_overwhelming_evidence_are_above_zero(claim):
    found = certificate_p_value(
        claim, Counts(900_000, 10**6), Counts(1000, 10**6), 0.05, (0.9, 0.001)
    )
    assert 0.0 < found < 1e-100


def test_without_draws_there_is_no_evidence():
    assert certificate_p_value(PureDP(0.0), Counts(0, 0), Counts(0, 5), 0.05) == 1.0
    assert certificate_p_value(PureDP(0.0), Counts(5, 5), Counts(0, 0), 0.05) == 1.0
    assert math.isclose(certificate_p_value(PureDP(0.0), Counts(0, 5), Counts(5, 5), 0.05), 1.0)


def test_two_separate_bounds_have_no_p_value():
    assert certificate_p_value(GaussianDP(1.0), Counts(5, 5), Counts(0, 5), 0.05) is None
