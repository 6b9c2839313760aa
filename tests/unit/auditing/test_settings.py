"""How many draws learn."""

import pytest

import epsilometer as em
from epsilometer.auditing.settings import MOST_PER_ROUND, training_size
from epsilometer.methods.profile import ProfileMethod
from epsilometer.outputs import read_outputs


@pytest.mark.parametrize("samples", [20, 33, 1000, 99_999, 100_000, 1_000_000, 2_000_000])
def test_learning_takes_what_it_always_took(samples):
    assert training_size(samples) == max(10, min(int(0.3 * samples), int(20_000 + 0.1 * samples)))


@pytest.mark.parametrize(
    ("outputs", "size"), [([0.0, 1.0], 120_000), ([(0.0, 1.0)], 300_000), ([0.0, None], 300_000)]
)
def test_outputs_with_structure_take_more_to_learn(outputs, size):
    assert training_size(1_000_000, read_outputs(outputs)) == size
    assert training_size(10_000, read_outputs(outputs)) == 3000


def test_what_proves_does_not_decide_how_much_learns():
    """A list that is not among the first draws would change the size, and with it which outputs are fresh."""
    outputs = [0.0, 1.0] * 100_000
    compared = em.compare(outputs, [*outputs[:-1], [0.0, 1.0]], em.PureDP, seed=1)
    trials = {counts.trials for counts in compared.witness.counts}
    assert trials == {200_000 - 40_000}


def test_a_large_audit_of_vectors_proves_with_what_learning_leaves():
    result = em.measure(
        em.from_batch(vectors), em.Pair(0.0, 1.0), em.PureDP, samples=120_000, seed=0
    )
    assert result.witness.left_counts.trials == 120_000 - 36_000
    assert result.samples_used == (120_000, 120_000)


@pytest.mark.parametrize("samples", [20_000_000, 10**9, 10**12])
def test_learning_is_bounded(samples):
    assert training_size(samples) == 1 << 18
    assert training_size(samples, read_outputs([(0.0, 1.0)])) == 2_000_000
    assert ProfileMethod().fixed_sizes(1, 10 * samples) == (2_000_000, 10 * samples - 2_000_000)


def vectors(dataset, n, rng):
    return rng.laplace(dataset, 1.0, (n, 2))


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
