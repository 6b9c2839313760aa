"""The shipped suite on our own claims."""

from statistics import NormalDist

import pytest

from epsilometer.claims import (
    NOTIONS,
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.testing import ClaimConformance

NORMAL = NormalDist()


def gaussian_curve(error):
    """Of one standard deviation apart, as a function."""
    return NORMAL.cdf(NORMAL.inv_cdf(1 - error) - 1) if 0 < error < 1 else 1.0 - error


CLAIMS = [
    PureDP(0.1),
    PureDP(3.0),
    ApproxDP(1.0, 1e-5),
    ApproxDP(0.2, 0.2),
    ApproxDeltaDP(0.0, 0.1),
    ApproxDeltaDP(1.0, 0.01),
    RenyiDP(1.01, 0.3),
    RenyiDP(2.0, 0.5),
    RenyiDP(64.0, 2.0),
    ZCDP(0.01),
    ZCDP(0.5),
    GaussianDP(0.3),
    GaussianDP(2.0),
    TradeOffDP(([0.0, 0.2, 0.6, 1.0], [0.8, 0.4, 0.1, 0.0]), 0.05),
    TradeOffDP(gaussian_curve, 0.02),
]


class TestOurClaims(ClaimConformance):
    @pytest.fixture(params=CLAIMS, ids=lambda claim: claim.describe().replace(" ", ""))
    def claim(self, request):
        return request.param


def test_no_notion_is_left_out():
    ours = {kind for kind in NOTIONS.values() if kind.__module__.startswith("epsilometer.")}
    assert {type(claim) for claim in CLAIMS} == ours
