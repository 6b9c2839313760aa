"""Every kind of batch and output by hand: its shape text, its columns, and the errors."""

from __future__ import annotations

import enum
import itertools
import math
import os
import subprocess
import sys
import threading
import warnings
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from epsilometer.errors import MechanismError
from epsilometer.outputs import reading
from epsilometer.outputs.columns import Labels, Numbers
from epsilometer.outputs.reading import read_outputs
from epsilometer.outputs.reading_pieces import MAX_DEPTH, MAX_LEAVES, Place

with (
    warnings.catch_warnings()
):  # NumPy 2.5 warns of times without a unit; programs return them all the same
    warnings.simplefilter("ignore", DeprecationWarning)
    NO_DATE = np.datetime64("NaT")
Colour = enum.Enum("Colour", "RED GREEN")
Level = enum.IntEnum("Level", "LOW HIGH")
Bits = enum.Flag("Bits", "A B")
Tricky = enum.Enum("int", "ONE")
Pair = namedtuple("Pair", "a b")


@dataclass
class Point:
    x: float
    label: str


def texts(column):
    return (
        [column.labels[code] for code in column.codes]
        if isinstance(column, Labels)
        else column.values.tolist()
    )


def plain(outputs):
    """The blocks as (shape, rows, columns), all in Python lists."""
    return [
        (
            block.shape,
            None if block.rows is None else block.rows.tolist(),
            [texts(column) for column in block.columns],
        )
        for block in outputs
    ]


def shape_of(value):
    (block,) = read_outputs([value])
    return block.shape


