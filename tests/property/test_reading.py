"""Reading against a slow literal twin, and against values that lie, raise and pretend."""

from __future__ import annotations

import enum
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import groupby

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import Labels, concatenate
from epsilometer.outputs.reading import read_outputs

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@dataclass
class Answer:
    first: object
    second: object


# --- the twin: one output at a time, as the definition says


def twin(value):
    """(shape, leaves) of one output."""
    if isinstance(value, np.ndarray):
        return twin(value[()]) if value.ndim == 0 else twin_array(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        name = value.dtype.name
        return (
            (f"NaT {name}", [])
            if np.isnat(value)
            else twin_whole(int(value.astype(np.int64)), name, f"long {name}")
        )
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "None", []
    if isinstance(value, Colour):
        return "Colour", [value.name]
    if isinstance(value, complex):
        return "complex", [value.real, value.imag]
    if type(value) is int:
        return twin_whole(value, "int", "bigint")
    if isinstance(value, bytes):
        return "bytes", ["".join(twin_byte(byte) for byte in value)]
    if isinstance(value, (bool, int, float, str)):
        return type(value).__name__, [value]
    return twin_container(value)


def twin_whole(value, short, long):
    if abs(value) <= 2**53:
        return short, [value]
    low = value % 2**53
    return long, [float(value), low if low < 2**52 else low - 2**53]


def twin_byte(byte):
    named = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}
    return named.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")


def twin_runs(shapes):
    runs = [(shape, len(list(same))) for shape, same in groupby(shapes)]
    return ", ".join(shape if count == 1 else f"{count} × {shape}" for shape, count in runs)


def twin_parts(values):
    parts = [twin(value) for value in values]
    return [shape for shape, _ in parts], [leaf for _, leaves in parts for leaf in leaves]


def twin_array(value):
    shapes, leaves = twin_parts(value.reshape(-1))
    sizes = " × ".join(map(str, value.shape))
    if value.size == 0:
        shapes = ["object" if value.dtype == object else twin(np.zeros(1, value.dtype)[0])[0]]
    inner = f" × {shapes[0]}" if len(set(shapes)) == 1 else f": {twin_runs(shapes)}"
    return f"array({sizes}{inner})", leaves


def twin_container(value):
    if isinstance(value, (set, frozenset)):
        value_name, value = (
            type(value).__name__,
            sorted(value, key=lambda part: (type(part).__name__, repr(part))),
        )
    else:
        value_name = type(value).__name__
    if isinstance(value, dict) or is_dataclass(value):
        names = [field.name for field in fields(value)] if is_dataclass(value) else sorted(value)
        shapes, leaves = twin_parts(
            [getattr(value, n) if is_dataclass(value) else value[n] for n in names]
        )
        pairs = ", ".join(
            f"{name if name.isidentifier() else ascii(name)}: {shape}"
            for name, shape in zip(names, shapes, strict=True)
        )
        return f"{'Answer' if is_dataclass(value) else ''}{{{pairs}}}", leaves
    shapes, leaves = twin_parts(value)
    return f"{value_name}({twin_runs(shapes)})", leaves


def twin_blocks(values):
    blocks = {}
    for row, value in enumerate(values):
        shape, leaves = twin(value)
        blocks.setdefault(shape, []).append((row, leaves))
    return [
        (
            shape,
            [row for row, _ in found],
            [
                list(map(repr, column))
                for column in zip(*(leaves for _, leaves in found), strict=True)
            ],
        )
        for shape, found in blocks.items()
    ]


def plain(outputs):
    """Blocks as lists; numbers by repr, which tells -0.0 from 0.0 and 1 from 1.0 and shows NaN."""
    return [
        (
            block.shape,
            list(range(block.size)) if block.rows is None else block.rows.tolist(),
            [list(map(repr, leaves(column))) for column in block.columns],
        )
        for block in outputs
    ]


def leaves(column):
    return (
        [column.labels[code] for code in column.codes]
        if isinstance(column, Labels)
        else column.values.tolist()
    )


