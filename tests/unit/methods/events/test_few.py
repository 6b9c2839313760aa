"""Events for few draws: orders, their ends, and what is predicted of them."""

import pickle

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds import Counts, certified_value
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP
from epsilometer.methods import Task
from epsilometer.methods.events import EventsMethod, ways_of
from epsilometer.methods.events.few import FEW, Ordered, choose_end, fit_line, learn_orders
from epsilometer.methods.events.prediction import expected_bounds, few_doubt
from epsilometer.outputs import Event, read_outputs

CLAIMS = [
    PureDP(0.1),
    ApproxDP(0.1, 0.01),
    ApproxDeltaDP(0.1, 0.01),
    RenyiDP(2.0, 0.01),
    ZCDP(0.01),
    GaussianDP(0.1),
    TradeOffDP(([0, 1], [1, 0]), 0.01),
]


def task(claim=None, n=70):
    return Task(claim or PureDP(0.0), (n, n), 0.05)


def events_of(left, right, claim=None):
    """The event that each order proposes, with its choice."""
    orders = learn_orders(read_outputs(left), read_outputs(right))
    chosen = [(order, choose_end(order, task(claim))) for order in orders]
    return [(Event(order.partition, choice.chosen).simplified(), choice) for order, choice in chosen if choice]


class TestOneNumber:
    def test_is_cut_half_way_between_the_two_sides(self):
        event, choice = events_of([10.0, 11.0, 12.0, 13.0], [1.0, 2.0, 3.0, 4.0])[0]
        assert event.describe() in ("output ≥ 7", "output < 7")
        assert (choice.p, choice.q) == (pytest.approx(4 / 5, abs=0.05), pytest.approx(1 / 5, abs=0.05))

    def test_either_side_may_be_the_larger_one(self):
        high, low = [10.0, 11.0, 12.0, 13.0], [1.0, 2.0, 3.0, 4.0, 10.5]
        for left, right in ((high, low), (low, high)):
            event, choice = events_of(left, right)[0]
            inside, outside = (right, left) if choice.flipped else (left, right)
            assert event.contains(read_outputs(inside)).sum() >= 3
            assert event.contains(read_outputs(outside)).sum() <= 1

    def test_distance_from_the_centre_is_an_order_too(self):
        left, right = [-9.0, -8.0, -7.0, 7.0, 8.0, 9.0], [-1.0, -0.5, -0.1, 0.1, 0.5, 1.0]
        event, choice = events_of(left, right)[1]
        assert sorted(event.contains(np.array([-8.5, 0.0, 8.5])).tolist()) in (
            [False, False, True],
            [False, True, True],
        )
        assert (choice.p, choice.q) == (pytest.approx(6 / 7, abs=0.05), pytest.approx(1 / 7, abs=0.05))

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_values_off_the_line_may_be_all_of_the_leak(self, odd):
        left, right = [odd] * 6 + [1.0, 2.0], [1.5, 2.5, 3.0, 0.5, 0.0, 4.0, 5.0, 6.0]
        best = max(events_of(left, right), key=lambda found: found[1].predicted)
        counts = [best[0].contains(read_outputs(side)).sum() for side in (left, right)]
        assert max(counts) >= 6
        assert min(counts) <= 2

    def test_neighbouring_floats_and_huge_ones_are_cut(self):
        for low, high in ((1.0, np.nextafter(1.0, 2.0)), (-1.7e308, 1.7e308), (0.0, 5e-324)):
            event, _ = events_of([high] * 5, [low] * 5)[0]
            assert sorted(event.contains(np.array([low, high])).tolist()) == [False, True]

    def test_many_values_are_thinned_and_keep_their_tails(self, rng):
        order = learn_orders(read_outputs(rng.normal(size=2000)), read_outputs(rng.normal(size=2000)))[0]
        counts = order.partition.count(order.left) + order.partition.count(order.right)
        assert order.partition.n_cells <= 140
        assert counts[0] <= 3
        assert counts.sum() == 4000

    def test_one_value_only_has_no_ends(self):
        assert events_of([1.0] * 9, [1.0] * 9) == []

    def test_many_draws_have_no_orders(self, rng):
        values = read_outputs(rng.normal(size=FEW))
        assert not any(isinstance(way, Ordered) for way in ways_of(values, values))


class TestSeveralColumns:
    def test_only_columns_that_tell_the_sides_apart_are_kept(self, rng):
        left, right = rng.normal(size=(60, 30)), rng.normal(size=(60, 30))
        left[:, 7] += 4.0
        a, b = (read_outputs(side).blocks[0] for side in (left, right))
        assert fit_line(a, b).columns == (7,)

    def test_scores_do_not_depend_on_units(self, rng):
        left, right = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
        left[:, 1] += 4.0
        scores = []
        for scale in (1.0, 1e-200, 1e200):
            a, b = (read_outputs(side * scale).blocks[0] for side in (left, right))
            scores.append(fit_line(a, b).evaluate(a.columns))
        assert np.allclose(scores[0], scores[1])
        assert np.allclose(scores[0], scores[2])

    def test_a_spread_is_seen_as_well_as_a_shift(self, rng):
        left, right = rng.normal(size=(60, 5)), rng.normal(size=(60, 5))
        left[:, 2] *= 8.0
        a, b = (read_outputs(side).blocks[0] for side in (left, right))
        score = fit_line(a, b)
        assert score.columns == (2,)
        assert np.median(score.evaluate(a.columns)) > np.median(score.evaluate(b.columns))

    def test_constant_columns_have_no_score(self):
        a, b = (read_outputs([(1.0, "x", np.nan)] * 9).blocks[0] for _ in range(2))
        score = fit_line(a, b)
        assert score is None or np.ptp(score.evaluate(a.columns)) == 0.0

    def test_draws_that_fitted_a_score_are_not_counted(self, rng):
        (order,) = learn_orders(read_outputs(rng.normal(size=(40, 2))), read_outputs(rng.normal(size=(31, 2))))
        assert (len(order.left), len(order.right)) == (20, 16)

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


class TestPrediction:
    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    @pytest.mark.parametrize(("hits", "misses"), [(20, 0), (19, 1), (15, 2), (20, 5)])
    def test_is_near_the_certificate_of_the_expected_counts(self, claim, hits, misses):
        left, right = Counts(hits, 20), Counts(misses, 20)
        proved = certified_value(claim, left, right, 0.05, (left.share, right.share))
        p, q = np.array([left.share]), np.array([right.share])
        (predicted,) = expected_bounds(task(claim), p, q, (10, 10), (20, 20), 0.0)
        # Of an event that was never missed it is cautious: a line proves more than two limits.
        assert proved - (0.75 if hits == 20 else 0.25) <= predicted <= proved + 0.25

    def test_doubt_grows_with_the_draws(self):
        doubts = [few_doubt((n, n)) for n in (3, 10, 30, 100, 300, 1000, FEW)]
        assert doubts == sorted(doubts)
        assert doubts[0] == 0.0
        assert doubts[-1] == 3.0

    def test_an_event_is_preferred_to_nothing(self, rng):
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
