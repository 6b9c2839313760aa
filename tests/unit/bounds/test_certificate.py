import math

import pytest

from epsilometer.bounds import Counts, certified_value, delta_lower, epsilon_lower, lower, two_bounds_value, upper
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP

LEFT, RIGHT = Counts(700, 1000), Counts(200, 900)
OTHERS = [RenyiDP(2.0, 0.1), ZCDP(0.1), GaussianDP(0.1), TradeOffDP(([0, 1], [1, 0]))]


def test_joint_test_where_there_is_one():
    assert certified_value(PureDP(1.0), LEFT, RIGHT, 0.05) == epsilon_lower(LEFT, RIGHT, 0.05)
    assert certified_value(ApproxDP(1.0, 0.01), LEFT, RIGHT, 0.05) == epsilon_lower(LEFT, RIGHT, 0.05, 0.01)
    assert certified_value(ApproxDeltaDP(0.5, 0.1), LEFT, RIGHT, 0.05) == delta_lower(LEFT, RIGHT, 0.05, 0.5)


@pytest.mark.parametrize("claim", OTHERS, ids=lambda claim: claim.notion)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_two_bounds_elsewhere(claim, share):
    p, q = lower(LEFT, 0.05 * share), upper(RIGHT, 0.05 * (1 - share))
    assert certified_value(claim, LEFT, RIGHT, 0.05, share) == claim.least_value(p, q)


@pytest.mark.parametrize("claim", [*OTHERS, PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDeltaDP(0.5, 0.1)])
def test_own_value_plays_no_role(claim):
    values = {certified_value(claim.with_value(value), LEFT, RIGHT, 0.05) for value in (0.0, 0.25, 0.5)}
    assert len(values) == 1


@pytest.mark.parametrize("claim", [*OTHERS, PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDeltaDP(0.5, 0.1)])
def test_never_negative_never_infinite(claim):
    extremes = [Counts(0, 50), Counts(50, 50), Counts(1, 50), Counts(1, 1), Counts(0, 1)]
    for left in extremes:
        for right in extremes:
            value = certified_value(claim, left, right, 0.05)
            assert 0 <= value < math.inf
    assert certified_value(claim, Counts(20, 50), Counts(25, 50), 0.05) == 0


def test_the_two_bounds_also_serve_pure_privacy():
    assert 0 < two_bounds_value(PureDP(0.0), LEFT, RIGHT, 0.05) < epsilon_lower(LEFT, RIGHT, 0.05)
