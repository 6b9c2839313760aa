"""The same answer only for the same thing: checkpoints, replays, controls; and nothing that a call leaves behind."""

import copy
import functools
import json
import sqlite3
import threading
from dataclasses import dataclass

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import read_outputs
from epsilometer.result import Finding

MODES = [{"stop_early": True}, {"stop_early": False}, {"method": "profile"}]
CLAIM = em.GaussianDP(1.0)


def make(scale):
    def noisy(x, rng):
        return float(np.sum(x)) + rng.laplace(scale=scale)

    return noisy


def run(mechanism, pair, path, mode, **changed):
    claim = CLAIM if mode.get("method") == "profile" else em.PureDP(1.0)
    return em.audit(mechanism, pair, claim, samples=300, seed=0, checkpoint=path, **mode, **changed)


@dataclass
class Table:
    rows: np.ndarray

    def __array__(self, dtype=None, copy=None):
        return self.rows


class TestCheckpoints:
    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_another_function_of_the_same_name(self, tmp_path, mode):
        run(make(5.0), (0, 1), tmp_path / "c", mode)
        run(make(5.0), (0, 1), tmp_path / "c", mode)
        with pytest.raises(em.InputError, match=r"another audit \(its code"):
            run(make(0.1), (0, 1), tmp_path / "c", mode)

    @pytest.mark.parametrize("mode", MODES, ids=str)
    @pytest.mark.parametrize(
        "wrap",
        [np.array, list, tuple, lambda x: {"rows": x}, Table],
        ids=["array", "list", "tuple", "dict", "object"],
    )
    def test_another_large_input(self, tmp_path, mode, wrap):
        def total(x, rng):
            return (
                float(np.sum(x["rows"] if isinstance(x, dict) else np.asarray(x))) + rng.laplace()
            )

        far, near = np.zeros(1200), np.zeros(1200)
        far[600], near[600] = 1.0, 1e-9
        run(total, (wrap(np.zeros(1200)), wrap(near)), tmp_path / "c", mode)
        run(total, (wrap(np.zeros(1200)), wrap(near)), tmp_path / "c", mode)
        with pytest.raises(em.InputError, match=r"another audit \(its inputs"):
            run(total, (wrap(np.zeros(1200)), wrap(far)), tmp_path / "c", mode)

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_what_cannot_be_recognised_is_refused(self, tmp_path, mode):
        connection = sqlite3.connect(":memory:")
        with pytest.raises(em.InputError, match=r"checkpoint=.*sqlite3.Connection"):
            run(
                lambda x, rng: rng.laplace(x[0]),
                ((0, connection), (1, connection)),
                tmp_path / "c",
                mode,
            )
        with pytest.raises(em.InputError, match=r"checkpoint=.*sqlite3.Connection"):
            run(lambda x, rng: rng.laplace(x) + 0 * bool(connection), (0, 1), tmp_path / "c", mode)

    def test_a_recording_begins_at_its_beginning(self, tmp_path):
        recorded = em.from_recording(self._file(tmp_path))
        with pytest.raises(em.InputError, match="recording"):
            em.audit(
                recorded,
                claim="eps=1",
                samples=500,
                seed=0,
                checkpoint=tmp_path / "c",
                stop_early=True,
            )

    def _file(self, tmp_path):
        np.savez(tmp_path / "a.npz", left=np.arange(2000.0), right=np.arange(2000.0))
        return tmp_path / "a.npz"

    def test_a_search_of_another_domain(self, tmp_path):
        def search(high, path):
            finder = em.finders.Random(em.domains.Number(0, high), trials=2, samples=200)
            return em.audit(make(5.0), finder, "eps=1", samples=500, seed=0, checkpoint=path)

        search(1, tmp_path / "c")
        search(1, tmp_path / "c")
        with pytest.raises(em.InputError, match="inputs"):
            search(2, tmp_path / "c")


