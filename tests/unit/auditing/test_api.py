"""The public functions: what they take, what they refuse before they draw, what they return."""

import json
import math
import random

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine.health import CHECKS
from epsilometer.testing import (
    Coin,
    constant,
    drifting,
    frozen_seed,
    hostile,
    miscounting,
    raising,
    serially_correlated,
)

LEAK = Coin(0.7, 0.2)  # ε = ln(3.5) = 1.25
NOTIONS = [
    (em.PureDP(0.3), em.PureDP, {}),
    (em.ApproxDP(0.3, 0.01), em.ApproxDP, {"delta": 0.01}),
    (em.RenyiDP(2.0, 0.05), em.RenyiDP, {"order": 2.0}),
    (em.ZCDP(0.05), em.ZCDP, {}),
    (em.GaussianDP(0.3), em.GaussianDP, {}),
    (em.TradeOffDP(([0, 1], [1, 0]), 0.05), em.TradeOffDP, {"curve": ([0, 1], [1, 0])}),
]


class Counting:
    """Notes every draw."""

    def __init__(self):
        self.drawn = {}

    def __call__(self, dataset, n, rng):
        self.drawn[dataset] = self.drawn.get(dataset, 0) + n
        return rng.random(n) < 0.5


def stripped(result):
    """All but what a clock or a setting of the run changes."""
    data = result.to_dict()
    for key in ("seconds", "settings", "date"):
        del data[key]
    return data


class TestAudit:
    @pytest.mark.parametrize(
        ("claim", "notion", "fixed"), NOTIONS, ids=lambda value: getattr(value, "notion", "")
    )
    def test_every_notion(self, claim, notion, fixed):
        result = em.audit(LEAK, claim=claim, samples=4000, seed=1)
        assert result.verdict is em.Verdict.REFUTED
        assert claim.value < result.lower_bound <= LEAK.truth(claim)
        assert result.guarantee == "exact"
        assert result.claim == claim
        assert result.confidence == 0.95
        assert result.samples_used == (4000, 4000)
        measured = em.measure(LEAK, None, notion, samples=4000, seed=1, **fixed)
        assert measured.verdict is None
        assert measured.detectable is None
        assert measured.lower_bound == pytest.approx(result.lower_bound, rel=0.2)

    @pytest.mark.parametrize(
        ("claim", "notion", "fixed"), NOTIONS, ids=lambda value: getattr(value, "notion", "")
    )
    def test_true_claims_of_every_notion(self, claim, notion, fixed):
        keeps = claim.with_value(LEAK.truth(claim) * 1.001)
        # What it could have refuted is looked at in test_power.py: to find that out takes seconds.
        assert em.audit(LEAK, claim=keeps, samples=4000, seed=1).verdict is em.Verdict.NOT_REFUTED

    def test_claims_in_words(self):
        assert em.audit(LEAK, claim="eps=1", samples=4000, seed=1).verdict is em.Verdict.REFUTED
        assert (
            em.audit(LEAK, claim="eps=1,delta=0.5", samples=4000, seed=1).verdict
            is em.Verdict.NOT_REFUTED
        )

    def test_the_larger_direction_counts(self):
        forward = em.audit(Coin(0.9, 0.4), claim=em.PureDP(0.1), samples=4000, seed=1)
        backward = em.audit(Coin(0.4, 0.9), claim=em.PureDP(0.1), samples=4000, seed=1)
        # Both have ln(0.6/0.1) = 1.79 through the rarer answer.
        assert forward.lower_bound > 1.2
        assert backward.lower_bound > 1.2
        assert forward.witness.flipped != backward.witness.flipped

    def test_zoo_entries_bring_claim_and_pair(self):
        assert (
            em.audit(em.zoo.laplace(epsilon=1.0), samples=4000, seed=1).verdict
            is em.Verdict.NOT_REFUTED
        )
        result = em.audit(em.zoo.svt5(epsilon=1.0), samples=4000, seed=1)
        assert result.verdict is em.Verdict.REFUTED
        assert result.settings["mechanism"]

    def test_everyday_keywords_are_recorded(self):
        result = em.audit(
            LEAK, claim=em.PureDP(1.0), samples=1000, confidence=0.9, seed=3, method="events"
        )
        wanted = {"samples": 1000, "confidence": 0.9, "seed": 3, "method": "events"}
        assert wanted.items() <= result.settings.items()
        assert result.confidence == 0.9
        assert result.seconds >= 0
        json.dumps(dict(result.settings))
        json.dumps(dict(result.environment))

    def test_higher_confidence_proves_less(self):
        bounds = [
            em.audit(LEAK, claim=em.PureDP(0.1), samples=4000, confidence=c, seed=1).lower_bound
            for c in (0.5, 0.9, 0.99, 0.999999)
        ]
        assert bounds == sorted(bounds, reverse=True)

    @pytest.mark.parametrize("samples", [20, 21, 33, 1000, np.int64(50)])
    def test_samples_used_is_exact(self, samples):
        counting = Counting()
        result = em.audit(
            em.from_batch(counting), ("l", "r"), em.PureDP(1.0), samples=samples, seed=1
        )
        assert result.samples_used == (samples, samples)
        assert counting.drawn == {"l": samples, "r": samples}

    def test_progress_hears_of_every_draw(self):
        class Told:
            total = 0

            def advance(self, n):
                self.total += n

        told = Told()
        em.audit(LEAK, claim=em.PureDP(1.0), samples=1000, seed=1, progress=told)
        assert told.total == 2000

    def test_a_bare_function_is_a_mechanism(self):
        result = em.audit(
            lambda dataset, rng: dataset + rng.laplace(),
            (0, 1),
            em.PureDP(0.2),
            samples=4000,
            seed=1,
        )
        assert result.verdict is em.Verdict.REFUTED


