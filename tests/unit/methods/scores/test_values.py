"""Outcomes: which there are, and their posterior log-ratios."""

import numpy as np
import pytest

from epsilometer.methods.scores.values import (
    learn_outcomes,
    line_of_outcomes,
    posterior_means,
)
from epsilometer.outputs import read_outputs


class TestOutcomesOfNumbers:
    def test_plain_noise_is_one_outcome(self, rng):
        line = line_of_outcomes(rng.uniform(size=3000), rng.uniform(size=3000))
        assert len(line.edges) == 0

    def test_a_value_that_repeats_five_times_is_an_outcome(self, rng):
        left = np.append(rng.normal(size=1000), [0.25] * 5)
        line = line_of_outcomes(left, rng.normal(size=1000))
        cells = line.index(np.array([0.25, np.nextafter(0.25, 1.0), np.nextafter(0.25, 0.0)]))
        assert len(set(cells.tolist())) == 3

    def test_a_far_group_is_one_outcome_however_wide_it_is(self, rng):
        far = 1e6 * (2.0 + rng.random(40))
        line = line_of_outcomes(np.append(rng.normal(size=3000), far), rng.normal(size=3000))
        assert len(set(line.index(far).tolist())) == 1
        assert line.index(np.array([5.0]))[0] != line.index(far[:1])[0]

    def test_four_far_draws_are_none(self, rng):
        line = line_of_outcomes(
            np.append(rng.uniform(size=3000), [9.0] * 0 + [8.1, 8.2, 8.3, 8.4]),
            rng.uniform(size=3000),
        )
        assert len(line.edges) == 0


class TestPosterior:
    def test_equal_counts_have_no_log_ratio(self):
        counts = np.full((1, 30), 50)
        assert posterior_means(counts, counts) == pytest.approx(0.0, abs=1e-9)

    def test_chance_is_shrunk_and_a_release_is_not(self, rng):
        left = rng.poisson(20.0, size=(1, 400))
        right = rng.poisson(20.0, size=(1, 400))
        left[0, 0], right[0, 0] = 90, 0
        (means,) = posterior_means(left, right)
        assert means[0] > 3.0
        # Observed log-ratios of chance have a standard deviation of .32.
        assert np.abs(means[1:]).max() < 0.35
        assert np.std(means[1:]) < 0.1

    def test_each_row_is_estimated_by_its_own_counts(self):
        left = np.array([[100, 50, 50], [10, 50, 50]])
        right = np.array([[10, 50, 50], [100, 50, 50]])
        means = posterior_means(left, right)
        assert means[0, 0] > 1.0
        assert means[1, 0] < -1.0


class TestScore:
    def test_draws_are_scored_without_their_fold(self):
        """An outcome whose draws are all in one fold has no score of its own."""
        left = np.arange(1000.0) * 7.0 % 13.0
        right = left.copy()
        left[0:50:5] = 99.0
        score = learn_outcomes(read_outputs(left), read_outputs(right))
        own = score.scores[score.partition.index(read_outputs(np.array([99.0])))[0]]
        assert own > 1.0
        # Its ten draws were scored as if the value had never been seen.
        assert np.count_nonzero(score.left > 0.9 * own) == 0

    def test_one_outcome_is_no_score(self):
        same = read_outputs(["a"] * 50)
        assert learn_outcomes(same, same) is None

    def test_thousands_of_labels(self, rng):
        labels = np.array([f"w{number}" for number in range(3000)])
        left = rng.integers(0, 3000, 30_000)
        right = rng.integers(0, 3000, 30_000)
        left[:300] = 17
        score = learn_outcomes(
            read_outputs(labels[rng.permutation(left)].tolist()),
            read_outputs(labels[right].tolist()),
        )
        inside = score.tail_event(0.005, upper=True).contains(read_outputs(["w17", "w18"]))
        assert inside.tolist() == [True, False]