class TestReplay:
    def stored(self, pair):
        def total(x, rng):
            return float(np.sum(x)) + rng.laplace(scale=0.1)

        result = em.audit(total, pair, "eps=1", samples=2000, seed=0)
        return em.AuditResult.from_json(result.to_json()), total

    def test_other_inputs_are_refused(self):
        far, other = np.zeros(50_000), np.zeros(50_000)
        far[25_000], other[25_001] = 1.0, 1.0
        stored, total = self.stored((np.zeros(50_000), far))
        assert em.replay(
            stored, total, samples=1000, seed=1, pair=(np.zeros(50_000), far)
        ).is_refuted
        for pair in (
            (np.zeros(50_000), other),
            (far, np.zeros(50_000)),
            (np.zeros(50_000, np.float32), far),
        ):
            with pytest.raises(em.InputError, match="not that of the stored result"):
                em.replay(stored, total, samples=1000, seed=1, pair=pair)

    def test_also_where_the_inputs_are_stored(self):
        stored, total = self.stored((0, 1))
        assert em.replay(stored, total, samples=1000, seed=1, pair=(0, 1)).is_refuted
        with pytest.raises(em.InputError, match="right input is not that"):
            em.replay(stored, total, samples=1000, seed=1, pair=(0, 2))

    def test_what_cannot_be_recognised_is_refused(self):
        connection = sqlite3.connect(":memory:")
        stored, total = self.stored(([0], [1]))
        with pytest.raises(em.InputError, match="is the stored one is unknown"):
            em.replay(stored, total, samples=1000, seed=1, pair=([0], connection))

    def test_the_inputs_come_back_with_their_types(self):
        stored, _ = self.stored(((0, 1), (1, 1)))
        assert stored.witness.pair == em.Pair((0, 1), (1, 1))
        data = json.loads(stored.to_json())["witness"]["pair"]
        assert data["left"]["digest"] == em.Pair((0, 1), 0).digest[0]


def leaks():
    """Inside of a function, so that workers get them as they are instead of importing this file."""

    def eats(rows):
        total = 0.0
        while rows:
            total += rows.pop()
        return total

    def scales(rows):
        rows *= 0.5
        return float(rows.sum())

    def nested(rows):
        return sum(row.pop("x") for row in rows["rows"] if "x" in row)

    return {
        "eats": (eats, [1.0, 5.0], [1.0, 0.0]),
        "scales": (scales, np.array([1.0, 20.0]), np.array([1.0, 0.0])),
        "nested": (nested, {"rows": [{"x": 1.0}, {"x": 5.0}]}, {"rows": [{"x": 1.0}, {"x": 0.0}]}),
    }


