"""The power of audits that have learned, and the size of a leak that they refute nine times in ten."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import epsilometer as em
from epsilometer.auditing.rehearsals import (
    POWER,
    STEP,
    Kind,
    PowerOfDraws,
    PowerOfEvent,
    RehearsedAudit,
    first_looks,
    first_true,
    refutes_claim,
    size_of_hardest,
)
from epsilometer.bounds import Counts
from epsilometer.methods import Task, find_method
from epsilometer.methods.base import Candidate
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Event, Partition, read_outputs

pytestmark = pytest.mark.rehearses
SIZES = [0.01 * STEP**place for place in range(60)]


@pytest.mark.parametrize("start", [0, 7, 29, 80])
@pytest.mark.parametrize("threshold", [0, 1, 6, 7, 8, 28, 29, 30])
def test_the_first_place_is_found_from_anywhere(start, threshold):
    asked = []

    def is_true(place):
        asked.append(place)
        return place >= threshold

    assert first_true(is_true, start, 30) == threshold
    assert all(0 <= place < 30 for place in asked)


def test_a_near_start_takes_few_calls():
    asked = []
    first_true(lambda place: asked.append(place) or place >= 20, 20, 60)
    assert asked == [20, 19]


class KnownPower:
    """An audit whose power at every place is known; it does not depend on what was learned."""

    def __init__(self, thresholds, deviation=0.1, learns_from=0.0):
        self.thresholds = thresholds
        self.deviation = deviation
        self.learns_from = learns_from
        self.learned = []

    def learn(self, leak, number, place, seed):
        self.learned.append((number, place))
        threshold = self.thresholds[number % len(self.thresholds)]
        is_learned = leak.sizes[place] >= self.learns_from
        return _Known(leak.sizes, threshold, self.deviation, is_learned)


class _Known:
    def __init__(self, sizes, threshold, deviation, is_learned):
        self.sizes = sizes
        self.threshold = threshold
        self.deviation = deviation
        self.is_learned = is_learned

    def at(self, place):
        excess = (self.sizes[place] - self.threshold) / self.deviation
        return float(norm.cdf(excess)) if self.is_learned else 0.01


class Sizes:
    sizes = SIZES


def known(thresholds, **options):
    return Kind(KnownPower(thresholds, **options), Sizes(), [0])


@pytest.mark.parametrize("deviation", [0.05, 0.2, 0.5])
def test_the_size_of_enough_power(deviation):
    kind = known([1.0], deviation=deviation)
    expected = 1.0 + deviation * norm.ppf(POWER)
    for start in (0, 20, 59):
        size = kind.size_at(kind.settle(4, start))
        assert size == pytest.approx(expected, rel=0.06)


def test_what_is_learned_from_large_leaks_only_counts_from_there_on():
    """With what was learned from a large leak, far smaller ones would be refuted, too."""
    kind = known([0.1], learns_from=1.0)
    for start in (0, 20, 59):
        assert 1.0 / STEP <= kind.size_at(kind.settle(4, start)) <= STEP


def test_one_audit_in_eight_that_learns_badly_makes_the_power_too_small():
    kind = known([1.0] * 7 + [3.0])
    assert kind.size_at(kind.settle(8, 20)) > 2.5


def test_what_is_never_refuted_is_infinite():
    kind = known([math.inf])
    assert math.isinf(kind.settle(2, 20))
    assert math.isinf(size_of_hardest(first_looks([kind])))


def test_the_hardest_kind_is_looked_at_again_and_easier_ones_are_not():
    kinds = [known([value]) for value in (0.5, 1.0, 0.7)]
    looks = first_looks(kinds)
    assert [look.place is None for look in looks] == [False, False, True]
    expected = 1.0 + 0.1 * norm.ppf(POWER)
    assert size_of_hardest(looks) == pytest.approx(expected, rel=0.06)
    # Two audits were enough to see that the third is easier.
    assert len(kinds[2].audit.learned) == 2


CLAIMS = [em.PureDP(1.0), em.ApproxDP(1.0, 1e-3), em.GaussianDP(1.0), em.RenyiDP(2.0, 0.5)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
@pytest.mark.parametrize(("p", "q"), [(0.6, 0.1), (0.1, 0.0), (0.9, 0.2)])
def test_the_power_of_an_event_is_that_of_its_counts(claim, p, q):
    """Compared with all counts that may come, each asked of the certificate."""
    n = 60
    task = Task(claim, (n, n), 0.05)
    event = Event(Partition(()), np.array([True]))
    proposal = EventProposal(Candidate(event, False, p, q, 0.0), task)
    power = PowerOfEvent(proposal, task, lambda place: (p, q), 0)
    hits = range(n + 1)
    exact = 0.0
    for below in hits:
        chance_below = binom.pmf(below, n, q)
        if chance_below < 1e-3:
            continue
        needed = first_true(
            lambda above, below=below: refutes_claim(
                proposal, Counts(above, n), Counts(below, n), task
            ),
            below,
            n + 1,
        )
        exact += chance_below * binom.sf(needed - 1, n, p)
    # The counts that just refute lie on a curve that is a little steeper than the line.
    assert exact - 0.1 < power.at(0) < exact + 0.03


def test_other_proposals_are_asked_with_fresh_draws():
    class Counting:
        """Certifies 2 if the left mean is above 0.5."""

        def tally(self, outputs, side):
            return float(outputs.blocks[0].columns[0].values.mean())

        def certify(self, left, right, pair, failure_probability):
            class Found:
                lower_bound = 2.0 * (left > 0.5)

            return Found()

    means = iter(itertools.cycle([0.0, 1.0, 1.0]))

    def draw_fresh(place):
        value = next(means) * place
        return read_outputs([value, value + 0.01]), read_outputs([0.0, 0.1])

    task = Task(em.PureDP(1.0), (2, 2), 0.05)
    power = PowerOfDraws(Counting(), task, draw_fresh)
    assert power.at(0) == 0.0
    assert power.at(1) == pytest.approx(2 / 3)


def test_an_audit_learns_the_same_from_the_same_seed():
    class Coins:
        sizes = (0.1, 0.4)

        def draw(self, place, side, n, rng):
            return read_outputs(rng.random(n) < 0.5 + (self.sizes[place] if side else 0.0))

        def probabilities_of(self, event, rng):
            inside = event.contains(read_outputs([True])).item()
            return lambda place: (0.5, 0.5 + (2 * inside - 1) * self.sizes[place])

    audit = RehearsedAudit(
        Task(em.PureDP(0.2), (200, 200), 0.05), find_method("events", None), (100, 100)
    )
    powers = [audit.learn(Coins(), 3, 1, [5]).at(1) for _ in range(2)]
    assert powers[0] == powers[1]
    assert powers[0] > 0.9
