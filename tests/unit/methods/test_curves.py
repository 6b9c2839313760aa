"""How the log-ratio runs along a number, also where there are no draws."""

import numpy as np
import pytest
from scipy.special import ndtr

import epsilometer as em
from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.methods.base import Task
from epsilometer.methods.curves import Sliced, fit_curves, separation_evidence
from epsilometer.methods.events import EventsMethod
from epsilometer.methods.scores import learn_scores
from epsilometer.methods.tail import best_tail, estimate_tails, slice_score
from epsilometer.outputs import read_outputs

N_TRAIN, N_FRESH = 3000, 7000
TASK = Task(em.PureDP(1.0), (N_FRESH, N_FRESH), 0.05)


def worth(p, q):
    return epsilon_lower(
        Counts(round(p * N_FRESH), N_FRESH), Counts(round(q * N_FRESH), N_FRESH), 0.05
    )


def tail_of(left, right):
    scores = learn_scores(read_outputs(left), read_outputs(right))
    (number,) = (score for score in scores if score.name == "number")
    tail = best_tail(estimate_tails(number, slice_score(number)), TASK, number.n_tails)
    (threshold,) = tail.event().partition.blocks[0].groups[0].line.edges
    return threshold, tail


def test_a_tail_that_was_hardly_seen_is_chosen_by_the_form_of_the_curve(rng):
    best = max(worth(ndtr(3.0 - t), ndtr(-t)) for t in np.linspace(1.0, 6.0, 60))
    found = []
    for _ in range(4):
        threshold, choice = tail_of(3.0 + rng.normal(size=N_TRAIN), rng.normal(size=N_TRAIN))
        depth = 3.0 - threshold if choice.flipped else threshold
        found.append(worth(ndtr(3.0 - depth), ndtr(-depth)))
    assert min(found) > 0.9 * best


def test_a_plateau_is_not_taken_for_a_slope(rng):
    for _ in range(6):
        _, choice = tail_of(1.0 + rng.laplace(size=N_TRAIN), rng.laplace(size=N_TRAIN))
        assert choice.p > 0.1
        assert choice.predicted < 1.1


def test_a_spike_is_found_at_its_own_scale(rng):
    left, right = rng.laplace(size=N_TRAIN), 0.2 + rng.laplace(size=N_TRAIN)
    left[:700] = 1e-12 * rng.normal(size=700)
    proposal = EventsMethod().propose(
        read_outputs(rng.permutation(left)), read_outputs(right), TASK
    )
    inside = proposal.event.contains(read_outputs(np.array([0.0, 1e-13, 1e-6, -1e-6, 1.0])))
    assert inside.tolist() == [True, True, False, False, False]
    assert proposal.predicted > 4.0


def test_distances_tell_more_only_where_widths_differ(rng):
    wide, narrow, shifted = (
        3.0 * rng.normal(size=2000),
        rng.normal(size=2000),
        1.0 + rng.normal(size=2000),
    )

    def evidence(one, other):
        return separation_evidence(Sliced.of(one, other))

    assert evidence(np.abs(wide), np.abs(narrow)) > evidence(wide, narrow) > 0.0
    assert evidence(np.abs(shifted), np.abs(narrow)) < evidence(shifted, narrow)


def test_equal_distributions_give_no_evidence(rng):
    # The evidence against a true null exceeds x with probability at most e^-x (Markov).
    found = [
        separation_evidence(Sliced.of(rng.normal(size=500), rng.normal(size=500)))
        for _ in range(20)
    ]
    assert np.median(found) < 1.0


def test_the_edge_of_a_support_is_found(rng):
    """Uniform noise: what lies beyond the edge of one side is only given by the other."""
    threshold, tail = tail_of(rng.uniform(0.3, 1.3, N_TRAIN), rng.uniform(0.0, 1.0, N_TRAIN))
    inside = threshold - 1.0 if not tail.flipped else 0.3 - threshold
    # Beyond the edge lie .3 of one side; nearly all of that belongs to the event.
    assert -0.01 < inside < 0.08


@pytest.mark.parametrize("kind", ["normal", "equal", "apart", "ties", "heavy"])
def test_what_curves_expect_adds_up(rng, kind):
    left, right = rng.normal(size=500), rng.normal(size=700)
    if kind == "equal":
        right = np.resize(left, 700)
    if kind == "apart":
        left = left + 100.0
    if kind == "ties":
        left, right = np.round(left), np.round(right)
    if kind == "heavy":
        left, right = np.exp(20.0 * left), np.exp(20.0 * right)
    sliced = Sliced.of(left, right)
    curves = fit_curves(sliced)
    assert curves.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(curves.lefts).all()
    assert (np.diff(curves.lefts, axis=1) >= 0.0).all()
    assert sliced.lefts[-1] == 500
    assert curves.weights @ curves.lefts[:, -1] == pytest.approx(500.0, abs=25.0)


@pytest.mark.parametrize("seed", [3, 4, 8])
def test_a_simple_event_is_not_preferred_for_its_luck(seed):
    # The best single value of ten bits looks better than it is; a score of the bits is worth 0.93 to 0.96.
    entry, rng = em.zoo.oue(), np.random.default_rng(seed)
    training, fresh = (
        [entry.mechanism.sample(entry.worst_pair.side(side), n, rng) for side in (0, 1)]
        for n in (N_TRAIN, 50_000)
    )
    candidate = EventsMethod().propose(*training, TASK).candidate
    p, q = candidate.oriented(*(float(np.mean(candidate.event.contains(each))) for each in fresh))
    assert worth(p, q) > 0.9


def test_cuts_lie_close_to_the_edge_of_a_support() -> None:
    # Without cuts of its own, the edge (at 0.6) would lie between two cuts that are 4 % of the
    # draws apart.
    left = np.linspace(0.6, 1.6, 3001)
    right = np.linspace(0.0, 1.0, 3000, endpoint=False)
    sliced = Sliced.of(left, right)
    # The largest tails without a single draw of the other side, and their sizes.
    above = sliced.at[-1] - sliced.at
    left_above = sliced.lefts[-1] - sliced.lefts
    beyond_right = int(above[left_above == above].max())
    beyond_left = int(sliced.at[sliced.lefts == 0].max())
    assert beyond_right == np.count_nonzero(left > right.max())
    assert beyond_left == np.count_nonzero(right < left.min())


def test_equal_supports_have_no_further_cuts() -> None:
    even = np.linspace(0.0, 1.0, 3000)
    uneven = np.linspace(0.0, 1.0, 3000) ** 1.2
    assert len(Sliced.of(even, uneven).at) <= 2 * (32 + 17) + 1
