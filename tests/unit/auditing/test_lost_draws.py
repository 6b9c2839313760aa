"""Nothing is drawn again in silence: what an interruption cuts off is kept, or counted and counted against the finding.

The clock of these tests is moved by the mechanism alone, and its alarm rings when the mechanism says so.
"""

import itertools
import json
import os
import secrets
import signal
import sys
import time

import numpy as np
import pytest
from scipy.stats import binom

import epsilometer as em
from epsilometer.auditing.lost_draws import (
    CountedAgainst,
    are_counts,
    fewer_hits,
    more_hits,
    reports_on,
)
from epsilometer.bounds import Counts
from epsilometer.engine import OutOfTime, Sampler
from epsilometer.engine.folding import TwoTallies
from epsilometer.engine.health import check_retries
from epsilometer.mechanisms.callables import SingleMechanism
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.methods.base import Candidate, Task
from epsilometer.methods.bits import ProposalWithBits
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Event, Partition

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
PAIR = em.Pair("left", "right", equal=True)
SECONDS = 1000.0


class SlowCoin(SingleMechanism):
    """A coin without a seed, whose 1 takes long: time runs out while one is drawn, and its output is cut off.

    Attributes:
        began: the outcome of every call, per input, whether it was cut off or not.
        cut: the outcomes of those that were.
    """

    def __init__(self, rng, slow=40.0, quick=1.0):
        super().__init__(self.toss, name="slow coin")
        self.rng, self.seconds = rng, (quick, slow)
        self.now = 0.0
        self.began = {"left": [], "right": []}
        self.cut = []

    def toss(self, x):
        face = int(self.rng.random() < 0.5)
        self.began[x].append(face)
        self.now += self.seconds[face]
        self.cut.append((x, face))
        signal.raise_signal(signal.SIGALRM)  # the alarm is heard; if time is up, the call ends here
        self.cut.pop()
        return face

    def digest(self):
        return "the same, whatever it has drawn so far"


@pytest.fixture
def coin(rng, monkeypatch):
    coin = SlowCoin(rng)
    monkeypatch.setattr("epsilometer.engine.deadlines.monotonic", lambda: coin.now)
    # The system's own timer must not ring: only the mechanism does.
    monkeypatch.setattr("epsilometer.engine.deadlines.signal.setitimer", lambda *_: (0.0, 0.0))
    monkeypatch.setattr("epsilometer.engine.deadlines.signal.getitimer", lambda *_: (0.0, 0.0))
    return coin


def resumed(coin, path, **how):
    """Audits again and again, until it is done; and how often that was."""
    for turn in itertools.count(1):
        try:
            result = em.audit(
                coin,
                PAIR,
                em.PureDP(0.1),
                seed=0,
                max_seconds=SECONDS,
                checkpoint=path,
                confidence=0.8,
                **how,
            )
        except OutOfTime:
            continue
        if not any(report.name == "out-of-time" for report in result.health):
            return result, turn


@pytest.mark.parametrize("stop_early", [False, True], ids=["fixed", "sequential"])
def test_only_the_call_that_was_cut_off_is_drawn_again(coin, tmp_path, stop_early):
    """A5: a coin resumed many times. Finished draws of unfinished batches and chunks stay."""
    result, turns = resumed(coin, tmp_path / "c", samples=500, stop_early=stop_early)
    assert turns > 15
    cut = [sum(x == side for x, _ in coin.cut) for side in ("left", "right")]
    assert sum(cut) <= turns
    began = [len(coin.began[side]) for side in ("left", "right")]
    # Every call was counted or cut off, and what was cut off is on record.
    assert result.settings["redrawn"] == cut
    assert [n - lost for n, lost in zip(began, cut, strict=True)] == list(result.samples_used)
    assert [report.untrusted for report in result.health if report.name == "redrawn"] == [False]
    # All first attempts together are a fair coin, though nearly all of those that were cut off are 1.
    for side in ("left", "right"):
        faces = coin.began[side]
        assert 2.0 * binom.cdf(min(sum(faces), len(faces) - sum(faces)), len(faces), 0.5) > 1e-9
    assert not result.is_refuted
    json.loads(result.to_json())


def test_an_uninterrupted_audit_says_nothing_of_it(coin, tmp_path):
    coin.seconds = (1e-9, 1e-9)
    result, turns = resumed(coin, tmp_path / "c", samples=500)
    assert turns == 1
    assert "redrawn" not in result.settings
    assert not any(report.name == "redrawn" for report in result.health)


