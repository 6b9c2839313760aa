"""Scores that see columns together, and the trees that are grown only where columns interact."""

import numpy as np
import pytest

from epsilometer.methods.scores.by_shape import additive_score
from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.methods.scores.elements import elements_score
from epsilometer.methods.scores.forest import forest_score
from epsilometer.methods.scores.interactions import (
    InteractingPair,
    interacting_pairs,
    pair_outcomes,
)
from epsilometer.methods.scores.joint import joint_scores
from epsilometer.methods.scores.stacked import stacked_score
from epsilometer.outputs import read_outputs
from epsilometer.outputs.scores import score_from_dict


def block(rows):
    return read_outputs(rows).blocks[0]


def pairs_of(left, right):
    return blocks_of_both(read_outputs(left), read_outputs(right))


def mean_gap(score):
    """How far the cross-fitted scores of both sides are apart, in standard errors."""
    error = np.sqrt(score.left.var() / len(score.left) + score.right.var() / len(score.right))
    return (score.left.mean() - score.right.mean()) / error


class TestJoint:
    def test_the_regression_is_the_log_ratio_of_rotated_normal_noise(self, rng):
        turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        shift = 0.8 * turn[:, 0]

        def draw(n):
            return rng.normal(size=(n, 4)) * np.array([0.5, 1.0, 2.0, 4.0]) @ turn.T

        left, right = block(draw(5000) + shift), block(draw(5000))
        (linear,) = (score for score in joint_scores(left, right) if score.name == "linear")
        probe = draw(2000)
        inverse = turn @ np.diag([4.0, 1.0, 0.25, 0.0625]) @ turn.T
        truth = probe @ inverse @ shift
        found = linear.shapes[0].partition.groups[0].score.evaluate(block(probe).columns)
        assert np.corrcoef(truth, found)[0, 1] > 0.98

    def test_a_norm_is_a_score_of_its_own(self, rng):
        left, right = block(1.3 * rng.normal(size=(4000, 3))), block(rng.normal(size=(4000, 3)))
        norms = [score for score in joint_scores(left, right) if score.name == "norm"]
        assert len(norms) == 3
        assert all(mean_gap(norm) > 10.0 for norm in norms)

    def test_equal_distributions_are_not_told_apart(self, rng):
        left, right = block(rng.normal(size=(3000, 5))), block(rng.normal(size=(3000, 5)))
        # A gap of cross-fitted scores has no bias: beyond 7 standard errors with chance 3e-12.
        assert all(mean_gap(score) < 7.0 for score in joint_scores(left, right))

    @pytest.mark.parametrize(
        "rows",
        [
            [(True, 1.0), (False, 2.0)] * 100,
            [("a", 0.5, 1.5)] * 200,
            [(float("inf"), 1.0), (2.0, 3.0)] * 100,
            [(1.0, 2.0)] * 200,
        ],
        ids=["one number", "constants", "infinite", "equal"],
    )
    def test_other_outputs_have_none(self, rows):
        assert joint_scores(block(rows), block(rows)) == []

    def test_is_stored_and_read_back(self, rng):
        left, right = block(1.0 + rng.normal(size=(500, 3))), block(rng.normal(size=(500, 3)))
        for learned in joint_scores(left, right):
            score = learned.shapes[0].partition.groups[0].score
            again = score_from_dict(score.to_dict())
            assert np.array_equal(again.evaluate(left.columns), score.evaluate(left.columns))


class TestInteractions:
    def draw(self, rng, side, n=3000):
        bits = rng.random((n, 8)) < 0.5
        agree = rng.random(n) < (0.65 if side else 0.35)
        bits[:, 6] = bits[:, 2] == agree
        return bits

    def test_the_pair_that_interacts_is_found(self, rng):
        left, right = self.draw(rng, 1), self.draw(rng, 0)
        additive = additive_score("additive", pairs_of(left, right))
        pairs = interacting_pairs(block(left), block(right), additive.left, additive.right)
        assert (pairs[0].first, pairs[0].second) == (2, 6)

    def test_trees_find_what_no_column_shows(self, rng):
        left, right = self.draw(rng, 1), self.draw(rng, 0)
        additive = additive_score("additive", pairs_of(left, right))
        pairs = interacting_pairs(block(left), block(right), additive.left, additive.right)
        forest = forest_score(block(left), block(right), pairs)
        assert mean_gap(additive) < 7.0
        assert mean_gap(forest) > 15.0

    def test_without_interactions_no_trees_are_grown(self, rng):
        rows = [rng.laplace(size=(3000, 4)) + shift for shift in (0.3, 0.0)]
        additive = additive_score("additive", pairs_of(*rows))
        pairs = interacting_pairs(*map(block, rows), additive.left, additive.right)
        # A false alarm of 5 % would be no failure, but this seed has none.
        assert pairs == []
        assert forest_score(*map(block, rows), pairs) is None
        assert pair_outcomes(*map(block, rows), pairs) == []

    def test_categories_that_leak_only_together_are_outcomes(self, rng):
        def draw(side, n=3000):
            first, other = rng.integers(0, 8, (2, n))
            second = np.where(rng.random(n) < 0.3 * side, (first + 3) % 8, other)
            noise = rng.normal(size=(n, 3)).tolist()
            return [
                (f"a{a}", f"b{b}", *rest) for a, b, rest in zip(first, second, noise, strict=True)
            ]

        left, right = draw(1), draw(0)
        additive = additive_score("additive", pairs_of(left, right))
        assert mean_gap(additive) < 7.0
        pairs = interacting_pairs(block(left), block(right), additive.left, additive.right)
        (score,) = pair_outcomes(block(left), block(right), pairs)
        # An eighth of the combinations, where the left side has .3875 and the right one .125.
        event = score.tail_event(0.2625, upper=True)
        assert np.mean(event.contains(read_outputs(left))) > 0.36
        assert np.mean(event.contains(read_outputs(right))) < 0.16
        # One of the ten pairs of columns.
        assert score.n_rivals == 10

    def test_a_column_that_says_another_one_makes_no_combinations(self, rng):
        def draw(weights, n=3000):
            letters = rng.choice(list("abcdefgh"), n, p=weights)
            return [(f"{a}1", f"{a}2", x) for a, x in zip(letters, rng.random(n), strict=True)]

        left = block(draw(np.full(8, 1 / 8)))
        right = block(draw(np.arange(8) / 28))
        assert pair_outcomes(left, right, [InteractingPair(0, 1, 9.0)]) == []


