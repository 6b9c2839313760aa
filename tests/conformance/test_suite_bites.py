"""The shipped suite turns down methods that are wrong on purpose, and accepts right ones of other people."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import ndtri

from epsilometer.bounds import Counts
from epsilometer.claims import PureDP
from epsilometer.methods import find_method
from epsilometer.outputs import Outputs
from epsilometer.result import Finding
from epsilometer.testing import MethodConformance


@dataclass
class Wrapped:
    """A right proposal."""

    inner: Any
    task: Any
    own: Any = None
    proved: dict[Any, Finding] = field(default_factory=dict)

    @property
    def predicted(self):
        return self.inner.predicted

    def tally(self, outputs, side):
        return self.inner.tally(outputs, side)

    def certify(self, left, right, pair, failure_probability):
        return self.inner.certify(left, right, pair, failure_probability)

    def again(self, left, right, pair, failure_probability):
        """The right proof from outputs, for those whose tallies are outputs."""
        key = self.inner.tally(left, 0), self.inner.tally(right, 1), failure_probability
        if key not in self.proved:  # of few draws, there are few different ones
            self.proved[key] = self.inner.certify(*key[:2], pair, failure_probability)
        return self.proved[key]


class Keeping(Wrapped):
    """Keeps the outputs themselves."""

    def tally(self, outputs, side):
        return outputs


class RightKeeping(Keeping):
    def certify(self, left, right, pair, failure_probability):
        return self.again(left, right, pair, failure_probability)


@dataclass
class Method:
    made_of: Any
    name: str = "mine"
    summary: str = "a method of a stranger's"
    guarantee: str = "exact"
    wraps: str = "events"

    def propose(self, left, right, task):
        inner = find_method(self.wraps).propose(left, right, task)
        return self.made_of(inner, task, (inner.tally(left, 0), inner.tally(right, 1)))


def best(findings):
    return max(findings, key=lambda finding: finding.lower_bound)


def cautious(finding, failure_probability):
    """Says the confidence that it was asked for."""
    return replace(finding, confidence=1.0 - failure_probability)


def some(outputs, start, stop):
    return outputs.take(np.arange(start, stop))


class SpendsFourfold(Wrapped):
    factor = 4.0

    def certify(self, left, right, pair, failure_probability):
        spent = min(0.99, self.factor * failure_probability)
        return cautious(self.inner.certify(left, right, pair, spent), failure_probability)


class SpendsTwofold(SpendsFourfold):
    factor = 2.0


class SpendsHalfAgain(SpendsFourfold):
    factor = 1.5


class SpendsFivePercent(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return cautious(self.inner.certify(left, right, pair, 0.05), failure_probability)


class SaysMoreConfidence(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return replace(self.inner.certify(left, right, pair, failure_probability), confidence=0.999)


class TakesTheBetterHalf(Keeping):
    def certify(self, left, right, pair, failure_probability):
        n = min(len(left), len(right))
        halves = [(0, n // 2), (n // 2, n)]
        found = [
            self.again(some(left, *cut), some(right, *cut), pair, failure_probability)
            for cut in halves
        ]
        return replace(best(found), witness=None)


class TakesTheBestOfEight(Keeping):
    def certify(self, left, right, pair, failure_probability):
        n = min(len(left), len(right))
        windows = [(k * n // 16, k * n // 16 + n // 2) for k in range(8)]
        found = [
            self.again(some(left, *cut), some(right, *cut), pair, failure_probability)
            for cut in windows
        ]
        return replace(best(found), witness=None)


class StopsWhenItLooksGood(Keeping):
    def certify(self, left, right, pair, failure_probability):
        n = min(len(left), len(right))
        found = [
            self.again(some(left, 0, k), some(right, 0, k), pair, failure_probability)
            for k in range(4, n + 1, 4)
        ]
        return replace(
            best([*found, self.again(left, right, pair, failure_probability)]), witness=None
        )


class ChoosesItsDirection(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        candidate = self.inner.candidate
        turned = replace(self.inner, candidate=replace(candidate, flipped=not candidate.flipped))
        found = [
            each.certify(left, right, pair, failure_probability) for each in (self.inner, turned)
        ]
        return best(found)


class ChoosesAmongThree(Keeping):
    """Of three events that it learned from thirds of the cells, the one that fresh draws favour."""

    def certify(self, left, right, pair, failure_probability):
        event, found = self.inner.event, []
        cells = np.arange(len(event.chosen)) % 3
        for part in range(3):
            other = replace(event, chosen=event.chosen ^ (cells == part))
            proposal = replace(self.inner, candidate=replace(self.inner.candidate, event=other))
            tallies = proposal.tally(left, 0), proposal.tally(right, 1)
            found.append(proposal.certify(*tallies, pair, failure_probability))
        return best(found)


class ChoosesOnFreshDraws(Keeping):
    def certify(self, left, right, pair, failure_probability):
        inner = find_method("events").propose(left, right, self.task)
        return Wrapped(inner, self.task).again(left, right, pair, failure_probability)


class CountsTwice(Wrapped):
    def tally(self, outputs, side):
        tally = self.inner.tally(outputs, side)
        return tally + tally


class CountsTwiceInSecret(CountsTwice):
    def certify(self, left, right, pair, failure_probability):
        return replace(self.inner.certify(left, right, pair, failure_probability), witness=None)


class CountsOneHitMore(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        above, below = (right, left) if self.inner.candidate.flipped else (left, right)
        above = Counts(min(above.hits + 1, above.trials), above.trials)
        sides = (below, above) if self.inner.candidate.flipped else (above, below)
        return replace(self.inner.certify(*sides, pair, failure_probability), witness=None)


class CountsFewerTrials(Wrapped):
    """Forgets one in five of the draws that missed."""

    def certify(self, left, right, pair, failure_probability):
        sides = [
            Counts(each.hits, each.trials - (each.trials - each.hits) // 5)
            for each in (left, right)
        ]
        return self.inner.certify(*sides, pair, failure_probability)


class DropsWhatDoesNotFit(Keeping):
    """Leaves out right draws that fall into the event, one in three."""

    def certify(self, left, right, pair, failure_probability):
        a, b = self.inner.tally(left, 0), self.inner.tally(right, 1)
        below = a if self.inner.candidate.flipped else b
        fewer = Counts(below.hits - below.hits // 3, below.trials - below.hits // 3)
        sides = (fewer, b) if self.inner.candidate.flipped else (a, fewer)
        return replace(self.inner.certify(*sides, pair, failure_probability), witness=None)


class LearnsAndProvesOnTheSame(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return self.inner.certify(
            left + self.own[0], right + self.own[1], pair, failure_probability
        )


class ProvesOnTrainingDraws(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return self.inner.certify(*self.own, pair, failure_probability)


class AddsATenthOfItsHopes(Wrapped):
    share = 0.1

    def certify(self, left, right, pair, failure_probability):
        finding = self.inner.certify(left, right, pair, failure_probability)
        if finding.lower_bound == 0.0 or self.inner.predicted <= 0.0:
            return finding
        return replace(finding, lower_bound=finding.lower_bound + self.share * self.inner.predicted)


class MeetsItsHopesHalfway(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        finding = self.inner.certify(left, right, pair, failure_probability)
        return replace(
            finding,
            lower_bound=max(finding.lower_bound, (finding.lower_bound + self.predicted) / 2),
        )


class NeverSaysNothing(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        finding = self.inner.certify(left, right, pair, failure_probability)
        return replace(finding, lower_bound=max(finding.lower_bound, 1e-3))


def estimate(claim, above, below):
    return (
        claim.least_value(above.share, max(below.share, 1e-3)) if above.share > below.share else 0.0
    )


class Estimates(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        above, below = (right, left) if self.inner.candidate.flipped else (left, right)
        value = estimate(self.task.claim, above, below)
        return Finding("mine", value, "exact", 1.0 - failure_probability, None, self.task.claim)


class ApproximatesByNormalLaws(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        above, below = (right, left) if self.inner.candidate.flipped else (left, right)
        z = -float(ndtri(failure_probability / 2))
        p, q = (each.share for each in (above, below))
        p_lower = max(p - z * math.sqrt(p * (1 - p) / above.trials), 0.0)
        q_upper = min(q + z * math.sqrt(q * (1 - q) / below.trials), 1.0)
        value = (
            self.task.claim.least_value(p_lower, max(q_upper, 1e-6)) if p_lower > q_upper else 0.0
        )
        return Finding("mine", value, "exact", 1.0 - failure_probability, None, self.task.claim)


class RemembersProofs(Wrapped):
    """Adds up what it was ever given to prove."""

    def certify(self, left, right, pair, failure_probability):
        self.own = (
            (self.own[0] + left, self.own[1] + right) if hasattr(self, "began") else (left, right)
        )
        self.began = True
        return self.inner.certify(*self.own, pair, failure_probability)


class RemembersTallies(Wrapped):
    """Keeps aside what it tallies, in its class, and chooses on it."""

    seen: ClassVar[list[Outputs]] = []

    def tally(self, outputs, side):
        self.seen[side:] = [outputs]
        return self.inner.tally(outputs, side)

    def certify(self, left, right, pair, failure_probability):
        inner = find_method("events").propose(*self.seen, self.task)
        return Wrapped(inner, self.task).again(*self.seen, pair, failure_probability)


@dataclass
class RemembersAudits(Method):
    """Learns from the fresh draws of earlier audits, too."""

    made_of: Any = Wrapped
    seen: ClassVar[list[Any]] = []

    def propose(self, left, right, task):
        earlier = [[outputs for at, outputs in self.seen if at == side] for side in (0, 1)]
        left, right = sum(earlier[0], left), sum(earlier[1], right)
        proposal = find_method("events").propose(left, right, task)
        return TellsItsMethod(proposal, task, self)


class TellsItsMethod(Wrapped):
    def tally(self, outputs, side):
        self.own.seen.append((side, outputs))
        return self.inner.tally(outputs, side)


class ExchangesSides(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return self.inner.certify(right, left, pair, failure_probability)


class TalliesWholeChunksOnly(Wrapped):
    def tally(self, outputs, side):
        return self.inner.tally(some(outputs, 0, len(outputs) // 4 * 4), side)


class TalliesRunsOnce(Wrapped):
    """Takes equal outputs in a row for one."""

    def tally(self, outputs, side):
        hits = self.inner.event.contains(outputs)
        keeps = np.concatenate([[True], hits[1:] != hits[:-1]])
        return self.inner.tally(outputs.take(np.flatnonzero(keeps)), side)


class ChangesOutputs(Wrapped):
    def tally(self, outputs, side):
        tally = self.inner.tally(outputs, side)
        for block in outputs:
            for column in block.columns:
                values = getattr(column, "values", getattr(column, "codes", None))
                values.flags.writeable = True
                values.sort()
        return tally


class KnowsNoNumber(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        return replace(
            self.inner.certify(left, right, pair, failure_probability), lower_bound=math.nan
        )


class KnowsNoEnd(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        finding = self.inner.certify(left, right, pair, failure_probability)
        return replace(finding, lower_bound=math.inf if finding.lower_bound > 0 else 0.0)


class ShowsOtherCounts(Wrapped):
    def certify(self, left, right, pair, failure_probability):
        finding = self.inner.certify(left, right, pair, failure_probability)
        return replace(
            finding, witness=replace(finding.witness, left_counts=right, right_counts=left)
        )


class StaysAtHome(Wrapped):
    def __reduce__(self):
        raise TypeError("cannot be pickled")


COINS = "test_bounds_hold_for_every_coin"
CHANGE = "test_bounds_hold_when_the_laws_change"
NO_CHANCE = "test_draws_without_chance_prove_nothing"
COUNTED = "test_every_fresh_draw_is_counted_once"
ALONE = "test_proofs_rest_on_their_tallies_alone"
SAYS = "test_a_finding_says_what_it_is"
# Which test turns each down; others may, too.
WRONG = {
    SpendsFourfold: COINS,
    SpendsTwofold: COINS,
    SpendsHalfAgain: COINS,
    SpendsFivePercent: COINS,
    SaysMoreConfidence: SAYS,
    TakesTheBetterHalf: CHANGE,
    TakesTheBestOfEight: CHANGE,
    StopsWhenItLooksGood: CHANGE,
    ChoosesItsDirection: COINS,
    ChoosesAmongThree: CHANGE,
    ChoosesOnFreshDraws: "test_bounds_hold_where_over_fitting_pays",
    CountsTwice: COUNTED,
    CountsTwiceInSecret: COINS,
    CountsOneHitMore: COINS,
    CountsFewerTrials: COUNTED,
    DropsWhatDoesNotFit: COINS,
    LearnsAndProvesOnTheSame: NO_CHANCE,
    ProvesOnTrainingDraws: NO_CHANCE,
    AddsATenthOfItsHopes: COINS,
    MeetsItsHopesHalfway: NO_CHANCE,
    NeverSaysNothing: NO_CHANCE,
    Estimates: COINS,
    ApproximatesByNormalLaws: COINS,
    RemembersProofs: ALONE,
    RemembersTallies: ALONE,
    ExchangesSides: "test_a_plain_leak_is_found_in_both_directions",
    TalliesWholeChunksOnly: "test_tallies_of_chunks_add_up",
    TalliesRunsOnce: "test_tallies_of_chunks_add_up",
    ChangesOutputs: "test_tallying_and_proving_change_no_draws",
    KnowsNoNumber: SAYS,
    KnowsNoEnd: SAYS,
    ShowsOtherCounts: COUNTED,
    StaysAtHome: "test_a_proposal_survives_pickling",
}


class Suite(MethodConformance):
    """For one notion: what these methods do wrong, they do in all."""

    claims = (PureDP(0.5),)


@pytest.mark.parametrize(
    ("made_of", "test"), WRONG.items(), ids=lambda each: getattr(each, "__name__", None)
)
def test_wrong_methods_are_turned_down(made_of, test):
    with pytest.raises(AssertionError, match=r"\w+ \w+"):
        getattr(Suite(), test)(Method(made_of))


def test_a_memory_of_earlier_audits_is_noticed():
    with pytest.raises(
        AssertionError, match="the second audit of the same draws finds something else"
    ):
        Suite().test_a_used_method_is_as_good_as_new(RemembersAudits())


@pytest.mark.parametrize("test", sorted({*WRONG.values(), "test_a_used_method_is_as_good_as_new"}))
def test_a_right_method_in_the_same_clothes_is_accepted(test):
    made_of = RightKeeping if test in (CHANGE, ALONE) else Wrapped
    getattr(Suite(), test)(Method(made_of))
