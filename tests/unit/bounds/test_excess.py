"""From an excess at one ε to a claim's own parameter."""

import math

import numpy as np
import pytest

from epsilometer.bounds.excess import value_of_excess
from epsilometer.claims import ApproxDeltaDP, ApproxDP, PureDP


def test_delta_is_the_excess_itself():
    assert value_of_excess(ApproxDeltaDP(0.5, 0.0), 0.5, 0.2) == 0.2
    assert value_of_excess(ApproxDeltaDP(0.5, 0.0), 0.5, -0.1) == 0.0


def test_a_smaller_mixture_says_nothing_about_delta_at_a_larger_epsilon():
    assert value_of_excess(ApproxDeltaDP(0.5, 0.0), 0.4, 0.2) == 0.0


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_epsilon_is_never_above_what_the_event_itself_proves(delta):
    """Over all events with the given excess, the least ε that each proves; the answer is the least of them."""
    claim = ApproxDP(0.0, delta) if delta else PureDP(0.0)
    for epsilon in (0.1, 1.0, 3.0):
        for excess in (delta + 0.001, 0.3, 0.9):
            p = np.linspace(excess, 1.0, 4000)
            q = (p - excess) / math.exp(epsilon)
            proved = min(claim.least_value(float(a), float(b)) for a, b in zip(p, q, strict=True))
            assert value_of_excess(claim, epsilon, excess) == pytest.approx(proved, abs=2e-3)
            assert value_of_excess(claim, epsilon, excess) <= proved + 1e-9


def test_no_excess_proves_nothing():
    assert value_of_excess(PureDP(1.0), 1.0, 0.0) == 0.0
    assert value_of_excess(ApproxDP(1.0, 0.1), 1.0, 0.1) == 0.0


def test_a_certain_event_stays_finite():
    assert 30.0 < value_of_excess(PureDP(1.0), 1.0, 1.0) < 60.0
