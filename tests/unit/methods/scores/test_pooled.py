"""Outputs of several shapes are seen by the columns that they share."""

import numpy as np
import pytest

from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.methods.scores.choice import learn_scores
from epsilometer.methods.scores.pooled import columns_of, pools_of
from epsilometer.outputs import Event, read_outputs


def correlated(rng, correlation, n=3000):
    x, noise = rng.normal(size=(2, n))
    return x, correlation * x + np.sqrt(1.0 - correlation**2) * noise


def optional(rng, correlation):
    """A vector that 40 % of the outputs have, and a label in all of them."""
    x, y = correlated(rng, correlation)
    is_there = rng.random(len(x)) < 0.4
    label = rng.integers(0, 3, len(x))
    return [
        {"ward": f"w{label[i]}", **({"place": [x[i], y[i]]} if is_there[i] else {})}
        for i in range(len(x))
    ]


def beside_a_list(rng, correlation):
    """Two numbers in all outputs, beside a list of any length."""
    x, y = correlated(rng, correlation)
    return [
        {"x": x[i], "y": y[i], "list": rng.random(k).tolist()}
        for i, k in enumerate(rng.integers(0, 7, len(x)))
    ]


@pytest.mark.parametrize("draw", [optional, beside_a_list])
def test_columns_that_leak_together_are_found_in_any_share_of_the_outputs(draw, rng):
    left, right = read_outputs(draw(rng, 0.9)), read_outputs(draw(rng, 0.0))
    scores = {score.name: score for score in learn_scores(left, right)}
    trees = scores["trees"]
    threshold = trees.threshold(0.1, upper=True)
    event = trees.tail_event(0.1, upper=True)
    p, q = np.mean(event.contains(left)), np.mean(event.contains(right))
    assert p > 2.0 * q
    # What the event holds is what the cross-fitted scores say, in every shape.
    expected = np.count_nonzero(trees.left >= threshold) / trees.sizes[0]
    assert p == pytest.approx(expected, abs=0.05)
    again = Event.from_dict(event.to_dict())
    assert np.array_equal(again.contains(left), event.contains(left))


def test_pools_hold_every_output_that_has_the_columns_once_and_in_order(rng):
    left, right = read_outputs(beside_a_list(rng, 0.5)), read_outputs(beside_a_list(rng, 0.0))
    pairs = blocks_of_both(left, right)
    widths = []
    for pool in pools_of(pairs):
        assert sorted(pool.left.places()) == list(pool.left.places())
        widths.append(len(pool.left.columns))
        first = next(shape for shape in pool.shapes if shape.n_columns == len(shape.places))
        assert first.places == tuple(range(first.n_columns))
        sizes = {block.shape: block.size for block in left.blocks}
        assert pool.left.size == sum(sizes[shape.name] for shape in pool.shapes)
    # All have x and y, 57 % of them a list of three or more, and 14 % one of six.
    assert widths == [2, 5, 8]


def test_the_last_element_of_a_list_is_a_column(rng):
    lists = [rng.random(k).tolist() for k in rng.integers(0, 5, 300).tolist()]
    outputs = read_outputs([{"rows": rows, "x": 1.0} for rows in lists])
    *_, last = columns_of(blocks_of_both(outputs, outputs), most=99)
    assert last.left.columns[0].values.tolist() == [rows[-1] for rows in lists if rows]
    assert last.left.places().tolist() == [place for place, rows in enumerate(lists) if rows]
    # Of vectors of one length it is a column already.
    vectors = read_outputs(rng.random((50, 3)))
    assert len(list(columns_of(blocks_of_both(vectors, vectors), most=99))) == 3


def test_a_shape_that_leaks_adds_to_what_its_columns_say(rng):
    """Longer lists and larger numbers on one side: the stacked score knows both."""

    def draw(shift, longest):
        lengths = rng.integers(0, longest, 3000)
        return [
            {"x": shift + rng.normal(), "list": rng.random(k).tolist()} for k in lengths.tolist()
        ]

    left, right = read_outputs(draw(0.5, 4)), read_outputs(draw(0.0, 3))
    stacked = [score for score in learn_scores(left, right) if score.name == "stacked"]
    event = stacked[0].tail_event(0.1, upper=True)
    assert np.mean(event.contains(left)) > 4.0 * np.mean(event.contains(right))
