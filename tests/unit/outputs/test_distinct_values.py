"""Outputs that differ stay different on every way in, and equal ones equal: pairs of values, way by way."""

import enum
import itertools
import json
import math
import warnings
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms.kept_draws import _block_from_dict, _block_to_dict
from epsilometer.mechanisms.recordings import recorded_outputs
from epsilometer.outputs import Numbers, Outputs, read_outputs
from epsilometer.outputs.bits import bits_view
from epsilometer.storage.tallies import outputs_from_bytes, outputs_to_bytes

with (
    warnings.catch_warnings()
):  # NumPy 2.5 warns of times without a unit; programs return them all the same
    warnings.simplefilter("ignore", DeprecationWarning)
    NO_DATE, NO_SPAN = np.datetime64("NaT"), np.timedelta64("NaT")
Colour = enum.Enum("Colour", "RED GREEN")
Shade = enum.Enum("Shade", "RED GREEN")
Two = namedtuple("Two", "a b")
Other = namedtuple("Other", "a c")
BIG = 2**53
THIRD = np.longdouble(1) / 3


@dataclass
class Point:
    x: object


def nan_of(bits):
    return np.array([bits], dtype=np.uint64).view(np.float64)[0]


def masked(values, mask, **kind):
    return np.ma.masked_array(values, mask, **kind)


def record(*values, fields):
    return np.array([values], dtype=fields)[0]


