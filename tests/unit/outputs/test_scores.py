"""Scores of trees, networks and kernels: evaluated as written down, stored as plain data, refused when damaged."""

import json
import math

import numpy as np
import pytest

from epsilometer.outputs import Line, read_outputs
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.embedding import FARTHEST, Embedding, NameAxis, NumberAxis
from epsilometer.outputs.lines import CodedColumn
from epsilometer.outputs.scores import (
    KernelScore,
    NetworkScore,
    Statistic,
    SummaryScore,
    TreeScore,
    score_from_dict,
)

ROWS = [("a", 0.5), ("b", math.nan), ("a", -math.inf), ("zz", 3.0), ("b", 1e308)]
COLUMNS = read_outputs(ROWS).blocks[0].columns
CODINGS = (CodedColumn(0, LabelAtoms(("b", "a"))), CodedColumn(1, Line(np.array([0.0, 1.0]))))
EMBEDDING = Embedding((NameAxis(0, CODINGS[0].cells), NumberAxis(1, 0.5, 2.0)))


def trees():
    features, thresholds = np.array([[0, 1], [1, 0]]), np.array([[1, 2], [1, 2]])
    return TreeScore(
        CODINGS, features, thresholds, np.array([[0.1, 0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0]])
    )


def network():
    rng = np.random.default_rng(1)
    weights = (rng.normal(size=(5, 4)), rng.normal(size=(4, 1)))
    return NetworkScore(EMBEDDING, weights, (rng.normal(size=4), rng.normal(size=1)), 2.0)


def kernel():
    return KernelScore(
        EMBEDDING, 1.5, np.random.default_rng(2).normal(size=(3, 5)), np.array([0.5, -0.2, 0.1])
    )


def summary():
    return SummaryScore((0, 1), Statistic.NOT_FINITE)


def literal_tree_score(score, codes):
    """Question by question."""
    total = 0.0
    for features, thresholds, leaves in zip(
        score.features, score.thresholds, score.leaves, strict=True
    ):
        answers = "".join(
            str(int(codes[f] >= t)) for f, t in zip(features, thresholds, strict=True)
        )
        total += leaves[int(answers, 2)]
    return total


def literal_point(row):
    name, number = row
    corners = [float(name == "b"), float(name == "a"), float(name not in ("a", "b"))]
    if math.isnan(number):
        return np.array([*corners, 0.0, FARTHEST])
    return np.array([*corners, min(max((number - 0.5) / 2.0, -FARTHEST), FARTHEST), 0.0])


def test_codes():
    assert CODINGS[0].index(COLUMNS).tolist() == [1, 0, 1, 2, 0]
    assert CODINGS[1].index(COLUMNS).tolist() == [1, 3, 0, 2, 2]


def test_trees_answer_question_by_question():
    codes = [coding.index(COLUMNS) for coding in CODINGS]
    expected = [
        literal_tree_score(trees(), [codes[0][row], codes[1][row]]) for row in range(len(ROWS))
    ]
    assert trees().evaluate(COLUMNS) == pytest.approx(expected)


def test_points_have_a_place_for_everything():
    assert EMBEDDING.points(COLUMNS) == pytest.approx(
        np.array([literal_point(row) for row in ROWS])
    )


def test_network_is_its_layers():
    score = network()
    hidden = np.tanh(
        np.array([literal_point(row) for row in ROWS]) @ score.weights[0] + score.biases[0]
    )
    last = (hidden @ score.weights[1] + score.biases[1])[:, 0]
    assert score.evaluate(COLUMNS) == pytest.approx(2.0 * np.tanh(last / 2.0))


def test_kernel_is_its_sum():
    score = kernel()
    expected = [
        sum(
            weight * math.exp(-0.5 * float(((literal_point(row) - landmark) ** 2).sum()) / 1.5**2)
            for weight, landmark in zip(score.weights, score.landmarks, strict=True)
        )
        for row in ROWS
    ]
    assert score.evaluate(COLUMNS) == pytest.approx(expected)


@pytest.mark.parametrize(
    "score", [trees(), network(), kernel(), summary()], ids=lambda score: type(score).__name__
)
def test_stored_and_read_again(score):
    again = score_from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
    assert type(again) is type(score)
    assert np.array_equal(again.evaluate(COLUMNS), score.evaluate(COLUMNS))
    assert again.columns == (0, 1)


@pytest.mark.parametrize(
    ("score", "damage"),
    [
        (trees(), {"features": [[0, 5], [1, 0]]}),
        (trees(), {"leaves": [[0.0] * 4, [math.inf] * 4]}),
        (trees(), {"thresholds": [[1], [1]]}),
        (network(), {"biases": [[0.0], [0.0]]}),
        (network(), {"bound": -1.0}),
        (network(), {"axes": EMBEDDING.to_list()[:1]}),
        (kernel(), {"weights": [1.0]}),
        (kernel(), {"bandwidth": 0.0}),
        (kernel(), {"axes": EMBEDDING.to_list()[1:]}),
        (kernel(), {"kind": "oracle"}),
        (summary(), {"columns": []}),
        (summary(), {"statistic": "median"}),
    ],
)
def test_damaged_scores_are_refused(score, damage):
    with pytest.raises(ValueError, match=r"score|network|tree|layers|summary|Statistic"):
        score_from_dict(score.to_dict() | damage)
