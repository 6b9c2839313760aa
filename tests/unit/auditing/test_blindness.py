"""Twenty audits that could not have refuted anything, and twenty that could."""

import json
import math
import pickle
from functools import partial

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.blindness import perfect_bets_refute, perfect_event_refutes
from epsilometer.claims import ApproxDeltaDP

PAIR = em.Pair(0, 1)
PURE = em.PureDP(1.0)


def laplace(x, n, rng):
    return x + rng.laplace(size=n)


def normal(x, n, rng):
    return x + rng.normal(size=n)


def coin(x, n, rng):
    return rng.random(n) < 0.5


def vector(x, n, rng):
    return rng.laplace(size=(n, 3))


def token(x, rng):
    """A text that never comes twice. Some methods read its characters, others read nothing."""
    return "".join(rng.choice(list("ghjkmnpqrstvwxyz"), size=24))


def tokens(x, rng):
    return {"id": token(x, rng), "session": token(x, rng)}


def audited(function, claim, *, batch=True, **settings):
    mechanism = em.from_batch(function) if batch else function
    return em.audit(mechanism, PAIR, claim, seed=0, **settings)


def amount(x, rng):
    return f"total={rng.laplace():.9f}"


def entry(x, rng):
    return json.dumps({"id": token(x, rng), "count": int(rng.integers(5))})


def coded(x, rng):
    return f"{rng.choice(['ok', 'no'])}-{token(x, rng)}"


def texts(function, *, samples, claim=PURE, **settings):
    return audited(function, claim, batch=False, samples=samples, **settings)


def recorded_texts(seed):
    rng = np.random.default_rng(seed)
    return [token(0, rng) for _ in range(300)]


def compared(claim, n, m, **settings):
    rng = np.random.default_rng(0)
    return em.compare(rng.laplace(size=n), rng.laplace(size=m), claim, seed=0, **settings)


def replayed(claim, samples):
    first = audited(laplace, claim, samples=1000)
    return em.replay(first, em.from_batch(laplace), samples=samples, seed=1)


def falling(slope, a):
    return np.maximum(1.0 - slope * a, 0.0)


def steep(slope):
    return em.TradeOffDP(partial(falling, slope))


def several_pairs(claim, samples):
    pairs = [em.Pair(0, 1), em.Pair(0, 2)]
    return em.audit(em.from_batch(laplace), pairs, claim, samples=samples, seed=0)


def searched(claim, samples):
    finder = em.finders.Random(em.domains.Number(0.0, 1.0), trials=2, samples=200, seed=0)
    return em.audit(em.from_batch(laplace), finder, claim, samples=samples, seed=0)


def by_method(method, claim, samples, function=laplace):
    return audited(function, claim, samples=samples, method=method)


BLIND = {
    "pure": lambda: audited(laplace, em.PureDP(8.0), samples=400),
    "pure, many draws": lambda: audited(laplace, em.PureDP(12.0), samples=20_000),
    "approx": lambda: audited(normal, em.ApproxDP(8.0, 1e-5), samples=400),
    "approx, most of the mass": lambda: audited(coin, em.ApproxDP(1.0, 0.99), samples=60),
    "delta at epsilon": lambda: audited(coin, ApproxDeltaDP(3.0, 0.6), samples=40),
    "gaussian": lambda: audited(normal, em.GaussianDP(6.0), samples=400),
    "renyi": lambda: audited(normal, em.RenyiDP(2.0, 9.0), samples=400),
    "renyi of order 30": lambda: audited(normal, em.RenyiDP(30.0, 9.0), samples=400),
    "zcdp": lambda: audited(normal, em.ZCDP(9.0), samples=400),
    "trade-off": lambda: audited(normal, steep(500.0), samples=100),
    "confidence": lambda: audited(laplace, em.PureDP(5.0), samples=1000, confidence=1.0 - 1e-6),
    "vectors": lambda: audited(vector, em.PureDP(6.0), samples=300),
    "early": lambda: audited(laplace, em.PureDP(6.0), samples=300, stop_early=True),
    "early, gaussian": lambda: audited(normal, em.GaussianDP(5.0), samples=60, stop_early=True),
    "profile": lambda: by_method("profile", em.PureDP(6.0), 400),
    "bets": lambda: by_method("renyi-bet", em.RenyiDP(2.0, 9.0), 400, normal),
    "bits": lambda: audited(laplace, em.PureDP(6.0), samples=300, representation="bits"),
    "values and bits": lambda: audited(laplace, em.PureDP(6.0), samples=300, representation="all"),
    "recorded": lambda: compared(em.PureDP(6.0), 300, 500),
    "replayed": lambda: replayed(em.PureDP(7.0), 500),
    "several pairs": lambda: several_pairs(em.PureDP(8.0), 1000),
    "searched": lambda: searched(em.PureDP(8.0), 500),
    "classifier": lambda: by_method("hockey-stick", em.PureDP(9.0), 400),
    "group": lambda: audited(laplace, em.PureDP(2.0), samples=300, distance=4),
    "texts that nobody reads": lambda: texts(token, samples=600, method="hockey-stick"),
    "records of texts": lambda: texts(tokens, samples=300, method="hockey-stick"),
    "recorded texts": lambda: em.compare(
        recorded_texts(1), recorded_texts(2), "eps=1", seed=0, method="hockey-stick"
    ),
}

