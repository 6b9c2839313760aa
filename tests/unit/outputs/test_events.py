"""Events on hand-made partitions."""

import json

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.outputs import BlockPartition, Event, Group, Line, Partition, read_outputs
from epsilometer.outputs.atoms import LabelAtoms, NumberAtoms
from epsilometer.outputs.number_words import number_text
from epsilometer.outputs.scores import AdditiveScore, Term
from epsilometer.outputs.shapes import leaves_of


def event(partition, *cells):
    mask = np.zeros(partition.n_cells, dtype=bool)
    mask[list(cells)] = True
    return Event(partition, mask)


FLOATS = Partition((BlockPartition("float", (None,), (Group((-1,), Line(np.array([0.0, 1.0]))),)),))
WORDS = Partition(
    (BlockPartition("str", (LabelAtoms(("yes", "no")),), (Group((0,)), Group((1,)))),)
)
# (flag, number): the number is cut where the flag is true, and left whole where it is false.
PAIRS = Partition(
    (
        BlockPartition(
            "tuple(bool, float)",
            (NumberAtoms(np.array([0.0, 1.0])), None),
            (Group((0, -1)), Group((1, -1), Line(np.array([5.0])), column=1)),
        ),
    )
)
NOTHING = Partition((BlockPartition("None", (), (Group((0,)),)), *FLOATS.blocks))
SCORE = AdditiveScore(
    (
        Term(0, Line(np.array([0.0])), np.array([-1.0, 1.0, 0.0])),
        Term(1, LabelAtoms(("a",)), np.array([2.0, -2.0])),
    )
)
SCORED = Partition(
    (
        BlockPartition(
            "tuple(float, str)",
            (None, None),
            (Group((-1, -1), Line(np.array([0.0])), score=SCORE),),
        ),
    )
)


class TestCells:
    def test_numbers(self):
        outputs = read_outputs([-1.0, 0.0, 0.5, 2.0, np.nan])
        assert FLOATS.index(outputs).tolist() == [0, 1, 1, 2, 3]
        assert FLOATS.count(outputs).tolist() == [1, 2, 1, 1, 0, 0]

    def test_unknown_shapes_share_the_last_cell(self):
        outputs = read_outputs([0.5, "x", None, 3])
        assert FLOATS.index(outputs).tolist() == [1, 5, 5, 5]
        assert FLOATS.count(outputs).tolist() == [0, 1, 0, 0, 0, 3]

    def test_unknown_words_share_the_last_cell_of_their_shape(self):
        outputs = read_outputs(["no", "yes", "perhaps", 1.0])
        assert WORDS.index(outputs).tolist() == [1, 0, 2, 3]

    def test_signatures(self):
        outputs = read_outputs([(True, 9.0), (False, 9.0), (True, 1.0), (True, np.nan)])
        assert PAIRS.index(outputs).tolist() == [2, 0, 1, 3]

    def test_shapes_without_columns(self):
        assert NOTHING.index(read_outputs([None, 0.5, None])).tolist() == [0, 3, 0]

    def test_scores(self):
        outputs = read_outputs([(1.0, "a"), (-1.0, "a"), (1.0, "b"), (-1.0, "b")])
        assert SCORE.evaluate(outputs.blocks[0].columns).tolist() == [3.0, 1.0, -1.0, -3.0]
        assert SCORED.index(outputs).tolist() == [1, 1, 0, 0]

    def test_no_outputs(self):
        assert FLOATS.count(read_outputs([])).tolist() == [0] * 6
        assert event(FLOATS, 1).contains(read_outputs([])).shape == (0,)