@pytest.mark.parametrize(
    ("value", "shape", "leaves"),
    [
        (True, "bool", [True]),
        (np.bool_(False), "bool", [False]),
        (3, "int", [3]),
        (np.int32(-3), "int", [-3]),
        (2**53, "int", [2**53]),
        (-(2**53), "int", [-(2**53)]),
        (2**53 + 1, "bigint", [2.0**53, 1]),
        (np.uint64(2**63 - 1), "bigint", [2.0**63, -1]),
        (-(2**63), "bigint", [-(2.0**63), 0]),
        (2**63, "bigint", [2.0**63, 0]),
        (np.uint64(2**63), "bigint", [2.0**63, 0]),
        (2**104, "hugeint", [2.0**104, str(2**104)]),
        (Decimal("1.00"), "Decimal", [1.0, "1.00"]),
        (date(1, 1, 2), "date", [2]),
        (datetime(1970, 1, 1, 0, 0, 1), "datetime", [1_000_000]),
        (time(0, 1, tzinfo=UTC), "time UTC+0:00:00", [60_000_000]),
        (timedelta(days=2, microseconds=3), "timedelta", [2 * 86_400_000_000 + 3]),
        (Fraction(1, 3), "Fraction", [1 / 3, "1/3"]),
        (range(3), "range({start: int, stop: int, step: int})", [0, 3, 1]),
        (Path("a") / "b", "PosixPath(str)", ["a/b"]),
        (bytearray(b"a"), "bytearray(bytes)", ["a"]),
        (
            {None: 1, 2: 3, ("a", 1): 4, "x": 5},
            "{x: int, [('a', 1)]: int, [2]: int, [None]: int}",
            [5, 4, 3, 1],
        ),
        ({math.nan: 1.5, float("-nan"): 2.5}, "{[nan']: float, [nan]: float}", [2.5, 1.5]),
        (2.5, "float", [2.5]),
        (np.float32(0.5), "float", [0.5]),
        (np.longdouble(0.5), "float", [0.5]),
        (1 + 2j, "complex", [1.0, 2.0]),
        (np.complex64(1 + 2j), "complex", [1.0, 2.0]),
        ("a", "str", ["a"]),
        (np.str_("a"), "str", ["a"]),
        (b"a\\\xff\n", "bytes", ["a\\\\\\xff\\n"]),
        (np.bytes_(b"a"), "bytes", ["a"]),
        (None, "None", []),
        (Colour.RED, "Colour", ["RED"]),
        (Level.HIGH, "Level", ["HIGH"]),
        (Bits(0), "Bits", ["0"]),
        (Bits.A | Bits.B, "Bits", ["A|B"]),
        (Tricky.ONE, "'int'", ["ONE"]),
        (np.datetime64("1970-01-02", "D"), "datetime64[D]", [1]),
        (np.timedelta64(5, "s"), "timedelta64[s]", [5]),
        (NO_DATE, "NaT datetime64", []),
        (
            np.datetime64("2262-01-01", "ns"),
            "long datetime64[ns]",
            [9214646400.0e9, 281562399965184],
        ),
        ((), "tuple()", []),
        ([], "list()", []),
        ([1.0, 2.0, 3.0], "list(3 × float)", [1.0, 2.0, 3.0]),
        ((True, True, 0.5), "tuple(2 × bool, float)", [True, True, 0.5]),
        ([1, [2, None], "x"], "list(int, list(int, None), str)", [1, 2, "x"]),
        ([1j, 2j], "list(2 × complex)", [0.0, 1.0, 0.0, 2.0]),
        ([1, 2**70], "list(int, bigint)", [1, 2.0**70, 0]),
        (Pair(1, "x"), "Pair{a: int, b: str}", [1, "x"]),
        ({3, 10, "b"}, "set(2 × int, str)", [10, 3, "b"]),
        (frozenset({2.0}), "frozenset(float)", [2.0]),
        ({"name": "n", "count": 1}, "{count: int, name: str}", [1, "n"]),
        ({}, "{}", []),
        ({"a b": 1, "": 2, "None": 3}, "{'': int, None: int, 'a b': int}", [2, 3, 1]),
        (OrderedDict(z=1, a=2), "{a: int, z: int}", [2, 1]),
        ({np.str_("k k"): 1}, "{'k k': int}", [1]),
        (Point(0.5, "p"), "Point{x: float, label: str}", [0.5, "p"]),
        (np.array(2.5), "float", [2.5]),
        (np.arange(3), "array(3 × int)", [0, 1, 2]),
        (np.zeros((2, 0)), "array(2 × 0 × float)", []),
        (np.array([], dtype=object), "array(0 × object)", []),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), "array(2 × 2 × int)", [1, 2, 3, 4]),
        (np.array([1, 2**63], dtype=np.uint64), "array(2: int, bigint)", [1, 2.0**63, 0]),
        (np.ma.masked, "None", []),
        (np.ma.masked_array([1.5, 2.5], [True, False]), "array(2: None, float)", [2.5]),
        (np.array([1, "a", None], dtype=object), "array(3: int, str, None)", [1, "a"]),
        (np.array([(1, 2.5)], dtype=[("b", "i4"), ("a", "f4")])[0], "{a: float, b: int}", [2.5, 1]),
        (
            np.array([(1, "x")], dtype=[("b", ">i4"), ("a", "U3")]),
            "array(1 × {a: str, b: int})",
            ["x", 1],
        ),
        (np.zeros(1, dtype=[("m", "f8", (2, 2))])[0], "{m: array(2 × 2 × float)}", [0.0] * 4),
        (np.array([[1.0, 2.0]]).view(np.recarray), "array(1 × 2 × float)", [1.0, 2.0]),
    ],
)
def test_one_output(value, shape, leaves):
    outputs = read_outputs([value, value])
    (block,) = outputs
    assert (len(outputs), block.size, block.rows, block.shape) == (2, 2, None, shape)
    assert [texts(column) for column in block.columns] == [[leaf, leaf] for leaf in leaves]


