"""Boosted trees: they follow a log-ratio, also across columns, and read names."""

import numpy as np
import pytest

from epsilometer.methods.scores.trees import fit_trees
from epsilometer.outputs import read_outputs


def blocks(left, right):
    return read_outputs(left).blocks[0], read_outputs(right).blocks[0]


def test_two_normal_laws(rng):
    """ln(P/Q) of N(0,1) against N(1,1) in the first of two columns is ½ − x."""
    left, right = rng.normal(size=(20_000, 2)), rng.normal((1.0, 0.0), 1.0, (20_000, 2))
    score = fit_trees(*blocks(left, right), [0, 1])
    grid = np.column_stack([np.linspace(-1.0, 2.0, 61), np.zeros(61)])
    found = score.evaluate(read_outputs(grid).blocks[0].columns)
    assert np.abs(found - (0.5 - grid[:, 0])).mean() < 0.15


def test_a_product_of_signs(rng):
    """No single column tells anything; both together tell much."""

    def draw(sign, n=10_000):
        first = rng.normal(size=n)
        return np.column_stack(
            [first, sign * np.sign(first) * np.abs(rng.normal(size=n)), rng.normal(size=n)]
        )

    score = fit_trees(*blocks(draw(1.0), draw(-1.0)), [0, 1, 2])
    same = score.evaluate(
        read_outputs(np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])).blocks[0].columns
    )
    other = score.evaluate(
        read_outputs(np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])).blocks[0].columns
    )
    assert same.min() > 2.0
    assert other.max() < -2.0


def test_names_are_ordered_by_their_ratio():
    left = [("a", 0.0)] * 300 + [("b", 0.0)] * 100 + [("c", 0.0)] * 200
    right = [("a", 0.0)] * 100 + [("b", 0.0)] * 300 + [("c", 0.0)] * 200
    score = fit_trees(*blocks(left, right), [0, 1])
    assert score.codings[0].cells.labels == ("b", "c", "a")
    found = score.evaluate(
        read_outputs([("a", 0.0), ("b", 0.0), ("c", 0.0), ("new", 9.0)]).blocks[0].columns
    )
    assert found[:3] == pytest.approx([np.log(3), -np.log(3), 0.0], abs=0.1)
    assert np.isfinite(found).all()


def test_sides_of_different_size_weigh_the_same(rng):
    left, right = rng.normal(size=(8000, 2)), rng.normal(size=(1000, 2))
    score = fit_trees(*blocks(left, right), [0, 1])
    assert abs(score.evaluate(read_outputs(left).blocks[0].columns).mean()) < 0.1


def test_of_many_columns_those_that_tell_are_fitted(rng):
    left, right = rng.normal(size=(1000, 400)), rng.normal(size=(1000, 400))
    right[:, 317] += 1.0
    score = fit_trees(*blocks(left, right), range(400))
    assert 317 in score.columns
    assert len(score.columns) == 150
