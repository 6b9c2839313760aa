import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.inputs import Pair, as_pair, as_pairs


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
        ([(0, 1), [2, 3], Pair(4, 5)], [Pair(0, 1), Pair(2, 3), Pair(4, 5)]),
        ((Pair(0, 1), Pair(2, 3)), [Pair(0, 1), Pair(2, 3)]),
        (("ab", "cd"), [Pair("ab", "cd")]),
    ],
)
def test_what_is_one_pair_and_what_are_several(inputs, pairs):
    assert as_pairs(inputs) == pairs


@pytest.mark.parametrize(
    "inputs", [None, 0, "01", b"01", [], (), [0, 1], [(0, 1, 2)], {0: 1}, (1, 2, 3), np.zeros(2)]
)
def test_what_are_no_inputs(inputs):
    with pytest.raises(InputError):
        as_pairs(inputs)


def test_one_pair():
    assert as_pair([1, 2]) == Pair(1, 2)
    for wrong in (None, 3, (1, 2, 3), "ab"):
        with pytest.raises(InputError):
            as_pair(wrong)


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