SHARP = {
    "pure": lambda: audited(laplace, em.PureDP(1.0), samples=400),
    "pure, much": lambda: audited(laplace, em.PureDP(5.0), samples=1000),
    "pure, few draws": lambda: audited(laplace, em.PureDP(1.5), samples=40),
    "approx": lambda: audited(normal, em.ApproxDP(4.5, 1e-5), samples=1000),
    "approx, much of the mass": lambda: audited(coin, em.ApproxDP(0.0, 0.5), samples=60),
    "delta at epsilon": lambda: audited(coin, ApproxDeltaDP(1.0, 0.3), samples=100),
    "gaussian": lambda: audited(normal, em.GaussianDP(4.5), samples=400),
    "renyi": lambda: audited(normal, em.RenyiDP(2.0, 4.0), samples=400),
    "renyi of order 30": lambda: audited(normal, em.RenyiDP(30.0, 4.0), samples=4000),
    "zcdp": lambda: audited(normal, em.ZCDP(1.5), samples=400),
    "trade-off": lambda: audited(normal, steep(5.0), samples=400),
    "confidence": lambda: audited(laplace, em.PureDP(3.0), samples=1000, confidence=1.0 - 1e-6),
    "vectors": lambda: audited(vector, em.PureDP(3.0), samples=300),
    "early": lambda: audited(laplace, em.PureDP(2.0), samples=300, stop_early=True),
    "early, gaussian": lambda: audited(normal, em.GaussianDP(2.0), samples=200, stop_early=True),
    "profile": lambda: by_method("profile", em.PureDP(2.0), 400),
    "bets": lambda: by_method("renyi-bet", em.RenyiDP(2.0, 3.0), 400, normal),
    "bits": lambda: audited(laplace, em.PureDP(3.0), samples=300, representation="bits"),
    "values and bits": lambda: audited(laplace, em.PureDP(3.0), samples=300, representation="all"),
    "recorded": lambda: compared(em.PureDP(3.0), 300, 500),
    "replayed": lambda: replayed(em.PureDP(3.0), 500),
    "several pairs": lambda: several_pairs(em.PureDP(2.5), 1000),
    "classifier": lambda: by_method("hockey-stick", em.PureDP(3.0), 400),
    "group": lambda: audited(laplace, em.PureDP(1.0), samples=300, distance=3),
    "equal outputs": lambda: audited(
        lambda x: "the same", em.PureDP(1.0), samples=100, batch=False
    ),
    "numbers in texts": lambda: texts(amount, samples=300),
    "numbers in texts, early": lambda: texts(amount, samples=300, stop_early=True),
    "numbers in texts, gaussian": lambda: texts(amount, samples=300, claim=em.GaussianDP(1.0)),
    "json in texts": lambda: texts(entry, samples=300),
    "prefixes of texts": lambda: texts(coded, samples=300),
    "characters of texts": lambda: texts(token, samples=300),
    "characters of texts, early": lambda: texts(token, samples=300, stop_early=True),
    "recorded texts": lambda: em.compare(recorded_texts(1), recorded_texts(2), "eps=1", seed=0),
    "no event": lambda: audited(coin, em.PureDP(1.0), samples=100),
    "asymptotic": lambda: by_method("renyi-floored", em.RenyiDP(2.0, 1.0), 2000, normal),
}


@pytest.mark.parametrize("situation", BLIND)
def test_what_could_not_be_refuted_says_so_first(situation):
    result = BLIND[situation]()
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.blind
    assert str(result).startswith("NOT REFUTED, and could not have been: ")
    assert "would have been refuted" not in str(result)
    again = em.AuditResult.from_json(result.to_json())
    assert again.blind == result.blind == json.loads(result.to_json())["blind"]
    assert pickle.loads(pickle.dumps(result)).blind == result.blind


