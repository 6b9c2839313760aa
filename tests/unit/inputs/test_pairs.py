import numpy as np
import pandas as pd
import polars as pl
import pytest

from epsilometer.errors import InputError
from epsilometer.inputs import Pair, as_pair, as_pairs
from epsilometer.inputs.pairs import check_datasets


def test_sides():
    assert Pair("l", "r").side(0) == "l"
    assert Pair("l", "r").side(1) == "r"


@pytest.mark.parametrize(
    ("inputs", "pairs"),
    [
        (Pair(0, 1), [Pair(0, 1)]),
        ((0, 1), [Pair(0, 1)]),
        (((0, 1), (2, 3)), [Pair((0, 1), (2, 3))]),
        ([(0, 1)], [Pair(0, 1)]),
        ([(0, 1), Pair(4, 5)], [Pair(0, 1), Pair(4, 5)]),
        (([3, 2], [3, 0]), [Pair([3, 2], [3, 0])]),
        ([([3, 2], [3, 0])], [Pair([3, 2], [3, 0])]),
        (((0, 1), (1, 0)), [Pair((0, 1), (1, 0))]),
        ((Pair(0, 1), Pair(2, 3)), [Pair(0, 1), Pair(2, 3)]),
        (("ab", "cd"), [Pair("ab", "cd")]),
    ],
)
def test_what_is_one_pair_and_what_are_several(inputs, pairs):
    assert as_pairs(inputs) == pairs


@pytest.mark.parametrize(
    ("inputs", "remedy"),
    [
        (None, "em.Pair(left, right)"),
        (0, "em.Pair(left, right)"),
        ("01", "em.Pair(left, right)"),
        (b"01", "em.Pair(left, right)"),
        ([], "em.Pair(left, right)"),
        ((), "em.Pair(left, right)"),
        ([0, 1], "em.Pair(0, 1)"),
        ([[3, 2], [3, 0]], "em.Pair([3, 2], [3, 0])"),
        ([[1, 1], [1, 0]], "em.Pair([1, 1], [1, 0])"),
        ([[0, 1], [2, 3], [4, 5]], "tuples (left, right)"),
        ([(0, 1), [2, 3]], "[2, 3] is neither"),
        ([(0, 1, 2)], "tuples (left, right)"),
        ([{"a": 1}, {"a": 2}], "em.Pair({'a': 1}, {'a': 2})"),
        ({0: 1}, "em.around(data)"),
        ((1, 2, 3), "a list [(left, right), …]"),
        (((0, 1), (1, 2), (2, 3)), "a list [(left, right), …]"),
        (np.zeros(2), "em.around(data)"),
        (Pair, "is a class"),
    ],
    ids=str,
)
def test_what_are_no_inputs(inputs, remedy):
    with pytest.raises(InputError) as error:
        as_pairs(inputs)
    assert remedy in str(error.value)
    assert "\n" not in str(error.value)


def test_a_data_frame_is_one_dataset():
    frame = pd.DataFrame({"user": [1, 1, 2], "amount": [0.25, 0.5, 123.75]})
    for data in (frame, pl.DataFrame({"user": [1], "amount": [123.75]})):
        with pytest.raises(InputError, match=r"em\.around\(df\).*em\.Pair\(df, other\)") as error:
            as_pairs(data)
        assert "123.75" not in str(error.value)  # the columns say which it is, the data does not
    with pytest.raises(InputError, match=r"em\.Pair\(<DataFrame of size 3 × 2"):
        as_pairs([frame, frame])


def test_one_pair():
    assert as_pair((1, 2)) == Pair(1, 2)
    assert as_pair(([1], [2])) == Pair([1], [2])
    for wrong, remedy in [
        ([1, 2], r"em\.Pair\(1, 2\)"),
        (None, r"em\.Pair\(left, right\)"),
        ((1, 2, 3), "a tuple of 3"),
        ("ab", "is not a pair"),
    ]:
        with pytest.raises(InputError, match=remedy):
            as_pair(wrong)


@pytest.mark.parametrize(
    ("dataset", "neighbours"),
    [
        ([1, 2], "ab"),
        ([1, 2], {"a": [1, 3]}),
        ([1, 2], pd.DataFrame({"x": [1, 3]})),
        ([1, 2], [1, 3]),
        (np.array([1, 2]), np.array([1, 3])),
        ([1, 2], Pair([1, 2], [1, 3])),
        ([1, 2], [Pair([1, 2], [1, 3])]),
        (1, 2),
    ],
    ids=str,
)
def test_what_are_no_neighbours(dataset, neighbours):
    with pytest.raises(InputError, match=r"\[other, …\]"):
        check_datasets(dataset, neighbours)


def test_neighbours_are_datasets():
    assert check_datasets([1, 2], [[1, 3], [1, 4]]) == [[1, 3], [1, 4]]
    assert check_datasets(1, range(2, 4)) == [2, 3]
    assert [list(row) for row in check_datasets(np.zeros(2), np.ones((2, 2)))] == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "values",
    [
        [None, True, False, 0, 1, 10**5000, "", "a", "\ud800", b"", b"a"],
        [0.0, -0.0, 1.0, float("nan"), -float("nan"), float("inf"), 5e-324],
        [np.float64(0.0), np.float64(-0.0), 1j, (1, 2), [1, 2], {"a": 1}],
    ],
)
def test_sides_are_equal_if_their_digests_are(values):
    for left in values:
        for right in values:
            pair = Pair(left, right)
            assert pair.has_equal_sides == (pair.digest[0] == pair.digest[1]), (left, right)
    nan = float("nan")
    assert Pair(nan, float(np.array(nan))).has_equal_sides
