import collections
import dataclasses
from typing import Any

import numpy as np
import pytest

from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import pair_digest, pair_from_dict, pair_to_dict

Point = collections.namedtuple("Point", "x y")
ROWS = [{"age": age, "city": "x"} for age in range(20, 40)]
OLDER = [*ROWS[:-1], {"age": 99, "city": "x"}]


@dataclasses.dataclass
class Person:
    age: float
    pets: Any


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (0, 1, "0 → 1"),
        (None, 1.5, "None → 1.5"),
        (1, 1.0, "1 → 1.0"),
        (ROWS, OLDER, "record 19: age 39 → 99; 19 records equal"),
        (ROWS, ROWS[:7] + ROWS[8:], "record 7 removed: {'age': 27, 'city': 'x'}; 19 records equal"),
        (ROWS[:7] + ROWS[8:], ROWS, "record 7 added: {'age': 27, 'city': 'x'}; 19 records equal"),
        ([1], [1], "none: the inputs are equal"),
        ([], [1], "item 0 added: 1"),
        ([1, 2, 3, 4], [2, 3, 4, 5], "item 0 removed: 1; item 3 added: 5; 3 items equal"),
        (
            [1, 2, 3],
            [2, 1, 3],
            "the same items in another order; item 0: 1 → 2; 1 more; 1 item equal",
        ),
        ((0,) * 50, (1,) * 50, "item 0: 0 → 1; item 1: 0 → 1; item 2: 0 → 1; 47 more"),
        ([1.0, float("nan")], [1.0, 2.0], "item 1: nan → 2.0; 1 item equal"),
        ([[1, 2], [3, 4]], [[1, 2], [3, 5]], "record 1: [1] 4 → 5; 1 record equal"),
        ({"a": 1, "b": [1, {"c": 2}]}, {"a": 1, "b": [1, {"c": 3}]}, "b[1].c 2 → 3; 1 field equal"),
        ({"a": 1}, {"a": 1, "k": 2}, "k added (2); 1 field equal"),
        ({"a": 1, "k": 2}, {"a": 1}, "k removed (2); 1 field equal"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "the order of the keys; 2 fields equal"),
        ({1, 2, 3}, {1, 2, 4}, "without 3; with 4"),
        ((1, 2), [1, 2], "(1, 2) → [1, 2] (tuple → list)"),
        (Person(3, ["cat"]), Person(3, ["dog"]), "pets[0] 'cat' → 'dog'; 1 field equal"),
        (Point(1, 2), Point(1, 3), "y 2 → 3; 1 field equal"),
        (np.arange(5), np.array([0, 1, 2, 3, 9]), "item 4: 4 → 9; 4 items equal"),
        (np.array([0.0]), np.array([-0.0]), "item 0: 0.0 → -0.0"),
        (
            np.zeros((3, 2)),
            np.eye(3)[:, :2],
            "record 0: [0] 0.0 → 1.0; record 1: [1] 0.0 → 1.0; 1 record equal",
        ),
        (
            np.zeros(2),
            np.zeros(2, np.float32),
            "array([0., 0.]) → array([0., 0.], dtype=float32) (ndarray float64 → ndarray float32)",
        ),
        ([np.zeros(2000)], [np.r_[np.zeros(1999), 1]], "record 0: [1999] 0.0 → 1.0"),
    ],
)
def test_what_differs_is_named_and_what_is_equal_is_counted(left, right, text):
    assert Pair(left, right).difference == text


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_records(library):
    frames = pytest.importorskip(library)
    pair = Pair(frames.DataFrame(ROWS), frames.DataFrame(OLDER))
    assert pair.difference == "record 19: age 39 → 99; 19 records equal"
    stored = pair_from_dict(pair_to_dict(pair))  # only a digest is stored, but the difference stays
    assert stored.difference == pair.difference
    assert pair_digest(stored) == pair_digest(pair)


def test_a_long_value_is_cut_and_known_by_its_digest():
    pair = Pair("a" * 500, "a" * 499 + "b")
    old, new = pair.difference.split(" → ")
    assert old != new, "the cut parts are alike, only the digests differ"
    assert len(old) < 100
    assert pair.digest[0][:12] in old


def test_a_changed_row_among_a_million_is_found():
    left = np.zeros(1_000_000)
    right = left.copy()
    right[77] = 1
    assert Pair(left, right).difference == "item 77: 0.0 → 1.0; 999,999 items equal"


class Hostile:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


def test_objects_that_refuse_to_be_looked_at_cost_no_result():
    assert "Hostile" in Pair(Hostile(1), Hostile(2)).difference
