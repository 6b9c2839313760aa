import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.claims import GaussianDP, TradeOffDP, from_dict
from epsilometer.errors import InputError


def gaussian(mu):
    return lambda error: float(norm.cdf(norm.isf(error) - mu))


def test_function_and_points_are_curves_of_type_two_error():
    by_function = TradeOffDP(gaussian(1.0))
    by_points = TradeOffDP(([0.0, 0.5, 1.0], [0.8, 0.2, 0.0]))
    assert by_function.max_power(0.05) == pytest.approx(GaussianDP(1.0).max_power(0.05))
    assert by_points.max_power(0.25) == pytest.approx(0.5)
    assert np.allclose(by_points.max_power(np.array([0.0, 0.5, 0.75, 1.0])), [0.2, 0.8, 0.9, 1.0])


def test_excess_is_tolerated_power():
    claim = TradeOffDP(([0.0, 1.0], [1.0, 0.0]), 0.1)
    assert claim.max_power(0.3) == pytest.approx(0.4)
    assert claim.max_power(0.95) == 1.0
    assert claim.value == 0.1
    assert claim.with_value(0.0).max_power(0.3) == pytest.approx(0.3)


def test_least_value_is_power_above_the_curve():
    claim = TradeOffDP(([0.0, 0.5, 1.0], [0.8, 0.2, 0.0]))
    assert claim.least_value(0.9, 0.5) == pytest.approx(0.1)
    assert claim.least_value(0.7, 0.5) == 0.0


@pytest.mark.parametrize(
    "curve",
    [
        gaussian(0.5),
        gaussian(3.0),
        lambda error: max(0.0, 1 - 20 * error),
        lambda error: 1 - error,
        lambda error: 0.0,
    ],
)
def test_stored_form_is_never_stricter_than_the_function(curve):
    claim = TradeOffDP(curve)
    stored = from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False)))
    q = np.concatenate([[0.0], np.geomspace(1e-12, 1, 3001), np.linspace(0, 1, 1777)])
    gap = stored.max_power(q) - claim.max_power(q)
    assert gap.min() >= -1e-12
    assert gap[q > 0.01].max() <= 0.02  # and yet not much weaker
    again = from_dict(stored.to_dict())
    assert again == stored


def test_points_that_do_not_reach_zero_are_read_on_the_safe_side():
    claim = TradeOffDP(([0.1, 1.0], [0.6, 0.0]))
    assert claim.max_power(0.01) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "curve",
    [
        lambda error: 0.5,
        lambda error: error,
        lambda error: 1.2 - error,
        lambda error: -0.1,
        lambda error: math.nan,
        lambda error: math.inf,
        lambda error: (1 - error) if error < 0.5 else (1 - error) * 0.9 + 0.04 * (error > 0.7),
        ([0.0, 1.0], [1.0, 0.5]),
        ([0.0, 1.0], [1.0]),
        ([0.0], [1.0]),
        ([0.0, 0.0, 1.0], [1.0, 0.5, 0.0]),
        ([1.0, 0.0], [0.0, 1.0]),
        ([0.0, math.nan, 1.0], [1.0, 0.5, 0.0]),
        ([0.0, 0.5, 1.0], [1.0, math.nan, 0.0]),
        (["a", "b"], [1.0, 0.0]),
        3,
        None,
        "curve",
        [],
    ],
)
def test_what_is_no_trade_off_curve(curve):
    with pytest.raises(InputError, match="curve"):
        TradeOffDP(curve)


def test_describe_shows_one_point():
    assert TradeOffDP(gaussian(1.0)).describe() == "TradeOffDP(curve with f(0.05)=0.74)"
