"""The size of a leak from which on an audit refutes it nine times in ten.

An audit is rehearsed with leaks of several kinds, each at many sizes. What it learns is random, and
so are the fresh draws that certify it. Learning takes nearly all of the time, and nearly all of the
luck is in the fresh draws. So a few audits learn, each from draws of its own, and the power of each
is worked out: an event has known probabilities under a planted leak, and which counts refute the
claim is asked of the certificate. Where a method certifies more than the counts of one event, fresh
draws are drawn several times.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from epsilometer.bounds import Counts
from epsilometer.bounds.two_counts import epsilon_test
from epsilometer.claims import ApproxDP, Claim, PureDP
from epsilometer.engine.streams import Stream
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.methods.base import CandidateProposal
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Event, Outputs

Rng = np.random.Generator
# The probabilities of an event on the left and on the right, at the size of a place.
EventProbabilities = Callable[[int], tuple[float, float]]

# What results promise is a power of 90 %. The size at which it is reached is itself estimated, from
# a few audits that learn and from some thousand outputs, with a standard error of about .2 in units
# of the statistic's standard deviation: this much more makes up for that.
POWER = 0.92
# Audits of every kind of leak that learn, by which the kind that is hardest to find is chosen.
FIRST_AUDITS = 2
# Audits of that kind. Of the few that learn badly, enough are among so many.
AUDITS = 8
# Each size is this much larger than the one before; sizes between them are interpolated.
STEP = 1.25
# How often fresh draws are drawn for an audit that certifies more than the counts of one event.
_FRESH_DRAWS = 12
# How much larger a leak is tried where no size is refuted with what was learned.
_JUMP = 6
# Equally likely counts of one side, each of which needs counts of the other to refute the claim.
_STRATA = 15
# Counts that just refute are looked for in steps of this fraction of a standard deviation.
_COARSENESS = 0.15
# The quantile of the counts near which they refute, or do not, where power is nearly 90 %.
_QUANTILE = 1.3
# Steeper than this, a claim's curve is taken as if it had this slope.
_MOST_SLOPE = 1e6
# A few audits do not tell a power that is nearer to 0, or to 1, from one of 0 or 1.
_LEAST_POWER = 0.005
_PAIR = Pair("left", "right")


def refutes_claim(proposal: Proposal, left: Any, right: Any, task: Task) -> bool:
    """Whether the bound from these tallies is above the claim.

    For ε, working out the bound takes ten times as long as deciding whether it is above the claim.
    """
    claim = task.claim
    failure = task.failure_probability
    if (
        not isinstance(claim, PureDP | ApproxDP)
        or claim.parameter != "epsilon"
        or type(proposal) is not EventProposal
    ):
        return proposal.certify(left, right, _PAIR, failure).lower_bound > claim.value
    above, below = proposal.candidate.oriented(left, right)
    if above.hits <= above.trials * claim.delta:
        return False
    test = epsilon_test(above, below, failure, claim.delta)
    return test.rejects(claim.epsilon, claim.delta)


def first_true(is_true: Callable[[int], bool], start: int, end: int) -> int:
    """The first place from which on something is true; `end` if there is none.

    Args:
        is_true: whether it is true at a place, from some place on always.
        start: where to look first; what is near is found with few calls.
        end: how many places there are.
    """
    start = min(max(start, 0), end - 1)
    step = 1
    if is_true(start):
        low = start - 1
        high = start
        while low >= 0 and is_true(low):
            high = low
            low -= step
            step *= 2
        low = max(low, -1)
    else:
        low = start
        high = start + 1
        while high < end and not is_true(high):
            low = high
            high += step
            step *= 2
        high = min(high, end)
    return bisect_left(range(end), True, low + 1, high, key=is_true)


class SizedLeak(Protocol):
    """One kind of leak, at ascending sizes."""

    @property
    def sizes(self) -> Sequence[float]:
        """The excesses over the claim that it can have."""

    def draw(self, place: int, side: int, n: int, rng: Rng) -> Outputs:
        """Draws n outputs of one side.

        Args:
            place: of the size.
            side: 0 for the left, 1 for the right.
            n: how many.
            rng: the source of all randomness.
        """

    def probabilities_of(self, event: Event, rng: Rng) -> EventProbabilities:
        """The probabilities of an event on both sides, at every size."""


@dataclass(frozen=True, slots=True)
class RehearsedAudit:
    """An audit that is run again and again with planted leaks.

    Attributes:
        task: what it is to certify.
        method: how.
        n_train: draws that it learns from, (left, right).
    """

    task: Task
    method: Method
    n_train: tuple[int, int]

    def learn(self, leak: SizedLeak, number: int, place: int, seed: Sequence[int]) -> "Power":
        """Learns from draws of a leak of one size.

        Args:
            leak: the kind of leak.
            number: of the audit, which has random numbers of its own, the same at every size.
            place: of the size.
            seed: of the kind of leak.
        """
        rng = np.random.default_rng([*seed, number])
        train = [leak.draw(place, side, n, rng) for side, n in enumerate(self.n_train)]
        task = replace(self.task, stream=Stream(int(rng.integers(2**63))))
        proposal = self.method.propose(train[0], train[1], task)
        if (
            isinstance(proposal, CandidateProposal)
            and type(proposal).tally is CandidateProposal.tally
        ):
            probabilities = leak.probabilities_of(proposal.event, rng)
            return PowerOfEvent(proposal, task, probabilities, place)
        fresh_seed = int(rng.integers(2**63))

        def draw_fresh(place: int) -> tuple[Outputs, Outputs]:
            left, right = (
                leak.draw(place, side, n, fresh_rng) for side, n in enumerate(task.n_fresh)
            )
            return left, right

        fresh_rng = np.random.default_rng(fresh_seed)
        return PowerOfDraws(proposal, task, draw_fresh)


class Power(Protocol):
    """With which probability an audit refutes its claim, after it has learned."""

    def at(self, place: int) -> float:
        """The power against the leak of the size at a place."""


class PowerOfDraws:
    """The power of any proposal: how often fresh draws refute the claim."""

    def __init__(
        self,
        proposal: Proposal,
        task: Task,
        draw_fresh: Callable[[int], tuple[Outputs, Outputs]],
    ) -> None:
        self.proposal = proposal
        self.task = task
        self.draw_fresh = draw_fresh
        self.known: dict[int, float] = {}

    def at(self, place: int) -> float:
        """The power against the leak of the size at a place."""
        if place not in self.known:
            refuted = 0
            for _ in range(_FRESH_DRAWS):
                left, right = self.draw_fresh(place)
                refuted += refutes_claim(
                    self.proposal,
                    self.proposal.tally(left, 0),
                    self.proposal.tally(right, 1),
                    self.task,
                )
            self.known[place] = refuted / _FRESH_DRAWS
        return self.known[place]


class PowerOfEvent:
    """The power of an event that is counted on fresh draws.

    The counts that just refute the claim lie on a line as steep as the claim's curve, near where
    counts of the learned size are unlucky. One point of it is found by asking the certificate.
    """

    def __init__(
        self, proposal: CandidateProposal, task: Task, probabilities: EventProbabilities, place: int
    ) -> None:
        self.proposal = proposal
        self.task = task
        self.probabilities = probabilities
        self.n_above, self.n_below = proposal.candidate.oriented(*task.n_fresh)
        self.known: dict[int, float] = {}
        p, q = self._oriented(place)
        self.slope = _slope_of(task.claim, q, math.sqrt(q * (1.0 - q) / self.n_below))
        self.hits_below = 0
        self.hits_above = 0.0
        self._find_point(p, q)

    def _oriented(self, place: int) -> tuple[float, float]:
        left, right = self.probabilities(place)
        return self.proposal.candidate.oriented(left, right)

    def _find_point(self, p: float, q: float) -> None:
        """Finds counts that just refute the claim."""
        error_above = math.sqrt(p * (1.0 - p) / self.n_above)
        error_below = self.slope * math.sqrt(q * (1.0 - q) / self.n_below)
        error = max(math.hypot(error_above, error_below), 1e-12)
        # The unluckiest direction: either side by its part of the statistic's variance.
        unlucky_q = q + _QUANTILE * (error_below / error) * error_below / max(self.slope, 1e-12)
        unlucky_p = p - _QUANTILE * (error_above / error) * error_above
        self.hits_below = min(round(self.n_below * unlucky_q), self.n_below)
        unit = max(1, int(_COARSENESS * error * self.n_above))
        n_steps = self.n_above // unit
        start = round(self.n_above * unlucky_p / unit)
        step = first_true(
            lambda step: self._refutes(step * unit, self.hits_below), start, n_steps + 1
        )
        # On average, half a unit less would have been enough.
        self.hits_above = step * unit - 0.5 * (unit - 1)
        if step > n_steps:
            # With so many hits below, no number above is enough: how many may there be at most?
            hits_above = round(self.n_above * max(unlucky_p, 0.0))
            n_fewer = first_true(
                lambda fewer: self._refutes(hits_above, self.hits_below - fewer),
                0,
                self.hits_below + 1,
            )
            self.hits_above = math.inf if n_fewer > self.hits_below else float(hits_above)
            self.hits_below -= n_fewer

    def _refutes(self, hits_above: int, hits_below: int) -> bool:
        """Whether these counts refute the claim."""
        above = Counts(hits_above, self.n_above)
        below = Counts(hits_below, self.n_below)
        left, right = self.proposal.candidate.oriented(above, below)
        return refutes_claim(self.proposal, left, right, self.task)

    def at(self, place: int) -> float:
        """The power against the leak of the size at a place."""
        if place not in self.known:
            p, q = self._oriented(place)
            self.known[place] = self._power(p, q)
        return self.known[place]

    def _power(self, p: float, q: float) -> float:
        if math.isinf(self.hits_above):
            return 0.0
        levels = (np.arange(_STRATA) + 0.5) / _STRATA
        below = binom.ppf(levels, self.n_below, q)
        further = self.slope * self.n_above / self.n_below * (below - self.hits_below)
        needed = np.ceil(self.hits_above + further)
        return float(binom.sf(needed - 1.0, self.n_above, p).mean())


def _slope_of(claim: Claim, q: float, error: float) -> float:
    """The slope of a claim's curve near a probability.

    Args:
        claim: the claim.
        q: the probability.
        error: the standard error of its estimate, over which the slope is taken.
    """
    low = max(q - max(error, 1e-6), 0.0)
    high = min(q + max(error, 1e-6), 1.0)
    rise = float(claim.max_power(high)) - float(claim.max_power(low))
    return min(max(rise / (high - low), 0.0), _MOST_SLOPE)


class Kind:
    """One kind of leak, and how large it must be."""

    def __init__(self, audit: RehearsedAudit, leak: SizedLeak, seed: Sequence[int]) -> None:
        self.audit = audit
        self.leak = leak
        self.seed = seed
        self.learned: dict[tuple[int, int], Power] = {}

    @property
    def last(self) -> int:
        """The place of the largest size."""
        return len(self.leak.sizes) - 1

    def mean_power(self, n_audits: int, learned_at: int, place: int) -> float:
        """The power against the size at a place.

        Args:
            n_audits: audits that learn.
            learned_at: the place of the size that they learn from.
            place: the place of the size that they are to refute.
        """
        total = 0.0
        for number in range(n_audits):
            key = (number, learned_at)
            if key not in self.learned:
                self.learned[key] = self.audit.learn(self.leak, number, learned_at, self.seed)
            total += self.learned[key].at(place)
        return total / n_audits

    def crossing(self, n_audits: int, learned_at: int) -> float:
        """The place, between two sizes, from which on power is enough; infinite if there is none.

        Args:
            n_audits: audits that learn.
            learned_at: the place of the size that they learn from.
        """

        def power(place: int) -> float:
            return self.mean_power(n_audits, learned_at, place)

        place = first_true(lambda place: power(place) >= POWER, learned_at, self.last + 1)
        if place > self.last:
            return math.inf
        if place == 0:
            return 0.0
        return place - _part_of_step(power(place - 1), power(place))

    def settle(self, n_audits: int, start: int) -> float:
        """The place from which on power is enough, for audits that learn from a leak of that size.

        What was learned at one place tells where to learn next. A place where power is enough and
        one where it is not enclose the answer, so that this ends even where learning itself takes a
        large leak.

        Args:
            n_audits: audits that learn.
            start: the place that is tried first.
        """
        place = min(start, self.last)
        too_small = -1
        enough = self.last + 1
        while enough - too_small > 1:
            crossing = self.crossing(n_audits, place)
            if crossing <= place:
                if crossing > place - 1 or place == 0:
                    return crossing
                enough = place
                following = math.ceil(crossing)
            else:
                too_small = place
                following = place + _JUMP if math.isinf(crossing) else math.ceil(crossing)
            place = min(max(following, too_small + 1), enough - 1)
        if enough > self.last:
            return math.inf
        return enough - _part_of_step(
            self.mean_power(n_audits, too_small, too_small),
            self.mean_power(n_audits, enough, enough),
        )

    def is_enough(self, place: float) -> bool:
        """Whether the size at a place is refuted, by the first audits."""
        if math.isinf(place) or place > self.last:
            return False
        at = math.ceil(place)
        return self.mean_power(FIRST_AUDITS, at, at) >= POWER

    def size_at(self, place: float) -> float:
        """The size at a place between two sizes."""
        if math.isinf(place):
            return math.inf
        sizes = self.leak.sizes
        low = sizes[math.floor(place)]
        high = sizes[math.ceil(place)]
        return float(low * (high / low) ** (place - math.floor(place)))


def _part_of_step(below: float, above: float) -> float:
    """How far before the second of two sizes power is just enough, as a part of the step.

    Power is nearly a normal distribution function of the size.

    Args:
        below: the power against the first size, which is too small.
        above: the power against the second one.
    """
    low, wanted, high = ndtri(np.clip([below, POWER, above], _LEAST_POWER, 1.0 - _LEAST_POWER))
    return float((high - wanted) / (high - low))


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What the first audits say of a kind of leak.

    Attributes:
        kind: the kind.
        place: from which on it is refuted, infinite if no size is; None where another kind is
            harder to find.
    """

    kind: Kind
    place: float | None

    @property
    def is_out_of_reach(self) -> bool:
        """Whether not even the largest size is refuted."""
        return self.place is not None and math.isinf(self.place)


def first_looks(kinds: Sequence[Kind]) -> list[FirstLook]:
    """How hard to find every kind of leak is, as far as that is needed to choose the hardest."""
    looks = []
    hardest: float | None = None
    for kind in kinds:
        if hardest is not None and kind.is_enough(hardest):
            looks.append(FirstLook(kind, None))
            continue
        start = kind.last // 3 if hardest is None else math.ceil(hardest)
        place = kind.settle(FIRST_AUDITS, start)
        looks.append(FirstLook(kind, place))
        if not math.isinf(place) and (hardest is None or place > hardest):
            hardest = place
    return looks


def size_of_hardest(looks: Sequence[FirstLook]) -> float:
    """The size of the kind that is hardest to find which is refuted nine times in ten."""
    hardest = max(looks, key=lambda look: -1.0 if look.place is None else look.place)
    if hardest.place is None or hardest.is_out_of_reach:
        return math.inf
    kind = hardest.kind
    return kind.size_at(kind.settle(AUDITS, math.ceil(hardest.place)))
