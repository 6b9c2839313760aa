"""Draws that cannot be trusted decide nothing, and draws that can be are not suspected."""

import math
import pickle
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.audit_run import AuditRun
from epsilometer.bounds import Counts
from epsilometer.bounds.anytime import anytime_lower, anytime_upper
from epsilometer.bounds.betting import place_bets
from epsilometer.engine import Sampler
from epsilometer.engine.task_serialization import pack
from epsilometer.methods import Method
from epsilometer.methods.sequential import ladder_of

PAIR = em.Pair(0, 1)
MODES = pytest.mark.parametrize("mode", [{}, {"stop_early": True}], ids=["plain", "stop_early"])


def names(result):
    return {report.name for report in result.health}


class OwnGenerator:
    def __init__(self, scale=1.0):
        self.rng, self.scale = np.random.default_rng(0), scale

    def __call__(self, x):
        return float(x + self.rng.laplace(scale=self.scale))


class OwnRecurrence:
    """Noise from a state of its own that no type gives away."""

    def __init__(self, scale=1.0):
        self.state, self.scale = 12345, scale

    def __call__(self, x):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        u = (self.state >> 11) / 2**53 - 0.5
        return float(x - self.scale * np.sign(u) * np.log(1.0 - 2.0 * abs(u)))


class TwoCopies:
    """An engine of two workers, each with a copy of the work as it was packed first, which take tasks as they can."""

    deadline = None

    def __init__(self):
        self.workers = {}
        self.chance = np.random.default_rng(0)

    def map(self, function, tasks):
        key, content = pack(function, "jobs=2")
        if key not in self.workers:
            self.workers[key] = [pickle.loads(content) for _ in range(2)]
        for task in tasks:
            yield self.workers[key][self.chance.integers(2)](task)

    def close(self):
        pass


class TestOwnGenerators:
    @MODES
    def test_are_drawn_from_in_this_process(self, mode):
        claim = em.PureDP(1.5)  # one that is exactly true may be refuted by chance
        spread = em.audit(OwnGenerator(), PAIR, claim, samples=2000, seed=0, jobs=2, **mode)
        alone = em.audit(OwnGenerator(), PAIR, claim, samples=2000, seed=0, **mode)
        assert names(spread) == {"own-generator"}
        assert "in this process alone" in spread.health[0].message
        assert names(alone) == set()
        assert spread.verdict is alone.verdict is em.Verdict.NOT_REFUTED
        assert spread.lower_bound == alone.lower_bound
        hushed = em.audit(
            OwnGenerator(),
            PAIR,
            em.PureDP(1.0),
            samples=200,
            seed=0,
            jobs=2,
            suppress=["own-generator"],
        )
        assert names(hushed) == set()

    @MODES
    def test_a_leak_is_still_found(self, mode):
        assert em.audit(
            OwnGenerator(0.1), PAIR, em.PureDP(1.0), samples=2000, seed=0, jobs=2, **mode
        ).is_refuted

    @MODES
    def test_copies_that_repeat_each_other_are_noticed(self, mode, monkeypatch):
        monkeypatch.setattr(
            "epsilometer.auditing.settings.open_runner", lambda *ignored: TwoCopies()
        )
        for seed in range(3):
            result = em.audit(
                OwnRecurrence(), PAIR, em.PureDP(1.0), samples=2000, seed=seed, jobs=2, **mode
            )
            assert "repeated-chunks" in names(result)
            assert result.verdict is em.Verdict.INCONCLUSIVE

    def test_the_global_generators_of_workers_differ(self):
        def noisy(x):
            import os

            return (os.getpid(), float(np.random.laplace()))  # noqa: NPY002

        draws = em.audit(noisy, PAIR, em.PureDP(3.0), samples=1000, seed=0, jobs=2)
        assert not names(draws) & {"repeated-chunks"}


class TestFrozenSeeds:
    @MODES
    @pytest.mark.parametrize("samples", [200, 4000])
    @pytest.mark.parametrize(
        "seed_of", [lambda n, rng: 7, lambda n, rng: n, lambda n, rng: rng.integers(3)]
    )
    def test_decide_nothing(self, mode, samples, seed_of):
        frozen = em.from_batch(
            lambda x, n, rng: x + np.random.default_rng(seed_of(n, rng)).laplace(size=n)
        )
        for seed in range(3):
            result = em.audit(frozen, PAIR, em.PureDP(1.0), samples=samples, seed=seed, **mode)
            # A seed that is the size of the chunk: chunks of different sizes begin alike, and the
            # outputs of all of them go together.
            assert names(result) & {"repeated-chunks", "serial-correlation"}
            assert result.verdict is em.Verdict.INCONCLUSIVE

    def test_in_a_replay(self):
        sound = em.from_batch(lambda x, n, rng: x + rng.laplace(size=n))
        frozen = em.from_batch(lambda x, n, rng: x + np.random.default_rng(7).laplace(size=n))
        result = em.replay(
            em.audit(sound, PAIR, em.PureDP(1.0), samples=2000, seed=0),
            frozen,
            samples=2000,
            seed=1,
        )
        assert result.verdict is em.Verdict.INCONCLUSIVE


