"""Answers that never change: a leak without noise, or noise that is drawn once and kept."""

import functools
import math
import os
import random
import sys
from dataclasses import replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing import constancy
from epsilometer.auditing.constancy import SideAnswers, examine_constancy
from epsilometer.engine.fresh_process import can_be_renewed, fresh_answers
from epsilometer.mechanisms.functions import as_mechanism
from epsilometer.outputs import read_outputs

PAIR = em.Pair(0, 1)
CLAIM = em.PureDP(1.0)
MODES = pytest.mark.parametrize("mode", [{}, {"stop_early": True}], ids=["plain", "stop_early"])
# Functions of a module of their own, which a fresh process imports quickly.
MODULE = """
import functools
import random
import time

import numpy as np

_generator = np.random.default_rng(0)
_kept = {}


@functools.lru_cache
def memoised(x):
    return x + random.gauss(0.0, 5.0)


@functools.lru_cache
def memoised_with_fixed_seed(x):
    return x + float(_generator.laplace())


def memoised_in_spite_of_rng(x, rng):
    return _kept.setdefault(x, x + float(rng.laplace()))


def doubled(x):
    return 2.0 * x


def doubled_with_rng(x, rng):
    return 2.0 * x


def frozen(x):
    return x + float(np.random.default_rng(7).laplace())


def scaled(factor, x):
    return factor * x


def many_doubled(x, n):
    return [2.0 * x] * n


def memoised_on_the_left(x):
    return memoised(x) if x == 0 else x + random.gauss(0.0, 5.0)


def exact_word_on_the_left(x):
    return "no" if x == 0 else random.choice(["yes", "no"])


def exact_on_the_left(x):
    return 0.0 if x == 0 else random.gauss(0.0, 5.0)


def printing(x):
    print("noise on standard output")
    return 2.0 * x


"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("constant")
    (folder / "constant_answers.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    import constant_answers  # type: ignore[import-not-found]  # written above

    yield constant_answers
    sys.path.remove(str(folder))
    del sys.modules["constant_answers"]


def audited(function, **settings):
    settings = {"samples": 300, "seed": 0, **settings}
    return em.audit(function, PAIR, CLAIM, **settings)


def remark(result):
    (report,) = [report for report in result.health if report.name == "constant"]
    return report


def constant(left, right, **settings):
    """The examination of hand-made answers."""
    sides = tuple(SideAnswers(read_outputs(answers)) for answers in (left, right))
    settings = {"mechanism": None, "pair": PAIR, "constant": "ask", "seed": 0, **settings}
    return examine_constancy(sides, **{"is_above_claim": True, **settings})


class TestFunctionsOfModules:
    """A fresh process tells memoised noise from the rest."""

    @pytest.mark.parametrize(
        "name", ["memoised", "memoised_with_fixed_seed", "memoised_in_spite_of_rng"]
    )
    def test_kept_noise_is_inconclusive(self, module, name):
        result = audited(getattr(module, name))
        assert result.verdict is em.Verdict.INCONCLUSIVE
        assert "a fresh process gave another one" in remark(result).message
        assert result.settings["constant_test"] == "changed in a fresh process"
        assert em.verify(result).holds

    @pytest.mark.parametrize("name", ["doubled", "frozen", "printing", "doubled_with_rng"])
    def test_what_stays_is_refuted(self, module, name):
        result = audited(getattr(module, name))
        assert result.is_refuted
        assert "a seed that is fixed inside" in remark(result).message
        assert result.settings["constant_test"] == "a fresh process"
        assert em.verify(result).holds

    def test_stopping_early_asks_too(self, module):
        kept = audited(module.memoised, stop_early=True)
        without_noise = audited(module.doubled, stop_early=True)
        assert kept.verdict is em.Verdict.INCONCLUSIVE
        assert without_noise.is_refuted
        assert em.verify(kept).holds

    def test_functions_that_wrap_others(self, module):
        for mechanism in (
            functools.partial(module.scaled, 3.0),
            em.from_batch(module.many_doubled),
            em.repeated(module.doubled, 2),
        ):
            assert audited(mechanism).settings["constant_test"] == "a fresh process"

    def test_a_recorded_audit_asks_too(self, module, tmp_path):
        path = tmp_path / "draws.jsonl"
        assert audited(module.doubled, record=path).is_refuted
        again = em.audit(em.from_recording(path), None, CLAIM, samples=300, seed=0)
        assert again.verdict is em.Verdict.INCONCLUSIVE
        assert "recorded outputs cannot be drawn again" in remark(again).message
        told = em.audit(em.from_recording(path), None, CLAIM, samples=300, seed=0, constant="leak")
        assert told.is_refuted

    def test_one_constant_number_is_asked_about(self, module):
        kept = audited(module.memoised_on_the_left, samples=1000)
        exact = audited(module.exact_on_the_left, samples=1000)
        assert kept.verdict is em.Verdict.INCONCLUSIVE
        assert "the left input always got" in remark(kept).message
        assert exact.is_refuted
        assert exact.settings["constant_test"] == "a fresh process"

    def test_one_constant_word_is_asked_about_where_that_is_possible(self, module, monkeypatch):
        """Also if the other input gets the same word: a fresh process may give another one."""
        exact = audited(module.exact_word_on_the_left, samples=1000)
        assert exact.is_refuted
        assert exact.settings["constant_test"] == "a fresh process"
        assert em.verify(exact).holds
        # Which word is kept is chance; what the fresh process says is not, here.
        changed = constancy._Evidence(constancy.CHANGED, ", but a fresh process gave another one")
        monkeypatch.setattr(constancy, "_test", lambda *_: changed)
        sides = (["yes"] * 50, ["yes", "no"] * 25)
        assert constant(*sides).reports[0].untrusted
        assert constant(*sides, constant="leak").reports == ()

    def test_a_replay_asks_too(self, module):
        found = audited(module.memoised, constant="leak")
        assert found.is_refuted
        again = em.replay(found, module.memoised, samples=300, seed=1)
        assert again.is_refuted
        assert again.settings["constant"] == "leak"
        asked = em.replay(found, module.memoised, samples=300, seed=1, constant="ask")
        assert asked.verdict is em.Verdict.INCONCLUSIVE
        assert em.replay(audited(module.doubled), module.doubled, samples=300, seed=1).is_refuted

    def test_a_search_asks_too(self, module):
        domain = em.domains.Vector(1, 0, 1)

        def inconclusive(function):
            return em.audit(function, domain, CLAIM, samples=300, seed=0).verdict

        assert inconclusive(lambda x: float(x[0])) is em.Verdict.INCONCLUSIVE
        assert inconclusive(lambda x, rng: float(x[0])) is em.Verdict.REFUTED

    def test_a_profile_asks_too(self, module):
        kept = em.profile(module.memoised, PAIR, samples=300, seed=0)
        without_noise = em.profile(module.doubled, PAIR, samples=300, seed=0)
        assert kept.check(CLAIM).verdict is em.Verdict.INCONCLUSIVE
        assert str(kept).startswith("The draws cannot be trusted")
        assert without_noise.check(CLAIM).verdict is em.Verdict.REFUTED
        told = em.profile(module.memoised, PAIR, samples=300, seed=0, constant="leak")
        assert told.check(CLAIM).verdict is em.Verdict.REFUTED

    def test_a_measurement_says_so(self, module):
        kept = em.measure(module.memoised, PAIR, samples=300, seed=0)
        assert remark(kept).untrusted
        assert str(kept).startswith("MEASURED, but not to be trusted")
        assert not remark(em.measure(module.doubled, PAIR, samples=300, seed=0)).untrusted


class TestFreshProcess:
    def test_it_needs_a_function_of_a_module(self, module):
        class Service:
            def __call__(self, x):
                return x

            def answer(self, x):
                return x

        for function in (module.doubled, module.memoised, functools.partial(module.scaled, 2)):
            assert can_be_renewed(as_mechanism(function))
        for function in (
            lambda x: x,
            Service(),
            Service().answer,
            functools.partial(module.scaled, Service()),
            {0: 1}.get,
        ):
            assert not can_be_renewed(as_mechanism(function))

    def test_what_cannot_be_imported_there_gives_no_answer(self, module, monkeypatch):
        monkeypatch.setattr(sys, "path", sys.path[1:])
        assert (
            fresh_answers(as_mechanism(module.doubled), [0, 1], 60.0, seed=0) is not None
        )  # by its file
        monkeypatch.setattr(module, "__file__", None)
        assert fresh_answers(as_mechanism(module.doubled), [0, 1], 60.0, seed=0) is None

    def test_it_is_not_started_inside_itself(self, module, monkeypatch):
        monkeypatch.setitem(os.environ, "EPSILOMETER_FRESH_PROCESS", "1")
        assert not can_be_renewed(as_mechanism(module.doubled))

    def test_too_little_time_is_no_answer(self, module):
        assert fresh_answers(as_mechanism(module.doubled), [0, 1], 1e-3, seed=0) is None


class TestWhatNothingCanTest:
    @MODES
    def test_it_is_inconclusive_with_what_to_do(self, mode):
        memoised = functools.lru_cache(lambda x: x + random.gauss(0.0, 5.0))
        result = audited(memoised, **mode)
        assert result.verdict is em.Verdict.INCONCLUSIVE
        assert result.p_value is None
        message = remark(result).message
        assert "constant='leak'" in message
        assert "parameter rng" in message
        assert em.verify(result).holds
        text = " ".join(str(result).split())
        assert text.startswith("INCONCLUSIVE")
        assert "say constant='leak' (--constant leak)" in text  # what to do is not cut off

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: float(x),
            lambda x: math.nan if x else 0.0,
            lambda x: None if x else "x",
            lambda x: [1] * x,
        ],
    )
    @MODES
    def test_a_generator_of_ours_tells(self, function, mode):
        def with_rng(x, rng):
            return function(x)

        assert audited(function, **mode).verdict is em.Verdict.INCONCLUSIVE
        result = audited(with_rng, **mode)
        assert result.is_refuted
        assert "whichever fresh generator was passed" in remark(result).message
        assert result.settings["constant_test"] == "fresh generators"

    def test_equal_answers_refute_nothing(self):
        result = audited(lambda x: 3.0)
        assert result.verdict is em.Verdict.NOT_REFUTED
        assert not remark(result).untrusted
        assert "constant_test" not in result.settings

    def test_nan_is_one_value(self):
        examined = constant([math.nan] * 5, [math.nan] * 5)
        assert [report.untrusted for report in examined.reports] == [False]

    def test_two_recorded_samples(self):
        left = np.zeros(100)
        right = np.ones(100)
        result = em.compare(left, right, CLAIM, seed=0)
        assert result.verdict is em.Verdict.INCONCLUSIVE
        assert "recorded outputs cannot be drawn again" in remark(result).message
        assert em.compare(left, right, CLAIM, seed=0, constant="leak").is_refuted
        assert em.compare(left, left, CLAIM, seed=0).verdict is em.Verdict.NOT_REFUTED

    def test_an_object_of_a_library(self):
        class Randomiser:
            def randomise(self, value):
                return value

        assert audited(Randomiser()).verdict is em.Verdict.INCONCLUSIVE


class TestConstantLeak:
    def test_the_ordinary_verdict_stands_on_record(self):
        result = audited(lambda x: float(x), constant="leak")
        assert result.is_refuted
        assert result.settings["constant"] == "leak"
        assert "constant" not in audited(lambda x, rng: float(rng.laplace())).settings
        assert "constant answers taken for a leak without noise" in str(result)
        assert "taken for a leak without noise" in str(em.verify(result))
        assert em.verify(result).holds
        assert em.AuditResult.from_json(result.to_json()).settings["constant"] == "leak"

    def test_another_word_is_refused(self):
        with pytest.raises(em.InputError, match="constant='yes' must be 'ask' or 'leak'"):
            audited(lambda x: x, constant="yes")

    def test_a_check_that_is_switched_off_is_on_record(self):
        result = audited(lambda x: float(x), suppress=["constant"])
        assert result.is_refuted
        assert result.settings["silenced"] == ["constant"]
        assert em.verify(result).holds


class TestOneConstantAnswer:
    def test_a_number_may_be_kept_noise(self):
        varying = np.linspace(-1.0, 1.0, 50)
        examined = constant([0.25] * 50, varying)
        assert examined.tested_by == "untested"
        assert "the left input always got" in examined.reports[0].message
        assert "the right input" in constant(varying, [0.25] * 50).reports[0].message

    @pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x, x), lambda x: {"total": x}])
    def test_a_whole_number_is_a_number(self, wrap):
        """Services and files write 5.0 as 5."""
        varying = [wrap(value) for value in np.linspace(-1.0, 1.0, 50).tolist()]
        assert constant([wrap(5)] * 50, varying).tested_by == "untested"

    @pytest.mark.parametrize(
        "answer", [None, math.nan, math.inf, "refused", [], {}, [0.5, 0.5], True]
    )
    def test_another_kind_is_no_noise(self, answer):
        assert constant([answer] * 50, np.linspace(-1.0, 1.0, 50)).reports == ()

    def test_a_text_that_the_other_gets_too_is_no_kept_noise(self):
        assert constant(["a"] * 50, ["a", "b"] * 25).reports == ()
        assert constant(["c"] * 50, ["a", "b"] * 25).tested_by == "untested"

    def test_without_a_refutation_it_does_not_matter(self):
        assert constant([0.0] * 50, [0.0, 1.0] * 25, is_above_claim=False).reports == ()
        assert constant([0.0] * 50, [0.0, 1.0] * 25).tested_by == "untested"

    def test_a_generator_of_ours_makes_it_natural(self):
        mechanism = as_mechanism(lambda x, rng: x)
        assert constant([0.0] * 50, [0.0, 1.0] * 25, mechanism=mechanism).reports == ()

    def test_answers_that_vary_are_no_matter(self):
        assert constant([0.0, 1.0] * 25, [0.0, 1.0] * 25).reports == ()
        assert constant([], []).reports == ()
        assert constant([0.0], [1.0]).reports == ()

    def test_every_draw_counts(self):
        heads = [np.array([1, 1, 2], dtype=np.uint64)]
        assert SideAnswers(read_outputs([]), heads).only_hash() is None
        assert SideAnswers(read_outputs([]), [heads[0][:2]]).only_hash() == 1


@pytest.fixture(scope="module")
def honest():
    result = audited(lambda x: float(x))
    assert em.verify(result).holds
    return result


class TestForgery:
    def forged(self, honest, **changes):
        document = honest.to_dict()
        document["verdict"] = "refuted"
        document.update(changes)
        return em.verify(document)

    def test_a_verdict_alone(self, honest):
        assert self.forged(honest).holds is False

    def test_a_remark_made_harmless(self, honest):
        report = replace(remark(honest), untrusted=False)
        assert self.forged(honest, health=[report.to_dict()]).holds is False

    def test_a_remark_removed(self, honest):
        assert self.forged(honest, health=[]).holds is False

    @pytest.mark.parametrize("test", ["fresh generators", "by hand", None])
    def test_a_test_that_never_was(self, honest, test):
        report = replace(remark(honest), untrusted=False)
        settings = {**honest.settings, "constant_test": test}
        check = self.forged(honest, health=[report.to_dict()], settings=settings)
        assert check.holds is False
