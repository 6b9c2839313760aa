"""The size that is refuted nine times in ten, from thresholds that are known beforehand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.auditing.rehearsals import STEP
from epsilometer.auditing.thresholds import (
    FIRST_REHEARSALS,
    REHEARSALS,
    Thresholds,
    hardest_to_find,
)

SIZES = [0.01 * STEP**place for place in range(60)]


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
    easier = normal_thresholds(0.7, 0.1)
    assert hardest_to_find([easy, hard, easier]) is hard
    assert (len(easy.places), len(hard.places)) == (FIRST_REHEARSALS, REHEARSALS)
    assert not easier.places  # it is refuted wherever the hardest one is


def test_a_kind_that_is_refuted_wherever_another_is_is_no_harder():
    hard = known_thresholds([1.0, 2.0, 1.5])
    hard.rehearse(3, start=0)
    assert known_thresholds([0.9, 1.9, 1.4]).refutes_wherever(hard)
    assert not known_thresholds([0.5, 2.9, 0.5]).refutes_wherever(hard)
    assert not known_thresholds([0.5, math.inf, 0.5]).refutes_wherever(hard)
