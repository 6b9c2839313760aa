"""The distributions of the families against sums and quadrature, and the oracle against a known one."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from benchmarks.effort import Effort
from benchmarks.families import all_families, family_of
from benchmarks.families.distributions import (
    geometric_log_below,
    geometric_log_mass,
    laplace_log_density,
    laplace_log_interval,
    normal_log_interval,
    uniform_category_log_mass,
)
from benchmarks.families.family import Family
from benchmarks.families.oracle import best_event
from benchmarks.families.running import family_rows, markdown
from scipy.stats import laplace, norm

import epsilometer as em
from epsilometer_experiments.sniper.oracle import oracle_bound


def test_geometric_noise_adds_up():
    k = np.arange(-200, 201)
    masses = np.exp(geometric_log_mass(k, 0.4))
    assert masses.sum() == pytest.approx(1.0)
    for threshold in (-5, 0, 1, 7):
        below = math.exp(float(geometric_log_below(threshold, 0.4)))
        assert below == pytest.approx(masses[k < threshold].sum())


@pytest.mark.parametrize(("low", "high"), [(-3.0, -2.0), (-0.3, 0.1), (-0.1, 0.4), (1.0, 1.5)])
def test_intervals_have_their_probabilities(low, high):
    center, scale = 0.2, 0.7
    for log_interval, law in ((laplace_log_interval, laplace), (normal_log_interval, norm)):
        expected = law.cdf(high, center, scale) - law.cdf(low, center, scale)
        assert math.exp(float(log_interval(low, high, center, scale))) == pytest.approx(expected)


def test_intervals_far_out_keep_their_ratio():
    """In the tail of Laplace noise a shift by one scale is a factor of e, however far out."""
    far = laplace_log_interval(500.0, 500.1, 0.0, 1.0)
    assert far - laplace_log_interval(500.0, 500.1, 1.0, 1.0) == pytest.approx(-1.0)
    assert np.isfinite(normal_log_interval(60.0, 60.1, 0.0, 1.0))


def test_randomized_response_adds_up():
    masses = np.exp(uniform_category_log_mass(np.arange(7), 3, 7, 1.1))
    assert masses.sum() == pytest.approx(1.0)
    assert masses.max() / masses.min() == pytest.approx(math.exp(1.1))


WORKDAYS = [
    day
    for day in map(date.fromordinal, range(date(2025, 1, 1).toordinal(), 740_000))
    if day.weekday() < 5
]
NAMES = list(family_of("top-three-names").pair.left)
FINITE = {
    "top-three-names": [
        [a, b, c] for a in NAMES for b in NAMES for c in NAMES if len({a, b, c}) == 3
    ],
    "many-diagnoses": ["unknown", *(f"D{code:02d}" for code in range(40))],
    "text-percent": [f"{half / 2:g} % of 20 answered yes" for half in range(201)],
    "text-masked-name": ["A" + "*" * stars for stars in range(1, 120)],
    "text-log-line": [
        f"{level} worker-1 took 5 ms (retries: 0)" for level in ("INFO", "WARN", "ERROR")
    ],
    "admission-date": WORKDAYS,
    "two-columns-labels": [
        ("amber", name) for name in ("amber", "blue", "coral", "denim", "ebony", "flax")
    ],
}


@pytest.mark.parametrize("name", FINITE)
def test_chances_of_finite_outputs_add_up(name):
    family = family_of(name)
    for dataset in (family.pair.left, family.pair.right):
        assert np.exp(family.log_density(dataset, FINITE[name])).sum() == pytest.approx(1.0)


def test_names_are_unique_and_mechanisms_can_be_audited():
    families = all_families()
    assert len({family.name for family in families}) == len(families)
    family = family_of("api-answer")
    result = em.measure(family.mechanism, family.pair, em.PureDP, samples=1000, seed=0)
    assert 0.0 <= result.lower_bound <= 3.0


LAPLACE = Family(
    "laplace",
    "test",
    "Laplace noise of scale 1 on 0 or 1",
    lambda center, n, rng: rng.laplace(center, 1.0, n),
    lambda center, outputs: laplace_log_density(outputs, center, 1.0),
    em.Pair(0.0, 1.0),
    1.0,
)


def test_the_oracle_is_the_one_of_the_strength_table():
    expected = oracle_bound(em.zoo.laplace(1.0).distributions, 10_000)
    assert best_event(LAPLACE, 10_000, 0.05).bound == pytest.approx(expected, rel=0.01)


def test_the_oracle_finds_the_better_direction():
    """Outputs of the right side that the left one never gives."""
    released = family_of("exact-release-30-percent")
    swapped = replace(released, pair=em.Pair(released.pair.right, released.pair.left))
    bounds = [best_event(family, 10_000, 0.05).bound for family in (released, swapped)]
    assert bounds == pytest.approx([6.93, 6.93], abs=0.05)


def test_rows_say_what_was_proved(tmp_path):
    effort = Effort(
        jobs=1, out=tmp_path, seeds=2, samples=2000, only=("two-columns-labels", "rare-mark")
    )
    rows = family_rows(effort)
    assert [row.family.name for row in rows] == ["rare-mark", "two-columns-labels"]
    assert all(len(row.bounds) == 2 and row.n == 2000 and row.oracle > 0 for row in rows)
    table = markdown(rows)
    assert "of 2" in next(line for line in table.splitlines() if "rare-mark" in line)
    assert "reported: 2 families" in table
