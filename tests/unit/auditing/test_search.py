"""An audit whose pairs come from a finder."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.audit_run import AuditRun
from epsilometer.auditing.config import AuditConfig
from epsilometer.auditing.questions import Question
from epsilometer.auditing.search import SearchRun
from epsilometer.auditing.settings import open_settings
from epsilometer.auditing.trials import Trial, as_score, stored_pair
from epsilometer.bounds import ErrorBudget
from epsilometer.engine import Sampler
from epsilometer.result import OnRequest
from epsilometer.testing import Coin, frozen_seed

VECTOR = em.domains.Vector(3)
# Every pair of these two coins has a loss of exactly ln 2.
COINS = em.domains.Category([0.5, 0.25])


def noisy_sum(dataset, n, rng):
    return rng.laplace(float(np.sum(dataset)), 0.5, n)


def fussy_sum(dataset, n, rng):
    if dataset[0] > 0.5:
        raise ValueError("the first number is too large")
    return noisy_sum(dataset, n, rng)


MECHANISM = em.from_batch(noisy_sum)


@cache
def search(mechanism=MECHANISM, claim="eps=1", samples=4000, seed=0, confidence=0.95, **finder):
    """Once for all tests: results do not change."""
    settings = {"trials": 20, "samples": 1000, **finder}
    found = em.finders.Random(VECTOR, **settings)
    return em.audit(mechanism, found, claim, samples=samples, seed=seed, confidence=confidence)


def trials_of(result):
    return result.findings[0].details["search"]


def paid_in(result):
    return [amount for _, amount in result.findings[0].details["paid"]]


def plain(result):
    # What it could have found is never worked out for a search; test_power.py asks for it.
    data = replace(result, on_request=OnRequest()).to_dict()
    return {key: value for key, value in data.items() if key not in ("seconds", "date")}


def test_a_broken_mechanism_is_refuted_and_the_search_ends():
    result = search()
    trials = trials_of(result)
    assert result.is_refuted
    assert len(trials) < 20
    assert trials[-1]["certified"] == result.lower_bound > 1.0
    assert trials[-1]["pair"] == stored_pair(result.witness.pair)
    assert [trial["trial"] for trial in trials] == list(range(1, len(trials) + 1))
    assert {"trial", "pair", "draws", "predicted", "best", "certified"} == set(trials[0])


def test_draws_are_counted():
    result = search()
    certificates = len(paid_in(result))
    expected = 1000 * len(trials_of(result)) + 4000 * certificates
    assert result.samples_used == (expected, expected)


def test_the_best_so_far_never_falls():
    best = [trial["best"] for trial in trials_of(search(claim="eps=9"))]
    assert best == sorted(best)
    assert best[-1] == max(trial["predicted"] for trial in trials_of(search(claim="eps=9")))


def test_the_same_seed_gives_the_same_search():
    assert plain(search()) == plain(search.__wrapped__())
    assert plain(search(seed=1)) != plain(search())


def test_workers_change_nothing():
    finder = em.finders.Random(VECTOR, trials=2, samples=200)
    mean = em.zoo.dp_mean(size=3)  # workers can import it
    one, two = (em.audit(mean, finder, "eps=9", samples=400, seed=0, jobs=jobs) for jobs in (1, 2))
    assert one.to_dict()["findings"] == two.to_dict()["findings"]


def test_a_finder_can_be_used_again():
    finder = em.finders.Bayesian(VECTOR, trials=12, samples=200)
    first, again = (em.audit(MECHANISM, finder, "eps=9", samples=400, seed=0) for _ in range(2))
    assert plain(first) == plain(again)


def test_without_a_refutation_the_best_pair_is_certified_with_everything():
    result = search(claim="eps=9")
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert len(trials_of(result)) == 20
    assert paid_in(result) == [pytest.approx(0.05)]
    certified = [trial for trial in trials_of(result) if trial["certified"] is not None]
    assert [trial["predicted"] for trial in certified] == [trials_of(result)[-1]["best"]]
    assert 1.0 < result.lower_bound <= 2.0
    assert result.findings[0].confidence == pytest.approx(0.95)


@pytest.mark.paper("C3", "corrected")
def test_certificates_pay_shares_that_sum_to_the_whole():
    claim = em.PureDP(Coin(0.5, 0.25).truth(em.PureDP(0.0)))
    finder = em.finders.Random(COINS, trials=60, samples=100)
    result = em.audit(em.from_batch(toss), finder, claim, samples=200, seed=3, confidence=0.8)
    paid = paid_in(result)
    assert len(paid) >= 3
    assert not result.is_refuted
    assert paid[:-1] == [pytest.approx(0.2 * 6 / (math.pi * t) ** 2) for t in range(1, len(paid))]
    assert sum(paid) == pytest.approx(0.2)
    assert len(result.findings) == len(paid)
    assert sorted(1.0 - finding.confidence for finding in result.findings) == pytest.approx(
        sorted(paid)
    )
    assert result.lower_bound == max(finding.lower_bound for finding in result.findings)


def toss(dataset, n, rng):
    return rng.random(n) < dataset


def test_a_pair_certified_twice_is_drawn_twice():
    claim = em.PureDP(Coin(0.5, 0.25).truth(em.PureDP(0.0)))
    finder = em.finders.Random(COINS, trials=60, samples=100)
    result = em.audit(em.from_batch(toss), finder, claim, samples=200, seed=3, confidence=0.8)
    counts = [tuple(side.hits for side in finding.witness.counts) for finding in result.findings]
    assert len(set(counts)) > 1


def test_searching_on_for_the_largest_bound():
    result = search(stop_at_refutation=False)
    assert result.is_refuted
    assert len(trials_of(result)) == 20
    assert paid_in(result) == [pytest.approx(0.05)]
    assert result.lower_bound > search().lower_bound


def test_measuring_certifies_once():
    finder = em.finders.Random(VECTOR, trials=20, samples=1000)
    result = em.measure(MECHANISM, finder, em.PureDP, samples=4000, seed=0)
    assert result.verdict is None
    assert paid_in(result) == [pytest.approx(0.05)]
    assert result.lower_bound == search(stop_at_refutation=False).lower_bound


@pytest.mark.parametrize(
    "claim",
    [em.ApproxDP(0.5, 0.01), em.RenyiDP(2.0, 0.05), em.ZCDP(0.02), em.GaussianDP(0.2)],
    ids=str,
)
def test_every_notion_can_be_searched(claim):
    assert search(claim=claim).is_refuted


@pytest.mark.parametrize(
    "method", ["profile", "local", "hockey-stick", "mmd", "poisson-histogram", "bits"]
)
def test_every_method_can_search(method):
    finder = em.finders.Random(VECTOR, trials=10, samples=1000)
    result = em.audit(MECHANISM, finder, "eps=0.1", samples=4000, seed=0, method=method)
    assert result.is_refuted
    assert result.findings[0].method == method


def test_a_zoo_entry_brings_its_claim():
    entry = em.zoo.dp_mean(size=3)
    result = em.audit(
        entry, em.finders.Random(VECTOR, trials=10, samples=1000), samples=4000, seed=0
    )
    assert result.claim == entry.claim
    assert result.is_refuted


def test_patterns_find_a_known_mistake():
    entry = em.zoo.svt5(epsilon=1.0)
    size = len(entry.worst_pair.left)
    result = em.audit(entry, em.finders.Patterns(size, samples=2000), samples=8000, seed=0)
    assert result.is_refuted


def test_the_result_survives_json_and_can_be_replayed():
    result = search()
    again = em.AuditResult.from_json(result.to_json())
    assert again.to_dict() == result.to_dict()
    assert em.replay(again, MECHANISM, samples=4000, seed=5).is_refuted
    assert again.settings["finder"]["name"] == "random"
    assert again.settings["finder"]["domain"] == repr(VECTOR)


def test_the_report_shows_the_search(tmp_path):
    page = search().save_html(tmp_path / "page.html").read_text()
    assert "Search for inputs" in page


def test_large_pairs_are_kept_as_digests():
    finder = em.finders.Random(em.domains.Vector(100), trials=3, samples=100)
    result = em.audit(MECHANISM, finder, "eps=9", samples=200, seed=0)
    digests = [trial["pair"] for trial in trials_of(result)]
    assert all(isinstance(digest, str) for digest in digests)
    assert len(set(digests)) == 3


def test_inputs_that_fail_are_counted_and_the_others_tried():
    result = search(em.from_batch(fussy_sum), claim="eps=9")
    failed = [trial for trial in trials_of(result) if "failed" in trial]
    assert 0 < len(failed) < 20
    assert all(trial["predicted"] is None for trial in failed)
    assert "too large" in failed[0]["failed"]
    assert [report.name for report in result.health] == ["failed-trials"]
    assert f"{len(failed)} of 20 trials failed" in str(result)
    assert result.lower_bound > 0.0


def test_if_all_inputs_fail_the_audit_does():
    with pytest.raises(em.MechanismError, match=r"all of 20 trials.*division") as caught:
        search(em.from_batch(lambda dataset, n, rng: 1 / 0))
    assert isinstance(caught.value.__cause__, em.MechanismError)


def test_a_failure_in_a_certificate_costs_its_share():
    drawn = {"calls": 0}

    def failing_later(dataset, n, rng):
        drawn["calls"] += 1
        if (
            drawn["calls"] == 65
        ):  # the first draws of the first certificate: exploring takes 32 blocks of each side
            raise ValueError("out of order")
        return rng.random(n) < dataset

    finder = em.finders.Random(COINS, trials=5, samples=2000)
    result = em.audit(em.from_batch(failing_later), finder, "eps=0.1", samples=4000, seed=0)
    assert result.is_refuted
    assert paid_in(result) == [pytest.approx(0.05 * 6 / (math.pi * t) ** 2) for t in (1, 2)]
    assert "out of order" in trials_of(result)[0]["failed"]


def test_draws_that_cannot_be_trusted_end_the_search():
    finder = em.finders.Random(em.domains.Number(0, 1), trials=5, samples=500)
    result = em.audit(frozen_seed(), finder, "eps=0.1", samples=200_000, seed=0)
    assert result.verdict is em.Verdict.INCONCLUSIVE
    assert len(trials_of(result)) == 1


def test_certificates_do_not_share_their_health_checks():
    """Outputs of the input 0.0 repeat as a matter of course; those of the next pair do not."""
    settings = open_settings(AuditConfig(samples=1000, seed=0, method="events"))
    sampler = Sampler(em.from_batch(toss), 0)
    run = AuditRun(
        [], Question(em.PureDP(0.1), judged=True), settings, sampler, ErrorBudget(0.05), 0.0
    )
    search = SearchRun(run, em.finders.Random(COINS, samples=200))
    for number, pair in enumerate([em.Pair(0.0, 0.5), em.Pair(0.5, 0.25)]):
        run.pairs.append(pair)
        explored = search._explore(number)
        search._certify_trial(Trial(number, pair, 200), number, explored, 0.01)
    assert [result.verdict for result in search.certificates] == [em.Verdict.REFUTED] * 2
    assert search.certificates[1].health == ()


def test_recordings_hold_only_their_own_pairs(tmp_path):
    np.savez(tmp_path / "draws.npz", left=np.zeros(5000), right=np.ones(5000))
    recording = em.from_recording(tmp_path / "draws.npz")
    with pytest.raises(em.InputError, match="its own inputs only"):
        search(recording)
    with pytest.raises(em.InputError, match="its own inputs only"):
        em.audit(recording, em.finders.Random(VECTOR), "eps=1", record=tmp_path / "again.jsonl")
    assert not (tmp_path / "again.jsonl").exists()


def test_all_draws_of_a_search_can_be_kept(tmp_path):
    finder = em.finders.Random(em.domains.Number(0, 1), trials=3, samples=100)
    result = em.audit(
        MECHANISM, finder, "eps=9", samples=200, seed=0, record=tmp_path / "draws.jsonl"
    )
    kept = em.from_recording(tmp_path / "draws.jsonl")
    assert sum(len(side.outputs()) for side in kept.sides) == sum(result.samples_used)


def test_an_interrupted_search_goes_on(tmp_path):
    finder = em.finders.Bayesian(VECTOR, trials=12, samples=200)
    calls = tmp_path / "calls"  # not in a list, which would be part of what the mechanism is

    def interrupted(dataset, n, rng):
        with open(calls, "a", encoding="ascii") as file:
            file.write(".")
        if calls.stat().st_size == 9:
            raise KeyboardInterrupt
        return noisy_sum(dataset, n, rng)

    def audit(function):
        mechanism = em.from_batch(function, name="sum")
        return em.audit(
            mechanism, finder, "eps=9", samples=400, seed=0, checkpoint=tmp_path / "search.journal"
        )

    with pytest.raises(KeyboardInterrupt):
        audit(interrupted)
    went_on = audit(interrupted)
    whole = em.audit(em.from_batch(noisy_sum, name="sum"), finder, "eps=9", samples=400, seed=0)
    assert went_on.to_dict()["findings"] == whole.to_dict()["findings"]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"stop_early": True}, "cannot be combined with a finder"),
        ({"method": "local", "options": em.local.Options(n=100)}, "its own sizes"),
    ],
)
def test_what_does_not_go_with_a_finder(wish, message):
    with pytest.raises(em.InputError, match=message):
        em.audit(MECHANISM, em.finders.Random(VECTOR), "eps=1", **wish)


def test_both_views_of_the_outputs():
    finder = em.finders.Random(VECTOR, trials=4, samples=500)
    result = em.audit(MECHANISM, finder, "eps=1", samples=1000, seed=0, representation="all")
    assert "bits" in [finding.method for finding in result.findings]


class Spiral:
    """A finder of somebody else's, with nothing but what is needed."""

    trials, samples, stop_at_refutation = 4, 500, True

    def __init__(self):
        self.told = []

    def ask(self):
        return em.Pair([0.0], [0.1 * 2 ** len(self.told)]) if len(self.told) < self.trials else None

    def tell(self, score):
        self.told.append(score)

    def state(self):
        return {"told": self.told}

    def restore(self, state):
        self.told = list(state["told"])

    def describe(self):
        return {"name": "spiral"}


def test_anybodys_finder():
    result = em.audit(MECHANISM, Spiral(), "eps=1", samples=2000, seed=0)
    assert result.is_refuted
    assert result.witness.pair.right == [0.8]
    json.dumps(result.to_dict())


@pytest.mark.parametrize(
    ("predicted", "score"),
    [(0.0, 0.0), (-3.5, -3.5), (math.nan, None), (-math.inf, None), (math.inf, 1e6)],
)
def test_what_a_finder_is_told(predicted, score):
    assert as_score(predicted) == score
