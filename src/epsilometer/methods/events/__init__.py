"""Method `events`, the default: one certified event.

Reference: ordering outputs by their likelihood ratio goes back to Neyman and Pearson, sampling and splitting to StatDP
and DP-Sniper. The certificate is our own (`epsilometer.bounds.ratio`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.bounds import Counts, certified_value, refuted_line
from epsilometer.bounds.ratio import RefutedLine
from epsilometer.claims import ApproxDP, Claim, PureDP, TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.events.choosing import Choice, Folds, choose_event, lay_out
from epsilometer.methods.events.few import Ordered, choose_end, learn_orders
from epsilometer.methods.events.learning import Learned, learn_by_values
from epsilometer.methods.events.tails import Scored, best_tail, cut_at, learn_scores
from epsilometer.outputs import Event, Outputs, Partition
from epsilometer.result import Finding, Witness

__all__ = ["EventProposal", "EventsMethod", "ways_of"]


@dataclass(frozen=True, slots=True)
class EventProposal(CandidateProposal):
    """An event to be counted on fresh draws."""

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        claim, (above, below) = self.task.claim, self.candidate.oriented(left, right)
        bound, details = 0.0, dict[str, Any]()
        if isinstance(claim, PureDP | ApproxDP):
            bound = certified_value(claim, above, below, failure_probability)
        elif line := refuted_line(claim, above, below, failure_probability, (self.candidate.p, self.candidate.q)):
            bound, details = line.proves(claim), line_as_data(line, claim)
        witness = Witness.of(pair, self.event, self.candidate.flipped, left, right, failure_probability)
        return Finding("events", bound, "exact", 1.0 - failure_probability, witness, claim, details)


def line_as_data(line: RefutedLine, claim: Claim) -> dict[str, Any]:
    """What `epsilometer.checker` needs besides the counts."""
    data: dict[str, Any] = {"line": [line.slope, line.shift], "fixed": line.fixed, "complement": line.complement}
    if isinstance(claim, TradeOffDP) and callable(claim.curve):  # a file holds the curve only at some points
        data["curve_near"] = claim.points_at(line.corners()[1])
    return data


class EventsMethod(Method):
    """Learns which outputs distinguish the two inputs, and counts them on fresh draws."""

    name = "events"
    summary = "one event, chosen on training draws, certified on fresh ones; any kind of output, every notion"
    guarantee = "exact"
    is_quick = True

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal:
        """The event with the best predicted bound over all ways of cutting the outputs."""
        return self.propose_from(ways_of(left, right), task)

    def propose_from(self, ways: Sequence[Learned | Ordered | Scored], task: Task) -> EventProposal:
        """The same over given ways of cutting them; at least one of them is a `Learned`."""
        found = [each for way in ways if (each := _choose(way, task)) is not None]
        # Whoever stands alone needs no caution against its own luck.
        caution = float(any(isinstance(way, Scored) for way in ways))
        # The empty event is predicted to prove 0, which looks better than an event with a negative prediction.
        partition, choice = max(
            found, key=lambda each: (bool(each[1].chosen.any()), each[1].predicted - caution * each[1].luck)
        )
        event = Event(partition, choice.chosen).simplified()
        return EventProposal(Candidate(event, choice.flipped, choice.p, choice.q, choice.predicted), task)


def ways_of(left: Outputs, right: Outputs) -> list[Learned | Ordered | Scored]:
    """Every way of cutting the outputs that may be best."""
    return [*learn_by_values(left, right), *learn_scores(left, right), *learn_orders(left, right)]


def _choose(way: Learned | Ordered | Scored, task: Task) -> tuple[Partition, Choice] | None:
    if isinstance(way, Scored):
        tail = best_tail(way, task)
        return None if tail is None else cut_at(way, tail)
    if isinstance(way, Ordered):
        choice = choose_end(way, task)
        return None if choice is None else (way.partition, choice)
    return way.partition, choose_event(Folds(*way.halves()), lay_out(way.partition), task)
