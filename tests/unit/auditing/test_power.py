"""What a run that did not refute could have refuted: told when asked, and only where it is true."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import laplace

import epsilometer as em
from epsilometer.auditing.judge import subsample_for_rehearsal
from epsilometer.auditing.power import Rehearsal
from epsilometer.auditing.rehearsals import refutes_claim
from epsilometer.bounds import Counts
from epsilometer.claims import ApproxDeltaDP
from epsilometer.methods import Task, find_method
from epsilometer.methods.base import Candidate
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import read_outputs

pytestmark = pytest.mark.rehearses
# ε = 0.8: less than is claimed, so that next to no seed refutes the claim.
LAPLACE = em.from_batch(lambda dataset, n, rng: dataset + rng.laplace(scale=1.25, size=n))
PAIR = em.Pair(0, 1)
PURE = em.PureDP(1.0)
NUMBERS = [side + laplace.ppf(np.linspace(0.005, 0.995, 101), scale=1.25) for side in (0.0, 1.0)]
NAMES = [np.array(list("aaaaaaaaaabbbbbbbbbbccccccccccddddddddde")) for _ in (0, 1)]


@cache
def audit(mechanism=LAPLACE, claim=PURE, samples=1000, seed=3, **options):
    """Once for all tests: what a result rehearses, it rehearses once."""
    return em.audit(mechanism, PAIR, claim, samples=samples, seed=seed, **options)


def test_the_same_seed_tells_the_same():
    first, second = audit(samples=500), audit(samples=500, jobs=2)
    assert first.verdict is em.Verdict.NOT_REFUTED
    assert 1.1 < first.detectable < 5.0  # the largest over several kinds of leaks
    assert first.detectable == second.detectable
    assert em.AuditResult.from_json(first.to_json()).detectable == first.detectable


@pytest.mark.parametrize("representation", ["value", "all"])
def test_an_audit_does_not_rehearse_before_it_is_asked(representation, monkeypatch, rng):
    asked = []
    monkeypatch.setattr(Rehearsal, "detectable", lambda self: asked.append(1) or 1.5)
    recorded = rng.permuted(NUMBERS, axis=1)
    results = [
        audit(representation=representation),
        em.compare(*recorded, PURE, seed=0, representation=representation),
    ]
    assert not asked
    assert [result.detectable for result in results] == [1.5, 1.5]
    assert len(asked) == 2


def test_more_draws_tell_less():
    values = [audit(samples=n).detectable for n in (500, 100_000)]
    assert values == sorted(values, reverse=True)
    assert 1.0 < values[-1] < 1.2


@pytest.mark.parametrize(
    "claim",
    [
        em.PureDP(1.0),
        em.ApproxDP(1.0, 0.01),
        ApproxDeltaDP(0.2, 0.3),
        em.RenyiDP(2.0, 0.7),
        em.GaussianDP(1.2),
        em.TradeOffDP(lambda error: max(0.0, 1.0 - 3.0 * error)),
    ],
    ids=lambda claim: claim.notion,
)
def test_every_notion(claim):
    result = audit(claim=claim, samples=600)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert claim.value < result.detectable < claim.value + 3.0


def test_two_recordings_of_unequal_sizes(rng):
    left, right = rng.laplace(size=1600), 1.0 + rng.laplace(size=600)
    result = em.compare(left, right, em.PureDP(1.2), seed=0)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert 1.2 < result.detectable < 2.5


def test_a_run_that_could_hardly_have_refuted_anything():
    result = audit(samples=20, claim=em.PureDP(5.0))
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.detectable == math.inf
    assert "could not have been: even an event" in " ".join(str(result).split())
    assert em.AuditResult.from_json(result.to_json()).detectable == math.inf


def test_not_told_where_it_cannot_be():
    pairs = [em.Pair(0, 1), em.Pair(0, 0.5)]
    finder = em.finders.Random(
        em.domains.Number(0, 1), relation="replace", trials=2, samples=200, seed=0
    )
    untold = [
        em.audit(LAPLACE, pairs, em.PureDP(1.0), samples=2000, seed=0),
        em.audit(LAPLACE, finder, em.PureDP(2.0), samples=1000, seed=0),
        audit(stop_early=True),
        audit(method="local", samples=3000),
        audit(em.from_batch(lambda dataset, n, rng: np.full(n, "same"))),
        em.replay(audit(), LAPLACE, samples=1000, seed=5),
    ]
    assert [result.verdict for result in untold] == [em.Verdict.NOT_REFUTED] * len(untold)
    assert [result.detectable for result in untold] == [None] * len(untold)
    assert all("would be seen" not in str(result) for result in untold)
    refuted = audit(claim=em.PureDP(0.2))
    assert refuted.is_refuted
    assert refuted.detectable is None
    assert em.measure(LAPLACE, PAIR, em.PureDP, samples=1000, seed=0).detectable is None


def rehearsal(n, values=NUMBERS, event=None):
    rows = subsample_for_rehearsal(*map(read_outputs, values))
    return Rehearsal(
        Task(PURE, (n, n), 0.05), find_method("events", None), (n // 2, n // 2), rows, event, seed=1
    )


def among(letters):
    return lambda outputs: np.isin(
        outputs.blocks[0].columns[0].codes, ["abcde".index(each) for each in letters]
    )


@pytest.mark.parametrize(
    "claim", [PURE, em.ApproxDP(1.0, 1e-3), em.ApproxDP(0.3, 0.1), em.GaussianDP(0.5)], ids=str
)
def test_whether_a_claim_is_refuted_is_what_the_certificate_says(claim):
    task = Task(claim, (100, 75), 0.05)
    event = find_method("events", None).propose(*map(read_outputs, NUMBERS), task).event
    said = set()
    for flipped in (False, True):
        proposal = EventProposal(Candidate(event, flipped, 0.5, 0.2, 0.0), task)
        for left, right in itertools.product((0, 2, 20, 85, 100), (0, 10, 38, 75)):
            counts = Counts(left, 100), Counts(right, 75)
            bound = proposal.certify(*counts, PAIR, 0.05).lower_bound
            if (
                abs(bound - claim.value) > 0.03
            ):  # the bound is a little below the last value that is refuted
                assert refutes_claim(proposal, *counts, task) == (bound > claim.value)
                said.add(bound > claim.value)
    assert said == {False, True}


def test_a_failing_rehearsal_takes_no_verdict_with_it():
    def broken(outputs):
        raise ZeroDivisionError

    assert rehearsal(1000, event=broken).detectable() is None


def test_an_event_that_nobody_can_find_again_counts_for_nothing():
    nowhere = rehearsal(400, event=lambda outputs: np.arange(len(outputs)) % 2 == 0)
    assert nowhere.detectable() == rehearsal(400).detectable()


def test_a_rare_event_needs_a_larger_leak():
    values = [rehearsal(2000, NAMES, among(letters)).detectable() for letters in ("ab", "e")]
    assert 1.0 < values[0] < values[1] < math.inf
    assert rehearsal(100, NAMES, among("e")).detectable() is None


def test_large_audits_are_rehearsed_at_a_smaller_size():
    audit = rehearsal(1_000_000)
    smaller = audit.shrunk(0.01)
    assert smaller.n_train == (5000, 5000)
    assert smaller.task == replace(audit.task, n_fresh=(10_000, 10_000))
