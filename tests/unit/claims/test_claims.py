"""What a claim refuses, and how it is read, written and told."""

import math

import numpy as np
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
    from_dict,
    from_parameters,
    open_claim,
    parse_claim,
)
from epsilometer.errors import EpsilometerError, InputError

MAKERS = {
    "epsilon": PureDP,
    "epsilon of approx": lambda value: ApproxDP(value, 0.1),
    "epsilon of approx-delta": lambda value: ApproxDeltaDP(value, 0.1),
    "epsilon of renyi": lambda value: RenyiDP(2.0, value),
    "rho": ZCDP,
    "mu": GaussianDP,
    "excess": lambda value: TradeOffDP(([0, 1], [1, 0]), value),
}
NO_NUMBERS = [True, False, "1", None, 1j, [1.0], np.True_, np.array([1.0])]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    "value", [-1.0, -1e-300, math.nan, math.inf, -math.inf, *NO_NUMBERS], ids=repr
)
def test_values_that_make_no_sense(make, value):
    with pytest.raises(InputError) as caught:
        make(value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, EpsilometerError)
    assert "=" in str(caught.value)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_an_integer_beyond_all_floats(make):
    with pytest.raises(InputError):
        make(10**400)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.nan, math.inf, *NO_NUMBERS], ids=repr)
@pytest.mark.parametrize("kind", [ApproxDP, ApproxDeltaDP])
def test_delta_is_at_least_zero_and_below_one(kind, delta):
    with pytest.raises(InputError, match="delta="):
        kind(1.0, delta)


@pytest.mark.parametrize("order", [1.0, 0.5, 0.0, -2.0, math.nan, math.inf, *NO_NUMBERS], ids=repr)
def test_order_is_finite_and_above_one(order):
    with pytest.raises(InputError, match="order="):
        RenyiDP(order, 1.0)


@pytest.mark.parametrize("number", [1, np.int32(1), np.float64(1.0), np.float32(1.0)])
def test_any_real_number_will_do(number):
    claim = PureDP(number)
    assert claim == PureDP(1.0)
    assert type(claim.epsilon) is float


def test_claims_are_values():
    assert PureDP(1.0) == PureDP(1)
    assert hash(ApproxDP(1.0, 0.1)) == hash(ApproxDP(1, 0.1))
    assert PureDP(1.0) != ApproxDP(1.0, 0.0)
    with pytest.raises(AttributeError):
        PureDP(1.0).epsilon = 2.0


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", PureDP(1)),
        ("epsilon=0.5", PureDP(0.5)),
        (" EPS = 1e-1 ", PureDP(0.1)),
        ("ε=1", PureDP(1)),
        ("eps=1,delta=1e-6", ApproxDP(1, 1e-6)),
        ("δ=1e-6, ε=1", ApproxDP(1, 1e-6)),
        ("order=2,eps=0.5", RenyiDP(2, 0.5)),
        ("alpha=2,eps=0.5", RenyiDP(2, 0.5)),
        ("rho=0.1", ZCDP(0.1)),
        ("ρ=0.1", ZCDP(0.1)),
        ("mu=0.7", GaussianDP(0.7)),
    ],
)
def test_reading_text(text, claim):
    assert parse_claim(text) == claim


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "eps",
        "eps=",
        "eps=one",
        "eps=1,",
        "eps=1,eps=2",
        "eps=1,epsilon=2",
        "sigma=1",
        "delta=0.1",
        "order=2",
        "mu=1,eps=1",
        "eps=-1",
        "eps=nan",
        "eps=inf",
        "eps=1,delta=1",
        "order=1,eps=1",
        "eps=1;delta=0.1",
        "eps==1",
    ],
)
def test_text_that_is_no_claim(text):
    with pytest.raises(InputError):
        parse_claim(text)


def test_parameters_that_make_no_claim_say_what_does():
    with pytest.raises(InputError, match="delta, mu"):
        from_parameters(delta=0.1, mu=1.0)
    with pytest.raises(InputError, match="there is no claim"):
        from_parameters()


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(1),
        ApproxDP(1, 1e-6),
        ApproxDeltaDP(1, 0.1),
        RenyiDP(2, 0.5),
        ZCDP(0.1),
        GaussianDP(0.7),
        TradeOffDP(([0.0, 0.5, 1.0], [0.9, 0.2, 0.0]), 0.1),
    ],
)
def test_plain_data_round_trip(claim):
    data = claim.to_dict()
    assert data["notion"] in NOTIONS
    assert from_dict(data) == claim


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"notion": "magic"},
        {"notion": None, "epsilon": 1},
        {"notion": "pure"},
        {"notion": "pure", "epsilon": "1"},
        {"notion": "pure", "epsilon": -1},
        {"notion": "pure", "epsilon": 1, "delta": 0.1},
        {"notion": "tradeoff"},
        {"notion": "tradeoff", "curve": 3},
        {"notion": "tradeoff", "curve": [[0, 1]]},
        {"notion": "tradeoff", "curve": ["a", "b"]},
    ],
    ids=repr,
)
def test_stored_data_that_is_no_claim(data):
    with pytest.raises(InputError):
        from_dict(data)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (PureDP(1), "PureDP(epsilon=1)"),
        (ApproxDP(0.5, 1e-6), "ApproxDP(epsilon=0.5, delta=1e-06)"),
        (ApproxDeltaDP(0.5, 0.1), "ApproxDeltaDP(delta=0.1, epsilon=0.5)"),
        (RenyiDP(2, 0.5), "RenyiDP(epsilon=0.5, order=2)"),
        (ZCDP(0.1), "ZCDP(rho=0.1)"),
        (GaussianDP(0.7), "GaussianDP(mu=0.7)"),
        (TradeOffDP(([0, 1], [1, 0])), "TradeOffDP(curve with f(0.05)=0.95)"),
    ],
)
def test_describe(claim, words):
    assert claim.describe() == words


class TestOpenClaim:
    def test_strictest_of_its_notion(self):
        assert open_claim(PureDP, {}) == PureDP(0)
        assert open_claim(RenyiDP, {"order": 2.0}) == RenyiDP(2, 0)
        assert open_claim(ZCDP, {}) == ZCDP(0)
        assert open_claim(GaussianDP, {}) == GaussianDP(0)

    def test_approximate_privacy_in_either_parameter(self):
        assert open_claim(ApproxDP, {"delta": 0.1}) == ApproxDP(0, 0.1)
        assert open_claim(ApproxDP, {"epsilon": 0.5}) == ApproxDeltaDP(0.5, 0)

    @pytest.mark.parametrize(
        ("notion", "fixed"),
        [
            (ApproxDP, {}),
            (ApproxDP, {"epsilon": 1, "delta": 0.1}),
            (ApproxDP, {"order": 2}),
            (RenyiDP, {}),
            (RenyiDP, {"order": 1}),
            (RenyiDP, {"order": 2, "delta": 0.1}),
            (PureDP, {"delta": 0.1}),
            (PureDP, {"typo": 1}),
            (TradeOffDP, {}),
        ],
    )
    def test_what_cannot_be_measured(self, notion, fixed):
        with pytest.raises(InputError):
            open_claim(notion, fixed)