class TestSeeds:
    def test_same_seed_same_answer(self):
        first, again = (
            em.audit(LEAK, claim=em.PureDP(1.0), samples=2000, seed=5) for _ in range(2)
        )
        assert stripped(first) == stripped(again)
        other = em.audit(LEAK, claim=em.PureDP(1.0), samples=2000, seed=6)
        assert stripped(other) != stripped(first)

    def test_same_answer_on_one_and_two_workers(self):
        mechanism = em.zoo.laplace(epsilon=1.0)
        one, two = (
            em.audit(mechanism, claim="eps=.5", samples=200_000, seed=5, jobs=jobs)
            for jobs in (1, 2)
        )
        assert stripped(one) == stripped(two)

    def test_a_fresh_seed_is_recorded(self):
        first = em.audit(LEAK, claim=em.PureDP(1.0), samples=500)
        assert isinstance(first.settings["seed"], int)
        again = em.audit(LEAK, claim=em.PureDP(1.0), samples=500, seed=first.settings["seed"])
        assert stripped(first) == stripped(again)

    def test_global_generators_are_left_alone(self):
        before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
        em.audit(LEAK, claim=em.PureDP(1.0), samples=500, seed=1)
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002

    def test_no_stream_is_used_twice(self):
        first = []

        def noting(dataset, n, rng):
            values = rng.random(n)
            first.append(float(values[0]))
            return values

        pairs = [(number, number + 0.5) for number in range(9)]
        em.audit(em.from_batch(noting), pairs, em.PureDP(1.0), samples=9 * 400, seed=0)
        assert len(set(first)) == len(first)


class TestRefusedBeforeDrawing:
    @pytest.mark.parametrize(
        "wrong",
        [{"confidence": value} for value in (0.0, 1.0, -1.0, 2.0, math.nan, "0.95", True, None)]
        + [{"samples": value} for value in (0, -5, 19, 1000.5, "1000", True, None)]
        + [{"seed": value} for value in (-1, 1.5, "1", True)]
        + [{"method": value} for value in ("magic", "", None, "Events")]
        + [{"jobs": 0}, {"engine": "magic"}, {"suppress": ["magic"]}, {"suppress": "magic"}],
        ids=str,
    )
    @pytest.mark.parametrize("function", ["audit", "measure"])
    def test_settings(self, function, wrong):
        def never(dataset, n, rng):
            pytest.fail("drew before checking")

        arguments = {"audit": em.PureDP(1.0), "measure": em.PureDP}
        with pytest.raises(em.InputError):
            getattr(em, function)(
                em.from_batch(never), (0, 1), arguments[function], **{"samples": 100, **wrong}
            )

    @pytest.mark.parametrize("inputs", [None, 3, "ab", [], [1, 2], [(1, 2, 3)]])
    def test_inputs(self, inputs):
        with pytest.raises(em.InputError):
            em.audit(constant(0), inputs, em.PureDP(1.0), samples=100)

    @pytest.mark.parametrize("claim", [None, 1.0, "", "epsilon", "eps=-1", em.PureDP, object()])
    def test_claims(self, claim):
        with pytest.raises(em.InputError):
            em.audit(constant(0), (0, 1), claim, samples=100)

    @pytest.mark.parametrize(
        ("notion", "fixed"),
        [
            (em.PureDP(1.0), {}),
            ("pure", {}),
            (int, {}),
            (em.ApproxDP, {}),
            (em.RenyiDP, {}),
            (em.PureDP, {"delta": 0.1}),
            (em.RenyiDP, {"order": 0.5}),
        ],
    )
    def test_notions(self, notion, fixed):
        with pytest.raises(em.InputError):
            em.measure(constant(0), (0, 1), notion, samples=100, **fixed)

    def test_too_few_draws_for_many_pairs(self):
        with pytest.raises(em.InputError, match="samples=1000"):
            em.audit(LEAK, [(0.1 * k, 0.55) for k in range(10)], em.PureDP(1.0), samples=1000)

    def test_no_mechanism(self):
        with pytest.raises(em.InputError):
            em.audit("laplace", (0, 1), em.PureDP(1.0))