# Each list holds values of which all must be told apart.
DIFFERENT = {
    "whole numbers": [BIG - 1, BIG, BIG + 1, BIG + 2, -BIG, -BIG - 1, -BIG - 2, 2**60, 2**60 + 1],
    "limits": [2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) + 1, -(2**63) - 1],
    "beyond 64 bits": [2**80, 2**80 + 1, 2**104 - 1, 2**104, 2**104 + 1, 10**400, 10**400 + 1, -(10**400)],
    "scalars of NumPy": [np.int64(BIG), np.int64(BIG + 1), np.uint64(BIG + 2), *map(np.uint64, (2**64 - 1, 2**64 - 2))],
    "types of one": [1, 1.0, True, "1", b"1", 1 + 0j, Decimal(1), [1], (1,), {"1": 1}, {1}, Colour.RED, Point(1)],
    "nothing": [None, math.nan, "", b"", [], (), {}, set(), frozenset(), 0, 0.0, False, "None", "nan"],
    "more of nothing": [None, NO_DATE, NO_SPAN, np.datetime64("NaT", "s"), math.nan, [None]],
    "infinite": [math.inf, -math.inf, math.nan, "inf", 1e308],
    "close floats": [0.1, np.nextafter(0.1, 1), np.float32(0.1), np.float16(0.1), 5e-324, 0.0],
    "long doubles": [THIRD, np.nextafter(THIRD, np.longdouble(1)), float(THIRD), np.longdouble(10) ** 400,
                     np.longdouble(10) ** 401, np.longdouble(10) ** -400, np.longdouble(0), np.longdouble("inf")],
    "complex": [1 + 2j, 2 + 1j, 1 - 2j, 1 + 0j, np.clongdouble(THIRD), np.complex64(0.1), complex(0.1)],
    "texts": ["a", "a ", " a", "A", "a\0", "a\0b", "ab", "\ud800", "\udc00", "\ud83d\ude00", "😀", "é", "e\u0301"],
    "bytes": [b"a", b"a\0", b"\\n", b"\n", b"", b"\\x00", b"\0", "a"],
    "times": [np.datetime64("2024-01-01T00:00:00", "s"), np.datetime64("2024-01-01T00:00:01", "s"),
              np.datetime64("2024-01-01T00:00:00", "ns"), np.datetime64("2024-01-01T00:00:00.000000001", "ns"),
              np.timedelta64(1, "s"), np.timedelta64(1000, "ms"), np.timedelta64(BIG, "ns"),
              np.timedelta64(BIG + 1, "ns")],
    "dates of Python": [date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, microsecond=1), time(0, 0),
                        datetime(2024, 1, 1, tzinfo=UTC), timedelta(1), timedelta(1, 0, 1), time(0, 0, tzinfo=UTC),
                        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(1, 1, 1, 0, 0, 0, 1),
                        datetime(1, 1, 1), timedelta.max, timedelta.max - timedelta.resolution, datetime(9999, 1, 1)],
    "fractions": [Fraction(1, 3), Fraction(10**30 + 1, 3 * 10**30), 1 / 3, Fraction(1), 1, Fraction(10**400)],
    "keys": [{1: 0}, {1.0: 0}, {True: 0}, {"1": 0}, {"[1]": 0}, {None: 0}, {"None": 0}, {math.nan: 0}, {"nan": 0},
             {(1,): 0}, {(1, 2): 0}, {"(1, 2)": 0}, {Colour.RED: 0}, {Shade.RED: 0}, {"RED": 0}, {b"1": 0},
             {frozenset({1}): 0}, {date(2024, 1, 1): 0}, {Decimal(1): 0}, {("1",): 0}, {("a, b",): 0}, {("a", "b"): 0}],
    "things like lists": [range(3), range(0, 3, 2), range(0, 4, 2), [0, 1, 2], (0, 1, 2), Two(0, 1), Other(0, 1)],
    "things like texts": [Path("a"), "a", b"a", bytearray(b"a"), Path("a/b"), Path("b")],
    "decimals": [Decimal("1.0"), Decimal("1.00"), Decimal("1"), Decimal("0.1"), Decimal("0." + "1" * 30),
                 Decimal("0." + "1" * 29), Decimal("NaN"), Decimal("sNaN"), Decimal("-0"), Decimal("0"), 1.0],
    "shapes": [[1, 2], (1, 2), [[1, 2]], [[1], [2]], [[1], 2], np.array([1, 2]), np.array([[1, 2]]),
               np.array([[1], [2]]), np.array([1.0, 2.0]), [1, 2, None], {"a": 1, "b": 2}, {"a": 1}, {"a": None}],
    "order": [[1, 2], [2, 1], ["a", "b"], ["b", "a"], {"a": 1, "b": 2}, {"a": 2, "b": 1}],
    "names": [Colour.RED, Colour.GREEN, Shade.RED, "RED", Point(1), Point(1.0), {"x": 1}],
    "masks": [masked([1, 2], [1, 0]), masked([1, 2], [0, 1]), masked([1, 2], [1, 1]), np.array([1, 2]),
              masked([1.0, 2.0], [1, 0]), np.ma.masked, np.array([999999, 2])],
    "records": [record(1, 2.0, fields="i8,f8"), record(1.0, 2.0, fields="f8,f8"), record(BIG + 1, 2.0, fields="i8,f8"),
                record(BIG, 2.0, fields="i8,f8"), record(1, 2.0, fields=[("a", "i8"), ("b", "f8")])],
    "mixed arrays": [np.array([1, "a"], object), np.array([1.0, "a"], object), np.array([True, "a"], object),
                     np.array([None, "a"], object), np.array([math.nan, "a"], object),
                     np.array([BIG + 1, "a"], object), np.array([BIG, "a"], object)],
}  # fmt: skip
EQUAL = {
    "zeros": [0.0, -0.0, np.float32(-0.0)],
    "widths": [
        0.5,
        np.float64(0.5),
        np.float32(0.5),
        np.float16(0.5),
        np.longdouble(0.5),
        np.array(0.5),
    ],
    "whole numbers": [3, np.int8(3), np.uint64(3), np.int64(3), np.array(3)],
    "long whole numbers": [BIG + 1, np.int64(BIG + 1), np.uint64(BIG + 1)],
    "nan": [math.nan, -math.nan, np.float32("nan"), nan_of(0x7FF8000000000001)],
    "texts": ["a", np.str_("a")],
    "order of keys": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "missing": [None, np.ma.masked],
    "beneath a mask": [
        masked([1, 2], [1, 0]),
        masked([7, 2], [1, 0]),
        masked([7, 2], [1, 0], fill_value=3),
    ],
}
BITS = {
    "zeros": [0.0, -0.0],
    "widths": [0.5, np.float32(0.5), np.float16(0.5), np.longdouble(0.5)],
    "nan": [
        math.nan,
        -math.nan,
        np.float32("nan"),
        nan_of(0x7FF8000000000001),
        nan_of(0x7FF8000000000003),
    ],
    "last bits": [0.1, float(np.float32(0.1)), float(np.float16(0.1))],
}


def seen(outputs):
    """What methods can see: shapes, names, and numbers as doubles; equal zeros and NaNs are one."""
    return sorted(
        (block.shape, *(seen_column(column) for column in block.columns)) for block in outputs
    )


def seen_column(column):
    if isinstance(column, Numbers):
        return tuple(repr(float(value) + 0.0) for value in column.values)
    return tuple(column.labels[code] for code in column.codes)


def as_list(value):
    return read_outputs([value])


def as_list_among_others(value):
    return read_outputs([value, None, 1.5, "x"])


def as_column(value):
    return read_outputs({"c": [value]})


def nested(value):
    return read_outputs([[(value, value)]])


def as_object_array(value):
    array = np.empty(1, dtype=object)
    array[0] = value
    return read_outputs(array)


def packed(value):
    return outputs_from_bytes(outputs_to_bytes(as_list(value)))


