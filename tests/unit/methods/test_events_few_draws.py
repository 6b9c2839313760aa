"""Events for few draws: what is found, and what is predicted of it."""

import pickle

import numpy as np
import pytest

import epsilometer as em
from epsilometer.claims import PureDP
from epsilometer.methods import Task
from epsilometer.methods.events import EventsMethod
from epsilometer.outputs import read_outputs


def task(claim=None, n=70):
    return Task(claim or PureDP(0.0), (n, n), 0.05)


def propose(left, right, claim=None, n=70):
    """The event, and how often it is hit by both sides: the larger first."""
    proposal = EventsMethod().propose(read_outputs(left), read_outputs(right), task(claim, n))
    hits = [int(proposal.event.contains(read_outputs(side)).sum()) for side in (left, right)]
    return proposal, hits[::-1] if proposal.candidate.flipped else hits


class TestOneNumber:
    def test_is_cut_half_way_between_the_two_sides(self):
        proposal, hits = propose(np.arange(10.0, 16.0), np.arange(6.0))
        assert proposal.event.describe() in ("output ≥ 7.5", "output < 7.5")
        assert hits == [6, 0]

    def test_either_side_may_be_the_larger_one(self):
        high, low = [10.0, 11.0, 12.0, 13.0, 14.0], [1.0, 2.0, 3.0, 4.0, 10.5]
        for left, right in ((high, low), (low, high)):
            assert propose(left, right)[1] in ([5, 1], [4, 0])

    def test_distance_from_the_centre_is_an_order_too(self, rng):
        near, far = (
            rng.normal(size=20),
            rng.choice([-1.0, 1.0], size=20) * rng.uniform(7.0, 9.0, size=20),
        )
        for left, right in ((far, near), (near, far)):
            proposal, hits = propose(left, right)
            assert (hits[0] >= 16, hits[1]) == (True, 0)
            assert len(set(proposal.event.contains(np.array([-8.5, 8.5])).tolist())) == 1

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_values_off_the_line_may_be_all_of_the_leak(self, odd, rng):
        hits = propose(
            rng.permutation([odd] * 6 + [1.0, 2.0]), [1.5, 2.5, 3.0, 0.5, 0.0, 4.0, 5.0, 6.0]
        )[1]
        assert (hits[0] >= 6, hits[1] <= 2) == (True, True)

    @pytest.mark.parametrize(
        ("low", "high"), [(1.0, np.nextafter(1.0, 2.0)), (-1.7e308, 1.7e308), (0.0, 5e-324)]
    )
    def test_neighbouring_floats_and_huge_ones_are_cut(self, low, high):
        assert propose([high] * 5, [low] * 5)[1] == [5, 0]

    def test_one_value_only_proves_nothing(self):
        assert propose([1.0] * 9, [1.0] * 9)[1] in ([9, 9], [0, 0])


class TestSeveralColumns:
    def test_of_many_columns_the_one_that_differs_is_found(self, rng):
        left, right = rng.normal(size=(60, 30)), rng.normal(size=(60, 30))
        left[:, 7] += 4.0
        hits = propose(left, right)[1]
        assert (hits[0] >= 50, hits[1] <= 4) == (True, True)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_events_do_not_depend_on_units(self, rng, scale):
        left, right = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
        left[:, 1] += 4.0
        assert propose(left * scale, right * scale)[1] == propose(left, right)[1]

    def test_a_spread_is_seen_as_well_as_a_shift(self, rng):
        left, right = rng.normal(size=(60, 5)), rng.normal(size=(60, 5))
        left[:, 2] *= 8.0
        hits = propose(left, right)[1]
        assert (hits[0] >= 30, hits[1] <= 12) == (True, True)

    def test_constant_columns_prove_nothing(self):
        assert propose([(1.0, "x", np.nan)] * 9, [(1.0, "x", np.nan)] * 9)[1] in ([9, 9], [0, 0])

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ([None] * 15 + [3.0] * 5, [0.0, 0.5, 1.0, 1.5] * 5),
            (["a", 2.0, 3.0] * 8, ["b", -2.0, -3.0] * 8),
            ([(True, 5.0)] * 20, [(True, -1.0), (False, 5.0)] * 10),
            ([f"l{number}" for number in range(8)] * 4, [f"r{number}" for number in range(8)] * 4),
        ],
        ids=["shapes", "names and numbers", "mixed tuples", "many names"],
    )
    def test_every_kind_of_output_is_told_apart(self, left, right, rng):
        mixed = [[side[place] for place in rng.permutation(len(side))] for side in (left, right)]
        proposal = EventsMethod().propose(*(read_outputs(side) for side in mixed), task())
        shares = [np.mean(proposal.event.contains(read_outputs(side))) for side in (left, right)]
        assert abs(shares[0] - shares[1]) >= 0.45


def test_an_event_is_preferred_to_nothing(rng):
    same = [read_outputs(rng.normal(size=10)) for _ in range(2)]
    assert EventsMethod().propose(*same, task(n=10)).event.chosen.any()


def test_an_audit_of_few_draws_is_stored_and_replayed(rng):
    left, right = rng.normal(size=(100, 7)), rng.normal(size=(100, 7))
    left[:, 3] += 5.0
    result = em.compare(left, right, em.PureDP(1.0), seed=1)
    assert result.verdict is em.Verdict.REFUTED
    stored = em.AuditResult.from_json(result.to_json())
    assert stored.witness.event.describe() == result.witness.event.describe()

    def shifted(data, n, rng):
        draws = rng.normal(size=(n, 7))
        draws[:, 3] += data
        return draws

    again = em.replay(stored, em.from_batch(shifted), pair=em.Pair(5.0, 0.0), samples=2000, seed=2)
    assert again.verdict is em.Verdict.REFUTED
    assert again.lower_bound > result.lower_bound


def test_proposals_survive_pickling(rng):
    left, right = (read_outputs(rng.normal(shift, 1.0, size=(30, 3))) for shift in (3.0, 0.0))
    proposal = EventsMethod().propose(left, right, task())
    again = pickle.loads(pickle.dumps(proposal))
    assert again.tally(left, 0) == proposal.tally(left, 0)
