"""Readings on hand-made templates: the same columns everywhere, and stored as plain data."""

import copy
import json
import pickle
from typing import ClassVar

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.outputs import (
    BlockPartition,
    Event,
    Group,
    Line,
    Partition,
    bits,
    concatenate,
    read_outputs,
)
from epsilometer.outputs.atoms import LabelAtoms, NumberAtoms
from epsilometer.outputs.events import LogRatio, witness_from_dict
from epsilometer.outputs.scores import AdditiveScore, Term
from epsilometer.outputs.shapes import leaves_of, shape_words
from epsilometer.outputs.text_formats import Format
from epsilometer.outputs.text_reading import (
    ColumnReading,
    ShapeReading,
    Template,
    TextReading,
    reading_from_dict,
)
from epsilometer.outputs.text_views import TextView

TOTAL = TextView("=total", "number", "float", "`total` in the JSON text")
USER = TextView("=user", "label", "str", "`user` in the JSON text")
JSON = Template(Format("json"), (TOTAL, USER), keeps_text=False)
REST = Template(Format("text"), ())
READING = TextReading((ShapeReading("str", 1, (ColumnReading(0, False, (JSON, REST)),)),))
JSON_SHAPE, REST_SHAPE = READING.shapes[0].shapes()
TEXTS = ['{"total": 3, "user": "al"}', "?", '{"total": 104.5}', '{"user": "bo", "total": 7}', ""]
# Totals from 100 on, and texts without a format that are "?".
PARTITION = Partition(
    (
        BlockPartition(JSON_SHAPE, (None, None), (Group((-1, -1), Line(np.array([100.0]))),)),
        BlockPartition(REST_SHAPE, (LabelAtoms(("?",)),), (Group((0,)),)),
    ),
    READING,
)
EVENT = Event(PARTITION, np.array([False, True, False, False, True, False, False]))


class TestReading:
    def test_every_template_is_a_shape(self):
        json_block, rest = READING.read(read_outputs(TEXTS)).blocks
        assert json_block.shape == JSON_SHAPE
        assert json_block.places().tolist() == [0, 2, 3]
        assert json_block.columns[0].values.tolist() == [3.0, 104.5, 7.0]
        labels = json_block.columns[1]
        assert [labels.labels[code] for code in labels.codes] == ["al", "(missing)", "bo"]
        assert rest.places().tolist() == [1, 4]
        assert rest.columns[0].labels == ("?", "")

    def test_shapes_name_their_leaves(self):
        assert [(leaf.path, leaf.kind) for leaf in leaves_of(JSON_SHAPE)] == [
            ("`total` in the JSON text", "float"),
            ("`user` in the JSON text", "str"),
        ]
        assert shape_words(JSON_SHAPE) == "str like `JSON`"
        assert [leaf.path for leaf in leaves_of(REST_SHAPE)] == ["output"]

    def test_other_shapes_stay_as_they_are(self):
        outputs = read_outputs([1.5, TEXTS[0], None])
        read = READING.read(outputs)
        assert [block.shape for block in read] == ["float", JSON_SHAPE, "None"]
        assert READING.read(read) is read
        plain = read_outputs([1.0, 2.0])
        assert READING.read(plain) is plain

    def test_only_labels_that_occur_are_read(self):
        rows = read_outputs(TEXTS).take(slice(1, 2))
        (block,) = READING.read(rows).blocks
        assert block.shape == REST_SHAPE

    def test_no_outputs(self):
        assert READING.read(read_outputs([])).size == 0

    def test_columns_that_are_left_out(self):
        shape = "{id: int, n: float, note: str}"
        note = ColumnReading(2, False, (JSON, REST))
        reading = TextReading((ShapeReading(shape, 3, (note,), left_out=(0,)),))
        rows = [{"id": 5, "n": 1.5, "note": TEXTS[0]}, {"id": 6, "n": 2.5, "note": "x"}]
        first, second = reading.read(read_outputs(rows)).blocks
        assert next(leaf.path for leaf in leaves_of(first.shape)) == "n"
        assert [leaf.path for leaf in leaves_of(second.shape)] == ["n", "note"]
        (left,) = reading.leave_out(read_outputs(rows)).blocks
        assert [leaf.path for leaf in leaves_of(left.shape)] == ["n", "note"]

    def test_bytes_are_unescaped(self):
        byte = TextView("", "byte", "int", "byte 1 of the text", 0, 1)
        column = ColumnReading(0, True, (Template(Format("text"), (byte,)),))
        reading = TextReading((ShapeReading("bytes", 1, (column,)),))
        (block,) = reading.read(read_outputs([b"\xff", b"\\", b"\n", b""])).blocks
        assert block.columns[1].values.tolist()[:3] == [255, 92, 10]
        assert np.isnan(block.columns[1].values[3])

    def test_pickled(self):
        assert pickle.loads(pickle.dumps(READING)) == READING


