"""Content is told apart as finely as a mechanism can tell it, and recognised in every process."""

import copy
import datetime
import decimal
import enum
import itertools
import json
import pickle
import random
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pyarrow
import pytest

from epsilometer.storage import Undigestible, content_digest, files_digest


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Row:
    age: int
    tags: list


def records(b):
    array = np.zeros(2, dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True))
    array.view(np.uint8)[:] = 7  # also the gaps between the fields
    array["a"], array["b"] = 1, b
    return array


DIFFERENT = [
    1, 1.0, True, np.int64(1), np.int32(1), np.float32(1), np.float64(1), "1", b"1", bytearray(b"1"), memoryview(b"1"),
    1 + 0j, decimal.Decimal(1), decimal.Decimal("1.0"), 2**70, 2**5000, None, 0, 0.0, -0.0, float("nan"), float("inf"),
    [], (), {}, set(), frozenset(), [1], (1,), {1}, frozenset({1}), {1: 1}, [[1]], [[1], [1]], [[1, 1]], [1, [1]],
    {"a": 1, "b": 2}, {"b": 2, "a": 1}, range(3), slice(3), "a\x00", "\ud800", Colour.RED, Colour.BLUE,
    np.array([1]), np.array([1.0]), np.array([1.0], np.float32), np.array([[1.0]]), np.array(1.0), np.array([1], ">i8"),
    np.array(["1"]), np.array(["1"], object), np.array([-0.0]), np.array([0.0]), np.datetime64("2020-01-01"),
    np.datetime64("2020-01-01", "s"), np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0]), records(1.0),
    records(2.0), np.longdouble(1), np.zeros(5000), np.eye(1, 5000, 2500)[0], datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), Row(1, [2]), Row(1, [3]),
    random.Random(1), random.Random(2), pyarrow.table({"a": [1]}), pyarrow.table({"a": [1.0]}),
    pyarrow.table({"b": [1]}), pyarrow.array([1]), pyarrow.array([1], pyarrow.int8()), list(range(100)),
    [*range(99), 2**70], [float(each) for each in range(100)], [*map(float, range(99)), -0.0], ["a"] * 100,
    ["aa", *["a"] * 98, ""], len, max, lambda x: x, lambda x: -x,
]  # fmt: skip


def test_what_differs_has_another_digest():
    digests = [content_digest(value) for value in DIFFERENT]
    for (place, one), (other, two) in itertools.combinations(enumerate(digests), 2):
        assert one != two, (DIFFERENT[place], DIFFERENT[other])


@pytest.mark.parametrize("value", DIFFERENT, ids=lambda value: type(value).__name__)
def test_a_copy_has_the_same_digest(value):
    again = memoryview(bytes(value)) if isinstance(value, memoryview) else copy.deepcopy(value)
    assert content_digest(again) == content_digest(value)


def test_equal_content_by_other_ways():
    shared = [1]
    assert content_digest([shared, shared]) == content_digest([[1], [1]])
    assert content_digest({"a", "b", 3}) == content_digest({3, "b", "a"})
    assert content_digest(float("nan")) == content_digest(np.nan)
    assert content_digest(np.zeros((3, 4)).T) == content_digest(np.zeros((4, 3)))
    assert content_digest(records(1.0)) == content_digest(records(1.0).copy())
    one, two = Row(1, []), Row.__new__(Row)
    two.tags, two.age = [], 1
    assert content_digest(one) == content_digest(two)
    assert content_digest(pyarrow.chunked_array([[1], [2]])) == content_digest(
        pyarrow.chunked_array([[1, 2]])
    )


def test_another_process_finds_the_same():
    code = (
        "import json, sys, decimal, datetime; from epsilometer.storage import content_digest\n"
        "import numpy as np\n"
        "v = [{'b', 'a', 'c'}, {'x': (1, 2.5)}, np.arange(4.0), decimal.Decimal('1.10'), datetime.date(2020, 1, 2)]\n"
        "print(json.dumps([content_digest(each) for each in v]))"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(3)
    }
    assert len(found) == 1
    assert len(set(json.loads(found.pop()))) == 5


def test_what_has_no_content_is_refused():
    with open(__file__, encoding="utf-8") as file:
        for value in (file, threading.Lock(), (each for each in [1]), sys.stdout.buffer):
            with pytest.raises(Undigestible, match="recognised again"):
                content_digest({"deep": [value]})


def test_cycles_and_depth():
    loop = [1]
    loop.append(loop)
    again = pickle.loads(pickle.dumps(loop))
    assert content_digest(loop) == content_digest(again)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Undigestible, match="deep"):
        content_digest(deep)


def test_hostile_objects():
    class Hostile:
        def __reduce_ex__(self, protocol):
            raise RuntimeError("no")

    with pytest.raises(Undigestible, match="no"):
        content_digest(Hostile())


def test_files(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"ab")
    two.write_bytes(b"c")
    both = files_digest([one, two])
    two.write_bytes(b"d")
    assert files_digest([one, two]) != both
    one.write_bytes(b"a")
    two.write_bytes(b"bc")
    assert files_digest([one, two]) != both
    assert files_digest([one]) != files_digest([one, tmp_path / "missing"])
