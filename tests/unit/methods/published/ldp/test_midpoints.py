"""All pairs of mid-points: from one sample of each, or by fresh samples for each pair."""

from itertools import permutations

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.ldp.formulas import CellCounts
from epsilometer.methods.published.ldp.midpoints import (
    FreshPairs,
    MidpointCounts,
    PairCounts,
    middle_points,
)

ENTRY = em.zoo.truncated_laplace(0.8)
KNOWN = {
    name: getattr(ENTRY, name)
    for name in ("domain", "lipschitz", "input_domain", "input_lipschitz")
}


@pytest.mark.paper("B8", "equal")
@pytest.mark.parametrize("order", [None, 2.0])
def test_algorithm_2_invokes_algorithm_1_for_each_pair_with_fresh_samples(order):
    """Its lines 4 to 9, from the draws that were made: k(k − 1) invocations, no draw used twice."""
    drawn = []

    def draws(x, n, rng):
        values = ENTRY.mechanism.function(x, n, rng)
        drawn.append((x, values))
        return values

    k, n = 4, 2000
    result = em.ldp.overall(
        em.from_batch(draws),
        **KNOWN,
        precision=1.5 if order is None else 500.0,
        order=order,
        n=n,
        midpoints=k,
        samples_of="pairs",
        seed=0,
    )
    samples = np.concatenate([values for _, values in drawn])
    assert len(np.unique(samples)) == len(samples) == 2 * k * (k - 1) * n
    # Draws come in chunks, pair by pair, the sides of a pair in turns.
    invocations = {}
    for pair in permutations(middle_points((0.0, 1.0), k), 2):
        sides = {x: np.empty(0) for x in pair}
        while min(len(values) for values in sides.values()) < n:
            x, values = drawn.pop(0)
            sides[x] = np.concatenate([sides[x], values])
        left, right = (sides[x] for x in pair)
        assert len(left) == len(right) == n
        invocations[pair] = literal_algorithm_1(left, right, result.cells, order)
    assert drawn == []
    best = max(invocations, key=invocations.get)
    assert result.estimate == pytest.approx(invocations[best], abs=1e-12)
    assert result.pair == em.Pair(*best)


def literal_algorithm_1(left, right, m, order):
    """Lines 8 to 15 of Algorithm 1 on [0, 1]; None where it fails."""
    first = [((left >= j / m) & (left < (j + 1) / m)).mean() for j in range(m)]
    second = [((right >= j / m) & (right < (j + 1) / m)).mean() for j in range(m)]
    if min(first) == 0.0 or min(second) == 0.0:
        return None
    if order is None:
        return max(np.log(a / b) for a, b in zip(first, second, strict=True))
    total = sum(a**order * b ** (1 - order) for a, b in zip(first, second, strict=True))
    return np.log(total) / (order - 1)


@pytest.mark.paper("B9", "equal")
@pytest.mark.parametrize("samples_of", ["midpoints", "pairs"])
def test_one_invocation_that_succeeds_is_enough(samples_of):
    """Inputs below ½ never reach the upper half: only pairs of larger inputs have an estimate."""

    def half_or_all(x, n, rng):
        return rng.random(n) * (0.5 if x < 0.5 else 1.0)

    given = {
        "domain": (0.0, 1.0),
        "lipschitz": 0.5,
        "input_domain": (0.0, 1.0),
        "input_lipschitz": 0.5,
        "precision": 2.0,
        "n": 2000,
        "midpoints": 4,
        "samples_of": samples_of,
        "seed": 0,
    }
    mechanism = em.from_batch(half_or_all)
    found = em.ldp.overall(mechanism, **given, empty_cells="skip")
    assert {found.pair.left, found.pair.right} == {0.625, 0.875}
    assert found.failed_pairs == 4 * 3 - 2
    with pytest.raises(em.InputError, match="cells are empty"):
        em.ldp.overall(mechanism, **given)
    none = em.from_batch(lambda x, n, rng: 0.5 * rng.random(n))
    with pytest.raises(em.InputError, match="each of the 12 pairs of mid-points has an empty cell"):
        em.ldp.overall(none, **given, empty_cells="skip")


def test_fresh_pairs_take_the_draws_and_the_union_bound_of_so_many_samples():
    shared = em.ldp.plan_overall(
        em.ldp.formulas.Smoothness((0.0, 1.0), 0.5), (0.0, 1.0), 0.4, 1.0, 0.9
    )
    fresh = em.ldp.plan_overall(
        em.ldp.formulas.Smoothness((0.0, 1.0), 0.5), (0.0, 1.0), 0.4, 1.0, 0.9, fresh_pairs=True
    )
    k = shared.midpoints
    assert fresh.midpoints == k
    assert fresh.samples > shared.samples
    assert fresh.draws == 2 * k * (k - 1) * fresh.samples
    assert shared.draws == k * shared.samples
    # As published, √δ per pair does not depend on how pairs are drawn.
    published = [
        em.ldp.plan_overall(
            em.ldp.formulas.Smoothness((0.0, 1.0), 0.5),
            (0.0, 1.0),
            0.4,
            1.0,
            0.9,
            as_published=True,
            fresh_pairs=fresh_pairs,
        ).samples
        for fresh_pairs in (False, True)
    ]
    assert published[0] == published[1]


def test_counts_say_which_pairs_fail():
    filled = CellCounts(np.array([3, 1]), 0)
    empty = CellCounts(np.array([4, 0]), 0)
    midpoints = MidpointCounts((filled, empty, CellCounts(np.array([1, 3]), 0)))
    assert midpoints.n_failed == 4
    assert midpoints.greatest(None)[1:] in {(0, 2), (2, 0)}
    assert MidpointCounts((filled, empty)).greatest(None) is None
    pairs = FreshPairs((PairCounts(0, 1, filled, empty), PairCounts(1, 0, filled, filled)))
    assert pairs.n_failed == 1
    assert pairs.greatest(2.0).left == 1


@pytest.mark.parametrize("name", ["samples_of", "empty_cells"])
def test_unknown_words_are_refused(name):
    with pytest.raises(em.InputError, match=f"{name}='all'"):
        em.ldp.overall(ENTRY, precision=1.0, **{name: "all"})
