"""The inverse of a curve never exceeds the least q at which the curve allows a power."""

import numpy as np
import pytest

from epsilometer.bounds.inverse_curves import inverse_of_hull
from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP

CLAIMS = [
    PureDP(0.0),
    PureDP(1.0),
    ApproxDP(0.5, 0.01),
    GaussianDP(0.0),
    GaussianDP(1.5),
    RenyiDP(2.0, 0.5),
    RenyiDP(20.0, 0.05),
    ZCDP(0.3),
    TradeOffDP(([0.0, 0.1, 0.3, 1.0], [0.9, 0.65, 0.4, 0.0])),
    TradeOffDP(([0.0, 0.2, 1.0], [1.0, 0.5, 0.0]), excess=0.1),
    TradeOffDP(lambda error: (1.0 - error) ** 2),
    TradeOffDP.from_accountant(GaussianDP(1.0).delta),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.describe())
def test_inverse(claim):
    least_q = inverse_of_hull(claim)
    q = np.concatenate([np.geomspace(1e-8, 1e-2, 13), np.linspace(0.02, 0.98, 25)])
    power = np.array([claim.max_power(float(value)) for value in q])
    inverse = np.array([least_q(float(value)) for value in power])
    # A zero-concentrated claim has two grids of orders, each of which allows a little too much.
    tolerance = 1e-3 if isinstance(claim, ZCDP) else 1e-9
    assert np.all(inverse <= q * (1 + tolerance) + 1e-12)
    # What rounding to the safe side costs: more where nothing is known but points of a function.
    is_steep = power < 1.0 - 1e-6
    assert np.all(inverse[is_steep] >= 0.94 * q[is_steep] - 0.002)
    powers = np.linspace(0.0, 1.0, 101)
    assert np.all(np.diff([least_q(float(value)) for value in powers]) >= -1e-12)


def test_the_hull_of_a_curve_that_is_not_concave():
    """A dent is filled: a mixture of two events has what lies between them."""
    claim = TradeOffDP(([0.0, 0.5, 0.5 + 1e-9, 1.0], [1.0, 0.5, 0.0, 0.0]))
    assert inverse_of_hull(claim)(0.5) == pytest.approx(0.25, abs=1e-6)


def test_a_curve_that_begins_after_0_goes_on_flat_to_0():
    """It is the same function with a point at 0, so it has the same hull."""
    claim = TradeOffDP(([0.1, 1.0], [0.5, 0.0]))
    same_claim = TradeOffDP(([0.0, 0.1, 1.0], [0.5, 0.5, 0.0]))
    powers = np.linspace(0.0, 1.0, 101).tolist()
    inverse = inverse_of_hull(claim)
    inverse_of_same = inverse_of_hull(same_claim)
    assert [inverse(power) for power in powers] == [inverse_of_same(power) for power in powers]


def test_no_mixture_of_two_events_has_less_q_than_the_hull(rng):
    """Curves of random points, wherever these begin, beside all mixtures on a grid."""
    q = np.linspace(0.0, 1.0, 201)
    for _ in range(40):
        type_one = np.append(np.unique(rng.random(rng.integers(1, 6))), 1.0)
        heights = np.sort(rng.random(len(type_one)))[::-1]
        claim = TradeOffDP((type_one.tolist(), ((1.0 - type_one) * heights).tolist()))
        power = np.array([claim.max_power(float(value)) for value in q])
        least_q = inverse_of_hull(claim)
        for weight in (0.0, 0.25, 0.5, 0.9):
            mixed_q = weight * q[:, None] + (1.0 - weight) * q
            mixed_power = weight * power[:, None] + (1.0 - weight) * power
            hull_q = np.vectorize(least_q)(mixed_power)
            assert np.all(hull_q <= mixed_q + 1e-9)