def test_blocks_come_in_order_of_first_appearance_with_increasing_rows():
    outputs = read_outputs(["a", 1, 2.5, None, np.int8(2), "b", np.float32(1.5), [1], [1.0], [2]])
    assert plain(outputs) == [
        ("str", [0, 5], [["a", "b"]]),
        ("int", [1, 4], [[1, 2]]),
        ("float", [2, 6], [[2.5, 1.5]]),
        ("None", [3], []),
        ("list(int)", [7, 9], [[1, 2]]),
        ("list(float)", [8], [[1.0]]),
    ]


def test_values_of_one_shape_but_several_types_are_one_whole_block():
    assert plain(read_outputs([1.0, np.float32(2.0), np.array(3.0), np.float64(4.0)])) == [
        ("float", None, [[1.0, 2.0, 3.0, 4.0]])
    ]


def test_parts_that_vary_are_combined():
    outputs = read_outputs([(1, "a"), (1.5, "b"), (2, None), (3, "c"), (2.5, "d")])
    assert plain(outputs) == [
        ("tuple(int, str)", [0, 3], [[1, 3], ["a", "c"]]),
        ("tuple(float, str)", [1, 4], [[1.5, 2.5], ["b", "d"]]),
        ("tuple(int, None)", [2], [[2]]),
    ]


def test_many_positions_that_vary_do_not_overflow():
    # Only the first seven positions tell all rows apart: an overflow would lose them.
    rows = [
        tuple(1 if row >> max(0, 6 - place) & 1 else 1.0 for place in range(200))
        for row in range(128)
    ]
    outputs = read_outputs(rows + rows)
    assert len(outputs.blocks) == 128
    assert [block.rows.tolist() for block in outputs] == [[row, row + 128] for row in range(128)]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_plain_arrays_are_not_copied(dtype):
    values = np.zeros(5, dtype=dtype)
    (block,) = read_outputs(values)
    (column,) = block.columns
    assert column.values is values


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", ">i4", "i8", "u8", "f2", "f4", ">f8", "g"])
def test_columns_have_three_dtypes_only(dtype):
    for values in (np.ones(3, dtype=dtype), np.ones((3, 2), dtype=dtype)):
        for column in read_outputs(values).blocks[0].columns:
            assert isinstance(column, Numbers)
            assert column.values.dtype in (np.float64, np.int64, np.bool_)
            assert column.values.dtype.isnative


def test_special_floats_stay():
    column = read_outputs([math.nan, math.inf, -math.inf, -0.0]).blocks[0].columns[0]
    assert np.isnan(column.values[0])
    assert column.values[1:].tolist() == [math.inf, -math.inf, 0.0]
    assert math.copysign(1, column.values[3]) == -1


class Real(float):
    """A float of its own class, which is read as a float."""


@pytest.mark.parametrize(
    "batch",
    [
        [0.5],
        [1.5, -0.0, 0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, 1e308],
        np.array([1.5, -0.0, math.nan, math.inf]),
        np.array([1.5, -0.0, math.nan, math.inf])[::2],
        np.array([1.5, -0.0, math.nan], dtype=">f8"),
        [1.5, np.float64(-0.0), math.nan],
        [np.float64(1.5), np.float64(2.5)],
        [Real(1.5), -0.0],
        [1.5, 2, True],
    ],
)
def test_plain_floats_are_read_as_the_general_way_reads_them(batch):
    blocks = read_outputs(batch, len(batch)).blocks
    general = tuple(reading._read_batch(batch, Place(np.arange(len(batch)))))
    assert [(each.shape, each.size) for each in blocks] == [
        (each.shape, each.size) for each in general
    ]
    for block, other in zip(blocks, general, strict=True):
        assert (block.rows is None) == (other.rows is None)
        assert block.rows is None or block.rows.tolist() == other.rows.tolist()
        (column,), (same,) = block.columns, other.columns
        assert (column.values.dtype, column.widths) == (same.values.dtype, same.widths)
        assert column.values.tobytes() == same.values.tobytes()


@pytest.mark.parametrize("batch", [[0.5, 1.5], np.array([0.5, 1.5]), (0.5, 1.5)])
def test_plain_floats_are_counted_as_all_outputs_are(batch):
    with pytest.raises(
        MechanismError, match=r"^the mechanism returned 2 outputs where 3 were asked for$"
    ):
        read_outputs(batch, 3)