def check_form(outputs, size):
    """What `Outputs` promises whatever the values were."""
    assert len(outputs) == size == sum(block.size for block in outputs)
    for block in outputs:
        assert (block.rows is None) == (block.size == size)
        assert all(len(column) == block.size for column in block.columns)
        assert all(
            len(set(column.labels)) == len(column.labels)
            for column in block.columns
            if isinstance(column, Labels)
        )
    firsts = [0 if block.rows is None else block.rows[0] for block in outputs]
    assert firsts == sorted(firsts)


# --- values

numbers = (
    st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.complex_numbers()
)
words = st.text(max_size=3) | st.binary(max_size=3) | st.sampled_from(Colour) | st.none()
scalars = (
    hnp.from_dtype(np.dtype("f4")) | hnp.from_dtype(np.dtype("u8")) | hnp.from_dtype(np.dtype("i2"))
)
times = hnp.from_dtype(np.dtype("M8[s]")) | hnp.from_dtype(np.dtype("m8[D]"))
hashable = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=2)
sets = st.frozensets(hashable, max_size=3) | st.sets(hashable, max_size=3)
dtypes = st.sampled_from(
    [
        "?",
        "i1",
        "u8",
        "i8",
        ">i4",
        "f2",
        "f4",
        "f8",
        ">f8",
        "c8",
        "c16",
        "U2",
        "S2",
        "M8[ms]",
        "m8[s]",
    ]
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
arrays = hnp.arrays(dtypes, shapes) | hnp.arrays(object, shapes, elements=numbers | words)
keys = st.sampled_from(["a", "b", "a b", "", "é", "\ud800"]) | st.text(max_size=2)


def grow(parts):
    rows = st.lists(parts, max_size=4)
    return (
        rows
        | rows.map(tuple)
        | st.dictionaries(keys, parts, max_size=3)
        | st.builds(Answer, parts, parts)
    )


values = st.recursive(numbers | words | scalars | times | sets | arrays, grow, max_leaves=8)
# Few kinds, so that many outputs share a shape and parts vary independently.
narrow = st.one_of(
    st.lists(st.booleans() | st.floats(), max_size=3).map(tuple),
    st.lists(
        st.sampled_from([1, 2**63, -(2**63), 0.0, -0.0, None, "x", np.float32(2), Colour.RED]),
        max_size=4,
    ),
    st.fixed_dictionaries(
        {"k": st.none() | st.integers(0, 3), "l": st.lists(st.booleans(), max_size=2)}
    ),
)


@relaxed
@given(st.lists(values, max_size=8) | st.lists(narrow, max_size=40))
@example([np.array([1, 2**63], dtype=np.uint64), np.array([2**63, 1], dtype=np.uint64)])
@example([(True, 1.0), (True, 2), (1, 1.0), (1, 2)] * 2)
def test_reading_agrees_with_the_twin(batch):
    outputs = read_outputs(batch, len(batch))
    assert plain(outputs) == twin_blocks(batch)
    check_form(outputs, len(batch))


@relaxed
@given(hnp.arrays(dtypes, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
def test_an_array_is_read_like_the_list_of_its_entries(batch):
    assert plain(read_outputs(batch)) == plain(read_outputs(list(batch))) == twin_blocks(batch)


@relaxed
@given(st.lists(st.lists(narrow, max_size=6), min_size=1, max_size=4))
def test_batches_read_apart_join_to_the_batch_read_whole(batches):
    joined = concatenate([read_outputs(batch) for batch in batches])
    assert plain(joined) == plain(read_outputs([value for batch in batches for value in batch]))


@relaxed
@given(
    st.integers(0, 5).flatmap(
        lambda n: st.dictionaries(keys, st.lists(narrow, min_size=n, max_size=n), min_size=1)
    )
)
def test_columns_are_read_like_rows(columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert plain(read_outputs(columns)) == twin_blocks(rows)


# --- hostile values


class Shameless(Exception):
    pass


def refuse(*args, **kwargs):
    raise Shameless


METHODS = [
    "__repr__",
    "__str__",
    "__len__",
    "__iter__",
    "__hash__",
    "__eq__",
    "__getitem__",
    "__bool__",
    "__float__",
]
METHODS += [
    "__index__",
    "__int__",
    "__array__",
    "__lt__",
    "__getattribute__",
    "__complex__",
    "__contains__",
    "__bytes__",
]
BASES = [
    object,
    list,
    tuple,
    dict,
    set,
    frozenset,
    int,
    float,
    complex,
    str,
    bytes,
    np.float64,
    np.ndarray,
    Exception,
]


LIES = {
    "__len__": lambda self: 3,
    "__class__": property(lambda self: float),
    "columns": property(refuse),
}


@dataclass
class Recipe:
    """How to make a hostile value; Hypothesis must be able to print what it draws."""

    base: type
    broken: frozenset[str]
    lies: frozenset[str]

    def make(self):
        body = dict.fromkeys(self.broken, refuse) | {name: LIES[name] for name in self.lies}
        kind = type("Hostile", (self.base,), body)
        return kind(2) if self.base is np.ndarray else kind()


class Sly(type):
    __hash__ = None
    __name__ = property(refuse)


class Sick(enum.Enum):
    ONE = 1
    __hash__ = refuse
    __eq__ = refuse
    __repr__ = refuse


@dataclass
class Stubborn:
    field: int = 0

    def __getattribute__(self, name):
        raise Shameless


ODD = {
    "sly": Sly("X", (), {})(),
    "sick": Sick.ONE,
    "stubborn": Stubborn(),
    "masked": np.ma.masked,
    "function": refuse,
}
ODD |= {
    "type": type,
    "ellipsis": ...,
    "object": object(),
    "refusal": NotImplemented,
    "slice": slice(3),
}


@dataclass
class Odd:
    name: str

    def make(self):
        return ODD[self.name]


def build(tree):
    """The tree with its recipes carried out."""
    if isinstance(tree, (Recipe, Odd)):
        return tree.make()
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(build, tree))
    if isinstance(tree, dict):
        return {key: build(part) for key, part in tree.items()}
    return Answer(build(tree.first), build(tree.second)) if isinstance(tree, Answer) else tree


hostile = st.builds(
    Recipe,
    st.sampled_from(BASES),
    st.frozensets(st.sampled_from(METHODS)),
    st.frozensets(st.sampled_from(sorted(LIES))),
)
odd = st.builds(Odd, st.sampled_from(sorted(ODD)))
anything = st.recursive(hostile | odd | numbers | arrays, grow, max_leaves=5)


def read_or_refuse(batch, expected):
    """The outputs, or None after a MechanismError; every other error fails the test."""
    with suppress(MechanismError):
        return read_outputs(batch, expected)
    return None


@relaxed
@example(batch=[Odd("stubborn"), Odd("stubborn")])
@given(st.lists(anything, max_size=4))
def test_a_hostile_output_is_read_or_refused(batch):
    outputs = read_or_refuse(build(batch), len(batch))
    if outputs is not None:
        check_form(outputs, len(batch))


@relaxed
@given(anything | st.dictionaries(keys, anything, max_size=3), st.none() | st.integers(0, 3))
def test_a_hostile_batch_is_read_or_refused(batch, expected):
    outputs = read_or_refuse(build(batch), expected)
    if outputs is not None:
        check_form(outputs, len(outputs))


@pytest.mark.parametrize(
    "batch", [[Odd("sly")], Recipe(object, frozenset({"__getattribute__"}), frozenset())], ids=str
)
def test_looking_for_the_usual_case_asks_nothing_of_the_outputs(batch):
    """Types without a hash, and batches whose attributes raise; which examples are made depends on what is loaded."""
    assert read_or_refuse(build(batch), None) is None


def test_an_enum_without_hash_is_read():
    assert plain(read_outputs([Sick.ONE, Sick.ONE])) == [("Sick", [0, 1], [["'ONE'", "'ONE'"]])]


def test_an_interrupt_is_not_swallowed():
    def interrupted():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_outputs(interrupted())
