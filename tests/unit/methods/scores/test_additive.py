"""Additive scores by empirical Bayes."""

from dataclasses import replace

import numpy as np
import pytest

from epsilometer.methods.scores import additive
from epsilometer.methods.scores.additive import Side, fit, fit_score, folds_of, starts_of
from epsilometer.methods.scores.cells import cut_columns
from epsilometer.methods.scores.folds import FOLDS
from epsilometer.outputs import read_outputs


def block(rows):
    return read_outputs(rows).blocks[0]


def close_laws(rng, n=4000, d=6, shift=0.1):
    return block(rng.laplace(size=(n, d))), block(shift + rng.laplace(size=(n, d)))


def sides_of(left, right):
    cuts = cut_columns(left, right, [(column, None) for column in range(len(left.columns))])
    return cuts, Side.of(cuts, left, folds_of(left)), Side.of(cuts, right, folds_of(right))


def one_hot(cuts, side):
    return np.concatenate(
        [np.eye(cut.size)[cells] for cut, cells in zip(cuts, side.cells, strict=True)], axis=1
    )


def test_the_mean_is_that_of_the_gaussian_model(rng):
    """The literal posterior of w given a difference that is distributed as N(G·w, noise·G), by a pseudo-inverse."""
    cuts, left, right = sides_of(*close_laws(rng))
    a, b = one_hot(cuts, left), one_hot(cuts, right)
    gram = np.cov(np.concatenate([a, b]).T, bias=True)
    difference, noise = a.mean(axis=0) - b.mean(axis=0), 1 / len(a) + 1 / len(b)
    starts = starts_of(cuts)
    own, common = additive._column_parts(cuts, starts), additive._shared_parts(cuts, starts)
    found = additive.Posterior(gram, own, common, difference, noise)
    k = found.prior
    literal = k @ gram @ np.linalg.pinv(gram @ k @ gram + noise * gram, rcond=1e-10) @ difference
    np.testing.assert_allclose(found.mean(difference, noise), literal, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("few_cells", [0, 99])  # by counting, and by products of matrices
def test_the_tables_are_those_of_indicators(rng, monkeypatch, few_cells):
    monkeypatch.setattr(additive, "_FEW_CELLS", few_cells)
    monkeypatch.setattr(additive, "_ROWS_AT_ONCE", 200)
    cuts, left, _ = sides_of(*close_laws(rng, n=500))
    hot, weight = one_hot(cuts, left), rng.random(500)
    np.testing.assert_array_equal(
        additive._co_occurrences(left.cells, starts_of(cuts)), hot.T @ hot
    )
    weighted = additive._co_occurrences(left.cells, starts_of(cuts), weight)
    np.testing.assert_allclose(weighted, (hot * weight[:, None]).T @ hot, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shift", [0.1, 1.0])  # close laws, and those that need Newton's steps
def test_a_draw_is_scored_without_itself(rng, shift):
    """Other draws in fold 0 change the weights without fold 0 only through what chooses the prior."""
    cuts, left, right = sides_of(*close_laws(rng, n=20_000, d=3, shift=shift))
    (_, *without), starts = fit(cuts, left, right), starts_of(cuts)
    scores = left.left_out(starts, without), right.left_out(starts, without)
    for scored, side in zip(scores, (left, right), strict=True):
        for fold, rows in enumerate(side.folds):
            np.testing.assert_allclose(scored[rows], side.score(starts, without[fold])[rows])
    # Noise fitted to the left-out draws themselves would order them better than it orders new ones.
    again = [
        Side.of(cuts, block(s + rng.laplace(size=(20_000, 3))), left.folds) for s in (0.0, shift)
    ]
    new = [np.mean([side.score(starts, weights) for weights in without], axis=0) for side in again]
    own_gap, new_gap = scores[0].mean() - scores[1].mean(), new[0].mean() - new[1].mean()
    assert own_gap == pytest.approx(new_gap, rel=0.2)


def test_columns_that_share_a_function_are_pooled(rng):
    """Twenty columns of which each alone proves nothing: the fitted weights point where the true ones do."""
    left, right = close_laws(rng, n=20_000, d=20, shift=0.05)
    score = fit_score(left, right, range(20))
    fresh = [rng.laplace(size=(20_000, 20)) + shift for shift in (0.0, 0.05)]
    truth = [np.sum(np.abs(x - 0.05) - np.abs(x), axis=1) for x in fresh]
    ours = [score.evaluate(block(x).columns) for x in fresh]
    correlation = np.corrcoef(np.concatenate(truth), np.concatenate(ours))[0, 1]
    assert correlation > 0.85


def test_one_column_of_many(rng):
    left, right = rng.normal(size=(3000, 300)), rng.normal(size=(3000, 300))
    right[:, 7] += 0.5
    score = fit_score(block(left), block(right), range(300))
    assert score.columns == (7,)


def test_names_and_missing_numbers_are_cells(rng):
    rows = [
        [("a", "b")[int(x < p)], float("nan") if x < p / 2 else x]
        for p in (0.3, 0.5)
        for x in rng.random(2000)
    ]
    left, right = block(rows[:2000]), block(rows[2000:])
    score = fit_score(left, right, [0, 1])
    values = score.evaluate(block([["a", 0.9], ["b", float("nan")]]).columns)
    assert values[0] > values[1]


def test_a_constant_block_has_a_score_of_zero():
    same = block([(1.0, 2.0)] * 200)
    assert not fit_score(same, same, [0, 1]).evaluate(same.columns).any()


def test_folds_do_not_depend_on_the_shape(rng):
    mixed = read_outputs([[1.0, 2.0] if x < 0.3 else [1.0] for x in rng.random(1000)])
    rows = np.concatenate([b.rows[fold] for b in mixed.blocks for fold in folds_of(b)[:1]])
    assert sorted(rows.tolist()) == list(range(0, 1000, FOLDS))


def test_many_columns_take_little_time_and_sparse_weights(rng, monkeypatch):
    """The independent fit agrees with the joint one where columns are independent."""
    left, right = close_laws(rng, n=8000, d=4, shift=0.2)
    cuts, a, b = sides_of(left, right)
    joint = fit(cuts, a, b)[0]
    monkeypatch.setattr(additive, "MOST_WEIGHTS", 1)
    monkeypatch.setattr(additive, "_shared_parts", lambda *_: [])
    alone = fit(cuts, a, b)
    assert np.corrcoef(joint, alone[0])[0, 1] > 0.95
    assert alone.shape == (1 + FOLDS, len(joint))


def test_a_mixed_term_is_stored_and_read_back(rng):
    from epsilometer.outputs.lines import Line
    from epsilometer.outputs.scores import AdditiveScore, Term

    score = AdditiveScore(
        (
            Term(
                1,
                Line(np.array([0.0, 1.0])),
                np.array([-1.0, 0.5, 2.0, 0.0]),
                np.array([-1.0, 2.0]),
            ),
        )
    )
    rows = block(rng.normal(size=(50, 2)))
    again = AdditiveScore.from_dict(score.to_dict())
    np.testing.assert_array_equal(again.evaluate(rows.columns), score.evaluate(rows.columns))
    assert score.columns == (0, 1)
    damaged = score.to_dict() | {
        "terms": [score.to_dict()["terms"][0] | {"mix": [1.0, float("inf")]}]
    }
    with pytest.raises(ValueError, match="finite share"):
        AdditiveScore.from_dict(damaged)
    assert replace(score.terms[0], mix=None).numbers(rows.columns) is rows.columns[1].values


class TestScore:
    def test_separates_three_columns(self, rng):
        left, right = (read_outputs(rng.normal(shift, 1, (4000, 3))) for shift in (0.0, 0.6))
        score = fit_score(left.blocks[0], right.blocks[0], [0, 1, 2])
        fresh = [
            read_outputs(rng.normal(shift, 1, (4000, 3))).blocks[0].columns for shift in (0.0, 0.6)
        ]
        scores = [score.evaluate(columns) for columns in fresh]
        assert scores[0].mean() > scores[1].mean()
        # The best possible separation is that of N(0, 1) and N(0.6·√3, 1): area under the curve Φ(0.6·√3/√2) = 0.77.
        ranks = np.argsort(np.argsort(np.concatenate(scores)))
        area = (ranks[:4000].sum() - 4000 * 3999 / 2) / 4000**2
        assert 0.74 < area < 0.80

    def test_is_a_log_ratio(self, rng):
        left, right = (read_outputs(rng.laplace(shift, 1, (20_000, 2))) for shift in (0.0, 1.0))
        score = fit_score(left.blocks[0], right.blocks[0], [0, 1])
        far = read_outputs(np.array([[-3.0, -3.0], [4.0, 4.0]])).blocks[0].columns
        assert score.evaluate(far) == pytest.approx([2.0, -2.0], abs=0.35)

    def test_words_and_numbers(self, rng):
        def draw(weight):
            return read_outputs(
                [(rng.random(), "yes" if rng.random() < weight else "no") for _ in range(2000)]
            )

        left, right = draw(0.8), draw(0.2)
        score = fit_score(left.blocks[0], right.blocks[0], [0, 1])
        asked = read_outputs([(0.5, "yes"), (0.5, "no"), (0.5, "other")]).blocks[0].columns
        yes, no, other = score.evaluate(asked)
        assert yes > other > no