def test_a_long_double_beyond_the_range_is_told_from_infinity_without_a_warning():
    large = np.finfo(np.longdouble).max
    (block,) = read_outputs(np.array([large, large / 2]))
    assert block.shape == "longdouble beyond float"
    assert len(set(texts(block.columns[1]))) == 2


def test_masked_entries_are_missing_whatever_lies_beneath():
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    assert plain(read_outputs(masked)) == [
        ("array(2: int, None)", [0], [[1]]),
        ("array(2 × int)", [1], [[3], [4]]),
    ]
    assert plain(read_outputs({"a": np.ma.masked_array([7, 7], [True, False])})) == [
        ("{a: None}", [0], []),
        ("{a: int}", [1], [[7]]),
    ]
    fields = np.ma.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")], mask=[(True, False)])
    assert plain(read_outputs(fields)) == [("{a: None, b: float}", None, [[2.5]])]
    assert plain(read_outputs(np.ma.masked_array([1, 2]))) == [("int", None, [[1, 2]])]


def test_array_batches_are_arrays_or_numbers():
    assert plain(read_outputs(np.array([[1, 2], [3, 4], [5, 6]]))) == [
        ("array(2 × int)", None, [[1, 3, 5], [2, 4, 6]])
    ]
    assert read_outputs(np.zeros((4, 2, 3))).blocks[0].shape == "array(2 × 3 × float)"
    assert plain(read_outputs(np.array(["a", "b", "a"]))) == [("str", None, [["a", "b", "a"]])]
    assert plain(read_outputs(np.array([1, "b", [1]], dtype=object)))[2] == (
        "list(int)",
        [2],
        [[1]],
    )
    assert read_outputs(np.zeros((4, 0))).blocks[0].size == 4


def test_columns_of_a_matrix_are_contiguous():
    for column in read_outputs(np.zeros((10, 3))).blocks[0].columns:
        assert column.values.flags.c_contiguous


def test_unsigned_integers_are_split_by_value():
    values = np.array([1, 2**64 - 1, 3], dtype=np.uint64)
    assert plain(read_outputs(values)) == [
        ("int", [0, 2], [[1, 3]]),
        ("bigint", [1], [[2.0**64], [-1]]),
    ]


def test_integers_of_any_length_have_distinct_labels():
    values = [10**4_999, 10**4_999 + 1, -(10**4_999)]
    labels = texts(read_outputs(values).blocks[0].columns[1])
    assert len(set(labels)) == 3


@pytest.mark.parametrize(
    "batch",
    [
        {"y": [1, 2], "x": np.array([0.5, 1.5])},
        SimpleNamespace,
        [{"x": 0.5, "y": 1}, {"y": 2, "x": 1.5}],
        np.array([(0.5, 1), (1.5, 2)], dtype=[("x", "f8"), ("y", "i8")]),
    ],
)
def test_records_are_the_same_from_columns_frames_rows_and_structured_arrays(batch):
    class Frame:
        columns = ("x", "y")

        def __getitem__(self, name):
            return {"x": deque([0.5, 1.5]), "y": np.array([1, 2])}[name]

    outputs = read_outputs(Frame() if batch is SimpleNamespace else batch, 2)
    assert plain(outputs) == [("{x: float, y: int}", None, [[0.5, 1.5], [1, 2]])]


def test_columns_may_vary_in_shape():
    assert plain(read_outputs({"a": [1, None], "b": np.zeros((2, 1))})) == [
        ("{a: int, b: array(1 × float)}", [0], [[1], [0.0]]),
        ("{a: None, b: array(1 × float)}", [1], [[0.0]]),
    ]