class TestOutcomes:
    def test_a_deterministic_mechanism_is_refuted(self):
        functions = (
            lambda d: d,
            lambda d: math.nan if d else 0.0,
            lambda d: None if d else "x",
            lambda d: [1] * d,
        )
        for function in functions:
            result = em.audit(
                function, (0, 1), em.PureDP(1.0), samples=100, seed=1, constant="leak"
            )
            assert result.verdict is em.Verdict.REFUTED
            assert result.witness.is_deterministic
            assert result.lower_bound < math.inf

    @pytest.mark.parametrize("value", [0.0, "x", math.nan, (1, "a"), True, [], b"raw", 10**40])
    def test_an_identical_answer_refutes_nothing(self, value):
        result = em.audit(constant(value), (0, 1), em.PureDP(1.0), samples=100, seed=1)
        assert result.verdict is em.Verdict.NOT_REFUTED
        assert result.lower_bound == 0
        assert [report.name for report in result.health] == ["constant"]
        assert survives_json(result)

    def test_nan_is_an_outcome(self):
        result = em.audit(hostile(), (1.0, 30.0), em.PureDP(0.5), samples=4000, seed=1)
        # P(NaN) is 1/10 against 30/39, so e^ε is at least 3.9 by the others and 7.7 by NaN itself.
        assert result.verdict is em.Verdict.REFUTED
        assert result.witness.event.contains([math.nan, 1.0]).tolist() in (
            [True, False],
            [False, True],
        )

    @pytest.mark.parametrize("end", [math.inf, -math.inf])
    def test_infinities_are_outcomes(self, end):
        def draw(dataset, n, rng):
            return np.where(rng.random(n) < dataset, end, rng.normal(size=n))

        result = em.audit(em.from_batch(draw), (0.5, 0.01), em.PureDP(1.0), samples=4000, seed=1)
        assert result.verdict is em.Verdict.REFUTED
        assert result.witness.event.contains([end, 0.0]).tolist() == [True, False]

    def test_failures_name_input_and_cause(self):
        cause = RuntimeError("boom")
        with pytest.raises(em.MechanismError, match=r"on the input 'right'.*boom") as caught:
            em.audit(
                raising(cause, on="right"), ("left", "right"), em.PureDP(1.0), samples=100, seed=1
            )
        assert caught.value.__cause__ is cause

    def test_failures_can_be_outcomes(self):
        def fails_on_right(dataset):
            if dataset == "right":
                raise RuntimeError("boom")
            return 1.0

        mechanism = em.from_callable(fails_on_right, on_error="outcome")
        result = em.audit(
            mechanism, ("left", "right"), em.PureDP(1.0), samples=100, seed=1, constant="leak"
        )
        assert result.verdict is em.Verdict.REFUTED

    @pytest.mark.parametrize("extra", [-1, 1])
    def test_wrong_number_of_outputs(self, extra):
        with pytest.raises(em.MechanismError, match="were asked for"):
            em.audit(miscounting(extra), (0, 1), em.PureDP(1.0), samples=100, seed=1)

    def test_shapes_seen_on_one_side_only(self):
        def draw(dataset, n, rng):
            return [("odd", i) if dataset and i % 2 else None for i in range(n)]

        result = em.audit(
            em.from_batch(draw), (0, 1), em.PureDP(1.0), samples=4000, suppress=list(CHECKS), seed=1
        )
        assert result.verdict is em.Verdict.REFUTED