class TestCallsLeaveNothingBehind:
    """Each of these leaks; what a call does to its dataset must not hide it from the next."""

    @pytest.mark.parametrize("name", ["eats", "scales", "nested"])
    @pytest.mark.parametrize(
        "keywords",
        [{}, {"stop_early": True}, {"jobs": 2}, {"method": "hockey-stick"}],
        ids=lambda each: str(each),
    )
    def test_a_leak_stays_visible(self, name, keywords):
        leak, left, right = leaks()[name]
        before = em.Pair(left, right).digest
        claim = em.ApproxDP(1.0, 0.01) if "method" in keywords else em.PureDP(1.0)
        result = em.audit(
            lambda x, rng: leak(x) + rng.laplace(scale=0.1),
            (left, right),
            claim,
            samples=1500,
            seed=0,
            **keywords,
        )
        assert result.is_refuted
        assert em.Pair(left, right).digest == before

    def test_batches_and_other_objects(self):
        eats = leaks()["eats"][0]

        class Randomiser:
            def randomise(self, rows):
                return eats(rows) + np.random.default_rng().laplace(scale=0.1)

        def batch(rows, n, rng):
            return eats(rows) + rng.laplace(scale=0.1, size=n)

        for mechanism in (em.from_batch(batch), Randomiser(), em.repeated(em.from_batch(batch), 2)):
            pair = em.Pair([1.0, 5.0], [1.0, 0.0])
            assert em.audit(mechanism, pair, em.PureDP(1.0), samples=1500, seed=0).is_refuted
            assert pair == em.Pair([1.0, 5.0], [1.0, 0.0])

    def test_a_generator_inside_the_input_goes_on(self):
        class Model:
            def __init__(self, mean):
                self.mean, self.rng = mean, np.random.default_rng(0)

            def release(self):
                return self.mean + self.rng.laplace()

        result = em.audit(
            Model.release, (Model(0.0), Model(1.0)), em.PureDP(1.0), samples=4000, seed=0
        )
        assert result.verdict is em.Verdict.NOT_REFUTED
        assert result.health == ()

    def test_shared_parts_are_told(self):
        connection = sqlite3.connect(":memory:")
        pair = em.Pair((0, connection), (1, connection))
        result = em.audit(
            lambda x, rng: rng.laplace(x[0]), pair, em.PureDP(1.0), samples=1000, seed=0
        )
        assert [(each.name, each.untrusted) for each in result.health] == [("shared-input", False)]
        assert "Connection" in result.health[0].message
        assert "shared-input" in str(result)

    @pytest.mark.parametrize(
        "wrap",
        [iter, lambda x: (each for each in x), lambda x: [iter(x)], lambda x: {"a": iter(x)}],
    )
    def test_one_shot_inputs(self, wrap):
        for pair in (
            em.Pair(wrap([1]), wrap([2])),
            (wrap([1]), wrap([2])),
            [(0, 1), (wrap([1]), [2])],
        ):
            with pytest.raises(em.InputError, match="only once"):
                em.audit(lambda x: 1, pair, em.PureDP(1.0), samples=1000)


class TestBuffers:
    @pytest.mark.parametrize("kind", ["array", "list", "dict", "nested", "view"])
    @pytest.mark.parametrize("keywords", [{}, {"stop_early": True}], ids=str)
    def test_one_buffer_again_and_again(self, kind, keywords):
        rng = np.random.default_rng(4)
        buffers = {
            "array": np.zeros(1), "list": [0.0], "dict": {0: 0.0}, "nested": (np.zeros(1), "x"),
            "view": np.zeros(1),
        }  # fmt: skip
        buffer = buffers[kind]

        def reuse(x):
            value = x + rng.laplace(scale=0.2)
            place = buffer[0] if kind == "nested" else buffer
            place[0] = value
            return {"v": buffer[0]} if kind == "dict" else buffer[:] if kind == "view" else buffer

        assert em.audit(reuse, (0, 1), em.PureDP(1.0), samples=2000, seed=0, **keywords).is_refuted

    def test_a_batch_that_yields_its_buffer(self):
        def batch(x, n, rng):
            buffer = np.zeros(1)
            for value in rng.laplace(x, 0.2, n):
                buffer[0] = value
                yield buffer

        assert em.audit(
            em.from_batch(batch), (0, 1), em.PureDP(1.0), samples=2000, seed=0
        ).is_refuted

    def test_a_batch_that_reuses_its_block(self):
        block = np.zeros(1 << 16)

        def batch(x, n, rng):
            block[:n] = rng.laplace(x, 0.2, n)
            return block[:n]

        fresh = em.from_batch(lambda x, n, rng: rng.laplace(x, 0.2, n), name="batch")
        results = [
            em.audit(each, (0, 1), em.PureDP(1.0), samples=150_000, seed=0)
            for each in (em.from_batch(batch), fresh)
        ]
        assert results[0].lower_bound == results[1].lower_bound