def kept(value):
    blocks = json.loads(
        json.dumps([_block_to_dict(block) for block in as_list(value)], allow_nan=False)
    )
    return Outputs(tuple(map(_block_from_dict, blocks)), 1)


def joined(value):
    return as_list(value) + as_list(value)


WAYS = [as_list, as_list_among_others, as_column, nested, as_object_array, packed, kept, joined]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", DIFFERENT)
def test_different_outputs_stay_different(name, way):
    for one, other in itertools.combinations(DIFFERENT[name], 2):
        assert seen(way(one)) != seen(way(other)), (one, other)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", EQUAL)
def test_equal_outputs_stay_equal(name, way):
    for one, other in itertools.combinations(EQUAL[name], 2):
        assert seen(way(one)) == seen(way(other)), (one, other)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", BITS)
def test_different_bits_stay_different_in_the_floating_point_view(name, way):
    for one, other in itertools.combinations(BITS[name], 2):
        assert seen(bits_view(way(one))) != seen(bits_view(way(other))), (one, other)


ARRAYS = [
    (np.int64, [BIG, BIG + 1, 2**63 - 1, 2**63 - 2, -(2**63)]),
    (np.uint64, [BIG, BIG + 1, 2**64 - 1, 2**64 - 2]),
    (np.longdouble, [THIRD, float(THIRD), np.longdouble(10) ** 400]),
    ("U3", ["a", "a ", "ab", ""]),
    ("S3", [b"a", b"a ", b"ab", b""]),
    ("M8[ns]", ["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002", "NaT"]),
    ("m8[ns]", [BIG, BIG + 1, "NaT"]),
    ("M8[s]", ["2024-01-01", "2024-01-02", "NaT"]),
]


@pytest.mark.parametrize(("kind", "values"), ARRAYS, ids=[str(kind) for kind, _ in ARRAYS])
def test_arrays_of_different_values_stay_different(kind, values):
    one_by_one = [np.array([value], dtype=kind) for value in values]
    for batch in (
        lambda a: a,
        lambda a: {"c": a},
        lambda a: np.stack([a, a], axis=1),
        lambda a: np.ma.array(a),
    ):
        for one, other in itertools.combinations(one_by_one, 2):
            assert seen(read_outputs(batch(one))) != seen(read_outputs(batch(other))), (one, other)


def audited(one, other, **more):
    mechanism = em.from_callable(lambda x: other if x else one)
    return em.audit(
        mechanism,
        em.Pair(0, 1),
        em.PureDP(1.0),
        samples=200,
        seed=0,
        constant="leak",
        **more,
    ).verdict.name


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_leak_by_the_difference_alone_is_refuted(name):
    for one, other in itertools.pairwise(DIFFERENT[name][:4]):
        assert audited(one, other) == "REFUTED", (one, other)
    one, other = DIFFERENT[name][:2]
    compared = em.compare([one] * 200, [other] * 200, em.PureDP(1.0), seed=0, constant="leak")
    assert compared.verdict.name == "REFUTED"


@pytest.mark.parametrize("name", BITS)
def test_a_leak_by_bits_alone_is_refuted_in_the_floating_point_view(name):
    for one, other in itertools.pairwise(BITS[name]):
        assert audited(one, other, representation="bits") == "REFUTED", (one, other)
        if name != "last bits":
            assert audited(one, other) == "NOT_REFUTED", (one, other)


@pytest.mark.parametrize("name", EQUAL)
def test_equal_outputs_leak_nothing(name):
    for one, other in itertools.pairwise(EQUAL[name]):
        # Not by `audit`, for which a mechanism that returns nothing but None is a mistake.
        assert not em.compare([one] * 200, [other] * 200, em.PureDP(1.0), seed=0).is_refuted, (
            one,
            other,
        )


CSV = {
    "empty": ["", '""', '" "', "0", "NA", "null", "None"],
    "whole numbers": [
        str(BIG),
        str(BIG + 1),
        str(2**64),
        str(2**64 + 1),
        "1" + "0" * 40,
        "1" + "0" * 39 + "1",
    ],
    "numbers and names": ["7", "007", "07", "-7", "1_000", "1000", "seven"],
    "special": ["nan", "inf", "-inf", "na", "infinite"],
    "texts": ["a", "a ", "A", '"a,b"', '"a""b"', '"a\nb"', '"a\r\nb"', "a\0"],
}
CSV_EQUAL = [
    ["1", "1.0", "1e0", '"1"', "+1", " 1"],
    ["0", "-0", "0.0"],
    ["nan", "NaN", "-nan"],
    ["a", '"a"'],
    ["1e5", "100000"],
]
JSON = [
    *(
        "null",
        "NaN",
        '""',
        "0",
        "false",
        "true",
        "1",
        "[]",
        "{}",
        "[null]",
        "[1]",
        "[[1]]",
        '"1"',
        '"null"',
    ),
    *map(str, (BIG, BIG + 1, 2**70, 2**70 + 1)),
    *(
        '{"a": 1}',
        '{"a": null}',
        f'{{"a": {BIG + 1}}}',
        f"[{BIG + 1}]",
        f"[{BIG}]",
        '"\\ud800"',
        '"a\\u0000"',
    ),
]