class TestEvent:
    def test_takes_whatever_a_mechanism_may_return(self):
        found = event(FLOATS, 1, 3)
        assert found.contains([0.5, 7.0, np.nan, "x"]).tolist() == [True, False, True, False]
        assert found.contains(np.array([0.5, 7.0])).tolist() == [True, False]
        assert found.contains(read_outputs([0.5, 7.0, np.nan, "x"])).sum() == 2

    @pytest.mark.parametrize(
        ("found", "text"),
        [
            (event(FLOATS, 0), "output < 0"),
            (event(FLOATS, 2, 3), "output ≥ 1 or NaN"),
            (event(FLOATS, 3), "output is NaN"),
            (event(FLOATS, 5), "an output of any other shape"),
            (event(FLOATS), "nothing"),
            (event(WORDS, 0), "output = 'yes'"),
            (event(WORDS, 0, 2), "output = 'yes'; or any other str"),
            (event(PAIRS, 2), "output[0] = True and output[1] ≥ 5"),
            (event(PAIRS, 0), "output[0] = False"),
            (event(NOTHING, 0), "output is None"),
        ],
    )
    def test_words(self, found, text):
        assert found.describe() == text

    def test_scores_have_words(self):
        text = event(SCORED, 1).describe()
        assert text == "2·[output[1] = 'a'] + 2·[output[0] ≥ 0] ≥ 0 (approximately)", text

    @pytest.mark.parametrize(
        ("shape", "paths"),
        [
            ("float", ["output"]),
            ("{count: int, total: float}", ["count", "total"]),
            ("{'a b': list(2 × float), x: {y: str, None: None}}",
             ["output['a b'][0]", "output['a b'][1]", "x.y", "x.None"]),
            ("{[1]: float, [('a, ]: b', 2)]: int, [nan']: int}",
             ["output[1]", "output[('a, ]: b', 2)]", "output[nan']"]),
            ("{[1]: float, [('a', 2)]: int}", ["output[1]", "output[('a', 2)]"]),
            ("array(2 × 2 × float)", ["output[0, 0]", "output[0, 1]", "output[1, 0]", "output[1, 1]"]),
            ("array(3: 2 × int, bigint)", ["output[0]", "output[1]", "output[2]"]),
            ("DataFrame({k: list(2 × str), v: list(2 × float)})", ["k[0]", "k[1]", "v[0]", "v[1]"]),
            ("Point{x: float, at: time UTC+1:00:00}", ["x", "at"]),
            ("tuple(complex(longdouble, float), 'odd (name)')",
             ["output[0]", "imaginary part of output[0]", "output[1]"]),
            ("frozenset(2 × str)", ["output member 0", "output member 1"]),
            ("{'{x}': list(2 × float)}", ["output['{x}'][0]", "output['{x}'][1]"]),
            ("list()", []),
            ("a shape that nobody made {", ["output"]),
        ],
    )  # fmt: skip
    def test_parts_have_the_names_of_the_output(self, shape, paths):
        found = [leaf.path for leaf in leaves_of(shape)]
        assert found == paths

    @pytest.mark.parametrize(
        ("value", "kind", "text"),
        [
            (739617, "date", "2026-01-01"),
            (3.6e9, "timedelta", "1:00:00"),
            (0.0, "datetime", "1970-01-01 00:00:00"),
            (3.6e9, "time UTC+1:00:00", "01:00:00"),
            (1.0, "bool", "True"),
            (1234567.0, "int", "1234567"),
            (3.14159, "float", "3.142"),
            (20454, "datetime64[D]", "2026-01-01"),
            (1e300, "date", "1e+300"),
        ],
    )
    def test_numbers_as_people_write_them(self, value, kind, text):
        assert number_text(value, kind) == text

    def test_a_score_of_one_column_is_no_score(self):
        cells = Line(np.array([0.0, 1.0, 2.0]))
        score = AdditiveScore((Term(1, cells, np.array([-1.0, 0.0, 1.0, 2.0, 0.0])),))
        group = Group((-1, -1), Line(np.array([0.5])), score=score)
        found = event(Partition((BlockPartition("tuple(2 × float)", (None, None), (group,)),)), 1)
        outputs = [(9.0, value) for value in (-1.0, 0.5, 1.0, 3.0, np.nan)]
        assert found.simplified().describe() == "output[1] ≥ 1"
        assert np.array_equal(found.simplified().contains(outputs), found.contains(outputs))

    def test_a_score_of_names_is_a_set_of_names(self):
        score = AdditiveScore(
            (Term(0, LabelAtoms(("yes", "no", "maybe")), np.array([2.0, -1.0, 1.0, 0.0])),)
        )
        partition = Partition(
            (BlockPartition("str", (None,), (Group((-1,), Line(np.array([0.5])), score=score),)),)
        )
        outputs = ["yes", "no", "maybe", "never seen", 3]
        for cells in ([0], [1], [0, 1], [1, 4]):
            found = event(partition, *cells)
            assert np.array_equal(found.simplified().contains(outputs), found.contains(outputs)), (
                cells
            )
        assert event(partition, 1).simplified().describe() == "output = 'yes'; or output = 'maybe'"

    def test_many_atoms_are_counted_not_spelled_out(self):
        names = tuple(f"name{number}" for number in range(40))
        partition = Partition(
            (
                BlockPartition(
                    "str", (LabelAtoms(names),), tuple(Group((code,)) for code in range(40))
                ),
            )
        )
        text = event(partition, *range(40)).describe()
        assert "more kinds of outputs" in text
        assert len(text) < 300

    def test_long_names_are_cut(self):
        partition = Partition(
            (BlockPartition("str", (LabelAtoms(("x" * 5000,)),), (Group((0,)),)),)
        )
        assert len(event(partition, 0).describe()) < 100

    @pytest.mark.parametrize("partition", [FLOATS, WORDS, PAIRS, NOTHING, SCORED])
    def test_every_choice_survives_storage_and_simplification(self, partition):
        outputs = read_outputs(
            [
                -1.0,
                0.0,
                2.0,
                np.nan,
                "yes",
                "no",
                "?",
                (True, 9.0),
                (False, 1.0),
                None,
                (1.0, "a"),
                (-1.0, "z"),
                7,
            ]
        )
        for bits in range(2**partition.n_cells):
            found = event(
                partition, *(cell for cell in range(partition.n_cells) if bits >> cell & 1)
            )
            hits = found.contains(outputs)
            assert np.array_equal(found.simplified().contains(outputs), hits)
            back = Event.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
            assert type(back) is Event
            assert back.describe() == found.describe()
            assert np.array_equal(back.contains(outputs), hits)

    def test_simplified_is_coarse(self):
        line = Line(np.arange(50.0))
        partition = Partition((BlockPartition("float", (None,), (Group((-1,), line),)),))
        simple = event(partition, *range(10, 20)).simplified()
        assert (
            simple.partition.n_cells == 6
        )  # below, inside, above, NaN, other floats, other shapes
        assert simple.describe() == "output between 9 and 19"

    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"partition": [], "chosen": [5]},
            {"partition": [{}], "chosen": []},
            {"partition": None, "chosen": []},
            {"partition": [], "chosen": "all"},
            {
                "partition": [
                    {"shape": "float", "atoms": [None], "groups": [{"signature": ["x"]}]}
                ],
                "chosen": [],
            },
        ],
    )
    def test_what_is_no_stored_event(self, data):
        with pytest.raises(InputError, match="stored event"):
            Event.from_dict(data)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([True, True, False, False], "any float output"),
        ([True, True, True, False], "any float output or NaN"),
        ([True, False, False, False], "output < 0.5"),
    ],
)
def test_a_whole_line_is_named_by_its_shape(chosen, text):
    block = BlockPartition("float", (None,), (Group((-1,), Line(np.array([0.5]))),))
    assert Event(Partition((block,)), np.array([*chosen, False])).describe() == text
