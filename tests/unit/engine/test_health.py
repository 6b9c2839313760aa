"""Each check trips on its own fake and stays silent on healthy draws."""

import numpy as np
import pytest

from epsilometer.bounds import Counts
from epsilometer.engine.health import (
    CHECKS,
    check_constant,
    check_correlation,
    check_drift,
    check_suppressed,
    row_hashes,
)
from epsilometer.errors import InputError
from epsilometer.outputs import read_outputs


def names(reports):
    return [report.name for report in reports]


class TestSuppress:
    def test_names(self):
        assert check_suppressed(()) == frozenset()
        assert check_suppressed("drift") == {"drift"}
        assert check_suppressed(list(CHECKS)) == set(CHECKS)

    def test_unknown_name(self):
        with pytest.raises(InputError, match="'drfit' is no health check; known are constant"):
            check_suppressed(["drift", "drfit"])


class TestConstant:
    def test_trips(self):
        reports = check_constant(read_outputs(["a"] * 9), read_outputs(["a"] * 9))
        assert names(reports) == ["constant"]
        assert not reports[0].untrusted

    def test_silent(self):
        assert check_constant(read_outputs([1.0, 2.0]), read_outputs([1.0, 1.0])) == []
        assert check_constant(read_outputs([None, 1.0]), read_outputs([None, 1.0])) == []
        assert check_constant(read_outputs([]), read_outputs([])) == []

    def test_nan_is_one_value(self):
        assert names(check_constant(read_outputs([np.nan] * 5), read_outputs([np.nan] * 5))) == ["constant"]


class TestCorrelation:
    def test_trips_on_a_sticky_sequence(self, rng):
        sticky = np.repeat(rng.random(2000) < 0.5, 5)
        reports = check_correlation([sticky, rng.random(10_000) < 0.5])
        assert names(reports) == ["serial-correlation"]
        assert "left" in reports[0].message
        assert reports[0].untrusted

    def test_trips_on_alternation(self):
        reports = check_correlation([np.arange(1000) % 2 == 0, np.zeros(1000, dtype=bool)])
        assert names(reports) == ["serial-correlation"]

    @pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 1e-3, 0.999])
    def test_silent_on_independent_draws(self, share, rng):
        for _ in range(20):
            assert check_correlation([rng.random(30_000) < share for _ in range(2)]) == []

    @pytest.mark.parametrize("lag", [1, 2, 3])
    @pytest.mark.parametrize("hits", [5, 9, 30])
    def test_two_rare_hits_in_a_row_are_chance(self, lag, hits):
        # Of k independent hits among n draws, some two are this close with probability k²/n: 1e-3 to 0.03 here.
        rare = np.zeros(30_000, dtype=bool)
        rare[:: 30_000 // (hits - 1)] = True
        rare[lag] = True
        assert check_correlation([rare, np.zeros(30_000, dtype=bool)]) == []
        assert check_correlation([~rare, np.zeros(30_000, dtype=bool)]) == []

    @pytest.mark.parametrize("n", [0, 1, 2, 29])
    def test_too_few_to_tell(self, n):
        few = np.ones(n, dtype=bool)
        assert check_correlation([few, few]) == []


class TestDrift:
    def test_trips_on_a_moving_share(self):
        moving = [Counts(hits, 1000) for hits in (100, 150, 200, 300, 400, 500)]
        steady = [Counts(250, 1000)] * 6
        reports = check_drift([steady, moving])
        assert names(reports) == ["drift"]
        assert "right" in reports[0].message
        assert reports[0].untrusted

    def test_trips_on_a_share_that_comes_and_goes(self):
        waves = [Counts(hits, 1000) for hits in (200, 500, 200, 500, 200, 500, 200, 500)]
        assert names(check_drift([waves, []])) == ["drift"]

    @pytest.mark.parametrize("share", [0.5, 0.03, 1e-3])
    def test_silent_on_independent_draws(self, share, rng):
        for _ in range(20):
            chunks = [Counts(int(rng.binomial(2000, share)), 2000) for _ in range(30)]
            assert check_drift([chunks, chunks]) == []

    def test_one_hit_in_a_last_chunk_of_one_is_chance(self):
        # Its probability is the event's own: 1.5 %.
        assert check_drift([[Counts(1000, 65_536), Counts(1, 1)], []]) == []
        assert check_drift([[Counts(65, 65_536), Counts(1, 5)], []]) == []

    def test_nothing_and_little(self):
        assert check_drift([[], [Counts(1, 1)]]) == []
        assert check_drift([[Counts(0, 0)] * 4, [Counts(3, 3), Counts(0, 3)]]) == []


def test_row_hashes_know_equal_outputs():
    hashes = row_hashes(read_outputs([1.0, "1", (1.0, "x"), None, 1.0, "1", (1.0, "x"), None, (1.0, "y"), 1]))
    assert np.array_equal(hashes[:4], hashes[4:8])
    assert len(set(hashes.tolist())) == 6
