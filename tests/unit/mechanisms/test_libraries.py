"""Objects as mechanisms, without any other package."""

import pickle

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms import as_mechanism


class British:
    def randomise(self, value, rng):
        return value + rng.integers(3)

    def __call__(self, value):
        raise AssertionError("randomise comes first")


class American:
    def randomize(self, value):
        return value


class Callable:
    def __call__(self, value):
        return [value, value]


def draw(candidate, dataset=1, n=5):
    return as_mechanism(candidate).sample(dataset, n, np.random.default_rng(0))


def test_randomise_randomize_and_call():
    assert as_mechanism(British()).is_seeded
    assert not as_mechanism(American()).is_seeded
    assert [draw(each).blocks[0].shape for each in (British(), American(), Callable())] == [
        "int",
        "int",
        "list(2 × int)",
    ]
    assert as_mechanism(American()).name == "American"


def test_seeded_objects_are_repeatable():
    first, again = (draw(British(), n=50).blocks[0].columns[0].values for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_objects_go_to_workers():
    assert (
        len(
            pickle.loads(pickle.dumps(as_mechanism(American()))).sample(
                0, 3, np.random.default_rng(0)
            )
        )
        == 3
    )


def test_errors_name_the_object_and_the_input():
    with pytest.raises(em.MechanismError, match="British raised TypeError on the input 'x'"):
        draw(British(), "x")


def test_what_is_no_mechanism():
    with pytest.raises(em.InputError, match="nor an object with a method randomise"):
        as_mechanism(3)


def test_an_object_without_a_claim_needs_one():
    with pytest.raises(em.InputError, match="claim=None"):
        em.audit(American(), em.Pair(0, 1))