@pytest.mark.parametrize(
    "batch", [(1, 2), deque([1, 2]), range(1, 3), iter([1, 2]), {"k": 1, "l": 2}.values()]
)
def test_any_iterable_is_a_batch(batch):
    assert plain(read_outputs(batch, 2)) == [("int", None, [[1, 2]])]


@pytest.mark.parametrize("batch", [[], (), np.zeros(0), np.zeros((0, 3)), {"a": []}, iter(())])
def test_an_empty_batch_has_no_blocks(batch):
    outputs = read_outputs(batch, 0)
    assert (outputs.blocks, len(outputs)) == ((), 0)


@pytest.mark.parametrize(
    "batch",
    ["abc", b"abc", bytearray(3), 3, 2.5, True, None, np.float64(1), np.array(1), {1}, Colour],
)
def test_one_value_is_not_a_batch(batch):
    with pytest.raises(MechanismError, match=r"a batch of outputs must be a sequence"):
        read_outputs(batch)


def test_the_number_of_outputs_is_checked():
    with pytest.raises(MechanismError, match="returned 3 outputs where 5 were asked for"):
        read_outputs([1, 2, 3], 5)
    with pytest.raises(MechanismError, match="returned 6 outputs where 5 were asked for"):
        read_outputs(itertools.count(), 5)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"a": [1], "b": [1, 2]}, r"lengths \{'a': 1, 'b': 2\}"),
        ({}, "lengths {}"),
        ({1: [1]}, "a column named 1; names must be strings"),
        ({"a": {"b": [1]}}, "a batch of type dict"),
        ({"a": 3}, "a batch of type int"),
        ([1, {"a": {object(): 3}}], r"output 1 .*type object.*as a key of a dict"),
        (
            [1, {"a": [2, print]}],
            r"output 1 .*type builtin.* at output\['a'\]\[1\].*; try: return value\(\)",
        ),
        (
            [Point(0.5, SimpleNamespace(x=1))],
            r"type SimpleNamespace at output.label,.*try: return vars\(value\)",
        ),
        (np.array([b"ab"], dtype="V2"), "output 0 .*type void"),
        ((1 / x for x in (1, 0)), "raised ZeroDivisionError"),
        (SimpleNamespace(columns=["a"]), "a batch of type SimpleNamespace"),
    ],
)
def test_errors_name_the_output_and_what_is_allowed(batch, message):
    with pytest.raises(MechanismError, match=message):
        read_outputs(batch)


def test_two_columns_of_one_name_are_refused():
    class Frame(dict):
        def __iter__(self):
            return iter(["a", "a"])

    with pytest.raises(MechanismError, match="two columns of one name"):
        read_outputs(Frame(a=[1]))


def test_a_long_or_failing_repr_is_cut():
    class Endless:
        def __repr__(self):
            return "x" * 1000

    class Mute:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(MechanismError, match=r": x{79}…; an output may be"):
        read_outputs([Endless()])
    with pytest.raises(MechanismError, match=r"output 2 .*<unprintable Mute>"):
        read_outputs([1, 2, Mute()])


def test_a_dataclass_without_its_field_is_refused():
    broken = Point(1.0, "a")
    del broken.label
    with pytest.raises(MechanismError, match=r"output 1 .*no field 'label'"):
        read_outputs([Point(1.0, "a"), broken])


def nest(depth, value=0):
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_bounded():
    assert shape_of(nest(MAX_DEPTH)).startswith("list(list(")
    with pytest.raises(MechanismError, match=f"output 1 is nested deeper than {MAX_DEPTH}"):
        read_outputs([0, nest(MAX_DEPTH + 1)])


@pytest.mark.parametrize("kind", ["list", "dict", "array"])
def test_a_value_that_contains_itself_is_refused(kind):
    loops = {"list": [1], "dict": {"a": 1}, "array": np.array(None, dtype=object)}
    loops["list"] += [loops["list"]] * 2
    loops["dict"]["b"] = loops["dict"]
    loops["array"][()] = loops["array"]
    with pytest.raises(MechanismError, match="contains itself"):
        read_outputs([loops[kind]])


