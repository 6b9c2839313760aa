"""Numbers of [0, 1] as values."""

import numpy as np
import pytest

from epsilometer.inputs.coordinates import Coordinate, level_of, signed_step, whole_within, within


def test_a_tenth_of_the_coordinate_is_each_end():
    u = np.linspace(0.0, 1.0, 1001)
    values = np.array([within(each, -2.0, 3.0) for each in u])
    assert np.all(np.diff(values) >= 0.0)
    assert np.mean(values == -2.0) == pytest.approx(0.1, abs=0.002)
    assert np.mean(values == 3.0) == pytest.approx(0.1, abs=0.002)
    assert within(0.5, -2.0, 3.0) == pytest.approx(0.5)


def test_every_whole_number_is_reached():
    u = np.linspace(0.0, 1.0, 2001)
    assert sorted({whole_within(each, 3, 9) for each in u}) == [3, 4, 5, 6, 7, 8, 9]
    assert sorted({whole_within(each, 0, 1) for each in u}) == [0, 1]


def test_levels_have_equal_shares():
    assert [level_of(u, 4) for u in (0.0, 0.24, 0.26, 0.74, 0.99, 1.0)] == [0, 0, 1, 2, 3, 3]


def test_steps_are_full_none_or_between():
    assert [signed_step(u) for u in (0.0, 0.24, 0.5, 0.59, 0.76, 1.0)] == [
        -1.0,
        -1.0,
        0.0,
        0.0,
        1.0,
        1.0,
    ]
    assert signed_step(0.675) == pytest.approx(0.5)
    assert signed_step(0.325) == pytest.approx(-0.5)


def test_grids():
    assert Coordinate().grid(3).tolist() == pytest.approx([0.1, 0.5, 0.9])
    assert len(Coordinate(2).grid(5)) == 2
    assert [level_of(u, 7) for u in Coordinate(7, ordered=False).grid(2)] == list(range(7))
    assert [whole_within(u, 0, 6) for u in Coordinate(7).grid(9)] == list(range(7))


def test_places_are_apart_only_for_different_values():
    u = np.array([0.0, 0.05, 0.1, 0.5, 0.9, 1.0])
    assert Coordinate().places(u).tolist() == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0, 1.0])
    assert Coordinate(signed=True).places(u).tolist() == pytest.approx(
        [0.0, 0.0, 0.0, 0.5, 1.0, 1.0]
    )
    assert Coordinate(signed=True).places(np.array([0.45, 0.675, 0.7])).tolist() == pytest.approx(
        [0.5, 0.75, 5 / 6]
    )
    assert Coordinate(3, ordered=False).places(u).tolist() == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]
