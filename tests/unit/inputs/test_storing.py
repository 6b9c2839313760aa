import datetime
import json
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest

from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import is_complete, pair_digest, pair_from_dict, pair_to_dict
from epsilometer.inputs.storing import StoredDigest
from epsilometer.storage import content_digest


def stored(value):
    """Through JSON text and back."""
    return pair_from_dict(
        json.loads(json.dumps(pair_to_dict(Pair(value, 0)), allow_nan=False))
    ).left


@pytest.mark.parametrize(
    "value", [0, -1.5, True, None, "text", [1, [2, "x"]], {"a": [1, 2]}, [], {}, 10**30]
)
def test_plain_values(value):
    back = stored(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.0, np.nan, np.inf, -np.inf, -0.0]),
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.array([True, False]),
        np.array([2**64 - 1], dtype=np.uint64),
        np.zeros((0, 3)),
        np.array(3.5),
        np.array([0.1], dtype=np.float32),
        np.array([1.0], dtype=">f8"),
    ],
)
def test_arrays(array):
    back = stored(array)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize(
    "value",
    [
        *(np.float64(1.5), np.int8(3), np.float32("nan"), (1, 2), (), ("a", [1])),
        *(
            float("nan"),
            [0.5, float("inf"), -0.0, None],
            {1: 2},
            [(1, 2)],
            [np.zeros(2)],
            (np.zeros((2, 1)), np.ones(2)),
        ),
        *(
            np.array(["a"]),
            np.array([0.5, None]),
            datetime.date(2024, 2, 29),
            [{"a": float("nan"), "b": "x"}],
            2**70,
        ),
        *(
            pd.Series([1, 2], dtype="int8"),
            pd.DataFrame({"a": [0.5, float("nan")], "b": ["x", None]}),
            pd.DataFrame(),
        ),
        *(
            pl.DataFrame({"a": [1, None], "b": [float("nan"), 2.0]}),
            pl.DataFrame({"a": []}, schema={"a": pl.Float64}),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_stored_comes_back_with_its_type(value):
    back = stored(value)
    assert type(back) is type(value)
    assert content_digest(back) == content_digest(value)


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        object(),
        b"bytes",
        "x" * 200_000,
        np.zeros(100_000),
        np.array([1.0], dtype=np.longdouble),
        [{1, 2}],
        pd.DataFrame({"a": [b"x"]}),
        Pair(1, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold_is_a_digest(value):
    back = stored(value)
    assert isinstance(back, StoredDigest)
    assert back.digest == content_digest(value)
    assert len(back.text) <= 200
    assert not is_complete(Pair(back, 0))
    # A digest stays what it is when stored again.
    assert stored(back) == back


def test_digests_tell_inputs_apart():
    assert stored(np.zeros(100_000)).digest != stored(np.ones(100_000)).digest
    assert stored(b"a").digest == stored(b"a").digest != stored(b"b").digest


def test_what_has_no_digest_is_stored_without():
    back = stored(threading.Lock())
    assert isinstance(back, StoredDigest)
    assert back.digest == ""


def test_a_control_stays_one():
    again = pair_from_dict(json.loads(json.dumps(pair_to_dict(Pair(1, 1, equal=True)))))
    assert again == Pair(1, 1, equal=True)
    assert not pair_from_dict(pair_to_dict(Pair(1, 2))).equal


def test_hostile_repr():
    class Hostile:
        def __repr__(self):
            raise RuntimeError("no")

    assert "RuntimeError" in stored(Hostile()).text


def test_recursive_input():
    loop = []
    loop.append(loop)
    assert isinstance(stored(loop), StoredDigest)


def test_complete():
    assert is_complete(Pair(1, None))


def test_why_a_pair_was_tried_is_stored():
    pair = Pair([0.5, float("nan")], [0.5, 1.0], note="NaN in one record", within=False)
    back = pair_from_dict(json.loads(json.dumps(pair_to_dict(pair))))
    assert (back.note, back.within, back.digest) == (pair.note, False, pair.digest)
    assert pair_digest(back) == pair_digest(Pair(pair.left, pair.right))
    assert pair_to_dict(Pair(0, 1)).keys() == {"left", "right"}
