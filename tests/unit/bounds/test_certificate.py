import math

import numpy as np
import pytest

from epsilometer.bounds import (
    Counts,
    certified_value,
    delta_lower,
    epsilon_lower,
    lower,
    refuted_line,
    two_bounds_value,
    upper,
)
from epsilometer.bounds.two_counts import delta_test, epsilon_test
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)

LEFT, RIGHT = Counts(700, 1000), Counts(200, 900)
OTHERS = [RenyiDP(2.0, 0.1), ZCDP(0.1), GaussianDP(0.1), TradeOffDP(([0, 1], [1, 0]))]


def test_joint_test_of_single_lines():
    assert certified_value(PureDP(1.0), LEFT, RIGHT, 0.05) == epsilon_lower(LEFT, RIGHT, 0.05)
    assert certified_value(ApproxDP(1.0, 0.01), LEFT, RIGHT, 0.05) == epsilon_lower(
        LEFT, RIGHT, 0.05, 0.01
    )
    assert certified_value(ApproxDeltaDP(0.5, 0.1), LEFT, RIGHT, 0.05) == delta_lower(
        LEFT, RIGHT, 0.05, 0.5
    )


@pytest.mark.parametrize("claim", OTHERS, ids=lambda claim: claim.notion)
def test_two_bounds_where_nothing_is_expected(claim):
    p, q = lower(LEFT, 0.025), upper(RIGHT, 0.025)
    assert certified_value(claim, LEFT, RIGHT, 0.05) == claim.least_value(p, q)


# Counts with what was expected of them: frequent and rare events, and such that need the complement or a fixed slope.
EXPECTED = [
    (Counts(700, 1000), Counts(200, 900), (0.68, 0.21)),
    (Counts(350, 7000), Counts(60, 7000), (0.052, 0.009)),
    (Counts(6940, 7000), Counts(6650, 7000), (0.99, 0.95)),
    (Counts(960, 1000), Counts(30, 1000), (0.95, 0.04)),
]
# A curve that is not convex, and the same claim as a function.
BENT = ([0.0, 0.05, 0.3, 0.6, 1.0], [0.95, 0.9, 0.5, 0.38, 0.0])
CURVES = [
    *OTHERS[:3],
    RenyiDP(9.0, 0.1),
    TradeOffDP(BENT),
    TradeOffDP(lambda error: (1.0 - error) ** 2),
]


@pytest.mark.parametrize("claim", CURVES, ids=lambda claim: claim.notion)
@pytest.mark.parametrize(("left", "right", "expected"), EXPECTED)
def test_the_joint_test_is_sharper_than_two_bounds(claim, left, right, expected):
    shares = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
    two = max(two_bounds_value(claim, left, right, 0.05, share) for share in shares)
    estimate = claim.least_value(left.share, right.share)
    joint = certified_value(claim, left, right, 0.05, expected)
    assert joint < estimate or estimate == 0.0
    # Least where a Rényi claim's curve has a corner; elsewhere it is 0.6 to 0.85.
    assert estimate - joint <= 0.95 * (estimate - two) or two == 0.0


@pytest.mark.parametrize("claim", CURVES, ids=lambda claim: claim.notion)
@pytest.mark.parametrize(("left", "right", "expected"), EXPECTED)
def test_no_curve_up_to_the_bound_reaches_the_refuted_line(claim, left, right, expected):
    line = refuted_line(claim, left, right, 0.05, expected)
    if line is None:
        assert claim.least_value(left.share, right.share) == 0.0
        return
    proved = line.proves(claim)
    inside = np.linspace(*line.q_range, 700)
    p = np.minimum(line.slope * inside + line.shift, 1.0)
    p, q = (1.0 - inside, 1.0 - p) if line.complement else (p, inside)
    assert proved == 0.0 or np.all(claim.with_value(proved).max_power(q) <= p + 1e-12)
    # It is refuted: P(E) on the line makes these counts, or more extreme ones, improbable for every Q(E) in the range.
    turned = (
        Counts(right.trials - right.hits, right.trials),
        Counts(left.trials - left.hits, left.trials),
    )
    sides = turned if line.complement else (left, right)
    slope = math.log(line.slope)
    make = (
        delta_test(*sides, 0.05, slope)
        if line.fixed == "slope"
        else epsilon_test(*sides, 0.05, line.shift)
    )
    assert make.rejects(slope, line.shift)
    assert make.q_range == line.q_range


def test_all_ways_to_fix_a_line_are_in_use():
    lines = [refuted_line(GaussianDP(0.0), *each[:2], 0.05, each[2]) for each in EXPECTED]
    assert [(line.fixed, line.complement) for line in lines] == [
        ("slope", False),
        ("shift", False),
        ("shift", True),
        ("slope", False),
    ]


@pytest.mark.parametrize(
    "expected", [(0.0, 0.0), (1.0, 1.0), (0.2, 0.7), (1.0, 0.0), (0.5, 0.5), (1e-12, 0.0)]
)
@pytest.mark.parametrize("claim", CURVES, ids=lambda claim: claim.notion)
def test_a_wrong_guess_costs_power_only(claim, expected):
    for left, right in (
        (LEFT, RIGHT),
        (Counts(50, 50), Counts(0, 50)),
        (Counts(0, 0), Counts(0, 0)),
    ):
        assert (
            0.0
            <= certified_value(claim, left, right, 0.05, expected)
            < max(claim.least_value(0.75, 0.17), 50.0)
        )


@pytest.mark.parametrize(
    "claim", [*OTHERS, PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDeltaDP(0.5, 0.1)]
)
def test_own_value_plays_no_role(claim):
    values = {
        certified_value(claim.with_value(value), LEFT, RIGHT, 0.05) for value in (0.0, 0.25, 0.5)
    }
    assert len(values) == 1


@pytest.mark.parametrize(
    "claim", [*OTHERS, PureDP(1.0), ApproxDP(1.0, 0.01), ApproxDeltaDP(0.5, 0.1)]
)
def test_never_negative_never_infinite(claim):
    extremes = [Counts(0, 50), Counts(50, 50), Counts(1, 50), Counts(1, 1), Counts(0, 1)]
    for left in extremes:
        for right in extremes:
            value = certified_value(claim, left, right, 0.05)
            assert 0 <= value < math.inf
    assert certified_value(claim, Counts(20, 50), Counts(25, 50), 0.05) == 0


def test_the_two_bounds_also_serve_pure_privacy():
    assert 0 < two_bounds_value(PureDP(0.0), LEFT, RIGHT, 0.05) < epsilon_lower(LEFT, RIGHT, 0.05)
