"""Every group of benchmarks once, with next to no draws, and what the yardsticks in them measure."""

import math

import numpy as np
import pytest
from benchmarks import __main__ as program
from benchmarks.effort import Effort
from benchmarks.kinds import KINDS, TUPLE, Kind
from benchmarks.oracle import best_events, oracle_bounds
from benchmarks.papers import histogram_runs, local_runs, renyi_runs
from benchmarks.power import PowerRow, power_rows

import epsilometer as em


@pytest.fixture
def tiny(tmp_path):
    return Effort(repeats=1, sizes=(500, 1000), runs=1, jobs=1, out=tmp_path, share=1e-4)


@pytest.mark.parametrize("group", program.GROUPS)
def test_every_group_measures_something(group, tiny, monkeypatch):
    monkeypatch.setattr("benchmarks.power.ENTRIES", ("laplace", "svt5?epsilon=.7"))  # all of them take a while
    found = program.GROUPS[group](tiny)
    assert found
    assert {each.group for each in found} == {group}
    assert len({each.key for each in found}) == len(found)
    assert all(math.isfinite(each.value) and each.value >= 0 for each in found if each.unit != "s")


def test_drawing_alone_covers_every_draw():
    drawn = []
    kind = Kind("recorded", lambda dataset, n, rng: drawn.append((dataset, n)), 25, None)
    kind.draw_alone(25, 10, seed=0)
    assert drawn == [(0.0, 10), (0.0, 10), (0.0, 5), (1.0, 10), (1.0, 10), (1.0, 5)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kinds_draw_as_many_as_asked(kind):
    assert len(kind.function(1.0, 50, np.random.default_rng(0))) == 50


def test_tuples_vary_in_length():
    assert {len(each) for each in TUPLE.function(0.0, 200, np.random.default_rng(0))} == {1, 2, 3, 4, 5}


def test_the_events_of_laplace_noise_are_its_tails():
    for p, q in best_events(em.zoo.laplace(1.0).pair_law):
        # Left of a point x between the centres: P = 1 − e^(−x)/2, Q = e^(x − 1)/2; at the left centre both are tails.
        x = math.log(2 * q) + 1.0
        assert 0.0 <= x <= 1.0
        assert p == pytest.approx(1.0 - math.exp(-x) / 2.0, abs=1e-4)


def test_the_oracle_stays_below_the_truth_and_comes_near_it():
    law = em.zoo.laplace(1.0).pair_law
    means = [float(np.mean(oracle_bounds(law, n, 20))) for n in (10_000, 1_000_000)]
    assert 0.9 < means[0] < means[1] < 1.0
    assert means[1] > 0.99


def test_an_infinite_loss_has_an_oracle_and_an_unknown_law_none():
    assert float(np.mean(oracle_bounds(em.zoo.svt5(0.7).pair_law, 100_000, 5))) > 8.0
    assert oracle_bounds(em.zoo.laplace_vector(1.0).pair_law, 1000, 1) is None


def test_power_rows_have_intervals(tiny):
    effort = Effort(runs=3, jobs=1, out=tiny.out, share=0.01)
    rows = power_rows(effort, ["laplace?epsilon=1"])
    assert [row.n for row in rows] == [400, 1000, 10_000]
    assert all(len(row.bounds) == 3 and row.truth == pytest.approx(1.0) for row in rows)
    row = PowerRow("x", 10, (1.0, 2.0, 3.0), None, None)
    assert (row.mean, row.half_width) == (2.0, pytest.approx(1.96 / math.sqrt(3)))


@pytest.mark.parametrize(
    ("runs", "n", "tolerance"), [(local_runs, 20_000, 0.2), (renyi_runs, 20_000, 0.1), (histogram_runs, 20_000, 0.1)]
)
def test_the_straightforward_versions_compute_the_same(runs, n, tolerance):
    ours, straightforward = runs(n)
    seeds = range(1, 7)  # each draws its own numbers, so only means agree
    assert np.mean([ours(seed) for seed in seeds]) == pytest.approx(
        np.mean([straightforward(seed) for seed in seeds]), abs=tolerance
    )