@pytest.mark.parametrize("situation", SHARP)
def test_what_could_be_refuted_is_not_called_blind(situation):
    result = SHARP[situation]()
    assert result.blind is None
    assert "could not have been" not in str(result)


def test_refuted_results_and_measurements_are_never_blind():
    refuted = em.audit(em.zoo.dp_mean(), samples=1000, seed=0)
    assert refuted.is_refuted
    assert refuted.blind is None
    assert em.measure(em.zoo.laplace(), samples=20, seed=0).blind is None


def test_older_files_have_no_word_about_blindness():
    data = audited(laplace, em.PureDP(8.0), samples=400).to_dict()
    del data["blind"]
    assert em.AuditResult.from_dict(data).blind is None


CLAIMS = [
    em.PureDP(3.0),
    em.ApproxDP(3.0, 1e-3),
    ApproxDeltaDP(1.0, 0.8),
    em.GaussianDP(3.0),
    em.RenyiDP(2.0, 3.0),
    em.ZCDP(3.0),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
def test_the_number_of_draws_that_is_told_is_the_least_one(claim):
    """One draw less per side is blind, and the number itself is not."""
    told = audited(laplace, claim, samples=20)
    assert told.blind is not None
    needed = int(told.blind.split(" needs ")[1].split(" draws")[0].replace(",", ""))
    assert audited(laplace, claim, samples=needed).blind is None
    assert audited(laplace, claim, samples=needed - 1).blind is not None


def test_a_claim_that_allows_everything_names_no_number():
    result = audited(laplace, em.TradeOffDP(curve=((0.0, 1.0), (0.0, 0.0))), samples=100)
    assert "no number of draws" in result.blind


@pytest.mark.parametrize(
    "claim",
    [
        em.PureDP(40.0),
        em.PureDP(200.0),
        em.ApproxDP(36.0, 1e-5),
        em.RenyiDP(order=2.0, epsilon=40.0),
        em.ZCDP(50.0),
        em.GaussianDP(40.0),
    ],
    ids=str,
)
def test_a_claim_beyond_all_numbers_of_draws_allows_no_perfect_event(claim):
    """So many draws are nothing that anybody can make, but the claim could be refuted."""
    blind = audited(laplace, claim, samples=100).blind
    assert "needs more than 10^14 draws per side" in blind
    assert "no number of draws" not in blind


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
def test_a_perfect_event_refutes_from_some_number_on(claim):
    sizes = [2**power for power in range(2, 20)]
    answers = [perfect_event_refutes(claim, n, n, 0.05) for n in sizes]
    assert answers == sorted(answers)
    assert not answers[0]
    assert answers[-1]


SEEN_BY_CURVES = [
    em.RenyiDP(1.05, 3.5),
    em.RenyiDP(1.2, 3.5),
    em.RenyiDP(2.0, 3.5),
    em.RenyiDP(30.0, 3.5),
    em.ZCDP(3.5),
    em.GaussianDP(3.5),
]


def separated(x, n, rng):
    return 1000.0 * x + rng.laplace(size=n)


@pytest.mark.parametrize("claim", SEEN_BY_CURVES, ids=lambda claim: claim.describe())
def test_what_could_be_refuted_is_refuted_by_inputs_that_always_differ(claim):
    assert audited(laplace, claim, samples=866).blind is None
    assert audited(separated, claim, samples=866).is_refuted


def test_bets_need_more_than_an_event_of_a_fixed_size():
    claim = em.PureDP(4.0)
    for n in (50, 100, 200, 400, 800):
        if perfect_bets_refute(claim, n, 0.05):
            assert perfect_event_refutes(claim, n, n, 0.05)
    assert perfect_bets_refute(claim, 5000, 0.05)


def test_an_unequal_recording_may_refute_in_its_better_direction():
    claim = em.PureDP(4.0)
    assert not perfect_event_refutes(claim, 10_000, 20, 0.05)
    assert math.isclose(claim.value, 4.0)
    assert compared(claim, 20_000, 60).blind is None


def test_fail_blind_raises_and_names_the_reason():
    result = audited(laplace, em.PureDP(8.0), samples=400)
    assert result.raise_if_refuted() is result
    with pytest.raises(em.BlindAudit, match="could not have been"):
        result.raise_if_refuted(fail_blind=True)
    sharp = audited(laplace, em.PureDP(1.0), samples=400)
    assert sharp.raise_if_refuted(fail_blind=True) is sharp