class TestDependentBatches:
    @MODES
    @pytest.mark.parametrize("samples", [400, 4000])
    @pytest.mark.parametrize(
        "arranged",
        [
            lambda x, n, rng: np.full(n, 100 * x + rng.laplace()),
            lambda x, n, rng: np.tile(x + rng.laplace(size=3), (n, 1)),
            lambda x, n, rng: [str(rng.integers(1000) + x)] * n,
            lambda x, n, rng: x + np.repeat(rng.laplace(size=n // 2 + 1), 2)[:n],
            lambda x, n, rng: x + np.tile(rng.laplace(size=n // 2 + 1), 2)[:n],
            lambda x, n, rng: x + rng.permutation(np.repeat(rng.laplace(size=n // 2 + 1), 2)[:n]),
            lambda x, n, rng: x + np.cumsum(rng.laplace(size=n)),
        ],
        ids=["one", "one vector", "one word", "twice", "tiled", "shuffled", "summed"],
    )
    def test_decide_nothing(self, mode, samples, arranged):
        result = em.audit(
            em.from_batch(arranged), PAIR, em.PureDP(3.0), samples=samples, seed=0, **mode
        )
        assert names(result) & {"serial-correlation", "repeated-chunks"}
        assert result.verdict is em.Verdict.INCONCLUSIVE

    @pytest.mark.parametrize("seed", range(4))
    def test_refute_nothing_in_the_first_draws(self, seed):
        twice = em.from_batch(
            lambda x, n, rng: rng.permutation(np.repeat(rng.laplace(size=n // 2 + 1), 2)[:n])
        )
        result = em.audit(twice, PAIR, em.PureDP(0.3), samples=200, seed=seed, stop_early=True)
        assert result.verdict is em.Verdict.INCONCLUSIVE

    @pytest.mark.parametrize(
        "arranged",
        [
            lambda x, n, rng: x + np.sort(rng.laplace(size=n)),
            lambda x, n, rng: x + (rng.laplace(size=n // 2 + 1)[:, None] * [1.0, -1.0]).ravel()[:n],
        ],
        ids=["sorted", "antithetic"],
    )
    def test_decide_nothing_where_it_can_be_seen(self, arranged):
        result = em.audit(em.from_batch(arranged), PAIR, em.PureDP(1.0), samples=4000, seed=0)
        assert names(result) >= {"serial-correlation"}
        assert result.verdict is em.Verdict.INCONCLUSIVE


class Moving:
    """Equal laws at any moment, whose mean moves while they are drawn from."""

    def __init__(self, total, shape):
        self.k, self.total, self.shape, self.rng = 0, total, shape, np.random.default_rng(5)

    def __call__(self, x):
        self.k += 1
        return float(self.rng.normal(self.shape(self.k / self.total), 1.0))


class TestMovingLaws:
    @MODES
    @pytest.mark.parametrize(
        "shape",
        [
            lambda t: t,
            lambda t: -3.0 * t,
            lambda t: 2.0 * (t > 0.6),
            lambda t: 3.0 * min(t, 0.3),
            lambda t: math.sin(40 * math.pi * t),
        ],
        ids=["slow", "fast", "jump", "training", "periodic"],
    )
    def test_refute_nothing(self, mode, shape):
        for seed in range(3):
            mechanism = Moving(2 * 3000, shape)
            result = em.audit(mechanism, PAIR, em.PureDP(0.5), samples=3000, seed=seed, **mode)
            assert result.verdict is not em.Verdict.REFUTED

    def test_sides_see_the_same_of_it(self):
        """Without any test of the draws: what the two sides saw differs by less than a block."""
        time = {0: [], 1: []}

        def clock(x):
            time[x].append(len(time[0]) + len(time[1]))
            return 0.0

        for mode in ({}, {"stop_early": True}, {"method": "profile"}):
            em.measure(
                clock, PAIR, em.GaussianDP, samples=2000, seed=0, method=mode.get("method", "auto")
            )
            em.audit(clock, PAIR, em.PureDP(1.0), samples=2000, seed=0, **mode)
        gaps = np.abs(np.array(time[0]) - np.array(time[1]))
        assert gaps.max() <= 2 * 64


class TestNoFalseAlarm:
    def test_two_shapes_of_constant_content(self):
        rng = np.random.default_rng(1)
        for seed in range(3):
            result = em.audit(
                lambda x: None if x and rng.random() < 0.2 else "a",
                PAIR,
                em.PureDP(1.0),
                samples=3000,
                seed=seed,
            )
            assert (result.health, result.is_refuted) == ((), True)

    @MODES
    def test_optional_keys(self, mode):
        rng, keys = np.random.default_rng(2), [f"k{i}" for i in range(40)]

        def optional(x):
            return {key: float(rng.laplace()) for key in keys if rng.random() < 0.5}

        assert em.audit(optional, PAIR, em.PureDP(1.0), samples=1500, seed=0, **mode).health == ()

    @pytest.mark.parametrize("kind", ["partitions", "words"])
    def test_many_kinds_of_outputs(self, kind):
        """What was learned must not favour the kinds that came up early: that would look like drift."""
        rng = np.random.default_rng(3)

        def partitions(x):
            return {f"{int(key)}": 1 for key in np.unique(rng.zipf(1.3, size=6) % 500)}

        def words(x):
            return f"w{rng.zipf(1.2) % 5000}"

        for seed in range(4):
            result = em.audit(
                partitions if kind == "partitions" else words,
                PAIR,
                em.PureDP(1.0),
                samples=4000,
                seed=seed,
            )
            assert result.health == ()


def test_training_draws_are_learned_from_in_random_order(monkeypatch):
    seen = []

    class Noting(Method):
        name, guarantee = "events", "exact"

        def __init__(self, method):
            self.method = method

        def propose(self, left, right, task):
            seen.append([side.blocks[0].columns[0].values.copy() for side in (left, right)])
            return self.method.propose(left, right, task)

    drawn = []
    both = Sampler.both
    monkeypatch.setattr(
        Sampler,
        "both",
        lambda *given, **keywords: drawn.append(both(*given, **keywords)) or drawn[-1],
    )
    start = AuditRun.start.__func__

    def start_noting(cls, mechanism, pairs, question, settings):
        return start(
            cls,
            mechanism,
            pairs,
            question,
            replace(settings, method=Noting(settings.method)),
        )

    monkeypatch.setattr(AuditRun, "start", classmethod(start_noting))
    em.audit(
        em.from_batch(lambda x, n, rng: x + rng.laplace(size=n)),
        PAIR,
        em.PureDP(1.0),
        samples=1000,
        seed=0,
    )
    for learned, kept in zip(seen[-1], drawn[-1], strict=True):
        values = kept.blocks[0].columns[0].values
        assert sorted(learned) == sorted(values)
        assert np.mean(learned == values) < 0.1


class TestEarlyWitness:
    def audits(self):
        coin = em.from_batch(
            lambda x, n, rng: np.where(rng.random(n) < (0.9 if x else 0.1), "a", "b")
        )
        laplace = em.from_batch(lambda x, n, rng: x + rng.laplace(scale=0.5, size=n))
        for mechanism in (coin, laplace):
            for seed in range(15):
                yield em.audit(
                    mechanism, PAIR, em.PureDP(1.0), samples=1000, seed=seed, stop_early=True
                )

    def test_has_counted_draws(self):
        for result in self.audits():
            assert min(counts.trials for counts in result.witness.counts) > 0

    def test_pays_for_all_choices_of_events(self):
        """The k-th choice has 6/(πk)² of the failure probability, half of it for each of the two bounds."""
        later = 0
        for result in self.audits():
            witness, k = result.witness, result.findings[0].details["choices_of_events"]
            above, below = reversed(witness.counts) if witness.flipped else witness.counts
            share = 0.05 * 6.0 / (math.pi * k) ** 2 / 2.0
            assert witness.p_lower == pytest.approx(anytime_lower(above, share))
            assert witness.q_upper == pytest.approx(anytime_upper(below, share))
            later += k > 1
        assert later > 3  # otherwise nothing was tested

    def test_the_bound_can_be_worked_out_again_from_the_bets(self):
        ladder = ladder_of(em.PureDP(1.0))
        for result in self.audits():
            wealth, best = np.zeros(len(ladder.values)), np.zeros(len(ladder.values))
            batches = result.findings[0].details["batches"]
            for _, bets in groupby(batches, key=lambda bet: bet["batch"]):
                won = [np.log(bet["share"]) + _won(bet, ladder) for bet in bets]
                wealth += np.logaddexp.reduce(won)
                best = np.maximum(best, wealth)
            assert ladder.bound(best, 0.05) == result.lower_bound
            drawn = sum(bet["left"][1] for bet in batches if bet["stake"] == 0)
            assert drawn == result.samples_used[0] - result.findings[0].details["pilot"]


def _won(bet, ladder):
    left, right = Counts(*bet["left"]), Counts(*bet["right"])
    above, below = (right, left) if bet["flipped"] else (left, right)
    return place_bets(ladder.lines, bet["p1"], bet["q1"], above.trials, below.trials).log_wealth(
        above, below
    )
