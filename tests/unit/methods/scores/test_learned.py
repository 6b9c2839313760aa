"""Tails of scores: draws with one score stay together, whatever size of a tail is wanted."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.scores.learned import ContinuousScore


def score_of(ordered, *, is_line=False):
    empty = np.zeros(0)
    return ContinuousScore(
        name="score",
        left=empty,
        right=empty,
        ordered=np.asarray(ordered, dtype=np.float64),
        is_line=is_line,
        shapes=(),
    )


@pytest.mark.parametrize("wanted", [99, 100, 101, 140])
def test_a_tail_that_is_a_draw_too_large_takes_no_second_value(wanted):
    """100 draws of the last value, 90 of the one before: 101 wanted draws are the 100."""
    low_first = score_of([0.0] * 800 + [1.0] * 90 + [2.0] * 100)
    assert 1.0 < low_first.threshold(wanted / 990, upper=True) < 2.0
    high_first = score_of([-2.0] * 100 + [-1.0] * 90 + [0.0] * 800)
    assert -2.0 < high_first.threshold(wanted / 990, upper=False) < -1.0


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("is_line", [False, True])
def test_the_tail_is_the_nearest_in_size_that_there_is(upper, is_line, rng):
    for _ in range(50):
        values = rng.integers(0, 12, size=200) / 7.0
        # Sums of weights are equal up to rounding only; numbers are equal or not.
        noise = 0.0 if is_line else 1e-13 * rng.normal(size=200)
        score = score_of(np.sort(values + noise), is_line=is_line)
        possible = np.cumsum(np.unique(values, return_counts=True)[1])[:-1]
        possible = 200 - possible if upper else possible
        wanted = int(rng.integers(1, 200))
        threshold = score.threshold(wanted / 200, upper=upper)
        inside = np.count_nonzero(values > threshold if upper else values < threshold)
        assert abs(inside - wanted) == np.abs(possible - wanted).min()


@pytest.mark.parametrize("upper", [False, True])
def test_scores_that_are_all_different_give_any_size(upper):
    score = score_of(np.arange(100.0))
    for wanted in (1, 17, 99):
        threshold = score.threshold(wanted / 100, upper=upper)
        inside = score.ordered > threshold if upper else score.ordered < threshold
        assert np.count_nonzero(inside) == wanted


@pytest.mark.parametrize("seed", range(6))
def test_an_answer_that_one_side_never_gives_is_found_among_equally_likely_ones(seed):
    """Twenty answers of 5 % each, told by ten truth values, of which one side lacks one."""
    codes = np.random.default_rng(0).permutation(1024)[:20]
    answers = (codes[:, None] >> np.arange(10)) % 2 == 1

    def answer(lacks_first, n, rng):
        return answers[rng.integers(1 if lacks_first else 0, 20, n)]

    pair = em.Pair(False, True)
    result = em.measure(em.from_batch(answer), pair, samples=100_000, seed=seed)
    # 3500 of 70,000 draws against none: ln(.05/(3/70,000)) is 7.06.
    assert result.lower_bound > 6.5
