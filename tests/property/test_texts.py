"""Texts of every kind are read without an error, the same way everywhere."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from epsilometer.methods.partitions import learn_partitions
from epsilometer.outputs import Event, concatenate, read_outputs
from epsilometer.outputs.preparing import prepare
from epsilometer.outputs.shapes import leaves_of, shape_words
from epsilometer.outputs.text_formats import ParsedText
from epsilometer.outputs.text_learning import learn_text_reading
from epsilometer.outputs.text_reading import TextReading, reading_from_dict
from epsilometer.outputs.text_values import clock_of, day_of, moment_of, number_of, tokens_of

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)

HOSTILE_TEXTS = [
    "",
    " ",
    "\0",
    "a\0b=3\0",
    "1e400",
    "-0",
    "−7",
    "٣٤",
    "²",
    "9" * 400,
    "0x" + "f" * 500,
    "1,234,567.89",
    "$-3",
    "12 %",
    "nan",
    "NaN",
    "inf",
    "{",
    "[" * 3000,
    '{"a": NaN, "a": 2, "b": {"c": [1, {"d": null}]}}',
    '{"a": 1e999, "é": "\\ud800"}',
    "[" + "9" * 5000 + "]",
    '{"": {"": 1}}',
    "a=1 a=2 b=",
    "=",
    "a=b=c; d: 'e f'",
    '1,"two, three",4',
    '"unfinished,1',
    "1;2;3\r\n",
    "2024-02-30T25:61:61Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "99:99:99",
    "\ud800",
    "🙂 3 🙂",
    "x" * 100_000,
    "1," * 20_000,
    "a1" * 9_000,
]
numbers = st.integers().map(str) | st.floats().map(repr) | st.floats().map("{:,.2f}".format)
anything = st.text(st.characters(codec=None), max_size=12)
shaped = st.one_of(
    numbers,
    st.tuples(numbers, numbers).map(lambda pair: f"rows={pair[0]} total={pair[1]}"),
    st.lists(numbers | anything, min_size=1, max_size=4).map(",".join),
    st.dictionaries(st.sampled_from("abc"), st.floats() | st.text(max_size=2) | st.none()).map(
        json.dumps
    ),
    st.datetimes().map(str),
    st.from_regex(r"[A-Z]{2}[0-9]{3}", fullmatch=True),
)
texts = st.sampled_from(HOSTILE_TEXTS) | anything | shaped


@st.composite
def samples(draw, kind=None):
    """Some texts of one kind, repeated or numbered, with some of any kind between them."""
    kind = kind or draw(st.sampled_from([numbers, shaped, texts]))
    base = draw(st.lists(kind, min_size=14, max_size=40, unique=True))
    hostile = draw(st.lists(texts, max_size=8))
    n = draw(st.sampled_from([1, 3, 30]))
    return [f"{text}" if n > 3 else f"{text}{turn}" for turn in range(n) for text in base] + hostile


records = st.lists(
    st.fixed_dictionaries({"note": shaped, "n": st.integers(0, 3), "raw": st.binary(max_size=3)}),
    min_size=30,
    max_size=60,
)


def learned(left, right):
    return learn_text_reading(read_outputs(left), read_outputs(right))


def columns_by_row(outputs):
    """What every output became, as plain values."""
    rows = [None] * outputs.size
    for block in outputs.blocks:
        columns = [
            column.values.tolist()
            if hasattr(column, "values")
            else [column.labels[code] for code in column.codes]
            for column in block.columns
        ]
        for place, row in enumerate(block.places().tolist()):
            rows[row] = (block.shape, *(repr(column[place]) for column in columns))
    return rows


@given(texts)
@settings(max_examples=300)
@example("a" * 20_000)
def test_no_text_is_too_hard_to_parse(text):
    parsed = ParsedText(text)
    for grouped in (False, True):
        tokens = parsed.tokens(grouped)
        if tokens is not None:
            pieces = [
                piece
                for pair in zip(tokens.literals, tokens.values, strict=False)
                for piece in pair
            ]
            joined = "".join(pieces) + tokens.literals[-1]
            assert "".join(joined.split()) == "".join(text.split())
    for fields in (parsed.json_fields, parsed.pairs):
        assert fields is None or all(isinstance(key, str) for key in fields)
    for value in (number_of(text), day_of(text), moment_of(text), clock_of(text)):
        assert value is None or isinstance(value, float)
    for separator in ",;\t|":
        parsed.entries(separator)


@given(st.floats(allow_nan=False))
def test_a_printed_number_is_read_as_itself(number):
    assert number_of(repr(number)) == number
    if np.isfinite(number):
        (value,) = tokens_of(repr(number), grouped=False).values
        assert number_of(value) == number


@given(samples(), samples(), st.lists(texts, max_size=20))
@relaxed
def test_any_text_can_be_read_by_any_reading(left, right, unseen):
    reading = learned(left, right)
    if reading is None:
        return
    outputs = read_outputs([*left, *unseen])
    read = reading.read(outputs)
    assert read.size == outputs.size
    assert sorted(np.concatenate([block.places() for block in read]).tolist()) == list(
        range(read.size)
    )
    assert [block.places()[0] for block in read] == sorted(block.places()[0] for block in read)
    for block in read.blocks:
        assert len(block.columns) == sum(leaf.n_columns for leaf in leaves_of(block.shape))
        assert shape_words(block.shape)
    assert reading.read(read) is read


@given(samples(), samples(), st.lists(texts, min_size=1, max_size=20), st.data())
@relaxed
def test_chunks_are_read_like_the_whole(left, right, unseen, data):
    reading = learned(left, right)
    if reading is None:
        return
    outputs = [*unseen, *right]
    cut = data.draw(st.integers(0, len(outputs)))
    parts = [read_outputs(part) for part in (outputs[:cut], outputs[cut:]) if part]
    joined = concatenate([reading.read(part) for part in parts])
    assert columns_by_row(joined) == columns_by_row(reading.read(read_outputs(outputs)))


@given(samples(), samples(), records)
@relaxed
def test_a_reading_is_plain_data(left, right, rows):
    for sides in ((left, right), (rows, rows[::-1])):
        reading = learned(*sides)
        if reading is None:
            continue
        data = json.loads(json.dumps(reading.to_dict()))
        json.dumps(reading.to_dict(), ensure_ascii=False).encode()
        restored = reading_from_dict(data)
        assert restored == reading
        outputs = read_outputs([*sides[0], "unseen", 3])
        assert columns_by_row(restored.read(outputs)) == columns_by_row(reading.read(outputs))


@given(records, st.data())
@relaxed
def test_an_event_of_texts_is_one_of_outputs_as_they_come(rows, data):
    left = read_outputs(rows)
    right = read_outputs(rows[::-1])
    prepared = prepare(left, right)
    partition = learn_partitions(prepared.left, prepared.right)[-1].partition
    chosen = np.array(
        data.draw(st.lists(st.booleans(), min_size=partition.n_cells, max_size=partition.n_cells))
    )
    event = prepared.of_raw_outputs(Event(partition, chosen))
    expected = event.contains(left).tolist()
    assert Event(partition, chosen).contains(prepared.left).tolist() == expected
    assert event.contains(rows).tolist() == expected
    assert event.simplified().contains(left).tolist() == expected
    restored = Event.from_dict(json.loads(json.dumps(event.to_dict())))
    assert restored.contains(left).tolist() == expected
    assert restored.describe() == event.describe()
    cut = len(rows) // 2
    assert [*event.contains(rows[:cut]), *event.contains(rows[cut:])] == expected


@given(samples(), st.data())
@relaxed
def test_damaged_data_is_refused_or_reads_something(texts_of_both, data):
    reading = learned(texts_of_both, texts_of_both)
    if reading is None:
        return
    stored = json.loads(json.dumps(reading.to_dict()))
    holders = [stored]
    leaves = []
    while holders:
        holder = holders.pop()
        for key in range(len(holder)) if isinstance(holder, list) else list(holder):
            leaves.append((holder, key))
            if isinstance(holder[key], list | dict):
                holders.append(holder[key])
    holder, key = data.draw(st.sampled_from(leaves))
    holder[key] = data.draw(
        st.none() | st.integers(-3, 99) | st.text(max_size=3) | st.just([]) | st.just({})
    )
    try:
        forged = reading_from_dict(stored)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return
    assert isinstance(forged, TextReading)
    forged.read(read_outputs([*texts_of_both, *HOSTILE_TEXTS]))


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_a_hostile_text_among_readable_ones(text):
    readable = [f"rows={turn % 7} total={turn * 1.37:.3f}" for turn in range(100)]
    reading = learned([*readable, text, text], [text, *readable[::-1]])
    read = reading.read(read_outputs([text, *readable]))
    sizes = sorted(block.size for block in read.blocks)
    assert sizes in ([1, 100], [101])
