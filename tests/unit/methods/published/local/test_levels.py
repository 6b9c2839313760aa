"""The map of data-centric levels: its bounds, and what is refused."""

import pytest

import epsilometer as em


def noisy(x, n, rng):
    """A number with noise that shrinks where x is large: people there are protected less."""
    return x + rng.laplace(scale=2.0 if x < 5 else 0.5, size=n)


def next_ones(x):
    return [x - 1.0, x + 1.0]


@pytest.fixture(scope="module")
def levels():
    return em.local.level_map(
        em.from_batch(noisy), [0.0, 8.0, 2.0], next_ones, n=3000, N=6000, seed=0
    )


def test_the_least_protected_dataset_is_found(levels):
    assert [level.dataset for level in levels.levels] == [0.0, 8.0, 2.0]
    assert levels.least_protected.dataset == 8.0
    assert levels.least_protected.neighbour in (7.0, 9.0)
    low, high, second = (level.lower_bound for level in levels.levels)
    assert 0.0 < low < 0.6
    assert 0.0 < second < 0.6
    assert 1.2 < high < 2.1
    assert levels.guarantee == "asymptotic"


def test_bounds_share_the_failure_probability_and_have_draws_of_their_own(levels):
    again = em.local.level_map(
        em.from_batch(noisy), [0.0, 8.0, 2.0], next_ones, n=3000, N=6000, seed=0
    )
    assert again == levels
    alone = em.local.level_map(em.from_batch(noisy), [0.0], next_ones, n=3000, N=6000, seed=0)
    # The same draws, but a third of the failure probability.
    assert alone.levels[0].estimate == levels.levels[0].estimate
    assert alone.levels[0].lower_bound > levels.levels[0].lower_bound
    twice = em.local.level_map(em.from_batch(noisy), [0.0, 0.0], next_ones, n=1000, N=1000, seed=0)
    assert twice.levels[0].estimate != twice.levels[1].estimate


@pytest.mark.paper("A5", "equal")
def test_each_level_is_the_data_centric_one_of_the_paper():
    """(5): the greatest loss of x against its neighbours, as `data_centric` bounds it."""
    entry = em.zoo.report_noisy_max(1.5)
    neighbours = [[1] * k + [0] * (6 - k) for k in range(1, 7)]
    found = em.local.level_map(
        entry, [[0] * 6], lambda x: neighbours, n=5000, N=20_000, floor=1e-3, seed=3
    )
    # .742604 by enumeration, half of the global 1.492.
    assert 0.55 < found.levels[0].lower_bound < 0.7427 + 0.05


@pytest.mark.parametrize(
    ("datasets", "neighbours", "message"),
    [
        ([], next_ones, "datasets is empty"),
        ([0.0], [1.0], "must be a function"),
        ([0.0], lambda x: [], "neighbours is empty"),
        (5, next_ones, "datasets=5 must be"),
        (None, next_ones, "datasets=None must be"),
        ("ab", next_ones, "datasets='ab' must be"),
        (em.Pair(0.0, 1.0), next_ones, r"datasets=Pair.* must be"),
        ([0.0], lambda x: None, "neighbours=None is not a list"),
        ([0.0], lambda x: x + 1.0, r"neighbours=1\.0 is not a list"),
        ([0.0], lambda: [1.0], "neighbours=.* must be a function"),
        ([0.0], lambda x: [1.0 / x], r"neighbours=.* failed on the dataset 0\.0: ZeroDivision"),
        ([0.0], lambda x: (y / x for y in [1.0]), r"neighbours=.* failed .*: ZeroDivision"),
    ],
)
def test_what_makes_no_sense_is_told(datasets, neighbours, message):
    with pytest.raises(em.InputError, match=message):
        em.local.level_map(em.from_batch(noisy), datasets, neighbours)


def test_pairs_are_no_setting_of_a_dataset():
    with pytest.raises(em.InputError, match="pairs= is no setting"):
        em.local.data_centric(em.from_batch(noisy), 0.0, [1.0], pairs=[(0.0, 1.0)])
