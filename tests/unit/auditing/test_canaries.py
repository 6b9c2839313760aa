"""Scores and coins as callers hand them over."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epsilometer as em

IDS = [f"c{number}" for number in range(12)]
SCORES = np.arange(12.0)
COINS = np.array([0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1])
SHUFFLED = np.array([5, 2, 11, 0, 7, 3, 9, 1, 10, 4, 8, 6])


class Tensor:
    """What `from_one_run` sees of a torch tensor: methods, and an array only without gradient."""

    def __init__(self, values, dtype="torch.bfloat16", is_detached=False):
        self.values, self.dtype, self.is_detached = values, dtype, is_detached

    def detach(self):
        return Tensor(self.values, self.dtype, is_detached=True)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, "torch.float32", self.is_detached)

    def numpy(self):
        if not self.is_detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.asarray(self.values)


def coins_by_id():
    return dict(zip(IDS, COINS.tolist(), strict=True))


def right(audit):
    return audit.right.tolist()


def test_every_way_to_hand_them_over():
    expected = right(em.from_one_run(SCORES, COINS))
    by_id = dict(zip(IDS, SCORES.tolist(), strict=True))
    coin_of = {IDS[place]: bool(COINS[place]) for place in SHUFFLED}
    series = pd.Series(SCORES, index=IDS)
    coin_series = pd.Series(COINS[SHUFFLED], index=[IDS[place] for place in SHUFFLED])
    for scores, included, keywords in [
        (SCORES.tolist(), COINS.tolist(), {}),
        (SCORES, COINS.astype(bool), {}),
        (SCORES.astype(np.float32), COINS.astype(float), {}),
        (pl.Series(SCORES), pl.Series(COINS), {}),
        (Tensor(SCORES), COINS, {}),
        (by_id, coin_of, {}),
        (series, coin_series, {}),
        (by_id, coin_series, {}),
        (series, COINS, {}),
        (SCORES, COINS[SHUFFLED], {"ids": IDS, "included_ids": np.array(IDS)[SHUFFLED]}),
        (SCORES, coin_of, {"ids": IDS}),
        (SCORES, coin_of, {"ids": tuple(IDS)}),
        (SCORES, coin_of, {"ids": (name for name in IDS)}),
        (SCORES, coin_of, {"ids": pl.Series(IDS)}),
        (SCORES, pd.Series(COINS.astype(bool), dtype=object), {}),
        (SCORES, [np.int64(coin) for coin in COINS], {}),
        (SCORES, np.array([np.float32(coin) for coin in COINS], dtype=object), {}),
        (SCORES, pd.Series(COINS.astype(bool), dtype="boolean"), {}),
    ]:
        assert right(em.from_one_run(scores, included, **keywords)) == expected


@pytest.mark.parametrize(
    ("scores", "included", "keywords", "message"),
    [
        (SCORES, COINS[:-1], {}, "scores has 12 entries and included 11"),
        (SCORES[:9], COINS[:9], {}, "at least 10 are needed"),
        (SCORES[None], COINS, {}, "shape"),
        (SCORES, COINS[None], {}, "included has shape"),
        (np.where(SCORES == 3, np.nan, SCORES), COINS, {}, "1 NaN"),
        (["a"] * 12, COINS, {}, "must be numbers"),
        (["1"] * 12, COINS, {}, "must be numbers"),
        ([True, 1.5] * 6, list("ab") * 6, {}, "included holds 'a', 'b'"),
        (COINS.astype(bool), COINS, {}, "boolean"),
        (SCORES, COINS + 1, {}, "included holds 2"),
        (SCORES, np.zeros(12), {}, "all 12 canaries are left out"),
        (SCORES, np.ones(12), {}, "all 12 canaries are included"),
        (SCORES, COINS, {"ids": IDS}, "scores comes with ids and included does not"),
        (SCORES, COINS, {"included_ids": IDS}, "included comes with ids and scores does not"),
        (dict(zip(IDS, SCORES, strict=True)), COINS, {}, "included does not"),
        (SCORES, COINS, {"ids": IDS[:-1], "included_ids": IDS}, "ids has 11 entries and scores 12"),
        (
            SCORES,
            COINS,
            {"ids": ["c0"] * 12, "included_ids": IDS},
            "scores: id 'c0' repeated",
        ),
        (
            SCORES,
            COINS,
            {"ids": [*IDS[:8], "x1", "x2", "x3", "x4"], "included_ids": IDS},
            "no score for id 'c8', 'c9', 'c10' and 1 more",
        ),
        (
            dict(zip(IDS, SCORES, strict=True)),
            dict(zip(IDS[:-1], COINS[:-1], strict=True)),
            {},
            "no coin in `included` for id 'c11'",
        ),
        (dict(zip(IDS, SCORES, strict=True)), COINS, {"ids": IDS}, "leave out ids="),
        (
            SCORES,
            COINS,
            {"ids": list(range(12)), "included_ids": [str(number) for number in range(12)]},
            "ids of scores are like 0, those of included like '0'; give both the same ids",
        ),
        (SCORES, np.where(COINS, 1.0, np.nan), {}, "included holds nan: it"),
        (SCORES, [0, 1, None] * 4, {}, "included holds None: it"),
        (SCORES, np.arange(12), {}, "included holds 2, 3, 4, …: it"),
        (SCORES, COINS, {"ids": [[1]] * 12, "included_ids": [[1]] * 12}, "[1] cannot be an id"),
        (SCORES, COINS, {"ids": 3, "included_ids": IDS}, "ids=3 must be"),
        (SCORES, COINS, {"ids": set(IDS), "included_ids": IDS}, "ids is a set, which has no order"),
        (SCORES, COINS, {"ids": IDS, "included_ids": frozenset(IDS)}, "which has no order"),
        (SCORES, (coin for coin in COINS), {}, "included is of type generator"),
        (SCORES, None, {}, "included is of type NoneType"),
        (SCORES, COINS, {"ids": np.ones((6, 2)), "included_ids": IDS}, "ids has shape (6, 2)"),
        (pd.Series(SCORES, index=[np.nan, *IDS[1:]]), coins_by_id(), {}, "scores: 1 id is missing"),
        (SCORES, COINS, {"ids": IDS, "included_ids": [None, None, *IDS[2:]]}, "2 ids are missing"),
        (
            SCORES,
            COINS,
            {"ids": IDS, "included_ids": pd.Series([pd.NA, *IDS[1:]])},
            "included: 1 id is missing",
        ),
    ],
)
def test_mistakes_are_named(scores, included, keywords, message):
    with pytest.raises(em.InputError) as caught:
        em.from_one_run(scores, included, **keywords)
    assert message in str(caught.value)


def test_infinite_scores_are_the_surest():
    scores = np.where(COINS == 1, np.inf, SCORES)
    assert right(em.from_one_run(scores, COINS, guess="in"))[:3] == [1, 2, 3]


def test_coins_that_do_not_look_fair(rng):
    scores = rng.normal(size=200)
    with pytest.warns(em.EpsilometerWarning, match="exactly half of the 200"):
        em.from_one_run(scores, np.arange(200) % 2)
    with pytest.warns(em.EpsilometerWarning, match="20 of 200 canaries are included"):
        em.from_one_run(scores, np.arange(200) < 20)


def test_scores_that_point_the_wrong_way(rng):
    """Nothing can be refuted by them, and a bound of 0 says nothing about why."""
    included = rng.random(60) < 0.5
    losses = np.where(included, 0.0, 3.0) + rng.normal(size=60)
    with pytest.warns(em.EpsilometerWarning, match="are smaller than the others"):
        em.from_one_run(losses, included)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        em.from_one_run(-losses, included)
        em.from_one_run(np.zeros(60), included)