def test_a_batch_that_never_ended_is_not_drawn_again(coin):
    """Without a checkpoint, what was cut off is not replaced, so there is nothing to remark on."""
    coin.seconds = (1.0, 1.0)
    how = {"samples": 5000, "seed": 0, "max_seconds": SECONDS, "stop_early": True}
    result = em.audit(coin, PAIR, em.PureDP(0.1), **how)
    assert any(report.name == "out-of-time" for report in result.health)
    assert "redrawn" not in result.settings


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_whatever_ends_a_call(rng, tmp_path, error):
    """An error of the mechanism, too: whoever resumes after it has the lost output replaced."""
    coin = SlowCoin(rng, slow=0.0, quick=0.0)
    toss, calls = coin.function, itertools.count(1)

    def failing(x):
        face = toss(x)
        if next(calls) in (30, 77, 300, 345):
            coin.cut.append((x, face))
            raise error
        return face

    coin.function = failing
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        for _ in range(4):
            with pytest.raises((error, em.MechanismError)):
                em.audit(coin, PAIR, em.PureDP(0.1), seed=0, samples=400, checkpoint=tmp_path / "c")
        result = em.audit(
            coin, PAIR, em.PureDP(0.1), seed=0, samples=400, checkpoint=tmp_path / "c"
        )
    finally:
        signal.signal(signal.SIGALRM, before)
    cut = [sum(x == side for x, _ in coin.cut) for side in ("left", "right")]
    assert result.settings["redrawn"] == cut
    assert sum(cut) == 4
    assert next(calls) - 1 == 800 + 4


def test_a_mechanism_with_a_seed_draws_the_same_again(tmp_path):
    calls = itertools.count(1)

    def laplace(x, n, rng):
        if next(calls) == 9:
            raise KeyboardInterrupt
        return rng.laplace(x, size=n)

    how = {"samples": 2000, "seed": 5}
    source = em.from_batch(laplace)
    type(source).digest, digest = lambda self: "the same", type(source).digest
    try:
        with pytest.raises(KeyboardInterrupt):
            em.audit(source, (0, 1), em.PureDP(5.0), checkpoint=tmp_path / "c", **how)
        result = em.audit(source, (0, 1), em.PureDP(5.0), checkpoint=tmp_path / "c", **how)
    finally:
        type(source).digest = digest
    assert "redrawn" not in result.settings
    whole = em.audit(
        em.from_batch(lambda x, n, rng: rng.laplace(x, size=n)), (0, 1), em.PureDP(5.0), **how
    )
    assert result.lower_bound == whole.lower_bound


@pytest.mark.parametrize("n", [3, 8])
def test_lost_draws_count_against_the_finding_whatever_replaces_them(n):
    """For all first attempts, all sets of lost ones and all replacements: the counts are no better than the truth."""
    for first in itertools.product((0, 1), repeat=n):
        for lost in range(n + 1):
            truth = Counts(sum(first), n)
            for gained in range(-lost, lost + 1):
                hits = truth.hits + gained
                if not 0 <= hits <= n:
                    continue
                assert fewer_hits(Counts(hits, n), lost).hits <= truth.hits
                assert more_hits(Counts(hits, n), lost).hits >= truth.hits


def event_proposal(flipped):
    """A proposal that counts some event, which is to be likelier on the right if `flipped`."""
    event = Event(Partition(()), np.ones(1, dtype=bool))
    task = Task(em.PureDP(0.0), (40, 40), 0.05)
    return EventProposal(Candidate(event, flipped=flipped, p=0.5, q=0.4, predicted=1.0), task)


@pytest.mark.parametrize("flipped", [False, True])
def test_p_values_stay_p_values_whichever_side_is_likelier(flipped):
    """By enumeration, for equal sides: whatever replaced the lost draws, here the best for the finding."""
    n, lost, failure = 40, (2, 2), 0.05
    certified = CountedAgainst(event_proposal(flipped), lost)
    likelier = 1 if flipped else 0
    counts = range(8, 33)
    mass = binom.pmf(counts, n, 0.5)
    probability_up_to = dict.fromkeys((0.05, 0.08, 0.1, 0.2), 0.0)
    for left, right in itertools.product(counts, repeat=2):
        # The first attempts, and what was counted: hits where they help, misses elsewhere.
        changed = [Counts(left, n), Counts(right, n)]
        changed[likelier] = more_hits(changed[likelier], lost[likelier])
        changed[1 - likelier] = fewer_hits(changed[1 - likelier], lost[1 - likelier])
        p_value = certified.p_value(*changed, failure)
        for t in probability_up_to:
            if p_value <= t:
                probability_up_to[t] += mass[left - 8] * mass[right - 8]
    assert all(probability <= t for t, probability in probability_up_to.items())
    assert probability_up_to[0.2] > 0.05