@pytest.mark.parametrize(
    "value",
    [
        [0.0] * (MAX_LEAVES + 1),
        [None, 1] * (MAX_LEAVES // 2) + [2],
        np.zeros(MAX_LEAVES + 1),
        np.zeros((MAX_LEAVES + 1, 1)),
        [[1] * (MAX_LEAVES // 2), [2] * (MAX_LEAVES // 2 + 1)],
        {str(key): key for key in range(MAX_LEAVES + 1)},
        set(range(MAX_LEAVES + 1)),
    ],
)
def test_the_number_of_leaves_is_bounded(value):
    with pytest.raises(MechanismError, match=f"output 1 holds at least {MAX_LEAVES + 1} values"):
        read_outputs([[None, None], value])


def test_as_many_leaves_as_allowed_are_read():
    assert len(read_outputs([[0.5] * MAX_LEAVES]).blocks[0].columns) == MAX_LEAVES
    assert len(read_outputs(np.zeros((2, MAX_LEAVES))).blocks[0].columns) == MAX_LEAVES


def test_a_small_object_with_astronomically_many_leaves_is_refused_at_once():
    value = []
    for _ in range(MAX_DEPTH - 1):
        value = [value, value]
    with pytest.raises(MechanismError, match="more than the 10000 allowed"):
        read_outputs([1, value])
    member = frozenset()
    for _ in range(MAX_DEPTH // 2 - 1):
        member = frozenset({(member, member), 0})
    with pytest.raises(MechanismError, match=r"more than (the 10000 allowed|1000000 characters)"):
        read_outputs([member])


def test_subclasses_are_read_by_contents():
    class Liar(list):
        def __len__(self):
            return 7

        def __iter__(self):
            raise RuntimeError("no")

    class Word(str):
        __slots__ = ()

        def __hash__(self):
            raise RuntimeError("no")

    class Real(float):
        def __float__(self):
            return 9.0

    assert plain(read_outputs([Liar([1, 2]), Liar([3, 4])])) == [
        ("list(2 × int)", None, [[1, 3], [2, 4]])
    ]
    assert plain(read_outputs([Word("a"), "b"])) == [("str", None, [["a", "b"]])]
    assert plain(read_outputs([Real(1.5)])) == [("float", None, [[1.5]])]


def test_different_trees_have_different_texts():
    half = "\ud83d\ude00"  # two surrogates, which JSON would write like the one character below
    values = [
        [1, 1], (1, 1), [[1, 1]], [[1], 1], np.array([1, 1]), np.array([[1, 1]]), np.array([[1], [1]]),
        {"a": 1, "b": 1}, {"a: int, b": 1}, {"a": {"b": 1}}, {"'a'": 1}, {"a\n": 1}, {"a\\n": 1}, {half: 1}, {"😀": 1},
        1, "1", b"1", 2**64, Tricky.ONE, None, [], (), {}, set(), frozenset(), Point(1, 1), {"x": 1, "label": 1},
    ]  # fmt: skip
    assert len({shape_of(value) for value in values}) == len(values)
    assert len(read_outputs(values).blocks) == len(values)


def test_sets_are_ordered_alike_in_every_process():
    code = (
        "from epsilometer.outputs.reading import read_outputs;"
        "o = read_outputs([{frozenset({'a', 'b', 'c'}), frozenset({'b', 'd'}), ('x', 1), 2.5, 'q', 'r'}]);"
        "print(o.blocks[0].shape, [getattr(column, 'labels', None) for column in o.blocks[0].columns])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2", "3")
    ]
    assert len({run.stdout for run in runs}) == 1


class Rude(list):
    def __iter__(self):
        raise RuntimeError("not for you")


def test_an_error_is_told_although_its_place_cannot_be_found():
    with pytest.raises(MechanismError, match="value of type lock, which cannot be read"):
        read_outputs([{"a": Rude(), "b": threading.Lock()}])