def of_text(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return seen(recorded_outputs(path))


@pytest.mark.parametrize("name", CSV)
def test_cells_of_csv_files_stay_different(tmp_path, name):
    for one, other in itertools.combinations(CSV[name], 2):
        for row in ("{}\n{}\n", "{0},x\n{0},x\n", "x,{0},y\n{1},{0},y"):
            texts = [of_text(tmp_path, "a.csv", row.format(cell, cell)) for cell in (one, other)]
            assert texts[0] != texts[1], (one, other, row)


@pytest.mark.parametrize("cells", CSV_EQUAL, ids=lambda cells: cells[0])
def test_how_a_csv_file_writes_a_number_is_no_difference(tmp_path, cells):
    assert len({str(of_text(tmp_path, "a.csv", f"{cell}\n{cell}\n")) for cell in cells}) == 1


def test_lines_of_json_stay_different(tmp_path):
    for name in ("a.jsonl", "a.json"):
        texts = [line if name == "a.jsonl" else f"[{line}]" for line in JSON]
        found = [str(of_text(tmp_path, name, text)) for text in texts]
        assert len(set(found)) == len(found)
    sides = [
        f'{{"side": "{side}", "output": {line}}}' for line in JSON for side in ("left", "right")
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(sides))
    both = em.from_recording(tmp_path / "b.jsonl")
    assert seen(both.left.outputs()) == seen(both.right.outputs())
    assert both.left.outputs().size == len(JSON)


@pytest.mark.parametrize(("kind", "values"), ARRAYS, ids=[str(kind) for kind, _ in ARRAYS])
def test_arrays_in_files_stay_different(tmp_path, kind, values):
    found = []
    for value in values:
        np.save(tmp_path / "a.npy", np.array([value], dtype=kind))
        np.savez(tmp_path / "a.npz", x=np.array([[value, value]], dtype=kind))
        found.append([seen(recorded_outputs(tmp_path / name)) for name in ("a.npy", "a.npz")])
    for one, other in itertools.combinations(found, 2):
        assert one[0] != other[0]
        assert one[1] != other[1]


def test_columns_of_parquet_files_stay_different(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [
        ([None, 1, BIG, BIG + 1, 2**63 - 1, 2**63 - 2], pa.int64()),
        ([None, BIG, BIG + 1, 2**64 - 1], pa.uint64()),
        ([None, math.nan, 0.5, math.inf], pa.float64()),
        ([None, True, False], pa.bool_()),
        ([None, "", "a", "None"], pa.string()),
        ([None, "a", "b"], pa.dictionary(pa.int32(), pa.string())),
        ([None, b"", b"a", b"a\0"], pa.binary()),
        ([None, date(2024, 1, 1), date(2024, 1, 2)], pa.date32()),
        ([None, 1_700_000_000_000_000_001, 1_700_000_000_000_000_002], pa.timestamp("ns")),
        ([None, 1, 2], pa.duration("s")),
        ([None, 1, 2], pa.time64("ns")),
        ([None, Decimal("1.00"), Decimal("1.01"), Decimal("9" * 28)], pa.decimal128(38, 2)),
        ([None, [], [None], [1], [BIG + 1], [BIG]], pa.list_(pa.int64())),
        ([None, {"a": None}, {"a": 1}, {"a": BIG + 1}], pa.struct([("a", pa.int64())])),
    ]
    for values, kind in columns:
        found = []
        for value in values:
            # Beside another row, so that a column is never all null.
            pq.write_table(
                pa.table({"x": pa.array([value, values[1]], kind)}), tmp_path / "a.parquet"
            )
            found.append(str(seen(recorded_outputs(tmp_path / "a.parquet"))))
            pq.write_table(pa.table({"x": pa.array([value], kind)}), tmp_path / "b.parquet")
            found[-1] += str(seen(recorded_outputs(tmp_path / "b.parquet")))
        assert len(set(found)) == len(values), kind


def test_tables_of_arrow_keep_nulls_and_long_numbers():
    import pyarrow as pa

    table = pa.table({"x": pa.chunked_array([[1, None], [BIG + 1]]), "y": [math.nan, None, 0.5]})
    assert [block.shape for block in read_outputs(table)] == [
        "{x: int, y: float}",
        "{x: None, y: None}",
        "{x: bigint, y: float}",
    ]
