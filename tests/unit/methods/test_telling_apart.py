"""Comparing two ways of cutting outputs by their loss on draws that shaped neither."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.auto import AutoMethod, advantage
from epsilometer.methods.base import Task
from epsilometer.outputs import BlockPartition, Group, Line, Partition, read_outputs
from epsilometer.outputs.scores import TreeScore


def cells(*edges):
    return Partition((BlockPartition("float", (None,), (Group((-1,), Line(np.array(edges))),)),))


def draws(rng, n=20_000):
    return read_outputs(rng.normal(0.0, 1.0, n)), read_outputs(rng.normal(1.0, 1.0, n))


def test_finer_cells_tell_more(rng):
    fine, coarse = cells(-1.0, 0.0, 0.5, 1.0, 2.0), cells(2.0)
    assert advantage(fine, coarse, draws(rng)) > 10.0
    assert advantage(coarse, fine, draws(rng)) < -10.0


def test_the_same_cells_have_no_advantage(rng):
    assert advantage(cells(0.5), cells(0.5), draws(rng)) == 0.0


def test_it_is_the_difference_of_mean_losses_in_standard_errors():
    """Two cells, eight draws per side, by hand: ratios from draws 0, 2, 4, 6 and losses of draws 1, 3, 5, 7."""
    left = read_outputs(np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]))
    right = read_outputs(np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]))
    n_cells = cells(0.5).n_cells + 2  # NaN, no known signature, no known shape
    low = np.log(4 / (4 + n_cells)) - np.log(2 / (4 + n_cells))
    high = np.log(2 / (4 + n_cells)) - np.log(4 / (4 + n_cells))
    losses = np.array([low, high, low, low]), np.array([high, high, low, high])
    mine = np.logaddexp(0, -losses[0]), np.logaddexp(0, losses[1])
    differences = [np.log(2.0) - each for each in mine]
    expected = sum(d.mean() for d in differences) / np.sqrt(sum(d.var() / 4 for d in differences))
    everything = cells(9.0)  # all draws in one cell: a loss of ln 2 each
    assert advantage(cells(0.5), everything, (left, right)) == pytest.approx(expected)


@pytest.mark.parametrize(("together", "by_trees"), [(True, True), (False, False)])
def test_auto_takes_trees_only_where_columns_tell_more_together(together, by_trees, rng):
    """Noise whose correlation leaks; and noise whose columns leak each for themselves, which a sum of scores tells."""

    def draw(side, n=20_000):
        first, noise, other = rng.normal(size=(3, n))
        if together:
            return np.stack([first, (0.6 if side else -0.6) * first + 0.8 * noise, other], axis=1)
        return np.stack([first + 0.5 * side, noise + 0.5 * side, other], axis=1)

    sides = read_outputs(draw(0)), read_outputs(draw(1))
    proposal = AutoMethod().propose(*sides, Task(em.ApproxDP(0.0, 0.01), (40_000, 40_000), 0.05))
    scores = [group.score for block in proposal.event.partition.blocks for group in block.groups]
    assert any(isinstance(score, TreeScore) for score in scores) is by_trees
