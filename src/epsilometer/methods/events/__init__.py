"""Method `events`, the default: one certified event.

Reference: ordering outputs by their likelihood ratio goes back to Neyman and Pearson, sampling and
splitting to StatDP and DP-Sniper. The certificate is our own (`epsilometer.bounds.ratio`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.bounds import Counts, certificate_p_value, certified_value, refuted_line
from epsilometer.bounds.ratio import RefutedLine
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP, TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.events.choosing import Choice, choose_event, choose_kinds, lay_out
from epsilometer.methods.events.learning import Learned, few_kinds, learn_by_values, learn_simpler
from epsilometer.methods.events.prediction import predict
from epsilometer.methods.events.tails import Scored, choose_tail, learn_scores
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness

__all__ = ["EventProposal", "EventsMethod", "Way", "ways_of"]

Way = Learned | Scored


@dataclass(frozen=True, slots=True)
class EventProposal(CandidateProposal):
    """An event to be counted on fresh draws."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        claim = self.task.claim
        bound = 0.0
        details = dict[str, Any]()
        above, below = (right, left) if self.candidate.flipped else (left, right)
        if isinstance(claim, PureDP | ApproxDP):
            bound = certified_value(claim, above, below, failure_probability)
            if claim.delta > 0.0 and not isinstance(claim, ApproxDeltaDP):
                details = dict(BINOMIAL_VARIANCE)
        elif line := refuted_line(
            claim, above, below, failure_probability, (self.candidate.p, self.candidate.q)
        ):
            bound = line.proves(claim)
            details = line_as_data(line, claim)
        witness = Witness.of(
            pair, self.event, self.candidate.flipped, left, right, failure_probability
        )
        return Finding("events", bound, "exact", 1.0 - failure_probability, witness, claim, details)

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """The exact p-value of the claim."""
        above, below = self.candidate.oriented(left, right)
        expected = (self.candidate.p, self.candidate.q)
        return certificate_p_value(self.task.claim, above, below, failure_probability, expected)


# How counts were ordered, for `epsilometer.checker`: results of earlier versions took the variance
# of rare events.
BINOMIAL_VARIANCE = {"variance": "binomial"}


def line_as_data(line: RefutedLine, claim: Claim) -> dict[str, Any]:
    """What `epsilometer.checker` needs besides the counts."""
    data: dict[str, Any] = {
        "line": [line.slope, line.shift],
        "fixed": line.fixed,
        "complement": line.complement,
    }
    if line.fixed == "shift" and line.shift > 0.0:
        data |= BINOMIAL_VARIANCE
    # a file holds the curve only at some points
    if isinstance(claim, TradeOffDP) and callable(claim.curve):
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

    def propose_from(self, ways: Sequence[Way], task: Task) -> EventProposal:
        """The same over given ways of cutting them; at least one of them is a `Learned`."""
        found = [(way, *each) for way in ways if (each := _choose(way, task)) is not None]
        # Whoever stands alone needs no caution against its own luck.
        caution = float(any(isinstance(way, Scored) for way in ways))
        # The empty event is predicted to prove 0, which looks better than an event with a negative
        # prediction.
        best = max(
            found,
            key=lambda each: (
                bool(each[2].chosen.any()),
                each[2].predicted - caution * each[2].luck,
            ),
        )
        if best[1].simplified().n_parts > _FEW_PARTS:
            draws = next((way.left, way.right) for way in ways if isinstance(way, Learned))
            best = _simpler(best, found, draws, task) or best
        _, event, choice = best
        candidate = Candidate(
            event.simplified(), choice.flipped, choice.p, choice.q, choice.predicted
        )
        return EventProposal(candidate, task)


Found = tuple[Way, Event, Choice]
# An event of more intervals than this, or with a score, is hard to understand; a simpler one may
# prove less.
_FEW_PARTS = 3
_WORTH_SIMPLICITY = 0.95
# Spreads of the training draws that are doubted in simpler events: there are many, and the best is
# lucky (at one spread NumericalSVT with 1e6 draws fell from .7 to .3 of the oracle, SVT3 from .8 to
# .4).
_LUCKY = 2.0


def _simpler(
    best: Found, found: Sequence[Found], draws: tuple[Outputs, Outputs], task: Task
) -> Found | None:
    """The best choice that is simpler and nearly as good, by the training draws; None if there is none."""
    more = learn_simpler(best[1].partition, *draws)
    every: list[Found] = [
        *found,
        *((each, *made) for each in more if (made := _choose(each, task)) is not None),
    ]
    simple = [each for each in every if 0 < each[1].simplified().n_parts <= _FEW_PARTS]
    enough = _WORTH_SIMPLICITY * _expected(best, task)
    simplest = max(simple, key=lambda each: _expected(each, task), default=None)
    return simplest if simplest is not None and _expected(simplest, task) >= enough > 0.0 else None


def _expected(found: Found, task: Task) -> float:
    """The bound to expect: a score knows what it doubts; cells are the luckiest of many, and doubted by one measure."""
    way, _, choice = found
    if isinstance(way, Scored):
        return choice.predicted - choice.luck
    n_train = max(len(way.left), 1), max(len(way.right), 1)
    sizes = (n_train[::-1], task.n_fresh[::-1]) if choice.flipped else (n_train, task.n_fresh)
    expected = float(
        predict(task, np.array([choice.p]), np.array([choice.q]), *sizes, doubt=_LUCKY)[0][0]
    )
    return min(expected, choice.predicted - choice.luck) if choice.luck else expected


def ways_of(left: Outputs, right: Outputs) -> list[Way]:
    """Every way of cutting the outputs that may be best."""
    wide = any(len(block.columns) > 1 for side in (left, right) for block in side.blocks)
    values = learn_by_values(left, right) if wide else None
    if values is not None and (kinds := few_kinds(values)) is not None:
        return [replace(values, kinds=kinds)]
    scores = learn_scores(left, right)
    ordered = scores[0].whole if scores and scores[0].is_line else None
    return [values or learn_by_values(left, right, ordered), *scores]


def _choose(way: Way, task: Task) -> tuple[Event, Choice] | None:
    if isinstance(way, Scored):
        return choose_tail(way, task)
    if way.kinds is not None:
        choice = choose_kinds(way.halves(), way.kinds, task)
    else:
        choice = choose_event(way.halves(), lay_out(way.partition), task)
    return Event(way.partition, choice.chosen), choice
