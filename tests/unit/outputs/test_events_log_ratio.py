"""The stored score: plain data that says and does the same again."""

import json

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.outputs import BlockPartition, Group, Line, Partition, read_outputs
from epsilometer.outputs.events import LogRatio, witness_from_dict


@pytest.fixture
def score():
    line = Line(np.array([0.0, 1.0, 2.0]))
    partition = Partition((BlockPartition("float", (None,), (Group((-1,), line),)),))
    # Cells: < 0, [0, 1), [1, 2), ≥ 2, NaN, other numbers (none), other shapes.
    scores = np.array([1.0, 0.5, 0.5, -1.0, 0.0, 0.0, 0.0])
    p = np.array([0.4, 0.2, 0.2, 0.2, 0.0, 0.0, 0.0])
    q = np.array([0.1, 0.2, 0.2, 0.5, 0.0, 0.0, 0.0])
    return LogRatio(partition, scores, 2.0, p, q)


OUTPUTS = read_outputs([-3.0, 0.5, 1.5, 7.0, float("nan"), "word"])


def test_outputs_get_the_score_of_their_cell(score):
    np.testing.assert_array_equal(score.evaluate(OUTPUTS), [1.0, 0.5, 0.5, -1.0, 0.0, 0.0])
    np.testing.assert_array_equal(score.contains([0.5, 7.0]), [True, False])


def test_neighbours_with_one_score_are_merged(score):
    simple = score.simplified()
    assert simple.partition.n_cells == score.partition.n_cells - 1
    np.testing.assert_array_equal(simple.evaluate(OUTPUTS), score.evaluate(OUTPUTS))
    assert simple.p.sum() == pytest.approx(1.0)
    assert simple.q @ simple.scores == pytest.approx(score.q @ score.scores)


def test_it_survives_json(score):
    stored = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    again = witness_from_dict(stored)
    assert isinstance(again, LogRatio)
    assert again.to_dict() == stored
    np.testing.assert_array_equal(again.evaluate(OUTPUTS), score.evaluate(OUTPUTS))


def test_it_describes_itself(score):
    text = score.describe()
    assert "a score from -1 to 1" in text
    assert "output < 2" in text


@pytest.mark.parametrize(
    "change", [{"scores": [0.0]}, {"scores": "many"}, {"order": None}, {"partition": 3}]
)
def test_a_damaged_score_is_an_input_error(score, change):
    with pytest.raises(InputError, match="stored score"):
        LogRatio.from_dict(score.to_dict() | change)