class TestOneAnswerForEver:
    @pytest.mark.parametrize(
        "keywords", [{}, {"stop_early": True}, {"method": "hockey-stick"}], ids=str
    )
    def test_the_result_says_so(self, keywords):
        rng = np.random.default_rng(0)
        memoised = functools.lru_cache(lambda x: float(x + rng.laplace()))
        claim = em.ApproxDP(1.0, 0.01) if "method" in keywords else em.PureDP(1.0)
        result = em.audit(memoised, (0, 1), claim, samples=500, seed=0, **keywords)
        (report,) = [each for each in result.health if each.name == "constant"]
        assert "one and the same answer" in report.message
        assert "memoised" in str(result)

    def test_a_replay_says_so_too(self):
        answers = {0: 0.3, 1: 0.9}
        result = em.audit(answers.get, (0, 1), em.PureDP(1.0), samples=500, seed=0, constant="leak")
        again = em.replay(result, answers.get, samples=500, seed=1, constant="ask")
        assert again.verdict is em.Verdict.INCONCLUSIVE
        assert "memoised" in str(again)


EQUAL = [
    1,
    1.5,
    float("nan"),
    "a",
    [1, [2]],
    {"a": (1, 2)},
    np.arange(5000),
    np.array(["a"], object),
    None,
    {1, 2},
]


class TestControls:
    @pytest.mark.parametrize("value", EQUAL, ids=lambda value: type(value).__name__)
    def test_equal_inputs_are_refused(self, value):
        noise = lambda x, rng: rng.laplace()  # noqa: E731
        other = copy.deepcopy(value)
        for inputs in (
            em.Pair(value, other),
            (value, other),
            [(0, 1), (value, other)],
            em.Pair(value, value),
        ):
            with pytest.raises(em.InputError, match="equal=True"):
                em.audit(noise, inputs, em.PureDP(1.0), samples=2000)
            with pytest.raises(em.InputError, match="equal=True"):
                em.measure(noise, inputs, em.PureDP, samples=2000)
        control = em.Pair(value, other, equal=True)
        result = em.audit(noise, control, em.PureDP(1.0), samples=500, seed=0)
        assert result.verdict is em.Verdict.NOT_REFUTED
        stored = json.dumps(
            result.findings[0].to_dict()
        )  # not the whole result: what is detectable takes a second
        assert Finding.from_dict(json.loads(stored)).witness.pair.equal

    @pytest.mark.parametrize(
        "pair",
        [
            (0.0, -0.0),
            (1, 1.0),
            (1, True),
            ([1], (1,)),
            (np.float32(1), np.float64(1)),
            (np.zeros(2), np.zeros((2, 1))),
        ],
        ids=str,
    )
    def test_what_a_mechanism_can_tell_apart_is_a_pair(self, pair):
        em.audit(lambda x, rng: rng.laplace(), pair, em.PureDP(1.0), samples=200, seed=0)

    def test_what_cannot_be_recognised_is_no_reason_to_refuse(self):
        pair = threading.Lock(), threading.Lock()
        em.audit(lambda x, rng: rng.laplace(), pair, em.PureDP(1.0), samples=200, seed=0)

    def test_a_finder_may_propose_equal_inputs(self):
        class Proposals:
            trials, samples, stop_at_refutation = 3, 200, True

            def __init__(self, pairs):
                self.pairs, self.told = pairs, []

            def ask(self):
                return self.pairs[len(self.told)] if len(self.told) < len(self.pairs) else None

            def tell(self, score):
                self.told.append(score)

            def state(self):
                return {}

            def restore(self, state):
                pass

            def describe(self):
                return {"name": "proposals"}

        finder = Proposals([em.Pair(0, 0), em.Pair(0, 1), em.Pair(1, 1)])
        result = em.audit(make(0.1), finder, em.PureDP(1.0), samples=1000, seed=0)
        assert result.is_refuted
        assert result.witness.pair == em.Pair(0, 1)
        with pytest.raises(em.InputError, match="no pair whose inputs differ"):
            em.audit(make(0.1), Proposals([em.Pair(0, 0)]), em.PureDP(1.0), samples=1000)


