import math

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Numbers, Outputs, concatenate, read_outputs

MIXED = [1.5, None, "a", 2.5, ("b", 1), "b", None, 3.5]


def shapes(outputs):
    return {block.shape: block.size for block in outputs}


def test_take_keeps_order_and_repeats():
    outputs = read_outputs([1.0, 2.0, 3.0]).take(np.array([2, 0, 0]))
    assert len(outputs) == 3
    assert outputs.blocks[0].columns[0].values.tolist() == [3.0, 1.0, 1.0]


def test_take_of_mixed_shapes():
    outputs = read_outputs(MIXED)
    taken = outputs.take(np.array([5, 1, 0, 5]))
    assert {name: size for name, size in shapes(taken).items() if size} == {
        "str": 2,
        "None": 1,
        "float": 1,
    }
    texts = next(block for block in taken if block.shape == "str")
    assert texts.rows.tolist() == [0, 3]
    assert [texts.columns[0].labels[code] for code in texts.columns[0].codes] == ["b", "b"]


def test_take_forgets_what_came_first_before():
    """Blocks and labels come in the order of the outputs that were asked for."""
    taken = read_outputs(MIXED).take(np.array([4, 5, 1, 0, 2, 4]))
    assert [block.shape for block in taken] == ["tuple(str, int)", "str", "None", "float"]
    words = read_outputs(["a", "b", "c", "b"]).take(np.array([3, 2, 1]))
    assert words.blocks[0].columns[0].labels[:2] == ("b", "c")
    assert [
        words.blocks[0].columns[0].labels[code] for code in words.blocks[0].columns[0].codes
    ] == ["b", "c", "b"]


@pytest.mark.parametrize(
    "rows", [slice(2, 5), slice(0, 0), slice(None), slice(None, None, 2), slice(-3, None)]
)
def test_slices_are_those_of_lists(rows):
    whole, taken = read_outputs(MIXED), read_outputs(MIXED).take(rows)
    expected = read_outputs(MIXED[rows]) if MIXED[rows] else Outputs((), 0)
    assert len(taken) == len(MIXED[rows])
    assert {k: v for k, v in shapes(taken).items() if v} == shapes(expected)
    assert len(whole) == len(MIXED)


def test_concatenate_joins_tables_of_labels():
    joined = concatenate([read_outputs(["a", "b"]), read_outputs(["c", "b"])])
    column = joined.blocks[0].columns[0]
    assert [column.labels[code] for code in column.codes] == ["a", "b", "c", "b"]
    assert len(set(column.labels)) == len(column.labels)


def test_concatenate_of_different_shapes():
    joined = concatenate([read_outputs([1.0, 2.0]), read_outputs(["x"]), read_outputs([None, 3.0])])
    assert len(joined) == 5
    assert shapes(joined) == {"float": 3, "str": 1, "None": 1}
    assert next(block for block in joined if block.shape == "float").rows.tolist() == [0, 1, 4]


def test_concatenate_with_nothing():
    empty = Outputs((), 0)
    assert len(concatenate([empty, empty])) == 0
    joined = concatenate([empty, read_outputs([1.0])])
    assert shapes(joined) == {"float": 1}


def test_one_shape_never_mixes_numbers_and_labels():
    numbers = Outputs((Block("thing", None, (Numbers(np.zeros(1)),), 1),), 1)
    labels = Outputs((Block("thing", None, (Labels(np.zeros(1, dtype=np.int32), ("a",)),), 1),), 1)
    with pytest.raises(TypeError):
        concatenate([numbers, labels])


def test_numbers_come_in_the_order_of_the_draws():
    outputs = read_outputs([1.5, 2, True, math.nan, -3], expected=5)
    assert len(outputs.blocks) > 1
    np.testing.assert_array_equal(outputs.numbers(), [1.5, 2.0, 1.0, math.nan, -3.0])


@pytest.mark.parametrize("values", [["a", "b"], [(1, 2), (3, 4)], [1.0, None], [1, 10**40]])
def test_numbers_are_refused_for_anything_else(values):
    with pytest.raises(InputError, match="output"):
        read_outputs(values, expected=2).numbers()
