"""The default method: one certified event.

Reference: ordering outputs by their likelihood ratio goes back to Neyman and Pearson, sampling and splitting to StatDP
and DP-Sniper. The certificate is our own (`epsilometer.bounds.ratio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.bounds import Counts, certified_value, upper
from epsilometer.claims import ApproxDP, PureDP, TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.events.choosing import Choice, Folds, choose_event, lay_out
from epsilometer.methods.events.few import Ordered, choose_end, learn_orders
from epsilometer.methods.events.learning import Learned, learn_partitions, learn_simpler
from epsilometer.methods.events.prediction import best_share, predictor
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness


@dataclass(frozen=True, slots=True)
class EventProposal(CandidateProposal):
    """An event to be counted on fresh draws.

    Attributes:
        left_share: split of the failure probability for notions without a joint test.
    """

    left_share: float

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        above, below = self.candidate.oriented(left, right)
        bound = certified_value(self.task.claim, above, below, failure_probability, self.left_share)
        witness = Witness.of(pair, self.event, self.candidate.flipped, left, right, failure_probability)
        details = {} if isinstance(self.task.claim, PureDP | ApproxDP) else self._split(below, failure_probability)
        return Finding("events", bound, "exact", 1.0 - failure_probability, witness, self.task.claim, details)

    def _split(self, below: Counts, failure_probability: float) -> dict[str, Any]:
        """What `epsilometer.checker` needs besides the counts; the joint test has no split."""
        claim = self.task.claim
        split: dict[str, Any] = {"left_share": self.left_share}
        if isinstance(claim, TradeOffDP):  # a file holds the curve only at some points; this is one that was used
            split["curve_at"] = claim.point_at(upper(below, failure_probability * (1.0 - self.left_share)))
        return split


class EventsMethod(Method):
    """Learns which outputs distinguish the two inputs, and counts them on fresh draws."""

    name = "events"
    summary = "one event, chosen on training draws, certified on fresh ones; any kind of output, every notion"
    guarantee = "exact"
    is_quick = True

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal:
        """The event with the best predicted bound over all ways of cutting the outputs."""
        return self.propose_from([*learn_partitions(left, right), *learn_orders(left, right)], task)

    def propose_from(self, ways: Sequence[Learned | Ordered], task: Task) -> EventProposal:
        """The same over given ways of cutting them; at least one of them is a `Learned`."""
        found = [(way, choice) for way in ways if (choice := _choose(way, task)) is not None]
        way, choice = max(found, key=_promise)
        if _event((way, choice)).n_parts > _FEW_PARTS:
            way, choice = _simpler(way, choice, found, task) or (way, choice)
        event = _event((way, choice))
        candidate = Candidate(event, choice.flipped, choice.p, choice.q, choice.predicted)
        if isinstance(task.claim, PureDP | ApproxDP):  # the joint test has no split
            return EventProposal(candidate, task, 0.5)
        return EventProposal(candidate, task, best_share(task, choice.p, choice.q, candidate.oriented(*task.n_fresh)))


Found = tuple[Learned | Ordered, Choice]
# An event of more intervals than this, or with a score, is hard to understand; a simpler one may prove less.
_FEW_PARTS = 3
_WORTH_SIMPLICITY = 0.95


def _promise(found: Found) -> tuple[bool, float]:
    # The empty event is predicted to prove 0, which looks better than an event with a negative prediction.
    return bool(found[1].chosen.any()), found[1].predicted


def _simpler(way: Learned | Ordered, choice: Choice, found: Sequence[Found], task: Task) -> Found | None:
    """The best choice that is simpler and nearly as good, by the training draws; None if there is none."""
    more = learn_simpler(way.partition, way.left, way.right)
    every: list[Found] = [*found, *((each, made) for each in more if (made := _choose(each, task)) is not None)]
    simple = [each for each in every if 0 < _event(each).n_parts <= _FEW_PARTS]
    enough = _WORTH_SIMPLICITY * _expected((way, choice), task)
    best = max(simple, key=lambda each: _expected(each, task)) if simple else None
    return best if best is not None and _expected(best, task) >= enough > 0.0 else None


def _event(found: Found) -> Event:
    return Event(found[0].partition, found[1].chosen).simplified()


def _expected(found: Found, task: Task) -> float:
    """The bound to expect, by one measure for all ways: their own predictions differ in how much they doubt."""
    way, choice = found
    n_train = max(len(way.left), 1), max(len(way.right), 1)
    sizes = (n_train[::-1], task.n_fresh[::-1]) if choice.flipped else (n_train, task.n_fresh)
    return float(predictor(task, *sizes)(np.array([choice.p]), np.array([choice.q]))[0][0])


def _choose(way: Learned | Ordered, task: Task) -> Choice | None:
    if isinstance(way, Ordered):
        return choose_end(way, task)
    folds = Folds(_halves(way, way.left), _halves(way, way.right))
    return choose_event(folds, lay_out(way.partition), task)


def _halves(learned: Learned, outputs: Outputs) -> tuple[np.ndarray, np.ndarray]:
    middle = len(outputs) // 2
    return (
        learned.partition.count(outputs.take(slice(0, middle))),
        learned.partition.count(outputs.take(slice(middle, len(outputs)))),
    )
