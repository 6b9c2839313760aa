"""Which parts of numbers become columns: those in which the sides differ periodically, and no others."""

import numpy as np
import pytest

from epsilometer.outputs import read_outputs
from epsilometer.outputs.bits import bits_view
from epsilometer.outputs.part_learning import learn_parts
from epsilometer.outputs.preparing import prepare

N = 3000


def learned(left, right):
    """The column, kind and modulus of each part."""
    return [
        (part.column, part.kind.value, part.modulus)
        for shape in learn_parts(read_outputs(left), read_outputs(right))
        for part in shape.parts
    ]


def even(n=N, start=0):
    """Whole numbers of which none comes more often than another."""
    return start + np.arange(n) * 7 % 1000


class TestWhatIsLearned:
    def test_rounded_on_one_side_only(self):
        assert learned(even() // 10 * 10, even()) == [(0, "last digit", 10)]

    def test_parity_kept_on_one_side_only(self):
        bits = np.random.default_rng(3).integers(2, size=N)
        assert learned(even() * 2, even() * 2 + bits) == [(0, "remainder", 2)]

    def test_negative_numbers_have_no_last_digit(self):
        assert learned(even(start=-500) // 10 * 10, even(start=-500)) == [(0, "remainder", 10)]

    def test_weekdays_and_hours(self):
        hours = np.datetime64("2021-03-01T00", "h") + even()
        at_nine = hours.astype("datetime64[D]") + np.timedelta64(9, "h")
        assert learned(at_nine, hours) == [(0, "hour", 24)]
        days = np.datetime64("2021-03-01", "D") + even()
        on_mondays = days - (even() % 7).astype("timedelta64[D]")
        assert learned(on_mondays, days) == [(0, "weekday", 7)]

    def test_beside_other_columns(self):
        left = [(0.1 * n, "x", int(n)) for n in even() // 10 * 10]
        right = [(0.1 * n, "x", int(n)) for n in even()]
        assert learned(left, right) == [(2, "last digit", 10)]


class TestWhatIsNot:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (even(), even()),
            # Shifted or stretched: the numbers themselves say more.
            (even(), even() + 3),
            (even(), even() // 2),
            (even() ** 2 // 1000, even()),
            # So few numbers that each is an outcome.
            (even() % 2 * 2, even() % 3),
            (even() % 2 == 0, even() % 4 == 0),
            # A single number that is more frequent on one side.
            (np.append(even(), np.full(N, 250)), np.append(even(), np.full(N // 2, 250))),
            # Nothing is whole, or known.
            (even() + 0.25, even() * 2 + 0.25),
            (np.full(N, np.nan), np.full(N, np.nan)),
            (np.full(N, np.inf), even() * 1.0),
            # Too few draws.
            (even(19) * 2, even(19) * 2 + 1),
        ],
    )
    def test_nothing_is_learned(self, left, right):
        assert learned(left, right) == []

    def test_the_bits_of_floats(self):
        sides = [bits_view(read_outputs(values)) for values in (even() * 2.0, even() + 0.0)]
        assert learn_parts(*sides) == ()

    def test_counters_and_numbers_that_never_repeat(self):
        turns = np.random.default_rng(5).permutation(2 * N)
        assert learned(turns[:N], turns[N:]) == []
        assert learned(np.arange(0, 2 * N, 2), np.arange(1, 2 * N, 2)) != []
        # As a column it is left out before its parts are looked at.
        rows = [
            [{"id": 2 * n + side, "x": float(np.sin(n))} for n in range(N)] for side in range(2)
        ]
        prepared = prepare(read_outputs(rows[0]), read_outputs(rows[1]))
        assert prepared.reading is not None
        assert prepared.reading.parts == ()

    def test_whole_numbers_of_equal_sides_seldom_have_parts(self):
        rng = np.random.default_rng(1)
        found = sum(
            bool(learned(rng.poisson(200, size=600), rng.poisson(200, size=600)))
            for _ in range(100)
        )
        # The promised rate is .01; so many have a chance below 1e-9.
        assert found <= 12