class TestEvents:
    expected: ClassVar = [False, True, True, False, False]

    def test_events_are_about_outputs_as_they_come(self):
        assert EVENT.contains(TEXTS).tolist() == self.expected
        assert EVENT.contains(READING.read(read_outputs(TEXTS))).tolist() == self.expected
        assert EVENT.simplified().contains(TEXTS).tolist() == self.expected
        assert PARTITION.count(read_outputs(TEXTS)).tolist() == [2, 1, 0, 0, 1, 1, 0]
        assert PARTITION.index(read_outputs(TEXTS)).tolist() == [0, 4, 1, 0, 5]

    def test_chunks(self):
        parts = [read_outputs(TEXTS[:2]), read_outputs(TEXTS[2:])]
        in_parts = [hit for part in parts for hit in EVENT.contains(part).tolist()]
        assert in_parts == EVENT.contains(concatenate(parts)).tolist() == self.expected

    def test_words(self):
        assert EVENT.describe() == (
            "str like `JSON` with `total` in the JSON text ≥ 100; or output = '?'"
        )

    def test_words_of_values_and_of_what_is_missing(self):
        values = BlockPartition(JSON_SHAPE, (NumberAtoms(np.array([3.0])), None), (Group((0, -1)),))
        chosen = np.array([True, False, False])
        event = Event(Partition((values,), READING), chosen)
        assert event.describe() == "`total` in the JSON text is 3"
        nan = np.array([False, False, True, False, False, False, False])
        assert "`total` in the JSON text is missing or NaN" in Event(PARTITION, nan).describe()

    def test_round_trip(self):
        data = json.loads(json.dumps(EVENT.to_dict()))
        restored = witness_from_dict(data)
        assert restored.contains(TEXTS).tolist() == self.expected
        assert restored.partition.reading == READING
        assert restored.to_dict() == EVENT.to_dict()

    def test_events_without_texts_are_stored_as_before(self):
        blocks = (BlockPartition("float", (None,), (Group((-1,), Line(np.array([0.0]))),)),)
        event = Event(Partition(blocks), np.array([True, False, False, False, False]))
        assert "reading" not in event.to_dict()

    def test_scores(self):
        scores = np.arange(7.0)
        uniform = np.full(7, 1 / 7)
        score = LogRatio(PARTITION, scores, 2.0, uniform, uniform)
        assert score.evaluate(TEXTS).tolist() == [0.0, 4.0, 1.0, 0.0, 5.0]
        restored = witness_from_dict(json.loads(json.dumps(score.to_dict())))
        assert restored.evaluate(TEXTS).tolist() == [0.0, 4.0, 1.0, 0.0, 5.0]
        assert score.simplified().evaluate(TEXTS).tolist() == [0.0, 4.0, 1.0, 0.0, 5.0]

    def test_the_view_of_bits_keeps_the_reading(self):
        event = bits.as_bits_event(EVENT)
        assert event.contains(TEXTS).tolist() == self.expected
        assert witness_from_dict(event.to_dict()).contains(TEXTS).tolist() == self.expected