class TestPairs:
    def test_the_leaking_pair_is_found(self):
        control = em.Pair(0.5, 0.5, equal=True)
        pairs = [control, (0.5, 0.52), (0.8, 0.2), (0.4, 0.5), control]
        result = em.audit(Coin(0, 0).mechanism, pairs, em.PureDP(0.5), samples=8000, seed=1)
        assert result.witness.pair == em.Pair(0.8, 0.2)
        assert result.verdict is em.Verdict.REFUTED
        assert result.samples_used == (8000, 8000)

    @pytest.mark.parametrize("n_pairs", [1, 2, 3, 7])
    def test_samples_are_per_side_for_all_pairs_together(self, n_pairs):
        pairs = [(0.5, 0.51 + 0.01 * k) for k in range(n_pairs)]
        result = em.audit(Coin(0, 0).mechanism, pairs, em.PureDP(1.0), samples=2999, seed=1)
        assert result.samples_used == (2999, 2999)


class TestHealth:
    @pytest.mark.parametrize(
        ("make", "name", "samples"),
        [
            (frozen_seed, "repeated-chunks", 20_000),
            (frozen_seed, "repeated-chunks", 300_000),
            (serially_correlated, "serial-correlation", 20_000),
            (drifting, "drift", 20_000),
        ],
    )
    def test_each_check_trips_on_its_fake(self, make, name, samples):
        result = em.audit(
            make(), em.Pair(0.0, 0.0, equal=True), em.PureDP(0.1), samples=samples, seed=1
        )
        # Draws that drift are also correlated, which shows first where the chosen event is rare.
        expected = {name, "serial-correlation"} if name == "drift" else {name}
        assert expected & {report.name for report in result.health}
        assert result.verdict is em.Verdict.INCONCLUSIVE
        assert all(report.message for report in result.health)

    def test_suppressed_checks_stay_silent(self):
        mechanism, silent = (
            serially_correlated(),
            ["serial-correlation", "drift", "repeated-chunks"],
        )
        result = em.audit(
            mechanism, (0, 1), em.PureDP(3.0), samples=20_000, seed=0, suppress=silent
        )
        assert result.health == ()
        assert result.verdict is em.Verdict.NOT_REFUTED

    def test_always_and_never_prove_nothing_if_the_draws_repeat(self):
        def frozen(dataset, n, rng):
            return np.random.default_rng(7).integers(0, 2, n) + 2 * dataset

        result = em.audit(em.from_batch(frozen), (0, 1), em.PureDP(1.0), samples=5000, seed=1)
        assert any(report.untrusted for report in result.health)
        assert result.witness.is_deterministic
        assert result.verdict is em.Verdict.INCONCLUSIVE

    @pytest.mark.parametrize("name", ["laplace", "randomized_response", "svt5"])
    def test_healthy_mechanisms_pass(self, name):
        entry = em.zoo.find(name)
        for seed in range(5):
            assert em.audit(entry, samples=20_000, seed=seed).health == ()


class TestMeasure:
    def test_delta_at_an_epsilon(self):
        result = em.measure(LEAK, None, em.ApproxDP, epsilon=0.5, samples=4000, seed=1)
        assert 0.25 < result.lower_bound <= 0.7 - math.exp(0.5) * 0.2

    def test_a_huge_epsilon_leaves_no_delta(self):
        assert (
            em.measure(LEAK, None, em.ApproxDP, epsilon=1000.0, samples=1000, seed=1).lower_bound
            == 0.0
        )

    def test_an_unknown_keyword_is_named(self):
        with pytest.raises(em.InputError, match="sample"):
            em.measure(LEAK, None, em.PureDP, sample=100)


