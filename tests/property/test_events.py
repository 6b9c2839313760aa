"""Partitions and events over outputs of every kind: one event, many ways to ask it."""

import enum
import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epsilometer.methods.partitions import learn_partitions
from epsilometer.outputs import Event, Outputs, concatenate, read_outputs
from epsilometer.testing import HOSTILE_NUMBERS

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


floats = st.sampled_from(HOSTILE_NUMBERS) | st.floats()
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | floats
    | st.text(max_size=2)
    | st.binary(max_size=2)
    | st.sampled_from(Colour)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.sampled_from("ab"), inner)
    ),
    max_leaves=4,
)


# A few values many times make atoms; a run of distinct floats makes bins.
@st.composite
def batches(draw):
    few, times, steps = (
        draw(st.lists(trees, min_size=1, max_size=12)),
        draw(st.integers(1, 9)),
        draw(st.integers(0, 120)),
    )
    return (
        few * times
        + [0.5 * step for step in range(steps)]
        + [(0.5 * step, -step) for step in range(steps // 2)]
    )


@st.composite
def events(draw):
    left, right = read_outputs(draw(batches())), read_outputs(draw(batches()))
    ways = learn_partitions(left, right)
    partition = draw(st.sampled_from(ways)).partition
    chosen = np.array(
        draw(st.lists(st.booleans(), min_size=partition.n_cells, max_size=partition.n_cells)),
        dtype=bool,
    )
    return Event(partition, chosen), left, right, read_outputs(draw(batches()))


@relaxed
@given(events())
def test_counting_is_indexing(case):
    event, *samples = case
    for outputs in samples:
        cells = event.partition.index(outputs)
        assert cells.shape == (len(outputs),)
        assert cells.min(initial=0) >= 0
        assert np.array_equal(
            event.partition.count(outputs), np.bincount(cells, minlength=event.partition.n_cells)
        )


@relaxed
@given(events())
def test_the_simplified_event_is_the_same_event(case):
    event, *samples = case
    simple = event.simplified()
    assert simple.partition.n_cells <= event.partition.n_cells
    for outputs in samples:
        assert np.array_equal(simple.contains(outputs), event.contains(outputs))
        assert simple.contains(outputs).sum() == event.contains(outputs).sum()


@relaxed
@given(events())
def test_the_stored_event_is_the_same_event(case):
    event, *samples = case
    for kept in (event, event.simplified()):
        text = json.dumps(kept.to_dict(), allow_nan=False)
        back = Event.from_dict(json.loads(text))
        assert back.describe() == kept.describe()
        assert json.dumps(back.to_dict(), allow_nan=False) == text
        for outputs in samples:
            assert np.array_equal(back.contains(outputs), kept.contains(outputs))


@relaxed
@given(events())
def test_every_event_has_words(case):
    event, *_ = case
    for kept in (event, event.simplified()):
        assert kept.describe()
        assert (kept.describe() == "nothing") == (not kept.chosen.any())


@relaxed
@given(events(), st.randoms(use_true_random=False))
def test_order_and_batching_change_nothing(case, random):
    event, outputs, *_ = case
    hits = event.contains(outputs)
    order = list(range(len(outputs)))
    random.shuffle(order)
    assert np.array_equal(event.contains(outputs.take(np.array(order))), hits[order])
    cut = random.randrange(len(outputs) + 1)
    parts = [outputs.take(slice(0, cut)), outputs.take(slice(cut, len(outputs)))]
    assert sum(event.contains(part).sum() for part in parts) == event.contains(outputs).sum()
    assert np.array_equal(event.contains(concatenate(parts)), hits)


@relaxed
@given(batches(), st.data())
def test_take_is_list_indexing(values, data):
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    taken = read_outputs(values).take(np.array(rows, dtype=np.int64))
    assert same(taken, read_outputs([values[row] for row in rows]))


@relaxed
@given(st.lists(batches(), min_size=1, max_size=4))
def test_concatenate_is_list_addition(lists):
    joined = concatenate([read_outputs(values) for values in lists])
    assert same(joined, read_outputs([value for values in lists for value in values]))


def same(a: Outputs, b: Outputs) -> bool:
    """Equal outputs in equal order, whatever the blocks look like."""
    return len(a) == len(b) and rows_of(a) == rows_of(b)


def rows_of(outputs):
    found = [None] * len(outputs)
    for block in outputs:
        places = range(block.size) if block.rows is None else block.rows
        for number, row in enumerate(places):
            found[row] = (block.shape, *(leaf(column, number) for column in block.columns))
    return found


def leaf(column, number):
    if hasattr(column, "labels"):
        return column.labels[column.codes[number]]
    return np.asarray(column.values[number]).tobytes()  # tells -0.0 from 0.0 and knows NaN
