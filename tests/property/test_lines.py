"""The number line against naive twins, on the numbers that break careless code."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer.outputs import (
    Block,
    BlockPartition,
    Group,
    Labels,
    Line,
    Numbers,
    Outputs,
    Partition,
)
from epsilometer.outputs.atoms import LabelAtoms, NumberAtoms, atoms_from_dict, atoms_to_dict
from epsilometer.testing import HOSTILE_NUMBERS

hostile = st.sampled_from(HOSTILE_NUMBERS)
numbers = hostile | st.floats() | st.integers(-3, 3).map(float) | st.floats(width=16)
edge_lists = st.lists(
    hostile | st.floats(allow_nan=False) | st.integers(-3, 3).map(float), max_size=25
)


@st.composite
def lines(draw):
    edges = np.array([edge for edge in draw(edge_lists) if not math.isnan(edge)], dtype=float)
    if draw(st.booleans()):  # atoms, as `learn_line` makes them
        with np.errstate(over="ignore"):
            edges = np.concatenate([edges, np.nextafter(edges, np.inf)])
    return Line(np.unique(edges))


@st.composite
def lines_with_values(draw):
    line = draw(lines())
    beside = [float(edge) for edge in line.edges]
    beside += [math.nextafter(edge, -math.inf) for edge in beside] + [
        math.nextafter(edge, math.inf) for edge in beside
    ]
    choices = st.one_of(numbers, st.sampled_from(beside)) if beside else numbers
    values = np.array(draw(st.lists(choices, max_size=60)), dtype=float)
    chosen = np.array(
        draw(st.lists(st.booleans(), min_size=line.n_cells, max_size=line.n_cells)), dtype=bool
    )
    return line, values, chosen


def naive_cell(line, value):
    if math.isnan(value):
        return len(line.edges) + 1
    return sum(1 for edge in line.edges if edge <= value)


def counted(line, values):
    """By a partition of single numbers, without its cells for other shapes."""
    outputs = Outputs((Block("number", None, (Numbers(values),), len(values)),), len(values))
    partition = Partition((BlockPartition("number", (None,), (Group((-1,), line),)),))
    return partition.count(outputs)[: line.n_cells]


@given(lines_with_values())
def test_index(case):
    line, values, _ = case
    assert line.index(values).tolist() == [naive_cell(line, value) for value in values]


@given(lines_with_values())
def test_count(case):
    line, values, _ = case
    expected = np.bincount([naive_cell(line, value) for value in values], minlength=line.n_cells)
    assert counted(line, values).tolist() == expected.tolist()


@given(lines_with_values())
def test_contains(case):
    line, values, chosen = case
    assert line.contains(values, chosen).tolist() == [
        bool(chosen[naive_cell(line, value)]) for value in values
    ]


@given(lines_with_values())
def test_merged(case):
    line, values, chosen = case
    merged, kept = line.merged(chosen)
    assert len(kept) == merged.n_cells <= line.n_cells
    assert np.array_equal(kept[merged.index(values)], chosen[line.index(values)])
    # The coarsest one: neighbours differ.
    assert np.all(kept[:-2] != kept[1:-1])


@given(lines_with_values())
def test_intervals(case):
    line, values, chosen = case
    intervals = line.intervals(chosen)
    assert intervals == sorted(intervals)
    for value in values:
        inside = chosen[naive_cell(line, value)]
        if not math.isnan(value) and value != math.inf:
            assert any(low <= value < high for low, high in intervals) == inside
        elif value == math.inf and inside:
            assert intervals[-1][1] == math.inf


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), lines())
def test_integers_are_the_floats_next_to_them(values, line):
    whole = np.array(values, dtype=np.int64)
    assert np.array_equal(line.index(whole), line.index(whole.astype(float)))
    assert np.array_equal(counted(line, whole), counted(line, whole.astype(float)))


@given(lines())
def test_plain_data_round_trip(line):
    back = Line.from_list(json.loads(json.dumps(line.to_list(), allow_nan=False)))
    assert np.array_equal(back.edges, line.edges)


@given(lines_with_values())
def test_values_are_left_alone(case):
    line, values, chosen = case
    before = values.tobytes()
    line.index(values)
    counted(line, values)
    line.contains(values, chosen)
    assert values.tobytes() == before


@given(st.lists(numbers, max_size=12), st.lists(numbers, max_size=40))
def test_number_atoms(atoms, values):
    unique = np.unique(np.array(atoms, dtype=float))
    found = NumberAtoms(unique).codes(Numbers(np.array(values, dtype=float)))

    def naive(value):
        for code, atom in enumerate(unique):
            if value == atom or (math.isnan(value) and math.isnan(atom)):
                return code
        return -1

    assert found.tolist() == [naive(value) for value in values]


@given(st.lists(numbers, max_size=12))
def test_number_atoms_round_trip(atoms):
    unique = np.unique(np.array(atoms, dtype=float))
    back = atoms_from_dict(
        json.loads(json.dumps(atoms_to_dict(NumberAtoms(unique)), allow_nan=False))
    )
    assert isinstance(back, NumberAtoms)
    assert np.array_equal(back.values, unique, equal_nan=True)


@given(
    st.lists(st.text(max_size=3), unique=True, max_size=8),
    st.lists(st.text(max_size=3), max_size=20),
)
def test_label_atoms(atoms, values):
    labels = tuple(dict.fromkeys(values))
    column = Labels(np.array([labels.index(value) for value in values], dtype=np.int32), labels)
    found = LabelAtoms(tuple(atoms))
    assert found.codes(column).tolist() == [
        atoms.index(value) if value in atoms else -1 for value in values
    ]
    assert atoms_from_dict(json.loads(json.dumps(atoms_to_dict(found)))) == found


def test_long_columns_are_counted_in_pieces():
    # More than one piece, with NaN in each of them.
    values = np.tile([np.nan, -np.inf, 0.0, 1.5, np.inf], 20_000)
    line = Line(np.array([0.0, np.nextafter(0.0, 1.0), 1.5]))
    assert counted(line, values).tolist() == np.bincount(line.index(values), minlength=5).tolist()
    assert counted(line, values).tolist() == [20_000, 20_000, 0, 40_000, 20_000]


@pytest.mark.parametrize("ends", [4, 40])
def test_few_and_many_ends_contain_alike(ends):
    line = Line(np.arange(ends, dtype=float))
    chosen = np.arange(line.n_cells) % 2 == 0
    values = np.concatenate([np.linspace(-2, ends + 2, 999), [np.nan, np.inf, -np.inf]])
    assert np.array_equal(line.contains(values, chosen), chosen[line.index(values)])
