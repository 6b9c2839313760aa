"""Every call gets data that no earlier call can have touched."""

import array
import csv
import io
import random
import threading
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow
import pytest

import epsilometer as em
from epsilometer.inputs.copying import check_reusable, copier, shared_parts, snapshot
from epsilometer.storage import content_digest


class Colour(Enum):
    RED = 1


@dataclass
class Row:
    tags: list
    rng: object = field(default_factory=lambda: random.Random(0))


def shared_row():
    row = [1, 2]
    return [row, row]


def in_a_circle():
    loop = [1]
    loop.append(loop)
    return loop


MUTABLE = {
    "list": lambda: [1, 2.0, "x"],
    "nested": lambda: [[1], {"a": [2]}, ({3: [4]},)],
    "rows": lambda: [{"a": 1}, {"a": 2}],
    "dict": lambda: {"a": 1, "b": [1]},
    "set": lambda: {1, 2},
    "tuple": lambda: ([1], 2),
    "array": lambda: np.arange(6.0).reshape(2, 3),
    "fortran": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "objects": lambda: np.array([[1], None], dtype=object),
    "records": lambda: np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
    "masked": lambda: np.ma.array([1, 2], mask=[0, 1]),
    "array.array": lambda: array.array("d", [1.0]),
    "bytearray": lambda: bytearray(b"ab"),
    "deque": lambda: deque([[1], 2]),
    "dataclass": lambda: Row([1, [2]]),
    "shared": shared_row,
    "circle": in_a_circle,
    "memoryview": lambda: memoryview(bytearray(b"ab")),
}


def spoil(value):
    """Changes all that can be changed."""
    if isinstance(value, dict):
        for each in list(value.values()):
            spoil(each)
        value["spoiled"] = 1
    elif isinstance(value, list | deque):
        for each in list(value):
            if each is not value:
                spoil(each)
        value.append("spoiled")
    elif isinstance(value, tuple):
        for each in value:
            spoil(each)
    elif isinstance(value, set):
        value.add("spoiled")
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        for each in value:
            spoil(each)
    elif isinstance(value, np.ndarray):
        value[...] = (9, 9.0) if value.dtype.names else 9
    elif isinstance(value, array.array | bytearray | memoryview):
        value[0] = 1 if not isinstance(value, array.array) else 9.0
    elif isinstance(value, Row):
        spoil(value.tags)


@pytest.mark.parametrize("name", MUTABLE)
def test_a_copy_can_be_spoiled(name):
    value = MUTABLE[name]()
    fresh, before = copier(value), content_digest(value)
    for _ in range(2):
        one = fresh()
        assert type(one) is type(value)
        assert content_digest(one) == before
        spoil(one)
        assert content_digest(one) != before
        assert content_digest(value) == before


def test_the_form_of_a_copy():
    two = copier(shared_row())()
    assert two[0] is two[1]
    loop = copier(in_a_circle())()
    assert loop[1] is loop
    assert copier(MUTABLE["fortran"]())().flags.f_contiguous


@pytest.mark.parametrize(
    "value",
    [
        1,
        "x",
        (1, ("a", None)),
        frozenset({1}),
        Colour.RED,
        len,
        int,
        np.float64(1),
        pyarrow.table({"a": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_nobody_can_change_is_not_copied(value):
    assert copier(value)() is value


def test_generators_are_never_copied():
    """Or every call would draw the same: a false refutation of our own making."""
    for value in ({"rng": np.random.default_rng(0)}, Row([1]), [random.Random(0)]):
        fresh = copier(value)
        one, two = fresh(), fresh()
        held = [
            each["rng"]
            if isinstance(each, dict)
            else each.rng
            if isinstance(each, Row)
            else each[0]
            for each in (one, two)
        ]
        assert held[0] is held[1]


def test_what_cannot_be_copied_is_shared_and_told():
    class Database:
        def __init__(self):
            self.lock, self.rows = threading.Lock(), [1]

    value = [Database(), [2]]
    one = copier(value)()
    one[1].append(3)
    one[0].rows.append(3)
    assert (value[1], value[0].rows) == ([2], [1])
    assert one[0].lock is value[0].lock
    assert shared_parts(value) == ["lock"]
    assert shared_parts([1, [2]]) == []


ONE_SHOT = {
    "iterator": lambda: iter([1]),
    "generator": lambda: (each for each in [1]),
    "zip": lambda: zip([1], [2], strict=True),
    "map": lambda: map(str, [1]),
    "text": lambda: io.StringIO("a"),
    "csv": lambda: csv.reader(["a"]),
    "reversed": lambda: reversed([1]),
}


@pytest.mark.parametrize("name", ONE_SHOT)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: [1, x],
        lambda x: {"a": (1, [x])},
        lambda x: deque([x]),
        lambda x: Row([x]),
        lambda x: [[x]],
    ],
)
def test_what_can_be_read_once_is_refused(name, wrap):
    with pytest.raises(em.InputError, match=r"only once.*list"):
        check_reusable(wrap(ONE_SHOT[name]()), "the left input")


def test_what_can_be_read_often_is_not():
    check_reusable(
        [1, range(3), {"a": {1}}, "text", np.arange(3), {1: 2}.keys(), in_a_circle(), Row([1])], "x"
    )


@pytest.mark.parametrize(
    "name", sorted(MUTABLE.keys() - {"circle", "deque"})
)  # which are no outputs
def test_an_output_stays_what_it_was(name):
    value = MUTABLE[name]()
    kept, before = snapshot(value), content_digest(value)
    spoil(value)
    assert content_digest(value) != before
    assert content_digest(kept) == before


def test_hostile_outputs_are_left_to_the_reader():
    loop = in_a_circle()
    assert snapshot(loop) is loop

    @dataclass
    class Hostile:
        x: int = 1

        def __deepcopy__(self, memo):
            raise RuntimeError("no")

    one = Hostile()
    assert snapshot(one) is one
