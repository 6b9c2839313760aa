"""What proves was never drawn before: no stream serves two purposes, two sides, two pairs or two certificates."""

import math
from itertools import count

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.judge import certify_with_budget, judge
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.errors import BudgetError
from epsilometer.methods import Task, find_method
from epsilometer.methods.events import EventsMethod
from epsilometer.outputs import read_outputs
from epsilometer.result import HealthReport

COINS = em.domains.Category([0.5, 0.25])


class Logging:
    """Tosses coins, and remembers every random number that it got."""

    def __init__(self):
        self.numbers = []

    def __call__(self, dataset, n, rng):
        self.numbers.append(rng.random(n))
        return self.numbers[-1] < dataset

    def assert_all_new(self):
        drawn = np.concatenate(self.numbers)
        assert len(np.unique(drawn)) == len(drawn), "some draws were drawn twice"


@pytest.mark.parametrize(
    "inputs",
    [
        em.Pair(0.5, 0.25),
        [em.Pair(0.5, 0.25), em.Pair(0.5, 0.3), em.Pair(0.5, 0.26), em.Pair(0.5, 0.25)],
        em.finders.Random(COINS, trials=12, samples=200, seed=0),
    ],
    ids=["a pair", "pairs", "a finder"],
)
def test_an_audit_and_its_replay_share_no_draws(inputs):
    log = Logging()
    result = em.audit(em.from_batch(log), inputs, em.PureDP(0.2), samples=4000, seed=5)
    em.replay(result, em.from_batch(log), samples=4000, seed=5)
    log.assert_all_new()


def test_an_audit_that_stops_early_and_its_replay_share_no_draws():
    log = Logging()
    result = em.audit(
        em.from_batch(log),
        em.Pair(0.5, 0.25),
        em.PureDP(0.2),
        samples=4000,
        seed=5,
        stop_early=True,
    )
    em.replay(result, em.from_batch(log), samples=4000, seed=5)
    log.assert_all_new()


def test_a_profile_and_a_measurement_repeat_nothing():
    for run in (em.profile, lambda *given, **named: em.measure(*given, em.PureDP, **named)):
        log = Logging()
        run(em.from_batch(log), em.Pair(0.5, 0.25), samples=4000, seed=5)
        log.assert_all_new()


def test_all_certificates_of_a_search_draw_afresh():
    """The last one is of the pair that promised most, which was certified before."""
    log = Logging()
    finder = em.finders.Random(COINS, trials=60, samples=100, seed=0)
    claim = em.PureDP(math.log(2.0))
    result = em.audit(em.from_batch(log), finder, claim, samples=200, seed=3, confidence=0.8)
    certified = [repr(finding.witness.pair) for finding in result.findings]
    assert len(set(certified)) < len(certified), (
        "no pair was certified twice, so this test shows nothing"
    )
    log.assert_all_new()


@pytest.mark.parametrize(
    ("claimed", "untrusted", "verdict"),
    [
        (0.5, False, em.Verdict.REFUTED),
        (
            0.5,
            True,
            em.Verdict.INCONCLUSIVE,
        ),  # it may be one draw, handed out again and again
        (50.0, False, em.Verdict.NOT_REFUTED),
        (50.0, True, em.Verdict.INCONCLUSIVE),
    ],
)
def test_a_deterministic_witness_refutes_only_what_its_bound_exceeds(claimed, untrusted, verdict):
    claim = em.PureDP(claimed)
    always, never = read_outputs([True] * 60), read_outputs([False] * 60)
    proposal = find_method("events").propose(always, never, Task(claim, (60, 60), 0.05))
    finding = proposal.certify(Counts(60, 60), Counts(0, 60), em.Pair(0, 1), 0.05)
    assert finding.witness.is_deterministic
    assert 0.5 < finding.lower_bound < 50.0
    reports = [HealthReport("drift", "the draws are not what they seem", untrusted)]
    assert judge(claim, finding, reports) is verdict


def test_a_large_claim_survives_a_deterministic_mechanism():
    result = em.audit(lambda x: x, em.Pair(0, 1), em.PureDP(50.0), samples=200, seed=0)
    assert result.witness.is_deterministic
    assert result.verdict is not em.Verdict.REFUTED


def test_a_certificate_is_paid_for_and_cannot_be_had_twice():
    claim, budget = em.PureDP(1.0), ErrorBudget(0.05)
    always, never = read_outputs([True] * 60), read_outputs([False] * 60)
    proposal = find_method("events").propose(always, never, Task(claim, (60, 60), 0.05))
    tallies = Counts(60, 60), Counts(0, 60)
    certify_with_budget(budget, proposal, tallies, em.Pair(0, 1))
    assert budget.ledger == (("certificate", 0.05),)
    with pytest.raises(BudgetError):
        certify_with_budget(budget, proposal, tallies, em.Pair(0, 1))


class Watching:
    """Proves by events, and remembers what it was shown to learn from and to prove with."""

    name, summary, guarantee = "watching", "remembers its draws", "exact"

    def __init__(self):
        self.learned, self.proved = [], {0: [], 1: []}

    def propose(self, left, right, task):
        self.learned = [side.blocks[0].columns[0].values for side in (left, right)]
        self.task, self.inner = task, find_method("events").propose(left, right, task)
        self.predicted = self.inner.predicted
        return self

    def tally(self, outputs, side):
        self.proved[side].append(outputs.blocks[0].columns[0].values)
        return self.inner.tally(outputs, side)

    def certify(self, *given):
        return self.inner.certify(*given)


def test_compare_splits_each_recording_into_two_parts_of_its_own():
    """In an order of the seed's: a recording may be sorted, and its first part be unlike the rest."""
    recorded = np.arange(400.0), np.arange(1000.0, 1600.0)
    watching = Watching()
    em.compare(*recorded, em.PureDP(1.0), seed=0, method=watching)
    for side in (0, 1):
        learned, proved = watching.learned[side], np.concatenate(watching.proved[side])
        assert sorted([*learned, *proved]) == sorted(recorded[side])
        assert watching.task.n_fresh[side] == len(proved)
        assert sorted(learned) != sorted(recorded[side][: len(learned)])


@pytest.mark.parametrize(
    ("bound", "guarantee", "verdict"),
    [
        (
            1.0,
            "exact",
            em.Verdict.NOT_REFUTED,
        ),  # a bound that equals the claim does not contradict it
        (math.nextafter(1.0, 2.0), "exact", em.Verdict.REFUTED),
        (1.5, "asymptotic", em.Verdict.REFUTED),
        (1.5, "none: an estimate", em.Verdict.INCONCLUSIVE),
        (0.5, "none: an estimate", em.Verdict.INCONCLUSIVE),
    ],
)
def test_a_verdict_needs_a_bound_above_the_claim_and_a_guarantee(bound, guarantee, verdict):
    claim = em.PureDP(1.0)
    assert judge(claim, em.Finding("mine", bound, guarantee, 0.95, None, claim), []) is verdict


def test_a_method_learns_from_draws_in_random_order():
    # Methods may fit on the first rows and choose on the rest; those must not be the early and the late draws.
    seen = []

    class Looking(EventsMethod):
        def propose(self, left, right, task):
            seen.extend(side.blocks[0].columns[0].values for side in (left, right))
            return super().propose(left, right, task)

    calls = count()
    em.audit(
        lambda x: float(next(calls)),
        em.Pair(0, 1),
        em.PureDP(1.0),
        samples=300,
        seed=0,
        method=Looking(),
    )
    for values in seen[:2]:
        assert 0.3 < np.mean(np.diff(values) > 0) < 0.7
