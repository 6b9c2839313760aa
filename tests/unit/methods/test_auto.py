"""Method `auto`: which score its event is made of."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.auto import AutoMethod
from epsilometer.methods.base import Task
from epsilometer.outputs import read_outputs
from epsilometer.outputs.scores import AdditiveScore, JointScore, SumScore, TreeScore


@pytest.mark.parametrize("together", [True, False])
def test_columns_are_seen_together_only_where_that_tells_more(together, rng):
    """Noise whose correlation leaks; and noise whose columns leak each for themselves."""

    def draw(side, n=20_000):
        first, noise, other = rng.normal(size=(3, n))
        if together:
            return np.stack([first, (0.6 if side else -0.6) * first + 0.8 * noise, other], axis=1)
        return np.stack([first + 0.5 * side, noise + 0.5 * side, other], axis=1)

    sides = read_outputs(draw(0)), read_outputs(draw(1))
    proposal = AutoMethod().propose(*sides, Task(em.ApproxDP(0.0, 0.01), (40_000, 40_000), 0.05))
    scores = [group.score for block in proposal.event.partition.blocks for group in block.groups]
    if together:
        assert any(isinstance(score, JointScore | TreeScore | SumScore) for score in scores)
    else:
        assert any(isinstance(score, AdditiveScore | JointScore | SumScore) for score in scores)
