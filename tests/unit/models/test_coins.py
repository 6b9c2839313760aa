"""Coins of canaries: fair, kept, and joined with scores by id."""

import json

import numpy as np
import pytest

from epsilometer import models
from epsilometer.errors import InputError
from epsilometer.models import Coins, coin_flips


def test_coins_are_fair_and_belong_to_their_seed():
    coins = coin_flips(range(20_000), seed=3)
    # 20 000 fair coins: 10 000 ± 71; seven standard deviations.
    assert abs(int(coins.included.sum()) - 10_000) < 500
    assert np.array_equal(coin_flips(range(20_000), seed=3).included, coins.included)
    fresh = [coin_flips(range(200)) for _ in range(2)]
    assert not np.array_equal(fresh[0].included, fresh[1].included)
    assert np.array_equal(coin_flips(range(200), fresh[0].seed).included, fresh[0].included)


def test_scores_are_joined_by_id_whatever_the_order(rng):
    coins = coin_flips(["a", "b", "c", "d"], seed=1)
    joined = coins.join({"d": 4.0, "a": 1.0, "c": 3.0, "b": 2.0})
    assert joined.scores.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert np.array_equal(joined.included, coins.included)
    scores, included = coins.join([1.0, 2.0, 3.0, 4.0])
    assert scores.tolist() == joined.scores.tolist()
    assert included is coins.included


def test_a_series_is_joined_by_its_index():
    pandas = pytest.importorskip("pandas")
    coins = coin_flips([10, 20, 30], seed=1)
    assert coins.join(pandas.Series([3.0, 1.0, 2.0], index=[30, 10, 20])).scores.tolist() == [
        1,
        2,
        3,
    ]
    with pytest.raises(InputError, match="scores: id 10 repeated"):
        coins.join(pandas.Series([3.0, 1.0, 2.0], index=[30, 10, 10]))


def test_saved_coins_are_the_same_again(tmp_path):
    coins = coin_flips(["a", 2, "c"], seed=5)
    path = coins.save(tmp_path / "coins.json")
    again = Coins.load(path)
    assert again.ids == coins.ids
    assert again.included.tolist() == coins.included.tolist()
    assert again.seed == 5
    assert "of 3 canaries" in repr(again)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        json.dumps({"ids": ["a"], "included": [True, False], "seed": 1}),
        json.dumps({"ids": ["a"], "included": [1], "seed": 1}),
        json.dumps({"ids": ["a", "a"], "included": [True, False], "seed": 1}),
        json.dumps({"ids": ["a"], "seed": 1}),
        json.dumps({"ids": [["a"]], "included": [True], "seed": 1}),
        json.dumps({"ids": [None], "included": [True], "seed": 1}),
        '{"ids": ["a"], "included": [true], "seed": 1e400}',
        "[" * 100_000,
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path, text):
    path = tmp_path / "coins.json"
    path.write_text(text)
    with pytest.raises(InputError):
        Coins.load(path)


def test_ids_that_do_not_fit_are_named():
    coins = coin_flips("abcde", seed=1)
    with pytest.raises(InputError, match="4 canaries have no score: id 'b', 'c', 'd' and 1 more"):
        coins.join({"a": 1.0})
    with pytest.raises(InputError, match="1 scores belong to no canary: id 'z'"):
        coins.join(dict.fromkeys("abcdez", 1.0))
    with pytest.raises(InputError, match="3 scores for 5 canaries"):
        coins.join([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="ids: id 'a' repeated"):
        coin_flips("aaa")
    with pytest.raises(InputError, match="ids is empty"):
        coin_flips([])
    with pytest.raises(InputError, match="cannot be stored"):
        coin_flips([(1, 2)]).save("unused.json")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((3, 2)), r"scores has shape \(3, 2\)"),
        (np.zeros((6, 1)), r"scores has shape \(6, 1\)"),
        (np.zeros(6, dtype=complex), "complex"),
        (np.zeros(5), "5 scores for 6 canaries"),
    ],
)
def test_scores_are_one_real_number_per_canary(scores, message):
    with pytest.raises(InputError, match=message):
        coin_flips(range(6), seed=1).join(scores)


def test_ids_of_arrays_can_be_stored(tmp_path):
    coins = models.coin_flips(np.arange(3), seed=1)
    assert coins.ids == (0, 1, 2)
    path = coins.save(tmp_path / "coins.json")
    assert models.Coins.load(path).ids == coins.ids
    assert models.coin_flips(iter(["a", "b"]), seed=1).ids == ("a", "b")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (None, "ids=None must be a list of ids"),
        (5, "ids=5 must be"),
        ({"a", "b"}, "ids is a set, which has no order"),
        (frozenset("ab"), "ids is a frozenset, which has no order"),
        ([[1], [2]], r"\[1\] cannot be an id"),
        ([None, "a"], "ids: 1 id is missing"),
        ([float("nan"), "a", np.nan], "ids: 2 ids are missing"),
        (np.ones((2, 2)), r"ids has shape \(2, 2\)"),
        ([], "ids is empty"),
        (["a", "b", "a"], "ids: id 'a' repeated"),
    ],
)
def test_what_is_no_id_is_refused(ids, message):
    with pytest.raises(InputError, match=message):
        models.coin_flips(ids)


@pytest.mark.parametrize("seed", ["x", -1, 1.5, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InputError, match="seed="):
        models.coin_flips(["a"], seed=seed)
    with pytest.raises(InputError, match="seed="):
        models.gradient_canaries(3, 2, seed=seed)
    with pytest.raises(InputError, match="seed="):
        models.movement(np.sum, [1.0], [2.0], bound=1.0, seed=seed)
