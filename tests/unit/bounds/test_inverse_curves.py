"""Inverses of the curves of claims."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from epsilometer.bounds.inverse_curves import least_q
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)

P = np.concatenate([[1e-5, 1e-3], np.linspace(0.01, 0.99, 50), [0.999, 1.0 - 1e-5]])


class HalfWay(Claim):
    """A notion of somebody else's: between guessing and certainty."""

    notion = "half-way"
    parameter = "share"
    symbol = "share"

    def __init__(self, share):
        self.share = share

    def max_power(self, q):
        return q + self.share * q * (1.0 - q)

    def least_value(self, p, q):
        return max(p - q, 0.0) / max(q * (1.0 - q), 1e-300)


def gaussian_curve(error):
    return float(ndtr(-ndtri(error) - 0.8)) if 0.0 < error < 1.0 else float(error <= 0.0)


@pytest.mark.parametrize(
    ("claim", "loss"),
    [
        (PureDP(0.0), 1e-12),
        (PureDP(1.3), 1e-12),
        (ApproxDP(0.7, 0.02), 1e-12),
        (ApproxDeltaDP(0.7, 0.02), 1e-12),
        (GaussianDP(1.5), 1e-12),
        (TradeOffDP(([0.0, 0.3, 1.0], [1.0, 0.3, 0.0])), 1e-12),
        (TradeOffDP(([0.0, 0.3, 0.6, 1.0], [0.9, 0.3, 0.3, 0.0]), excess=0.01), 1e-12),
        (TradeOffDP(gaussian_curve), 2e-3),
        (RenyiDP(2.0, 0.5), 2e-3),
        (ZCDP(0.5), 5e-3),
        (HalfWay(0.5), 2e-3),
    ],
)
def test_never_above_the_inverse_and_close_to_it(claim, loss):
    """The claim allows everything above the inverse, and nothing that is much below it."""
    q = least_q(claim, P)
    powers = np.array([claim.max_power(float(point)) for point in q])
    assert np.all((q >= 0.0) & (q <= 1.0))
    assert np.all(np.diff(q) >= -1e-12)
    # At q the claim allows no more than p, unless it allows p at q = 0 already.
    assert np.all((powers <= P + 1e-9) | (q == 0.0))
    # With a little more than q, it allows p.
    above = np.minimum(q + loss, 1.0)
    assert np.all(np.array([claim.max_power(float(point)) for point in above]) >= P - 1e-9)


def test_arrays_of_any_shape():
    masses = P[:54].reshape(6, 9)
    for claim in (PureDP(1.0), ZCDP(0.1), TradeOffDP(([0.0, 1.0], [1.0, 0.0]))):
        assert least_q(claim, masses).shape == (6, 9)
