import functools
import operator

import numpy as np
import pytest

from epsilometer import zoo
from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms import Mechanism, as_mechanism, from_batch, from_callable
from epsilometer.testing import Coin, miscounting, raising


@pytest.fixture
def generator():
    return np.random.default_rng(1)


class TestSingle:
    def test_plain_function(self, generator):
        mechanism = from_callable(lambda dataset: dataset + 1)
        assert not mechanism.is_seeded
        assert mechanism.sample(2.0, 3, generator).blocks[0].columns[0].values.tolist() == [3.0] * 3

    def test_rng_by_name_only(self, generator):
        assert from_callable(lambda dataset, rng: rng.random()).is_seeded
        assert from_callable(lambda dataset, *, rng: rng.random()).is_seeded
        assert not from_callable(lambda dataset, random=None: 0).is_seeded
        drawn = from_callable(lambda dataset, rng: rng.random()).sample(
            0, 2, np.random.default_rng(1)
        )
        assert drawn.blocks[0].columns[0].values.tolist() == generator.random(2).tolist()

    def test_any_callable(self, generator):
        class Method:
            def __call__(self, dataset, rng):
                return rng.integers(dataset)

        assert from_callable(Method()).is_seeded
        assert from_callable(functools.partial(operator.add, 1)).sample(2, 1, generator).size == 1
        assert from_callable(abs).sample(-2, 1, generator).size == 1
        assert from_callable(max).sample([1, 2], 1, generator).size == 1

    def test_names(self):
        def noisy_count(dataset):
            return 0

        assert "noisy_count" in from_callable(noisy_count).name
        assert from_callable(noisy_count, name="mine").name == "mine"
        assert from_callable(functools.partial(noisy_count)).name.endswith(".noisy_count")

    def test_failure_names_input_and_cause(self, generator):
        cause = KeyError("missing column")
        with pytest.raises(
            MechanismError, match=r"raising raised KeyError on the input 17: .*missing column"
        ) as caught:
            raising(cause).sample(17, 1, generator)
        assert caught.value.__cause__ is cause

    def test_failure_with_hostile_and_long_inputs(self, generator):
        class Hostile:
            def __repr__(self):
                raise RuntimeError

        for dataset in (Hostile(), "x" * 10_000):
            with pytest.raises(MechanismError) as caught:
                raising(ValueError("y" * 10_000)).sample(dataset, 1, generator)
            assert len(str(caught.value)) < 500

    def test_failures_as_outcomes(self, generator):
        def fails(dataset, rng):
            if rng.random() < 0.5:
                raise ValueError("unlucky") if rng.random() < 0.5 else KeyError("other")
            return 1.0

        outputs = from_callable(fails, on_error="outcome").sample(0, 200, generator)
        assert len(outputs) == 200
        labels = {
            label
            for block in outputs
            for column in block.columns
            if hasattr(column, "labels")
            for label in column.labels
        }
        assert labels == {"ValueError", "KeyError"}

    def test_interrupts_are_not_swallowed(self, generator):
        def interrupted(dataset):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            from_callable(interrupted, on_error="outcome").sample(0, 1, generator)

    @pytest.mark.parametrize("on_error", ["ignore", None, ""])
    def test_on_error_is_checked(self, on_error):
        with pytest.raises(InputError, match="on_error="):
            from_callable(abs, on_error=on_error)


class TestBatch:
    def test_called_once(self, generator):
        calls = []

        def batch(dataset, n, rng):
            calls.append((dataset, n))
            return rng.random(n)

        assert len(from_batch(batch).sample("d", 50, generator)) == 50
        assert calls == [("d", 50)]

    @pytest.mark.parametrize("extra", [-1, 1, 1000])
    def test_wrong_number_of_outputs(self, extra, generator):
        with pytest.raises(
            MechanismError, match=f"returned {50 + extra} outputs where 50 were asked for"
        ):
            miscounting(extra).sample(0, 50, generator)

    @pytest.mark.parametrize("value", [None, 3, "text", {1, 2}, object()])
    def test_what_is_no_batch(self, value, generator):
        with pytest.raises(MechanismError):
            from_batch(lambda dataset, n, rng: value).sample(0, 2, generator)

    def test_failure_names_input_and_cause(self, generator):
        def fails(dataset, n, rng):
            return 1 / 0

        with pytest.raises(MechanismError, match="ZeroDivisionError on the input 'd'") as caught:
            from_batch(fails).sample("d", 5, generator)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def test_columns(self, generator):
        outputs = from_batch(lambda dataset, n, rng: {"x": rng.random(n), "y": ["a"] * n}).sample(
            0, 4, generator
        )
        assert [len(block.columns) for block in outputs] == [2]


class TestAsMechanism:
    def test_what_is_one(self):
        mechanism = from_callable(abs)
        assert as_mechanism(mechanism) is mechanism
        assert as_mechanism(abs).name == "abs"
        assert isinstance(as_mechanism(zoo.laplace(epsilon=1.0)), Mechanism)
        assert as_mechanism(Coin(0.5, 0.4)).name == "coin(0.5, 0.4)"

    @pytest.mark.parametrize("thing", [None, 3, "zoo:laplace", [], object()])
    def test_what_is_none(self, thing):
        with pytest.raises(InputError, match="mechanism="):
            as_mechanism(thing)

    @pytest.mark.parametrize("make", [from_callable, from_batch])
    def test_not_callable(self, make):
        with pytest.raises(InputError, match="callable"):
            make(3)