class TestCompare:
    def test_refuted_and_not(self, rng):
        left, right = rng.normal(0, 1, 5000), rng.normal(1, 1, 4000)
        result = em.compare(left, right, em.PureDP(0.3), seed=1)
        assert result.verdict is em.Verdict.REFUTED
        assert result.samples_used == (5000, 4000)
        assert (
            em.compare(left, left[::-1].copy(), em.PureDP(0.3), seed=1).verdict
            is em.Verdict.NOT_REFUTED
        )

    def test_any_recording(self):
        left, right = ["a", "b", "b", None] * 100, ["a", "a", "b", None] * 100
        result = em.compare(left, right, "eps=0.1", seed=1, suppress=list(CHECKS))
        assert result.lower_bound <= math.log(2) * 1.5
        vectors = np.zeros((200, 3)), np.ones((200, 3))
        result = em.compare(*vectors, em.PureDP(1.0), seed=1, constant="leak")
        assert result.verdict is em.Verdict.REFUTED

    def test_a_claim_class_measures(self, rng):
        draws = rng.normal(0, 1, 2000), rng.normal(1, 1, 2000)
        assert em.compare(*draws, em.GaussianDP, seed=1).verdict is None
        assert 0.5 < em.compare(*draws, em.GaussianDP, seed=1).lower_bound < 1.1
        assert em.compare(*draws, em.RenyiDP, order=2.0, seed=1).claim == em.RenyiDP(2.0, 0.0)

    def test_same_seed_same_answer(self, rng):
        draws = rng.normal(0, 1, 2000), rng.normal(1, 1, 2000)
        first, again = (em.compare(*draws, em.PureDP(0.3), seed=4) for _ in range(2))
        assert stripped(first) == stripped(again)

    def test_order_is_looked_at_before_shuffling(self):
        sorted_draws = np.linspace(0, 1, 4000)
        result = em.compare(sorted_draws, sorted_draws, em.PureDP(3.0), seed=1)
        assert result.verdict is em.Verdict.INCONCLUSIVE
        quiet = em.compare(
            sorted_draws,
            sorted_draws,
            em.PureDP(3.0),
            seed=1,
            suppress=["serial-correlation", "drift"],
        )
        assert quiet.health == ()

    def test_refusals(self):
        draws = np.zeros(100)
        for wrong in (
            {"left_outputs": np.zeros(19)},
            {"right_outputs": []},
            {"confidence": 1.0},
            {"seed": -1},
            {"method": "magic"},
            {"suppress": ["magic"]},
            {"claim": None},
            {"claim": int},
        ):
            arguments = {
                "left_outputs": draws,
                "right_outputs": draws,
                "claim": em.PureDP(1.0),
                **wrong,
            }
            with pytest.raises(em.InputError):
                em.compare(**arguments)

    def test_outputs_that_cannot_be_read(self):
        with pytest.raises(em.EpsilometerError):
            em.compare([object()] * 50, [object()] * 50, em.PureDP(1.0))

    def test_unknown_keywords_are_not_swallowed(self):
        with pytest.raises((em.InputError, TypeError)):
            em.compare(np.zeros(100), np.zeros(100), em.PureDP(1.0), confidnece=0.99)


