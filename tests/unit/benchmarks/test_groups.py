"""Every group of benchmarks once, with next to no draws, and what the yardsticks in them measure."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import __main__ as program
from benchmarks.effort import Effort
from benchmarks.families import family_of
from benchmarks.kinds import KINDS, TUPLE, Kind
from benchmarks.papers import histogram_runs, local_runs, renyi_runs
from benchmarks.power import PowerRow, power_rows
from benchmarks.strength import measure_strength

import epsilometer as em
from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.zoo.distributions.exact import (
    GaussianDistributions,
    SubsampledGaussianDistributions,
    discrete_distributions,
)
from epsilometer_experiments.sniper.oracle import (
    best_event,
    best_events,
    expected_bound,
    oracle_bound,
)


@pytest.fixture
def tiny(tmp_path):
    return Effort(repeats=1, sizes=(500, 1000), runs=1, jobs=1, out=tmp_path, share=1e-4)


@pytest.mark.parametrize("group", program.GROUPS)
def test_every_group_measures_something(group, tiny, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.power.ENTRIES", ("laplace", "svt5?epsilon=.7")
    )  # all of them take a while
    monkeypatch.setattr("benchmarks.strength.SNIPER_NAMES", ("NoisyHist1", "ReportNoisyMax1"))
    monkeypatch.setattr("benchmarks.strength.ZOO_NAMES", ("laplace",))
    monkeypatch.setattr(
        "benchmarks.families.running.all_families", lambda: (family_of("redrawn-count"),)
    )
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
    assert {len(each) for each in TUPLE.function(0.0, 200, np.random.default_rng(0))} == {
        1,
        2,
        3,
        4,
        5,
    }


def test_the_events_of_laplace_noise_are_its_tails():
    """Left of a point x between the centres P = 1 − e^(−x)/2 and Q = e^(x − 1)/2, and the same for the other side."""
    p, q = best_events(em.zoo.laplace(1.0).distributions)
    x = np.log(2 * q) + 1.0
    inside = (x > -1e-9) & (x <= 1.0)
    assert inside.sum() > 100
    np.testing.assert_allclose(p[inside], 1.0 - np.exp(-x[inside]) / 2.0, atol=1e-9)


def test_events_of_both_sides_are_tried():
    """Here an event of the right dataset has the greater ratio, and one of the left the greater excess."""
    law = discrete_distributions(np.array([0.98, 0.02]), np.array([0.5, 0.5]))
    assert best_event(law, 10_000) == pytest.approx((0.5, 0.02))


def test_the_curve_has_the_same_events_as_the_cells():
    """The same law as an integral over the noise and as cells."""
    cells, curve = em.zoo.laplace(1.0).distributions, SubsampledGaussianDistributions(1.0, 1.0)
    assert oracle_bound(curve, 10_000) == pytest.approx(
        oracle_bound(GaussianDistributions(1.0), 10_000), rel=1e-3
    )
    assert best_event(cells, 10_000) == pytest.approx((0.5068, 0.1865), rel=0.01)


def test_the_oracle_stays_below_the_truth_and_comes_near_it():
    law = em.zoo.laplace(1.0).distributions
    bounds = [oracle_bound(law, n) for n in (10_000, 1_000_000)]
    assert 0.9 < bounds[0] < bounds[1] < 1.0
    assert bounds[1] > 0.99


@pytest.mark.parametrize(("p", "q", "n"), [(0.3, 0.2, 1000), (0.01, 0.002, 1000)])
def test_the_mean_bound_of_an_event_is_that_of_its_counts(p, q, n):
    """Within five spreads of a mean over 25 runs, which happens by chance less often than once in a million times."""
    rng = np.random.default_rng(3)
    runs = [
        epsilon_lower(Counts(int(rng.binomial(n, p)), n), Counts(int(rng.binomial(n, q)), n), 0.05)
        for _ in range(25)
    ]
    assert abs(expected_bound(p, q, n) - np.mean(runs)) < 5 * np.std(runs) / 5


def test_an_infinite_loss_has_an_oracle_and_so_has_a_vector_of_numbers():
    assert oracle_bound(em.zoo.svt5(0.7).distributions, 100_000) > 8.0
    # At every level the vector's events weigh less than those of one number with all of the loss.
    vector, number = (
        best_event(entry.distributions, 10_000)
        for entry in (em.zoo.laplace_vector(1.0), em.zoo.laplace(1.0))
    )
    assert vector[0] < number[0]
    assert oracle_bound(em.zoo.svt3(1.0, cutoff=2).distributions, 1000) is None


def test_lines_of_the_strength_table_are_chosen_by_name_or_by_set(tiny):
    chosen = measure_strength(replace(tiny, only=("laplace",), seeds=2, population=1000))
    assert [each.name for each in chosen] == ["laplace at 400 / oracle"]
    assert len(chosen[0].values) == 2


def test_power_rows_have_intervals(tiny):
    effort = Effort(runs=3, jobs=1, out=tiny.out, share=0.01)
    rows = power_rows(effort, ["laplace?epsilon=1"])
    assert [row.n for row in rows] == [400, 1000, 10_000]
    assert all(len(row.bounds) == 3 and row.truth == pytest.approx(1.0) for row in rows)
    row = PowerRow("x", 10, (1.0, 2.0, 3.0), None, None)
    assert (row.mean, row.half_width) == (2.0, pytest.approx(1.96 / math.sqrt(3)))


@pytest.mark.parametrize(
    ("runs", "n", "tolerance"),
    [(local_runs, 20_000, 0.2), (renyi_runs, 20_000, 0.1), (histogram_runs, 20_000, 0.1)],
)
def test_the_straightforward_versions_compute_the_same(runs, n, tolerance):
    ours, straightforward = runs(n)
    seeds = range(1, 7)  # each draws its own numbers, so only means agree
    assert np.mean([ours(seed) for seed in seeds]) == pytest.approx(
        np.mean([straightforward(seed) for seed in seeds]), abs=tolerance
    )