def test_elements_of_lists_share_their_weights(rng):
    def draw(shift):
        return [(shift + rng.laplace(size=k)).tolist() for k in rng.integers(0, 5, 3000)]

    left, right = read_outputs(draw(0.5)), read_outputs(draw(0.0))
    score = elements_score(blocks_of_both(left, right), len(left), len(right))
    assert mean_gap(score) > 15.0
    # The same element of two lengths has nearly the same weights.
    by_length = {len(shape.partition.atoms): shape.partition.groups[0] for shape in score.shapes}
    middle = by_length[4].score.terms[1].weights
    assert np.corrcoef(middle, by_length[3].score.terms[1].weights)[0, 1] > 0.95


def test_a_number_in_a_record_depends_on_the_label_beside_it(rng):
    """Rows of a report, of which those with one label are moved: a sum over rows sees the others' noise."""

    def draw(shift, n=3000):
        labels = rng.choice(["ash", "elm", "fir", "oak"], (n, 6))
        numbers = rng.normal(size=(n, 6)) + np.where(labels == "elm", shift, 0.0)
        lengths = rng.integers(0, 7, n)
        return [
            [
                {"tree": str(tree), "height": float(height)}
                for tree, height in zip(labels[i, :k], numbers[i, :k], strict=True)
            ]
            for i, k in enumerate(lengths)
        ]

    left, right = read_outputs(draw(1.5)), read_outputs(draw(0.0))
    score = elements_score(blocks_of_both(left, right), len(left), len(right))
    one = read_outputs(
        [[{"tree": tree, "height": x}] for tree in ("elm", "oak") for x in (-1.0, 2.0)]
    )
    (of_one,) = (shape for shape in score.shapes if len(shape.partition.atoms) == 2)
    elm_low, elm_high, oak_low, oak_high = of_one.partition.groups[0].score.evaluate(
        one.blocks[0].columns
    )
    # The log-ratio is 1.5·x − 1.125 for elms.
    assert elm_high - elm_low > 3.0
    assert abs(oak_high - oak_low) < 0.5
    # What the final score says of outputs is what the cross-fitted scores promise.
    event = score.tail_event(0.1, upper=True)
    p, q = np.mean(event.contains(left)), np.mean(event.contains(right))
    assert p > 10.0 * q
    threshold = score.threshold(0.1, upper=True)
    assert p == pytest.approx(np.mean(score.left >= threshold), abs=0.02)
    again = score_from_dict(of_one.partition.groups[0].score.to_dict())
    assert np.array_equal(
        again.evaluate(one.blocks[0].columns), [elm_low, elm_high, oak_low, oak_high]
    )


def test_a_stack_knows_what_its_parts_know(rng):
    def draw(side, n=4000):
        rows = rng.normal(size=(n, 4))
        rows[:, 1] = (0.4 if side else -0.4) * rows[:, 0] + 0.9 * rows[:, 1]
        rows[:, 3] = np.where(rng.random(n) < 0.5, 3.0, -3.0) + 0.5 * rows[:, 3] + 0.2 * side
        return rows

    left, right = draw(1), draw(0)
    additive = additive_score("additive", pairs_of(left, right))
    parts = [additive, *joint_scores(block(left), block(right))]
    stacked = stacked_score(block(left), block(right), parts, odds=None).score
    fitted = [part for part in parts if not part.is_line]
    assert mean_gap(stacked) > 0.95 * max(map(mean_gap, fitted))
    score = stacked.shapes[0].partition.groups[0].score
    again = score_from_dict(score.to_dict())
    columns = block(left).columns
    assert np.array_equal(again.evaluate(columns), score.evaluate(columns))


@pytest.mark.parametrize(
    "data",
    [
        {
            "kind": "joint",
            "columns": [0],
            "centre": [0.0],
            "scale": [0.0],
            "rotation": [[1.0]],
            "linear": [1.0],
            "direction": [0.0],
            "quadratic": [[0.0]],
            "norms": [0.0, 0.0, 0.0],
        },
        {
            "kind": "joint",
            "columns": [0, 1],
            "centre": [0.0],
            "scale": [1.0],
            "rotation": [[1.0]],
            "linear": [1.0],
            "direction": [0.0],
            "quadratic": [[0.0]],
            "norms": [0.0, 0.0, 0.0],
        },
        {"kind": "sum", "parts": [{"kind": "sum", "parts": [], "weights": []}], "weights": [1.0]},
        {"kind": "sum", "parts": [], "weights": []},
    ],
    ids=["no scale", "other sizes", "a sum of sums", "nothing"],
)
def test_damaged_scores_are_refused(data):
    with pytest.raises(ValueError, match=r"score"):
        score_from_dict(data)
