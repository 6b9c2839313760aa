"""Which event is chosen, whatever the outputs are, judged by what it is worth on fresh draws."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.errors import InputError
from epsilometer.methods import Task
from epsilometer.methods.comparison import Options
from epsilometer.methods.events import EventsMethod
from epsilometer.outputs import read_outputs

CLAIMS = [
    PureDP(0.1),
    ApproxDP(0.1, 0.01),
    ApproxDeltaDP(0.1, 0.01),
    RenyiDP(2.0, 0.01),
    ZCDP(0.01),
    GaussianDP(0.1),
    TradeOffDP(([0, 1], [1, 0]), 0.01),
]


def task(claim=None, n=7000):
    return Task(claim or PureDP(1.0), (n, n), 0.05)


def propose(draw, seed=0, n=3000, options=None):
    """The proposal for draws of `draw(side, n, rng)`."""
    rng = np.random.default_rng(seed)
    left, right = (read_outputs(draw(side, n, rng)) for side in (0, 1))
    return EventsMethod(options).propose(left, right, task())


def bound_of(proposal, draw, n=7000, population=60_000):
    """What the event would prove with n draws per side at its true probabilities."""
    rng = np.random.default_rng(99)
    left, right = (
        float(np.mean(proposal.event.contains(read_outputs(draw(side, population, rng)))))
        for side in (0, 1)
    )
    p, q = proposal.candidate.oriented(left, right)
    return epsilon_lower(Counts(round(p * n), n), Counts(round(q * n), n), 0.05)


class TestRareOutcomes:
    @pytest.mark.parametrize("share", [0.03, 0.3])
    def test_an_exact_release_is_found_and_named(self, share):
        def draw(side, n, rng):
            exact = (0.75, 1.25)[side]
            released = rng.random(n) < share
            return np.where(released, exact, exact + rng.laplace(size=n))

        proposal = propose(draw)
        assert proposal.event.describe() in ("output = 0.75", "output = 1.25")

    @pytest.mark.parametrize("spread", [0.0, 1e14])
    def test_a_rare_far_group_is_found_and_named(self, spread):
        def draw(side, n, rng):
            numbers = 2.0 * rng.laplace(size=n) + 0.5 * side
            is_marked = (rng.random(n) < 0.0044) & (side == 0)
            return np.where(is_marked, -1e15 - spread * rng.random(n), numbers)

        proposal = propose(draw, n=20_000)
        inside = proposal.event.contains(np.array([-1.05e15 if spread else -1e15, -40.0, 0.0]))
        assert inside.tolist() == [True, False, False]
        assert proposal.event.n_parts == 1

    def test_a_rare_shape_is_found(self):
        def draw(side, n, rng):
            is_missing = rng.random(n) < 0.02 * side
            return [
                None if missing else number
                for missing, number in zip(is_missing, rng.laplace(size=n).tolist(), strict=True)
            ]

        assert propose(draw).event.describe() == "output is None"


class TestSeveralColumns:
    def test_a_single_column_is_enough_where_it_is_the_leak(self):
        def draw(side, n, rng):
            numbers = rng.laplace(size=(n, 4))
            numbers[:, 2] += side
            return numbers

        assert propose(draw).event.describe().startswith("output[2] ")

    def test_a_leak_only_where_two_columns_meet(self):
        def draw(side, n, rng):
            bits = rng.random((n, 10)) < 0.5
            agree = rng.random(n) < (0.7 if side else 0.3)
            bits[:, 8] = bits[:, 3] == agree
            return bits

        # ln(.7/.3) = .847 is the truth; .82 is what the best event proves.
        assert bound_of(propose(draw), draw) > 0.7

    def test_a_copied_value(self):
        def draw(side, n, rng):
            numbers = rng.laplace(size=(n, 3))
            is_copied = (rng.random(n) < 0.05) & (side == 0)
            numbers[:, 2] = np.where(is_copied, numbers[:, 0], numbers[:, 2])
            return numbers

        # The best event proves 5.2.
        assert bound_of(propose(draw), draw) > 4.0

    def test_the_sign_of_a_correlation(self):
        def draw(side, n, rng):
            first, second, third = rng.normal(size=(3, n))
            return np.stack([first, (1 - 2 * side) * 0.3 * first + 0.95 * second, third], axis=1)

        assert bound_of(propose(draw), draw) > 1.8

    def test_a_change_of_scale_in_all_columns(self):
        def draw(side, n, rng):
            return (1.0 + 0.3 * side) * rng.normal(size=(n, 4))

        # The best event proves 3.0.
        assert bound_of(propose(draw), draw) > 2.4

    def test_lists_of_any_length(self):
        def draw(side, n, rng):
            lengths = rng.poisson(2.0 + 0.3 * side, size=n)
            return [(2.0 * rng.laplace(size=k) + 0.5 * side).tolist() for k in lengths]

        # The best event proves 1.18.
        assert np.mean([bound_of(propose(draw, seed), draw) for seed in range(3)]) > 0.7


class TestOptions:
    def test_readability_can_be_switched_off(self):
        def draw(side, n, rng):
            return rng.laplace(size=(n, 2)) + np.array([side, 0.25 * side])

        readable = propose(draw, options=Options(readability=0.5))
        best = propose(draw, options=Options(readability=1.0))
        assert readable.event.n_parts == 1
        assert best.event.n_parts > 1

    def test_an_event_is_not_readable_for_its_luck(self):
        """Eight far draws on one side prove nothing of a column, as one of many candidates."""

        def predicted(seed):
            rng = np.random.default_rng(seed)
            left = rng.laplace(size=(3000, 5)) - 0.15
            left[:8, 4] = 50.0 + np.arange(8)
            task = Task(em.PureDP(1.0), (7000, 7000), 0.05)
            rows = (read_outputs(left), read_outputs(rng.laplace(size=(3000, 5))))
            return EventsMethod().propose(*rows, task).predicted

        # What all columns together prove; the far draws are forecast to prove .02.
        assert min(map(predicted, range(8))) > 0.25

    def test_other_options_are_refused(self):
        with pytest.raises(InputError, match=r"events\.Options"):
            EventsMethod({"readability": 0.5})

    def test_audits_take_options(self):
        result = em.audit(
            em.zoo.laplace(1.0),
            claim=em.PureDP(0.5),
            samples=2000,
            seed=0,
            method="events",
            options={"readability": 0.9},
        )
        assert result.is_refuted


@pytest.mark.parametrize("seed", [0, 2])
def test_a_lucky_cell_does_not_replace_a_score_because_it_is_simple(seed):
    """Of SVT3's thousands of values some seem to prove three times what the score does, by a few dozen lucky draws."""
    entry, rng = em.zoo.find("SparseVectorTechnique3"), np.random.default_rng(seed)
    left, right = (
        entry.mechanism.sample(entry.worst_pair.side(side), 60_000, rng) for side in (0, 1)
    )
    proposal = EventsMethod().propose(left, right, Task(PureDP(0.1), (500_000, 500_000), 0.1))
    assert min(proposal.candidate.p, proposal.candidate.q) > 0.01


