"""`em.ldp.plan`: what an estimate takes, before anything is drawn."""

import math

import pytest

import epsilometer as em

SMOOTH = {"lipschitz": 0.667, "domain": (0, 1)}


def test_the_known_example():
    plan = em.ldp.plan(notion=em.PureDP, precision=0.5, confidence=0.9, **SMOOTH)
    assert (plan.cells, plan.samples, plan.midpoints, plan.draws) == (13, 158_179, None, 316_358)
    assert plan.width == pytest.approx(1 / 13)
    assert plan.floor == pytest.approx(0.6665)
    assert em.ldp.plan(precision=0.5, confidence=0.9, as_published=True, **SMOOTH).samples == 99_654


def test_an_interval_of_inputs():
    plan = em.ldp.plan(
        notion="pure",
        precision=0.5,
        confidence=0.9,
        input_lipschitz=1.2,
        input_domain=(0, 2),
        **SMOOTH,
    )
    assert plan.midpoints == math.ceil(3 * 1.2 * 2 / (0.6665 * 0.5))
    assert plan.draws == plan.midpoints * plan.samples


@pytest.mark.parametrize("notion", [em.RenyiDP, "renyi", None])
def test_renyi(notion):
    plan = em.ldp.plan(notion=notion, order=2, precision=0.5, confidence=0.9, **SMOOTH)
    assert plan.order == 2.0
    assert plan.samples > 10**7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"notion": em.GaussianDP}, "notion='gaussian'"),
        ({"notion": "zcdp"}, "notion='zcdp'"),
        ({"notion": em.RenyiDP}, "needs order="),
        ({"notion": em.PureDP, "order": 2.0}, "order=2"),
        ({"domain": None}, "domain= is needed"),
        ({"lipschitz": None}, "lipschitz= is needed"),
        ({"input_domain": (0, 1)}, "needed together"),
        ({"input_lipschitz": 1.0}, "needed together"),
        ({"most_draws": 1000}, r"316,358 draws .*most_draws=1,000"),
        ({"lipschitz": 2.0}, r"lipschitz=2 must be below 2/\(b − a\)² = 2"),
        ({"precision": 0.0}, r"precision=0\.0"),
        ({"confidence": 1.0}, r"confidence=1\.0"),
        ({"domain": (1, 0)}, r"domain=\(1, 0\)"),
    ],
)
def test_what_makes_no_sense_is_told(change, message):
    with pytest.raises(em.InputError, match=message):
        em.ldp.plan(**({"precision": 0.5, "confidence": 0.9, **SMOOTH} | change))


def test_the_time_of_a_mechanism():
    entry = em.zoo.truncated_laplace(0.5)
    plan = em.ldp.plan(mechanism=entry, precision=0.5, confidence=0.9)
    assert plan.smoothness.lipschitz == entry.lipschitz
    assert 0 < plan.seconds < math.inf
    assert em.ldp.plan(precision=0.5, **SMOOTH).seconds is None
