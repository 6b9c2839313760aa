"""The experiment with a rare leak."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer_experiments.auditorium import rare_leak
from epsilometer_experiments.experiment import Case

COIN = rare_leak.LeaningCoin((0.5, 0.5, 0.5, 0.5), width=0.35)


def test_the_truth_of_a_pair():
    pair = em.Pair([0.5] * 4, [0.5, 0.5, 0.5, 100.0])  # at the hidden dataset, and far away from it
    p, q = 1.0 / (1.0 + math.exp(-3.0)), 0.5
    assert (COIN.chance(pair.left), COIN.chance(pair.right)) == pytest.approx((p, q))
    assert COIN.epsilon(pair) == pytest.approx(em.PureDP(0.0).least_value(1.0 - q, 1.0 - p))


def test_draws_have_the_chance_of_the_coin(rng):
    share = COIN([0.5] * 4, 20_000, rng).mean()
    assert abs(share - COIN.chance([0.5] * 4)) < 6.5 * math.sqrt(
        0.05 / 20_000
    )  # 1e-10 of a normal law


def test_few_pairs_leak():
    shares = [
        rare_leak.leaking_share(rare_leak.hidden_coin(seed), seed, pairs=400) for seed in range(5)
    ]
    assert 0.0 < np.mean(shares) < 0.06


def test_hidden_places_differ_and_are_no_trial_of_a_finder():
    places = [rare_leak.hidden_coin(seed).hidden for seed in range(3)]
    assert len(set(places)) == 3
    finder = em.finders.Random(em.domains.Vector(4), seed=0, trials=5)
    uniforms = [(place - 0.15) / 0.7 for place in places[0]]
    for _ in range(5):
        finder.ask()
        finder.tell(None)
    assert all(not np.allclose(point[:4], uniforms) for point, _ in finder.state()["told"])


def test_every_finder_is_run_and_compared():
    settings = {"trials": 12, "samples": 300}
    (case, _) = rare_leak._cases(settings)
    runs = [rare_leak.run_once(case, seed, settings) for seed in (0, 1)]
    rows = {row.quantity: row for row in rare_leak.tabulate(case, runs)}
    assert 1.0 <= rows["random: trials"].measured <= 12.0
    assert rows["bayesian: CPU seconds per trial"].measured > 0.0
    ratio = rows["bayesian: trials"].measured / rows["random: trials"].measured
    assert rows["trials, bayesian over random"].measured == pytest.approx(ratio)
    assert isinstance(case, Case)
