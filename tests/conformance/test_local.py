"""The shipped suite on the local approach, for a continuous law in one and in two dimensions."""

import math

import pytest

import epsilometer as em
from epsilometer.methods import find_method
from epsilometer.outputs import read_outputs
from epsilometer.testing import MethodConformance


class TestOnALine(MethodConformance):
    runs = 24  # fails at 12 bounds above the truth; tests/statistical/test_local.py repeats it more often
    claims = (em.PureDP(0.5),)

    def draw(self, side, n, rng):
        return read_outputs(rng.laplace(side, 1.0, n))

    def truth(self, claim):
        return 1.0

    @pytest.fixture
    def method(self):
        return find_method("local")


class TestInThePlane(TestOnALine):
    # These take laws of their own instead of `draw`: what they show of this method, they show above.
    test_bounds_hold_where_over_fitting_pays = None
    test_bounds_hold_when_the_laws_change = None
    test_bounds_hold_for_every_coin = None
    test_every_fresh_draw_is_counted_once = None

    def draw(self, side, n, rng):
        return read_outputs(rng.laplace(side, 1.0, (n, 2)))

    def truth(self, claim):
        return 2.0


class TestOnAHalfLine(TestOnALine):
    def draw(self, side, n, rng):
        return read_outputs(rng.exponential(1.0 if side else 0.5, n))

    def truth(self, claim):
        return math.inf  # the loss grows with the output; at 0 it is ln 2

    @pytest.fixture
    def method(self):
        return find_method("local", em.local.Options(support=(0, None)))
