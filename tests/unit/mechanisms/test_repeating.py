"""Several runs as one output."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms.repeating import gather
from epsilometer.outputs import read_outputs


def test_outputs_of_one_shape():
    outputs = gather(read_outputs(np.arange(6.0)), 3)
    (block,) = outputs.blocks
    assert (len(outputs), block.shape) == (2, "list(3 × float)")
    assert [column.values.tolist() for column in block.columns] == [
        [0.0, 3.0],
        [1.0, 4.0],
        [2.0, 5.0],
    ]


def test_outputs_of_several_shapes_keep_their_order():
    outputs = gather(read_outputs([1.0, None, 2.0, 3.0, None, None]), 2)
    assert len(outputs) == 3
    found = {
        block.shape: ([0, 1, 2] if block.rows is None else block.rows.tolist())
        for block in outputs.blocks
    }
    assert found == {"list(float, None)": [0], "list(2 × float)": [1], "list(2 × None)": [2]}


def test_an_entry_keeps_its_pair_and_composes_its_claim():
    entry = em.repeated(em.zoo.laplace(epsilon=0.5), 3)
    assert entry.claim == em.PureDP(1.5)
    result = em.audit(entry, samples=4000, seed=0)
    assert not result.is_refuted
    assert result.lower_bound > 0.8  # far above the 0.5 of one run


def test_a_function_is_wrapped():
    mechanism = em.repeated(lambda dataset, rng: rng.random() < dataset, 2)
    drawn = mechanism.sample(0.5, 10, np.random.default_rng(0))
    assert len(drawn) == 10
    assert mechanism.name.startswith("2 runs of")


@pytest.mark.parametrize("times", [0, 1.5, True, 10**6])
def test_wrong_numbers(times):
    with pytest.raises(em.InputError, match="times="):
        em.repeated(em.zoo.laplace(), times)
