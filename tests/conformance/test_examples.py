"""The shipped suites on what a stranger wrote: the files of `examples/`, and an audit with each of them.

Chance: an audit that must refute has a leak many standard errors above its claim; one that must not refute runs at a
confidence of 1 - 1e-9, which its guarantee makes the rate of false alarms.
"""

import json
import math
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from epsilometer_example import QuickEvents
from grid_of_counts import GridOfCounts
from halton import Halton, noisy_sum
from kolmogorov_smirnov import KolmogorovSmirnov
from queue_mechanism import QueueMechanism
from total_variation import TotalVariation
from visits import Visits, night_visits

import epsilometer as em
from epsilometer.testing import (
    ClaimConformance,
    DomainConformance,
    FinderConformance,
    MechanismConformance,
    MethodConformance,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
SURE = 1 - 1e-9
ROWS = em.Pair(["Ada", "Grace"], ["Ada"])


def test_examples_are_short():
    lengths = {
        path.name: len(path.read_text(encoding="utf-8").splitlines())
        for path in EXAMPLES.rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n >= 50} == {}


class Interruption:
    """A progress that ends the audit after so many draws, as Ctrl-C does."""

    def __init__(self, after):
        self.left = after

    def advance(self, n):
        self.left -= n
        if self.left < 0:
            raise KeyboardInterrupt


class TestKolmogorovSmirnov(MethodConformance):
    runs = 24  # as in test_methods.py

    @pytest.fixture
    def method(self):
        return KolmogorovSmirnov()

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_it_refutes_a_wrong_claim(self, method, jobs):
        """The true ε is 2; the bound is 1.81 with a standard error of about 0.03."""
        result = em.audit(
            em.zoo.laplace(epsilon=2.0),
            claim=em.PureDP(1.0),
            samples=20_000,
            seed=0,
            method=method,
            jobs=jobs,
        )
        assert result.verdict is em.Verdict.REFUTED
        assert 1.5 < result.lower_bound <= 2.0

    def test_it_does_not_refute_a_true_one(self, method):
        result = em.audit(
            em.zoo.laplace(epsilon=1.0), samples=20_000, seed=0, method=method, confidence=SURE
        )
        assert result.verdict is em.Verdict.NOT_REFUTED

    def test_an_interrupted_audit_goes_on(self, method, tmp_path):
        """Half of the fresh draws are tallied when it is interrupted."""
        settings = {"samples": 20_000, "seed": 0, "method": method}
        whole = em.audit(em.zoo.laplace(epsilon=2.0), **settings)
        settings["checkpoint"] = tmp_path / "audit.checkpoint"
        with pytest.raises(KeyboardInterrupt):
            em.audit(em.zoo.laplace(epsilon=2.0), progress=Interruption(after=26_000), **settings)
        resumed = em.audit(em.zoo.laplace(epsilon=2.0), **settings)
        assert resumed.findings[0].to_dict() == whole.findings[0].to_dict()
        assert resumed.samples_used == whole.samples_used

    def test_it_chooses_among_pairs(self, method):
        """The second pair leaks twice as much."""
        mechanism = em.zoo.laplace(epsilon=1.0).mechanism
        result = em.measure(
            mechanism, [(0.0, 1.0), (0.0, 2.0)], em.PureDP, samples=20_000, seed=0, method=method
        )
        assert result.lower_bound > 1.2


class Plain:
    """A proposal that has the names of the contract and no base class."""

    def __init__(self, proposal):
        self.predicted, self.tally, self.certify = (
            proposal.predicted,
            proposal.tally,
            proposal.certify,
        )


class PlainMethod:
    """A method likewise."""

    name, summary, guarantee = "plain", "without base classes", "exact"

    def propose(self, left, right, task):
        return Plain(KolmogorovSmirnov().propose(left, right, task))


class TestWithoutBaseClasses(MethodConformance):
    # The proofs are those of the class above.
    runs = 24
    test_bounds_hold_where_over_fitting_pays = None
    test_bounds_hold_when_the_laws_change = None
    test_bounds_hold_for_every_coin = None

    @pytest.fixture
    def method(self):
        return PlainMethod()

    def test_it_finds_the_same(self, method):
        settings = {"claim": em.PureDP(1.0), "samples": 20_000, "seed": 0}
        found = [
            em.audit(em.zoo.laplace(epsilon=2.0), method=each, **settings)
            for each in (method, KolmogorovSmirnov())
        ]
        assert found[0].findings[0].to_dict() == found[1].findings[0].to_dict()
        assert found[0].settings["method"] == "plain"


class TestQuickEvents(MethodConformance):
    # It hands the proof on to `events`, and 12 bounds above the truth fail.
    claims = (em.PureDP(0.5), em.RenyiDP(2.0, 0.1))
    runs = 24
    test_bounds_hold_where_over_fitting_pays = None
    test_bounds_hold_when_the_laws_change = None

    @pytest.fixture
    def method(self):
        return QuickEvents()

    def test_it_learns_from_few_draws(self, method):
        result = em.audit(
            em.zoo.laplace(epsilon=2.0), claim=em.PureDP(1.0), samples=20_000, seed=0, method=method
        )
        assert result.verdict is em.Verdict.REFUTED
        assert result.witness.left_counts.trials == 19_000


def noisy_count(rows, rng):
    return len(rows) + rng.laplace()


def greedy_count(rows, rng):
    """Uses up its input."""
    return len([rows.pop() for _ in range(len(rows))]) + rng.laplace()


class TestQueueMechanism(MechanismConformance):
    @pytest.fixture(params=[noisy_count, greedy_count])
    def mechanism(self, request):
        return QueueMechanism(request.param)

    @pytest.fixture
    def dataset(self):
        return ["Ada", "Grace"]

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_it_is_audited(self, jobs):
        """The true ε is 2; the bound is 1.85 with a standard error of about 0.06."""

        def half_noise(rows, rng):  # ε = 1 would need scale=1
            return len(rows) + rng.laplace(scale=0.5)

        result = em.audit(
            QueueMechanism(half_noise), ROWS, em.PureDP(1.0), samples=5_000, seed=0, jobs=jobs
        )
        assert result.verdict is em.Verdict.REFUTED
        assert result.samples_used == (5_000, 5_000)

    def test_a_worker_that_hangs_ends_the_audit(self):
        free = threading.Event()

        def hang(rows, rng):
            free.wait()

        try:
            with pytest.raises(
                em.MechanismError,
                match=r"hang behind a queue gave no output within timeout=0\.05 s",
            ):
                em.audit(
                    QueueMechanism(hang, timeout=0.05), ROWS, em.PureDP(1.0), samples=100, seed=0
                )
        finally:
            free.set()

    def test_a_worker_that_fails_ends_the_audit(self):
        def fail(rows, rng):
            raise ValueError("no rows today")

        with pytest.raises(em.MechanismError, match="no rows today") as caught:
            em.audit(QueueMechanism(fail), ROWS, em.PureDP(1.0), samples=100, seed=0)
        assert isinstance(caught.value.__cause__, ValueError)


# Of Lap(1) around 0 and around 1.
TRUE_TAU = 1 - math.exp(-0.5)


class TestTotalVariation(ClaimConformance):
    @pytest.fixture(params=[0.05, 0.5, 1.0])
    def claim(self, request):
        return TotalVariation(request.param)

    @pytest.mark.parametrize("tau", [-0.1, math.nan, "much"])
    def test_it_checks_its_parameter(self, tau):
        with pytest.raises(em.InputError, match="tau="):
            TotalVariation(tau)

    def test_a_wrong_claim_is_refuted_and_its_result_is_stored(self):
        """The bound is 0.36 with a standard error of about 0.006."""
        result = em.audit(
            em.zoo.laplace(epsilon=1.0), claim=TotalVariation(0.2), samples=20_000, seed=0
        )
        assert result.verdict is em.Verdict.REFUTED
        assert 0.3 < result.lower_bound <= TRUE_TAU
        again = em.AuditResult.from_json(result.to_json())
        assert again.claim == TotalVariation(0.2)
        assert again.to_json() == result.to_json()

    def test_a_true_claim_is_not_refuted(self):
        laplace = em.zoo.laplace(epsilon=1.0)
        result = em.audit(
            laplace, claim=TotalVariation(TRUE_TAU), samples=20_000, seed=0, confidence=SURE
        )
        assert result.verdict is em.Verdict.NOT_REFUTED

    def test_it_can_be_measured_stopped_early_and_replayed(self):
        laplace = em.zoo.laplace(epsilon=1.0)
        assert em.measure(laplace, notion=TotalVariation, samples=20_000, seed=0).lower_bound > 0.3
        early = em.audit(
            laplace, claim=TotalVariation(0.2), samples=20_000, seed=0, stop_early=True
        )
        assert early.verdict is em.Verdict.REFUTED
        assert em.replay(early, laplace, samples=20_000, seed=1).lower_bound > 0.2

    def test_who_does_not_know_it_is_told(self, tmp_path):
        """A result names its notion, not the module: it must have been imported."""
        path = tmp_path / "result.json"
        result = em.audit(
            em.zoo.laplace(epsilon=1.0), claim=TotalVariation(0.2), samples=1_000, seed=0
        )
        path.write_text(result.to_json(), encoding="utf-8")
        read = "import sys, epsilometer as em; em.AuditResult.from_json(open(sys.argv[1], encoding='utf-8').read())"
        done = subprocess.run(
            [sys.executable, "-c", read, path], capture_output=True, text=True, check=False
        )
        assert "InputError" in done.stderr
        assert "total-variation" in done.stderr


class TestHalton(FinderConformance):
    @pytest.fixture(params=[1, 3])
    def make_finder(self, request):
        return lambda: Halton(em.domains.Vector(request.param), trials=12)

    def test_points_are_those_of_the_sequence(self):
        """Digits mirrored at the point: 6 = 110 in base 2 becomes 0.011, in base 3 20 becomes 0.02."""
        finder = Halton(em.domains.Vector(1, low=0, high=1), trials=8)
        points = np.array([finder.next_point(number) for number in range(6)])
        assert np.allclose(points[:, 0], [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8, 3 / 8])
        assert np.allclose(points[:, 1], [1 / 3, 2 / 3, 1 / 9, 4 / 9, 7 / 9, 2 / 9])

    def test_it_finds_a_leak(self):
        """The pairs do not depend on chance; four of them have an ε above 1.4, far from the claim."""
        domain = em.domains.Vector(2, low=0, high=1)
        finder = Halton(domain, trials=20, samples=2_000)
        result = em.audit(em.from_batch(noisy_sum), finder, em.PureDP(1.0), samples=20_000, seed=0)
        assert result.verdict is em.Verdict.REFUTED
        assert result.settings["finder"]["name"] == "halton"
        assert json.loads(result.to_json())["settings"]["finder"] == finder.describe()


def threshold_release(counts, rng):
    """Noisy counts with ε = 1, but a cell is released exactly once its count exceeds 2."""
    return [count + (rng.laplace() if count <= 2 else 0.0) for count in counts]


class TestGridOfCounts(FinderConformance):
    """A stranger's finder is screened and its pairs are shrunk, as those of `Search` are."""

    @pytest.fixture(params=[1, 3])
    def make_finder(self, request):
        return lambda: GridOfCounts(request.param, largest=3, trials=30)

    def test_a_leak_is_found_by_screening_and_made_small(self):
        """A count of 3 is released exactly: no draw of 3 equals one of 2, in any histogram."""
        finder = GridOfCounts(3, largest=4, trials=200, samples=500)
        result = em.audit(threshold_release, finder, em.PureDP(1.0), samples=2_000, seed=0)
        assert result.is_refuted
        assert (result.witness.pair.left, result.witness.pair.right) == ([0, 0, 2], [0, 0, 3])
        tried = result.findings[0].details["tried"]
        # 7 pairs of round 0 and 19 of round 1 keep the claim; the 37 of round 2 are the last.
        assert tried["looks"] == tried["coupled"] == 63
        assert tried["explored"] == 1
        assert "neighbours by 'one more in one cell'" in str(result)
        assert json.loads(result.to_json())["settings"]["finder"] == finder.describe()

    def test_a_right_mechanism_is_not_refuted(self):
        def noisy_counts(counts, rng):
            return [count + rng.laplace() for count in counts]

        finder = GridOfCounts(3, largest=4, trials=100, samples=500)
        result = em.audit(
            noisy_counts, finder, em.PureDP(1.0), samples=2_000, seed=0, confidence=SURE
        )
        assert result.verdict is em.Verdict.NOT_REFUTED
        assert result.findings[0].details["tried"]["looks"] == 100

    def test_an_interrupted_search_resumes(self, tmp_path):
        finder = GridOfCounts(3, largest=4, trials=200, samples=500)
        settings = {"samples": 2_000, "seed": 0}
        whole = em.audit(threshold_release, finder, em.PureDP(1.0), **settings)
        settings["checkpoint"] = tmp_path / "search.checkpoint"
        with pytest.raises(KeyboardInterrupt):
            em.audit(
                threshold_release,
                finder,
                em.PureDP(1.0),
                progress=Interruption(after=4_000),
                **settings,
            )
        resumed = em.audit(threshold_release, finder, em.PureDP(1.0), **settings)
        assert resumed.findings[0].to_dict() == whole.findings[0].to_dict()
        assert resumed.samples_used == whole.samples_used


class TestVisits(DomainConformance):
    @pytest.fixture(params=[1, 3])
    def domain(self, request):
        return Visits(request.param)

    def test_a_leak_is_found_in_it(self):
        """The true ε is 2 on every pair whose last visit is at night: one trial of four, and the pairs are fixed."""
        finder = em.finders.Random(Visits(3), trials=20, samples=2_000)
        result = em.audit(
            em.from_batch(night_visits), finder, em.PureDP(1.0), samples=20_000, seed=0
        )
        assert result.verdict is em.Verdict.REFUTED
        assert result.witness.pair.left[-1] < 360