class TestForgottenReturn:
    def test_a_function_without_return(self):
        calls = []

        def forgot(x, rng):
            calls.append(x)
            x + rng.laplace()

        for keywords in ({}, {"stop_early": True}, {"method": "profile"}):
            with pytest.raises(em.MechanismError, match=r"forgot.*`return`"):
                em.audit(forgot, (0, 1), em.GaussianDP(1.0), samples=100_000, **keywords)
        assert len(calls) < 2000  # not after all draws

    @pytest.mark.parametrize(
        "keywords", [{}, {"stop_early": True}, {"method": "profile"}, {"jobs": 2}], ids=str
    )
    def test_where_the_code_does_not_say_so(self, keywords):
        with pytest.raises(em.MechanismError, match="`return`"):
            em.audit(
                functools.partial(lambda x: {}.get(x)),
                (0, 1),
                em.GaussianDP(1.0),
                samples=500,
                **keywords,
            )

    def test_batches(self):
        with pytest.raises(em.MechanismError, match="`return`"):
            em.audit(em.from_batch(lambda x, n, rng: None), (0, 1), em.PureDP(1.0), samples=500)
        with pytest.raises(em.MechanismError, match="`return`"):
            em.audit(
                em.from_batch(lambda x, n, rng: [None] * n), (0, 1), em.PureDP(1.0), samples=500
            )

    def test_none_is_an_output(self):
        one_side = em.audit(
            lambda x, rng: None if x else 1, (0, 1), em.PureDP(1.0), samples=500, seed=0
        )
        assert one_side.is_refuted
        rare = em.audit(
            lambda x, rng: None if rng.random() < 0.9 else 1,
            (0, 1),
            em.PureDP(1.0),
            samples=500,
            seed=0,
        )
        assert rare.verdict is em.Verdict.NOT_REFUTED

    def test_a_failed_run_is_an_outcome(self):
        def fails(x, rng):
            if x:
                raise ValueError

        result = em.audit(
            em.from_callable(fails, on_error="outcome"), (0, 1), em.PureDP(1.0), samples=500, seed=0
        )
        assert result.is_refuted


class Fixed(Mechanism):
    """A mechanism that is no function."""

    name, is_seeded, chunk_size = "fixed", True, 100

    def sample(self, dataset, n, rng):
        return read_outputs(dataset + rng.laplace(size=n))


@pytest.mark.parametrize("mechanism", [make(1.0), Fixed()], ids=["function", "other"])
def test_the_code_is_identified_while_the_mechanism_is_at_hand(monkeypatch, mechanism):
    # A function, or what it uses, may be changed later; the result is about the code that was run.
    digests = iter(["of the code that was run", "of other code"])
    monkeypatch.setattr(Mechanism, "digest", lambda self: next(digests))
    result = em.audit(mechanism, (0, 1), em.PureDP(1.0), samples=100, seed=0)
    assert result.identity["code_digest"] == "of the code that was run"
    assert result.identity["code_digest"] == "of the code that was run"


class TestCodeDigest:
    """The digest is of the user's code: options and places of installation do not change it."""

    @pytest.mark.parametrize(
        "settings",
        [{"stop_early": True}, {"samples": 90}, {"method": "profile"}, {"confidence": 0.9}],
        ids=str,
    )
    def test_options_do_not_change_it(self, settings):
        function = make(1.0)
        plain = em.audit(function, (0, 1), CLAIM, samples=60, seed=0)
        changed = em.audit(function, (0, 1), CLAIM, **{"samples": 60, "seed": 0, **settings})
        assert plain.identity["code_digest"] == changed.identity["code_digest"]

    def test_the_zoo_has_one_wherever_it_is_installed(self, monkeypatch):
        from epsilometer.storage import canonical_encoding

        mechanism = em.zoo.laplace().mechanism
        in_checkout = mechanism.digest()
        monkeypatch.setattr(canonical_encoding, "_is_installed", lambda file: True)
        canonical_encoding.is_own.cache_clear()
        try:
            assert mechanism.digest() == in_checkout
        finally:
            canonical_encoding.is_own.cache_clear()
