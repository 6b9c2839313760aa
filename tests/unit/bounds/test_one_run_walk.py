"""Several numbers of guesses at once, against enumeration of every walk."""

import itertools
import math

import numpy as np
import pytest

from epsilometer.bounds.one_run import Guesses, one_run_p_value
from epsilometer.bounds.one_run_walk import crossing_probability, walk_epsilon, walk_p_value


def test_crossing_by_enumeration():
    boundary = [Guesses(2, 2), Guesses(5, 4), Guesses(9, 7)]
    chance, total = 0.6, 0.0
    for steps in itertools.product((0, 1), repeat=9):
        if any(sum(steps[:r]) >= v for r, v in boundary):
            total += chance ** sum(steps) * (1 - chance) ** (9 - sum(steps))
    assert crossing_probability(boundary, chance) == pytest.approx(total, abs=1e-12)


def test_one_number_of_guesses_without_delta_is_the_binomial_tail():
    for v in (0, 30, 55, 80, 100):
        walk = walk_p_value(300, [Guesses(100, v)], 0.3, 0.0)
        tail = one_run_p_value(300, 100, v, 0.3, 0.0)
        # Above one half the p-value is rounded up to 1.
        assert walk == (pytest.approx(tail, abs=1e-8) if tail <= 0.5 else 1.0)


def test_the_p_value_is_superuniform_by_enumeration():
    """Under randomised response every walk has a known probability; so has every p-value."""
    sizes, epsilon = (2, 4, 7), 0.7
    chance = 1 / (1 + math.exp(-epsilon))
    p_values, masses = [], []
    for steps in itertools.product((0, 1), repeat=7):
        guesses = [Guesses(r, sum(steps[:r])) for r in sizes]
        p_values.append(walk_p_value(7, guesses, epsilon, 0.0))
        masses.append(chance ** sum(steps) * (1 - chance) ** (7 - sum(steps)))
    p_values, masses = np.array(p_values), np.array(masses)
    for level in np.unique(p_values):
        assert masses[p_values <= level].sum() <= level + 1e-9


def test_the_price_of_delta():
    guesses = [Guesses(10, 10), Guesses(100, 60)]
    pure = walk_p_value(200, guesses, 1.0, 0.0)
    assert walk_p_value(200, guesses, 1.0, 1e-4) == pytest.approx(pure + 0.02 / (1 + math.e))
    assert walk_p_value(100, guesses, 1.0, 1e-4) == pytest.approx(pure + 0.01 / (1 + math.e))


def test_every_value_below_the_bound_is_refuted():
    guesses = [Guesses(20, 19), Guesses(100, 85), Guesses(400, 270), Guesses(1000, 560)]
    bound = walk_epsilon(1000, guesses, 1e-5, 0.05)
    assert 1.0 < bound < 2.0
    below = np.linspace(0.0, bound, 200)
    assert max(walk_p_value(1000, guesses, e, 1e-5) for e in below.tolist()) < 0.05
    assert walk_p_value(1000, guesses, bound + 0.05, 1e-5) > 0.05


def test_chance_refutes_nothing():
    assert walk_epsilon(1000, [Guesses(10, 5), Guesses(1000, 500)], 1e-6, 0.05) == 0.0
