"""`em.plan`: how many draws an audit needs, before anything is drawn."""

import math

import pytest

import epsilometer as em
from epsilometer.auditing.settings import training_size


def test_a_plan_for_an_audit():
    plan = em.plan(em.PureDP(1.0), truth=1.5)
    assert plan.event_probability == 0.5
    assert plan.other_probability == pytest.approx(0.5 * math.exp(-1.5))
    assert plan.draws == 2 * plan.samples
    assert 300 < plan.samples < 600
    fresh = plan.samples - training_size(plan.samples)
    # By hand, from √n·(p − e·q) = 1.645·√(e(p + q)) + 1.282·√(p(1 − p) + e²q(1 − q)).
    p = plan.event_probability
    q = plan.other_probability
    bar = 1.6449 * math.sqrt(math.e * (p + q)) + 1.2816 * math.sqrt(
        p * (1 - p) + math.e**2 * q * (1 - q)
    )
    assert fresh == pytest.approx((bar / (p - math.e * q)) ** 2, abs=2)


def test_closer_truths_more_power_and_rarer_events_cost_more():
    def samples(**change):
        return em.plan(**({"claim": em.PureDP(1.0), "truth": 1.5} | change)).samples

    assert samples(truth=1.05) > samples(truth=1.2) > samples()
    assert samples(power=0.99) > samples() > samples(power=0.5)
    assert samples(confidence=0.999) > samples()
    assert samples(event_probability=0.001) > samples(event_probability=0.1) > samples()


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (em.ApproxDP(1, 1e-3), 2.0),
        (em.RenyiDP(2, 0.5), 1.0),
        (em.GaussianDP(1), 1.5),
        (em.ZCDP(0.1), 0.3),
    ],
)
def test_other_notions(claim, truth):
    plan = em.plan(claim, truth=truth)
    assert 50 < plan.samples < 10_000
    assert claim.with_value(truth).max_power(plan.other_probability) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": None}, "truth=None must be"),
        ({"truth": 1.0}, r"truth=1\.0 must be"),
        ({"truth": math.inf}, "truth=inf must be"),
        ({"power": 1.0}, r"power=1\.0"),
        ({"event_probability": 0.0}, "event_probability=0"),
        ({"confidence": 2.0}, r"confidence=2\.0"),
        ({"most_draws": 100}, "draws, above most_draws=100"),
        ({"truth": 1.0 + 1e-9}, "more than"),
    ],
)
def test_audits_that_make_no_sense(change, message):
    with pytest.raises(em.InputError, match=message):
        em.plan(**({"claim": em.PureDP(1.0), "truth": 1.5} | change))


def test_a_timed_mechanism_tells_how_long_drawing_takes():
    plan = em.plan(em.PureDP(1.0), truth=1.5, mechanism=em.zoo.laplace())
    assert 0 < plan.seconds < math.inf
    assert em.plan("eps=1", truth=1.5).seconds is None
