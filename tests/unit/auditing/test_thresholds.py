"""The size that is refuted nine times in ten, from thresholds that are known beforehand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.auditing.thresholds import (
    FIRST_REHEARSALS,
    REHEARSALS,
    STEP,
    Thresholds,
    first_refuted,
    hardest_to_find,
)

SIZES = [0.01 * STEP**place for place in range(60)]


@pytest.mark.parametrize("start", [0, 7, 29, 80])
@pytest.mark.parametrize("threshold", [0, 1, 6, 7, 8, 28, 29, 30])
def test_the_first_place_is_found_from_anywhere(start, threshold):
    asked = []

    def refutes(place):
        asked.append(place)
        return place >= threshold

    assert first_refuted(refutes, start, 30) == threshold
    assert all(0 <= place < 30 for place in asked)


def test_a_near_start_takes_few_rehearsals():
    asked = []
    first_refuted(lambda place: asked.append(place) or place >= 20, 20, 60)
    assert asked == [20, 19]


def known_thresholds(values):
    """Rehearsals that refute from these sizes on."""
    return Thresholds(lambda number, place: SIZES[place] >= values[number], SIZES)


def normal_thresholds(mean, deviation):
    """Evenly spread quantiles of a normal distribution, in a mixed order."""
    quantiles = norm.ppf((np.arange(REHEARSALS) + 0.5) / REHEARSALS)
    return known_thresholds(mean + deviation * quantiles[np.arange(REHEARSALS) * 5 % REHEARSALS])


@pytest.mark.parametrize("deviation", [0.1, 0.3, 0.6])
def test_nine_in_ten(deviation):
    """The quantile, or what is larger by at most a step."""
    kind = normal_thresholds(1.0, deviation)
    kind.rehearse(REHEARSALS, start=0)
    quantile = norm.ppf(0.9, loc=1.0, scale=deviation)
    assert quantile < kind.nine_in_ten() < STEP * quantile


def test_a_few_that_are_far_larger_count():
    values = [1.0] * (REHEARSALS - 2) + [3.0, 3.0]
    kind = known_thresholds(values)
    kind.rehearse(REHEARSALS, start=0)
    assert kind.nine_in_ten() >= 3.0


def test_one_that_is_never_refuted_makes_it_infinite():
    kind = known_thresholds([1.0, math.inf, 1.0])
    kind.rehearse(REHEARSALS, start=0)
    assert len(kind.places) == 2  # the others need not be looked at
    assert kind.nine_in_ten() == math.inf


def test_the_hardest_kind_is_rehearsed_more_often():
    easy = normal_thresholds(0.5, 0.05)
    hard = normal_thresholds(1.0, 0.1)
    assert hardest_to_find([easy, hard, normal_thresholds(0.7, 0.1)]) is hard
    assert (len(easy.places), len(hard.places)) == (FIRST_REHEARSALS, REHEARSALS)
