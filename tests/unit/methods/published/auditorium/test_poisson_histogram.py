"""`poisson-histogram`: Algorithm 3 as published, and the event of its cells."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.claims import ApproxDeltaDP
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.methods import Task
from epsilometer.methods.published.auditorium.poisson_histogram import (
    Options,
    PoissonHistogramMethod,
    estimate,
    poisson_mean,
)
from epsilometer.outputs import read_outputs


@pytest.mark.paper("C14", "equal")
def test_the_published_number_of_draws():
    """Our notes: 6e5 draws at β = .05, m = 100, ε = .5."""
    assert poisson_mean(100, 0.5, 0.05, 1.0) == pytest.approx(400 * (1 + math.e) / 0.0025)
    assert poisson_mean(100, 0.5, 0.05, 1.0) == pytest.approx(5.95e5, rel=0.01)
    assert poisson_mean(2, 0.5, 1.0, 0.01) == pytest.approx(12 * (1 + math.e) / 1e-4)


@pytest.mark.paper("C13", "corrected")
def test_algorithm_3_line_by_line(rng):
    """With as many draws as there are, the random part is the whole."""
    x, y = np.array([50, 30, 20]), np.array([20, 30, 50])
    found = estimate(x, y, 0.3, tolerance=1e-3, margin=0.01, rng=rng)
    expected = (
        sum(max(0.0, (a - math.exp(0.3) * b) / 100) for a, b in zip(x, y, strict=True)) - 0.01
    )
    assert found.value == pytest.approx(expected)
    assert (found.used, found.is_complete) == (100, False)
    assert found.wanted > 1000


def test_a_random_part_is_used_when_there_are_more_draws_than_wanted(rng):
    found = estimate([60_000, 40_000], [40_000, 60_000], 0.0, tolerance=1.0, margin=0.1, rng=rng)
    assert found.is_complete
    assert abs(found.wanted - found.mean) < 6 * math.sqrt(found.mean)
    assert found.used == found.wanted < 10_000
    assert found.value == pytest.approx(0.2 - 0.1, abs=0.05)


def test_nothing_drawn(rng):
    assert estimate([0, 0], [0, 0], 0.5, rng=rng).value < 0.0


def test_numbers_are_cut_into_so_many_cells(rng):
    sides = [read_outputs(rng.laplace(side, 1.0, 20_000)) for side in (0, 1)]
    task = Task(ApproxDeltaDP(0.5, 0.0), (20_000, 20_000), 0.05)
    for cells in (10, 100):
        proposal = PoissonHistogramMethod(Options(cells=cells)).propose(*sides, task)
        assert abs(proposal.n_cells - cells) < 5


def test_the_published_estimate_decides_nothing():
    options = em.auditorium.poisson_histogram.Options(certificate="published")
    settings = {"samples": 20_000, "seed": 0, "method": "poisson-histogram"}
    result = em.audit(em.zoo.laplace(2.0), None, em.PureDP(0.5), options=options, **settings)
    assert result.lower_bound > 0.5
    assert result.verdict is em.Verdict.INCONCLUSIVE
    assert result.guarantee.startswith("none: Algorithm 3")
    assert em.audit(em.zoo.laplace(2.0), None, em.PureDP(0.5), **settings).is_refuted


def test_too_few_draws_are_named():
    options = em.auditorium.poisson_histogram.Options(certificate="published", tolerance=0.01)
    result = em.measure(
        em.zoo.laplace(1.0),
        None,
        em.ApproxDP,
        epsilon=0.5,
        samples=2000,
        seed=0,
        method="poisson-histogram",
        options=options,
    )
    assert "draws per side where there were 1,400" in result.guarantee


def test_vectors_are_one_output_each(rng):
    """Three columns are not three samples: the counts add up to the outputs."""
    sides = [read_outputs(rng.laplace(side, 1.0, (5000, 3))) for side in (0, 1)]
    proposal = PoissonHistogramMethod().propose(*sides, Task(em.PureDP(0.5), (5000, 5000), 0.05))
    assert proposal.tally(sides[0], 0).trials == 5000


def test_given_bounds_are_cut_into_cells_of_equal_width(rng):
    sides = [read_outputs(rng.normal(side, 1.0, 4000)) for side in (0, 1)]
    options = Options(cells=4, bounds=(0.0, 2.0), certificate="published")
    proposal = PoissonHistogramMethod(options).propose(
        *sides, Task(em.PureDP(0.5), (4000, 4000), 0.05, Stream(0))
    )
    assert proposal.partition.blocks[0].groups[0].line.edges == pytest.approx([0.5, 1.0, 1.5])
    low = proposal.tally(read_outputs([-9.0, 0.4, 0.6, 9.0]), 0)
    assert list(low[:4]) == [2, 1, 0, 1]


@pytest.mark.parametrize(
    "settings",
    [
        {"cells": 1},
        {"cells": 2.5},
        {"certificate": ""},
        {"tolerance": 0.0},
        {"margin": math.nan},
        {"epsilon": -0.1},
        {"bounds": (1.0, 1.0)},
        {"bounds": (0.0, math.inf)},
        {"bounds": 5},
        {"bounds": (0.0,)},
        {"bounds": (0.0, 1.0, 2.0)},
    ],
)
def test_nonsense_options(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Options(**settings)


@pytest.mark.parametrize("outputs", [np.zeros((50, 2)), np.array(["a", "b"] * 25)])
def test_bounds_of_outputs_that_are_no_numbers_are_told(outputs, rng):
    """Equal cells between two bounds cut single numbers; of a vector they would be learned from one draw."""
    mechanism = em.from_batch(lambda x, n, rng: outputs[rng.integers(0, 50, n)])
    histogram = em.auditorium.estimators.Histogram(0.1, cells=5, margin=0.3, bounds=(0.0, 1.0))
    with pytest.raises(em.InputError, match="bounds="):
        em.auditorium.audit(
            mechanism, em.Pair(0, 1), histogram, trials=1, samples=50, threshold=0.0
        )
    options = em.auditorium.poisson_histogram.Options(bounds=(0.0, 1.0))
    with pytest.raises(em.InputError, match="bounds="):
        em.measure(
            mechanism, em.Pair(0, 1), samples=200, method="poisson-histogram", options=options
        )


def test_a_setting_of_algorithm_3_is_not_ignored_by_the_exact_test():
    with pytest.raises(InputError, match=r"tolerance=0\.1.*certificate='published'"):
        Options(tolerance=0.1)
