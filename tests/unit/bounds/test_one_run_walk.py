"""Several numbers of guesses at once, against enumeration of every walk."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from epsilometer.bounds.one_run import Guesses, one_run_p_value
from epsilometer.bounds.one_run_walk import (
    Steps,
    crossing_probability,
    walk_epsilon,
    walk_needed,
    walk_p_value,
    weighted_steps,
)


@pytest.mark.parametrize("weights", [(1, 1, 1), (3, 2, 1), (1, 4, 2)])
def test_crossing_by_enumeration(weights):
    steps = [Steps(n, weight) for n, weight in zip((2, 3, 4), weights, strict=True)]
    of_each = np.repeat(weights, (2, 3, 4))
    thresholds = (2 * weights[0], 2 * weights[0] + 2 * weights[1], int(of_each.sum()) - weights[2])
    chance, total = 0.6, 0.0
    for right in itertools.product((0, 1), repeat=9):
        weight = np.cumsum(right * of_each)
        if any(weight[[1, 4, 8]] >= thresholds):
            total += chance ** sum(right) * (1 - chance) ** (9 - sum(right))
    assert crossing_probability(steps, thresholds, chance) == pytest.approx(total, abs=1e-12)


def greatest_crossing(weights, thresholds, epsilon, delta, guesses):
    """The greatest crossing probability of any (ε, δ)-private mechanism, by linear programming.

    Its outputs are orders of three canaries, the surest first, with a guess about each.
    """
    coins = list(itertools.product((0, 1), repeat=3))
    outputs = list(itertools.product(itertools.permutations(range(3)), guesses))
    n_chances = len(coins) * len(outputs)
    neighbours = [
        (one, other)
        for one, other in itertools.permutations(range(len(coins)), 2)
        if sum(a != b for a, b in zip(coins[one], coins[other], strict=True)) == 1
    ]
    # P(y | x) − e^ε·P(y | x') ≤ e(y) for every output y, and the e(y) sum to δ at the most.
    n_excesses = len(neighbours) * len(outputs)
    each = np.eye(len(outputs))
    rows = np.zeros((n_excesses + len(neighbours), n_chances + n_excesses))
    for k, (one, other) in enumerate(neighbours):
        block = slice(k * len(outputs), (k + 1) * len(outputs))
        rows[block, one * len(outputs) : (one + 1) * len(outputs)] = each
        rows[block, other * len(outputs) : (other + 1) * len(outputs)] = -math.exp(epsilon) * each
        rows[block, n_chances:][:, block] = -each
        rows[n_excesses + k, n_chances:][block] = 1.0
    limits = np.concatenate([np.zeros(n_excesses), np.full(len(neighbours), delta)])
    crosses = [
        any(np.cumsum([w * (x[c] == g) for w, c, g in zip(weights, *y, strict=True)]) >= thresholds)
        for x in coins
        for y in outputs
    ]
    objective = np.concatenate([np.array(crosses) / -len(coins), np.zeros(n_excesses)])
    sums = np.kron(np.eye(len(coins)), np.ones(len(outputs)))
    sums = np.hstack([sums, np.zeros((len(coins), n_excesses))])
    solved = linprog(objective, rows, limits, sums, np.ones(len(coins)), bounds=(0, None))
    return -solved.fun


@pytest.mark.parametrize(
    ("weights", "thresholds", "epsilon", "delta"),
    [
        ((4, 3, 3), (4, 8, 9), 0.2, 0.0),
        ((4, 4, 2), (4, 9, 9), 1.4, 0.05),
        ((4, 2, 1), (4, 6, 8), 0.7, 0.05),
        ((3, 2, 1), (4, 5, 4), 0.5, 0.02),
    ],
)
def test_no_mechanism_crosses_more_often(weights, thresholds, epsilon, delta):
    steps = [Steps(1, weight) for weight in weights]
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    crossing = crossing_probability(steps, thresholds, chance)
    both = list(itertools.product((0, 1), repeat=3))
    for guesses, units in ((both, 3.0), ([(1, 1, 1)], 1.5)):
        greatest = greatest_crossing(weights, thresholds, epsilon, delta, guesses)
        assert greatest <= crossing + units * delta / (1.0 + math.exp(epsilon)) + 1e-9
    # Without δ randomised response reaches the walk.
    sharpest = greatest_crossing(weights, thresholds, epsilon, 0.0, both)
    assert sharpest == pytest.approx(crossing, abs=1e-9)


def test_weights_fall_with_the_number_of_guesses_and_depend_on_its_share_only():
    sizes = (10, 30, 100, 300, 1000)
    steps = weighted_steps(1000, [Guesses(r, 0) for r in sizes])
    assert [step.number for step in steps] == [10, 20, 70, 200, 700]
    # Normal quantiles of the upper tails .0025, .01, .0325, .1 and .325, twice.
    assert [step.weight for step in steps] == [6, 5, 4, 3, 1]
    # All guesses "in": half as many units, half as many guesses.
    assert [step.weight for step in weighted_steps(500, [Guesses(r // 2, 0) for r in sizes])] == [
        6,
        5,
        4,
        3,
        1,
    ]


@pytest.mark.parametrize("claim", [(0.3, 0.0), (1.0, 1e-5), (3.0, 1e-4), (40.0, 0.0)])
def test_needed_guesses_are_those_that_refute(claim):
    epsilon, delta = claim
    observed = [Guesses(8, 7), Guesses(30, 22), Guesses(100, 63), Guesses(300, 170)]
    needed = walk_needed(300, observed, epsilon, delta, 0.05)
    for position, (r, v) in enumerate(needed):
        before = observed[position - 1] if position else Guesses(0, 0)
        possible = before.v + r - before.r
        for right in (v - 1, v):
            if not before.v <= right <= possible:
                continue
            upto = [*observed[:position], Guesses(r, right)]
            # No further guess is right.
            upto += [Guesses(later.r, right) for later in observed[position + 1 :]]
            is_refuted = walk_p_value(300, upto, epsilon, delta) < 0.05
            reached_before = any(
                count.v >= enough.v
                for count, enough in zip(observed[:position], needed, strict=False)
            )
            assert is_refuted == (right == v or reached_before)
        if v > possible:
            assert v == r + 1


def test_one_number_of_guesses_without_delta_is_the_binomial_tail():
    for v in (0, 30, 55, 80, 100):
        walk = walk_p_value(300, [Guesses(100, v)], 0.3, 0.0)
        tail = one_run_p_value(300, 100, v, 0.3, 0.0)
        # Above one half the p-value is rounded up to 1.
        assert walk == (pytest.approx(tail, abs=1e-8) if tail <= 0.5 else 1.0)


def test_the_p_value_is_superuniform_by_enumeration():
    """Under randomised response every walk has a known probability; so has every p-value."""
    sizes, epsilon = (1, 4, 7), 0.7
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
    for units in (100, 200):
        pure = walk_p_value(units, guesses, 1.0, 0.0)
        price = units * 1e-4 / (1 + math.e)
        assert walk_p_value(units, guesses, 1.0, 1e-4) == pytest.approx(pure + price)


def test_every_value_below_the_bound_is_refuted():
    guesses = [Guesses(20, 19), Guesses(100, 85), Guesses(400, 270), Guesses(1000, 560)]
    bound = walk_epsilon(1000, guesses, 1e-5, 0.05)
    assert 1.0 < bound < 2.0
    below = np.linspace(0.0, bound, 200)
    assert max(walk_p_value(1000, guesses, e, 1e-5) for e in below.tolist()) < 0.05
    assert walk_p_value(1000, guesses, bound + 0.05, 1e-5) > 0.05


def test_chance_refutes_nothing():
    assert walk_epsilon(1000, [Guesses(10, 5), Guesses(1000, 500)], 1e-6, 0.05) == 0.0