class TestReplay:
    @pytest.mark.parametrize(
        ("claim", "notion", "fixed"), NOTIONS, ids=lambda value: getattr(value, "notion", "")
    )
    def test_a_stored_result_of_every_notion(self, claim, notion, fixed):
        result = em.audit(LEAK, claim=claim, samples=4000, seed=1, method="events")
        stored = em.AuditResult.from_json(result.to_json())
        again = em.replay(stored, LEAK, samples=4000, seed=1)
        assert again.verdict is em.Verdict.REFUTED
        assert again.samples_used == (4000, 4000)
        assert again.witness.event.describe() == result.witness.event.describe()
        # The same seed, and yet other draws.
        assert again.witness.counts != result.witness.counts
        assert again.settings["replay_of"]["seed"] == 1

    def test_a_repaired_mechanism_is_not_refuted(self):
        result = em.audit(LEAK, claim=em.PureDP(0.5), samples=4000, seed=1)
        fixed = em.from_batch(lambda dataset, n, rng: rng.random(n) < 0.5)
        assert em.replay(result, fixed, samples=4000, seed=1).verdict is em.Verdict.NOT_REFUTED

    def test_a_measurement_stays_one(self):
        result = em.measure(LEAK, None, em.PureDP, samples=2000, seed=1)
        assert em.replay(result, LEAK, samples=2000, seed=1).verdict is None

    def test_confidence(self):
        result = em.audit(LEAK, claim=em.PureDP(0.5), samples=2000, seed=1)
        assert em.replay(result, LEAK, samples=2000, seed=1).confidence == 0.95
        assert em.replay(result, LEAK, samples=2000, seed=1, confidence=0.999).confidence == 0.999
        with pytest.raises(em.InputError):
            em.replay(result, LEAK, samples=2000, confidence=1.0)

    def test_inputs_that_json_cannot_hold(self):
        def size(dataset, rng):
            return len(dataset) + rng.laplace()

        pair = ({1, 2, 3}, {1})
        result = em.audit(size, pair, em.PureDP(0.5), samples=2000, seed=1)
        assert result.witness.pair == em.Pair(*pair)
        stored = em.AuditResult.from_json(result.to_json())
        with pytest.raises(em.InputError, match="pair="):
            em.replay(stored, size, samples=2000)
        assert (
            em.replay(stored, size, samples=2000, seed=1, pair=pair).verdict is em.Verdict.REFUTED
        )
        assert em.replay(result, size, samples=2000, seed=1).verdict is em.Verdict.REFUTED

    def test_array_inputs_come_back_as_arrays(self):
        def total(dataset, rng):
            assert isinstance(dataset, np.ndarray)
            return float(dataset.sum()) + rng.laplace()

        result = em.audit(
            total, (np.zeros((2, 2)), np.ones((2, 2))), em.PureDP(0.5), samples=1000, seed=1
        )
        stored = em.AuditResult.from_json(result.to_json())
        assert em.replay(stored, total, samples=1000, seed=1).verdict is em.Verdict.REFUTED

    def test_vector_witnesses(self, rng):
        def vector(dataset, n, rng):
            return rng.laplace(dataset, 1.0, (n, 3))

        result = em.audit(em.from_batch(vector), (0.0, 1.0), em.PureDP(0.5), samples=6000, seed=1)
        stored = em.AuditResult.from_json(result.to_json())
        outputs = rng.laplace(0.5, 1.0, (500, 3))
        assert np.array_equal(
            stored.witness.event.contains(outputs), result.witness.event.contains(outputs)
        )
        assert (
            em.replay(stored, em.from_batch(vector), samples=6000, seed=1).verdict
            is em.Verdict.REFUTED
        )

    def test_recorded_samples_have_no_inputs_to_replay(self):
        result = em.compare(np.zeros(100), np.ones(100), em.PureDP(1.0), seed=1)

        def never(dataset):
            pytest.fail(f"ran on {dataset!r}")

        with pytest.raises(em.InputError, match="pair="):
            em.replay(result, never, samples=100, seed=1)


def test_results_hold_no_pickle():
    result = em.audit(em.zoo.svt3(epsilon=1.0), samples=500, seed=1)
    data = json.loads(result.to_json())

    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(each) for key, each in value.items())
        if isinstance(value, list):
            return all(map(plain, value))
        return value is None or isinstance(value, str | int | float | bool)

    assert plain(result.to_dict())
    assert "pickle" not in result.to_json()
    assert data["schema_version"] >= 1


def test_arrays_of_different_numbers_are_compared_as_floats():
    counts = np.arange(100)
    compared = em.compare(counts, counts * 1.0, em.PureDP(1.0), seed=0)
    assert (
        compared.settings["note"] == "left holds int64, right float64; both are compared as float64"
    )
    assert not compared.is_refuted
    assert "note" not in em.compare(counts, counts, em.PureDP(1.0), seed=0).settings


def test_numbers_and_words_stay_what_they_are():
    counts = np.arange(100)
    assert "note" not in em.compare(counts, counts.astype(str), em.PureDP(1.0), seed=0).settings


def test_a_notion_is_named_by_its_class():
    with pytest.raises(
        em.InputError, match="measuring PureDP takes no 'order'; it belongs to RenyiDP"
    ):
        em.measure(em.zoo.laplace(epsilon=1.0), notion=em.PureDP, order=2.0)


def test_the_search_is_in_the_result():
    pairs = [(0.0, 0.2), (0.0, 1.0), (0.0, 0.5)]
    mechanism = em.from_batch(lambda x, n, rng: rng.laplace(x, 1.0, n))
    result = em.audit(mechanism, pairs, em.PureDP(2.0), samples=4000, seed=0)
    trials = result.findings[0].details["search"]
    assert {trial["pair"] for trial in trials if trial["round"] == 0} == {0, 1, 2}
    assert all(set(trial) == {"round", "pair", "draws", "predicted"} for trial in trials)
    assert (
        "search"
        not in em.audit(mechanism, pairs[1], em.PureDP(2.0), samples=400, seed=0)
        .findings[0]
        .details
    )


def survives_json(result):
    return em.AuditResult.from_json(result.to_json()).to_json() == result.to_json()