@pytest.mark.parametrize("flipped", list(itertools.product((False, True), repeat=2)))
def test_lost_draws_count_against_both_findings(flipped):
    """Values and bits may be likelier on different sides; neither bound may gain by losses."""
    both = ProposalWithBits(*(event_proposal(side) for side in flipped))
    tallies = TwoTallies(Counts(30, 40), Counts(30, 40)), TwoTallies(Counts(8, 40), Counts(8, 40))
    left = TwoTallies(*(tallies[side].deciding for side in flipped))
    right = TwoTallies(*(tallies[not side].deciding for side in flipped))
    certified = CountedAgainst(both, (3, 5))
    plain = both.certify(left, right, PAIR, 0.05), *both.certify_secondary(left, right, PAIR, 0.05)
    against = (
        certified.certify(left, right, PAIR, 0.05),
        *certified.certify_secondary(left, right, PAIR, 0.05),
    )
    for counted, bound, side in zip(plain, against, flipped, strict=True):
        assert 0.0 < bound.lower_bound < counted.lower_bound
        lost = (5, 3) if side else (3, 5)
        counts = bound.witness.left_counts, bound.witness.right_counts
        other, likelier = counts if side else counts[::-1]
        assert (likelier.hits, other.hits) == (30 - lost[0], 8 + lost[1])


class TestRetries:
    def test_equal_rates_are_a_remark(self):
        (report,) = check_retries([Incidents(1000, 30, 0), Incidents(1000, 41, 0)])
        assert (report.name, report.untrusted) == ("retried-requests", False)
        assert "30 of 1000 left and 41 of 1000 right requests" in report.message
        assert check_retries([Incidents(1000, 0, 3), Incidents(1000, 0, 0)]) == []

    def test_different_rates_are_not_trusted(self):
        (report,) = check_retries([Incidents(1000, 100, 0), Incidents(1000, 10, 0)])
        assert report.untrusted

    @pytest.mark.parametrize(("requests", "retried"), [((40, 40), 40), ((60, 30), 25), ((5, 5), 5)])
    def test_the_false_alarm_by_enumeration(self, requests, retried):
        """Given all retries, those of the left are hypergeometric if they do not depend on the side."""
        from scipy.stats import hypergeom

        left = np.arange(max(0, retried - requests[1]), min(requests[0], retried) + 1)
        alarms = [
            check_retries(
                [Incidents(requests[0], int(k), 0), Incidents(requests[1], retried - int(k), 0)]
            )[0].untrusted
            for k in left
        ]
        chance = hypergeom.pmf(left, sum(requests), retried, requests[0])[alarms].sum()
        assert chance <= 1e-9