def forged(path, value):
    """The stored event with one entry replaced."""
    data = copy.deepcopy(EVENT.to_dict())
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return data


VIEW = ("reading", 0, "columns", 0, "templates", 0, "views", 0)


class TestDamagedData:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("reading",), []),
            (("reading",), {}),
            (("reading",), "x"),
            (("reading", 0), None),
            (("reading", 0, "shape"), JSON_SHAPE),
            (("reading", 0, "shape"), "float"),
            (("reading", 0, "shape"), 3),
            (("reading", 0, "shape"), "bytes"),
            (("reading", 0, "n_columns"), 2),
            (("reading", 0, "left_out"), [1]),
            (("reading", 0, "left_out"), ["0"]),
            (("reading", 0, "left_out"), [0, 0]),
            (("reading", 0, "columns", 0, "column"), 1),
            (("reading", 0, "columns", 0, "column"), -1),
            (("reading", 0, "columns", 0, "column"), 0.0),
            (("reading", 0, "columns", 0, "bytes"), 1),
            (("reading", 0, "columns", 0, "templates"), []),
            (("reading", 0, "columns", 0, "templates", 1, "format"), {"kind": "json"}),
            (("reading", 0, "columns", 0, "templates", 0, "text"), "yes"),
            (("reading", 0, "columns", 0, "templates", 0, "format"), {"kind": "eval"}),
            (("reading", 0, "columns", 0, "templates", 0, "views"), [3]),
            ((*VIEW, "kind"), "pickle"),
            ((*VIEW, "kind"), "label"),
            ((*VIEW, "as"), "str"),
            ((*VIEW, "as"), "complex"),
            ((*VIEW, "name"), "a\nb"),
            ((*VIEW, "name"), "x" * 1000),
            ((*VIEW, "name"), "another name"),
            ((*VIEW, "part"), [0, 65]),
            ((*VIEW, "part"), [3, 2]),
            ((*VIEW, "part"), [0.5, 2]),
            (("partition", 0, "groups", 0, "column"), 1),
            (("partition", 0, "atoms"), [{"labels": ["x"]}, None]),
            (("partition", 0, "atoms"), [None, {"numbers": [1.0]}]),
            (("partition", 0, "shape"), JSON_SHAPE.replace("total", "sum")),
        ],
    )
    def test_refused(self, path, value):
        with pytest.raises(InputError, match="cannot be read"):
            Event.from_dict(forged(path, value))

    def test_a_shape_of_read_texts_needs_its_reading(self):
        data = EVENT.to_dict()
        del data["reading"]
        with pytest.raises(InputError, match="reading does not know"):
            Event.from_dict(data)

    def test_two_readings_of_one_shape(self):
        stored = READING.to_dict()
        with pytest.raises(ValueError, match="two readings"):
            reading_from_dict(stored * 2)

    def test_a_score_that_cuts_a_text(self):
        term = Term(1, Line(np.array([0.0])), np.zeros(3))
        group = Group((-1, -1), Line(np.array([0.0])), score=AdditiveScore((term,)))
        partition = Partition((BlockPartition(JSON_SHAPE, (None, None), (group,)),), READING)
        data = Event(partition, np.zeros(partition.n_cells, dtype=bool)).to_dict()
        with pytest.raises(InputError, match="like numbers"):
            Event.from_dict(data)

    def test_too_many_views_and_templates(self):
        stored = READING.to_dict()
        template = stored[0]["columns"][0]["templates"][0]
        template["views"] = template["views"] * 40
        with pytest.raises(ValueError, match="views"):
            reading_from_dict(stored)
        stored = READING.to_dict()
        templates = stored[0]["columns"][0]["templates"]
        stored[0]["columns"][0]["templates"] = templates[:1] * 9 + templates[1:]
        with pytest.raises(ValueError, match="template"):
            reading_from_dict(stored)