# Ten answers of which the first "yes" is the last: losses and chances of the fourth sparse vector at ε = .1.
LOSSES = [-0.0186, 0.0006, 0.0126, 0.0189, 0.022, 0.1725, 0.1433, 0.1213, 0.1043, 0.0907, 0.0011]
CHANCES = np.array(
    [0.5094, 0.0892, 0.0441, 0.0286, 0.0209, 0.0141, 0.0118, 0.0101, 0.0088, 0.0078, 0.2553]
)
ANSWERS = np.array([[0] * stop + [1] + [-1] * (9 - stop) for stop in range(10)] + [[0] * 10])


class TestFewAnswers:
    def draw(self, seed, n):
        rng, left = np.random.default_rng(seed), CHANCES * np.exp(LOSSES)
        self.shares = left / left.sum(), CHANCES / CHANCES.sum()
        return [read_outputs(ANSWERS[rng.choice(11, size=n, p=share)]) for share in self.shares]

    def worth(self, proposal, n):
        """What the event proves with n draws at its true chances."""
        p, q = (share[proposal.event.contains(ANSWERS)].sum() for share in self.shares)
        p, q = (q, p) if proposal.candidate.flipped else (p, q)
        spread = math.sqrt((1 - p) / (n * p) + (1 - q) / (n * q)) if min(p, q) > 0 else math.inf
        return max(math.log(p / q) - 1.28 * spread, 0.0) if spread < math.inf else 0.0

    def test_a_weak_leak_is_found_on_average(self):
        """The best event proves .125."""
        found = []
        for seed in range(12):
            proposal = EventsMethod().propose(
                *self.draw(seed, 30_000), Task(PureDP(0.05), (90_000, 90_000), 0.1)
            )
            found.append(self.worth(proposal, 90_000))
        assert np.mean(found) > 0.08
        assert min(found) > 0.0

    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    def test_every_notion(self, claim):
        proposal = EventsMethod().propose(*self.draw(3, 100_000), task(claim, 200_000))
        assert self.worth(proposal, 200_000) > 0.0
