"""`em.plan` and `epsilometer plan`: figures before anything is drawn."""

import json
import math

import pytest

import epsilometer as em
from epsilometer.auditing.planning import EventsPlan, seconds_per_draw
from epsilometer.auditing.settings import training_size
from epsilometer.cli import main

SMOOTH = {"lipschitz": 0.667, "domain": (0, 1)}


def test_the_known_example():
    plan = em.plan(notion=em.PureDP, precision=0.5, confidence=0.9, **SMOOTH)
    assert (plan.cells, plan.samples, plan.midpoints, plan.draws) == (13, 158_179, None, 316_358)
    assert plan.width == pytest.approx(1 / 13)
    assert plan.floor == pytest.approx(0.6665)
    assert em.plan(precision=0.5, confidence=0.9, as_published=True, **SMOOTH).samples == 99_654


def test_an_interval_of_inputs():
    plan = em.plan(
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
    plan = em.plan(notion=notion, order=2, precision=0.5, confidence=0.9, **SMOOTH)
    assert plan.order == 2.0
    assert plan.samples > 10**7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precision": None}, "precision= for an estimate"),
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
        em.plan(**({"precision": 0.5, "confidence": 0.9, **SMOOTH} | change))


def test_the_time_of_a_mechanism():
    entry = em.zoo.truncated_laplace(0.5)
    plan = em.plan(mechanism=entry, precision=0.5, confidence=0.9)
    assert plan.smoothness.lipschitz == entry.lipschitz
    assert 0 < plan.seconds < math.inf
    assert em.plan(precision=0.5, **SMOOTH).seconds is None


def test_a_slow_mechanism_is_not_run_for_long():
    calls = []

    def slow(dataset):
        calls.append(dataset)
        sum(range(2_000_000))
        return 0.5

    assert seconds_per_draw(slow, 7) > 1e-3
    assert len(calls) < 100
    assert set(calls) == {7}


# --- audits that shall refute ---------------------------------------------------------------------------------------


def test_a_plan_for_an_audit():
    plan = em.plan(claim=em.PureDP(1.0), truth=1.5)
    assert isinstance(plan, EventsPlan)
    assert plan.event == pytest.approx((0.5, 0.5 * math.exp(-1.5)))
    assert plan.draws == 2 * plan.samples
    assert 300 < plan.samples < 600
    fresh = plan.samples - training_size(plan.samples)
    # By hand, from √n·(p − e·q) = 1.645·√(e(p + q)) + 1.282·√(p(1 − p) + e²q(1 − q)).
    p, q = plan.event
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
    plan = em.plan(claim=claim, truth=truth)
    assert 50 < plan.samples < 10_000
    assert claim.with_value(truth).max_power(plan.event[1]) == pytest.approx(plan.event[0])


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


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_tells_the_figures(capsys):
    arguments = "plan --precision .5 --confidence .9 --lipschitz .667 --domain 0 1"
    assert main(arguments.split()) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("158,179", "13 of width 0.0769231", "0.6665", "316,358"))
    assert main([*arguments.split(), "--as-published", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 99_654


def test_the_command_times_a_target_and_plans_audits(capsys):
    assert main(["plan", "zoo:truncated_laplace?epsilon=.5", "--precision", "1"]) == 0
    assert "pilot draws" in capsys.readouterr().out
    assert main(["plan", "--epsilon", "1", "--truth", "1.5"]) == 0
    shown = capsys.readouterr().out
    assert f"{em.plan(claim=em.PureDP(1.0), truth=1.5).samples:,}, training included" in shown
    assert main(["plan", "--epsilon", "1", "--truth", "1.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claim"] == {"notion": "pure", "epsilon": 1.0}
    assert main(["plan", "--epsilon", "1", "--order", "2", "--truth", "1.5"]) == 0
    assert "RenyiDP" in capsys.readouterr().out


def test_the_command_refuses_with_the_figure(capsys):
    arguments = "plan --precision .5 --lipschitz .6 --domain 0 1 --order 5"
    assert main([*arguments.split(), "--most-draws", "1e9"]) == 2
    assert "most_draws=1,000,000,000" in capsys.readouterr().err
    assert main(arguments.split()) == 0
    assert "above the limit of 1,000,000,000" in capsys.readouterr().out
    assert main(["plan", "--precision", ".5", "--lipschitz", "2", "--domain", "0", "1"]) == 2
    assert "lipschitz=2 must be below" in capsys.readouterr().err


def test_the_command_for_an_interval_of_inputs(capsys):
    text = "plan --precision 1 --lipschitz .3 --domain 0 1 --input-lipschitz .6 --input-domain 0 1"
    assert main(text.split()) == 0
    assert "mid-points, all pairs" in capsys.readouterr().out
