"""Statistics of long vectors: which there are, and what they find in few draws."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.scores import learn_scores
from epsilometer.methods.scores.summaries import summary_scores
from epsilometer.outputs import read_outputs

ALL = ["mean square", "largest absolute value", "zeros", "not finite"]


def block(rows):
    return read_outputs(rows).blocks[0]


def names(left, right, has_norms=False):
    return [score.name for score in summary_scores(block(left), block(right), has_norms=has_norms)]


def test_only_what_varies_is_a_score(rng):
    left, right = rng.normal(size=(8, 30)), rng.normal(size=(8, 30))
    assert names(left, right) == ALL[:2]
    assert names(left, right, has_norms=True) == []
    left[2, 4] = 0.0
    right[1, 9] = np.nan
    assert names(left, right) == ALL
    assert names(left, right, has_norms=True) == ALL[2:]
    assert names(np.ones((8, 30)), np.ones((8, 30))) == []


def test_scores_are_the_statistics(rng):
    left, right = rng.normal(size=(6, 30)), rng.normal(size=(7, 30))
    left[0, 0] = np.inf
    left[1, :3] = 0.0
    by_name = {
        score.name: score for score in summary_scores(block(left), block(right), has_norms=False)
    }
    np.testing.assert_allclose(by_name["mean square"].right, np.mean(right**2, axis=1))
    np.testing.assert_allclose(by_name["largest absolute value"].right, np.abs(right).max(axis=1))
    np.testing.assert_allclose(by_name["mean square"].left[0], np.mean(left[0, 1:] ** 2))
    assert by_name["zeros"].left.tolist() == [0, 3, 0, 0, 0, 0]
    assert by_name["not finite"].left.tolist() == [1, 0, 0, 0, 0, 0]


def test_rows_without_a_finite_number_belong_to_no_tail(rng):
    left, right = rng.normal(size=(9, 30)), rng.normal(size=(9, 30))
    left[:2] = np.nan
    score = summary_scores(block(left), block(right), has_norms=False)[0]
    assert (len(score.left), score.outside) == (7, (2, 0))


def test_truth_values_are_left_out_and_short_vectors_too(rng):
    rows = [{"yes": bool(a[0] > 0), "values": a.tolist()} for a in rng.normal(size=(9, 8))]
    scores = summary_scores(block(rows), block(rows), has_norms=False)
    assert scores[0].shapes[0].partition.groups[0].score.read == tuple(range(8))
    short = [{"yes": row["yes"], "values": row["values"][1:]} for row in rows]
    assert names(short, short) == []


def test_vectors_with_enough_draws_have_norms_instead(rng):
    def names_of(n, d):
        left = read_outputs(rng.normal(size=(n, d)))
        right = read_outputs(rng.normal(size=(n, d)))
        return {score.name for score in learn_scores(left, right)}

    assert "mean square" in names_of(12, 30)
    assert "mean square" in names_of(60, 100)
    assert "mean square" not in names_of(60, 10)
    assert "norm" in names_of(60, 10)


def test_a_private_normalisation_is_found_in_few_draws_and_told_in_words():
    def mechanism(x, n, rng):
        return rng.normal(size=(n, 150)) / (1.3 if x else 1.0)

    result = em.audit(em.from_batch(mechanism), em.Pair(0, 1), em.PureDP(0.5), samples=60, seed=1)
    assert result.verdict is em.Verdict.REFUTED
    words = "the mean square of output[0], output[1], output[2] and 147 more columns"
    assert words in result.witness.event.describe()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "the number of zeros among output[0], output[1], output[2] and 147 more columns ≥ 1"),
        (np.nan, "the number of NaN and infinite values among output[0], output[1], output[2] and"),
        (7.0, "the largest absolute value of output[0], output[1], output[2] and 147 more columns"),
    ],
)
def test_a_value_anywhere_in_a_long_vector_is_told_in_words(value, words):
    def mechanism(x, n, rng):
        rows = rng.normal(size=(n, 150))
        if x:
            rows[np.arange(n), rng.integers(150, size=n)] = value
        return rows

    result = em.audit(em.from_batch(mechanism), em.Pair(0, 1), em.PureDP(0.5), samples=60, seed=1)
    assert result.verdict is em.Verdict.REFUTED
    assert words in result.witness.event.describe()
    # Plain data: stored, read again, and counted alike.
    again = em.AuditResult.from_json(result.to_json()).witness.event
    probe = mechanism(1, 50, np.random.default_rng(3))
    assert np.array_equal(again.contains(probe), result.witness.event.contains(probe))
    assert again.describe() == result.witness.event.describe()
