"""How many draws learn."""

import pytest

import epsilometer as em
from epsilometer.auditing.settings import MOST_PER_ROUND, training_size
from epsilometer.methods.profile import ProfileMethod


@pytest.mark.parametrize("samples", [20, 33, 1000, 99_999, 100_000, 1_000_000, 10_000_000])
def test_learning_takes_what_it_always_took(samples):
    assert training_size(samples) == max(10, min(int(0.3 * samples), int(20_000 + 0.1 * samples)))


@pytest.mark.parametrize("samples", [20_000_000, 10**9, 10**12])
def test_learning_is_bounded(samples):
    assert training_size(samples) == 2_000_000
    assert ProfileMethod().fixed_sizes(1, 10 * samples) == (2_000_000, 10 * samples - 2_000_000)


def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def test_what_exploring_leaves_is_proved_with(monkeypatch):
    assert MOST_PER_ROUND > 0.25 * 10_000_000 - 1  # no audit of up to 1e7 draws gets there
    monkeypatch.setattr("epsilometer.auditing.settings.MOST_PER_ROUND", 6000)
    pairs = [em.Pair(0.0, 0.0, equal=True), (0.0, 1.0), (0.0, 0.1), (0.0, 0.2)]
    result = em.audit(em.from_batch(noisy), pairs, "eps=1", samples=100_000, seed=0)
    explored = sum(trial["draws"] for trial in result.findings[0].details["search"])
    fresh = result.witness.left_counts.trials
    assert explored == 12_000
    assert result.samples_used == (100_000, 100_000)
    assert fresh == 88_000 - training_size(88_000)