def file_coin(folder, kills=(), waits_at=None):
    """A coin without a seed that writes down every call; it kills its process at some calls, or waits to be let go on.

    A nested function, which workers get by value.
    """

    def toss(x):
        with (folder / x).open("a") as calls:
            calls.write("x")
        n = sum(
            path.stat().st_size for path in (folder / "left", folder / "right") if path.exists()
        )
        for number in kills:
            if n >= number and not (folder / f"killed {number}").exists():
                (folder / f"killed {number}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        while n == waits_at and not (folder / "go").exists():
            time.sleep(0.01)
        return secrets.randbits(1)

    return toss


def lost_in(folder, result):
    """Draws per side that were begun and are not among those that were counted."""
    begun = [(folder / side).stat().st_size for side in ("left", "right")]
    return [n - used for n, used in zip(begun, result.samples_used, strict=True)]


@pytest.mark.parametrize("stop_early", [False, True], ids=["fixed", "sequential"])
def test_a_killed_audit_counts_whatever_may_have_begun(tmp_path, stop_early):
    """Nobody can say how far it came; what it had announced is counted, which is at least what was lost."""
    kills = (90, 333)
    coin = file_coin(tmp_path, kills)
    how = {"samples": 400, "seed": 0, "checkpoint": tmp_path / "c", "stop_early": stop_early}
    for _ in kills:
        child = os.fork()
        if child == 0:
            em.audit(coin, PAIR, em.PureDP(0.1), **how)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    result = em.audit(coin, PAIR, em.PureDP(0.1), **how)
    lost = lost_in(tmp_path, result)
    assert sum(lost) >= 2
    assert all(counted >= n for counted, n in zip(result.settings["redrawn"], lost, strict=True))
    assert not result.is_refuted


def test_a_worker_that_dies_takes_its_draws_with_it(tmp_path):
    """Its work is done again: whatever it had may depend on why it died."""
    result = em.audit(
        file_coin(tmp_path, kills=(100,)), PAIR, em.PureDP(0.1), samples=400, seed=0, jobs=2
    )
    lost = lost_in(tmp_path, result)
    assert sum(lost) >= 1
    assert all(counted >= n for counted, n in zip(result.settings["redrawn"], lost, strict=True))
    assert [report.untrusted for report in result.health if report.name == "redrawn"] == [False]


def test_chunks_of_other_workers_are_kept_when_time_is_up(tmp_path):
    """While one worker hangs, another one goes on: what it has sent is not drawn again."""
    coin = file_coin(tmp_path, waits_at=20)
    how = {"samples": 2000, "seed": 0, "jobs": 2, "checkpoint": tmp_path / "c"}
    with pytest.raises(OutOfTime):
        em.audit(coin, PAIR, em.PureDP(0.1), max_seconds=4.0, **how)
    (tmp_path / "go").touch()
    result = em.audit(coin, PAIR, em.PureDP(0.1), **how)
    lost = lost_in(tmp_path, result)
    redrawn = result.settings["redrawn"]
    assert all(counted >= n for counted, n in zip(redrawn, lost, strict=True))
    # Each of the two workers has at most two tasks of 64 draws; the others that were out came back.
    assert sum(redrawn) <= 4 * 64


def test_findings_that_are_no_counts_are_not_trusted_after_a_loss():
    sampler = Sampler(em.from_callable(lambda x: x), 0)
    assert not are_counts((np.zeros(3), np.zeros(3)))
    assert not are_counts((TwoTallies(Counts(1, 2), np.zeros(3)), TwoTallies(Counts(1, 2), 0)))
    (report,) = reports_on(sampler, 0, (0, 1), is_counted=False)
    assert (report.name, report.untrusted) == ("redrawn", True)
    assert reports_on(sampler, 0, (0, 0), is_counted=True) == []


def test_failed_runs_that_count_as_outcomes_are_on_record(tmp_path):
    def sometimes(x, rng):
        value = rng.random()
        if value < 0.1 * x:
            raise ValueError
        return int(value < 0.5)

    source = em.from_callable(sometimes, on_error="outcome")
    how = {"samples": 600, "seed": 0}
    plain = em.audit(source, (0, 1), em.PureDP(0.1), checkpoint=tmp_path / "c", **how)
    assert plain.settings["on_error"] == "outcome"
    left, right = plain.settings["failed"]
    assert left == 0
    assert 0 < right < 200
    again = em.audit(source, (0, 1), em.PureDP(0.1), checkpoint=tmp_path / "c", **how)
    assert again.settings["failed"] == [left, right]
    assert em.audit(source, (0, 1), em.PureDP(0.1), jobs=2, **how).settings["failed"] == [
        left,
        right,
    ]
    three = em.audit(em.repeated(source, 3), (0, 1), em.PureDP(0.1), **how)
    assert three.settings["on_error"] == "outcome"
    assert three.settings["failed"][1] > right
    raising = em.audit(
        em.from_callable(lambda x, rng: rng.laplace()), (0, 1), em.PureDP(0.1), **how
    )
    assert not {"on_error", "failed", "retried", "redrawn"} & set(raising.settings)


def test_whole_groups_of_a_repeated_mechanism_are_kept(rng, tmp_path):
    coin = SlowCoin(rng, slow=0.0, quick=0.0)
    toss, calls = coin.function, itertools.count(1)

    def failing(x):
        if next(calls) == 100:
            raise KeyboardInterrupt
        return toss(x)

    coin.function = failing
    pairs_of_runs = em.repeated(coin, 2)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt):
            em.audit(
                pairs_of_runs, PAIR, em.PureDP(0.1), seed=0, samples=200, checkpoint=tmp_path / "c"
            )
        result = em.audit(
            pairs_of_runs, PAIR, em.PureDP(0.1), seed=0, samples=200, checkpoint=tmp_path / "c"
        )
    finally:
        signal.signal(signal.SIGALRM, before)
    assert sum(result.settings["redrawn"]) == 1
    assert (
        next(calls) - 1 == 2 * 2 * 200 + 2
    )  # the half of a pair that was finished, and the one that was cut off
