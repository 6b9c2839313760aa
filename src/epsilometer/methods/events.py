"""Method `events`, the default: one certified event.

Reference: ordering outputs by their likelihood ratio goes back to Neyman and Pearson, sampling and
splitting to StatDP and DP-Sniper. The certificate is our own (`epsilometer.bounds.two_counts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.bounds import Counts, certificate_p_value, certified_value, refuted_line
from epsilometer.bounds.certificate import RefutedLine
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP, TradeOffDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import CandidateProposal, Method, Task
from epsilometer.methods.comparison import Options, best_event
from epsilometer.methods.scores import LearnedScore, learn_scores
from epsilometer.outputs import Outputs
from epsilometer.outputs.preparing import prepare
from epsilometer.result import Finding

__all__ = ["EventProposal", "EventsMethod", "Options"]


@dataclass(frozen=True, slots=True)
class EventProposal(CandidateProposal):
    """An event to be counted on fresh draws."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the exact bound from the counts of the fresh draws."""
        claim = self.task.claim
        above, below = self.candidate.oriented(left, right)
        bound = 0.0
        details: dict[str, Any] = {}
        if isinstance(claim, PureDP | ApproxDP):
            bound = certified_value(claim, above, below, failure_probability)
            if claim.delta > 0.0 and not isinstance(claim, ApproxDeltaDP):
                details = dict(BINOMIAL_VARIANCE)
        else:
            expected = (self.candidate.p, self.candidate.q)
            line = refuted_line(claim, above, below, failure_probability, expected)
            if line:
                bound = line.proves(claim)
                details = line_as_data(line, claim)
        return self.finding(
            left,
            right,
            pair,
            failure_probability,
            method="events",
            lower_bound=bound,
            details=details,
        )

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """The exact p-value of the claim."""
        above, below = self.candidate.oriented(left, right)
        expected = (self.candidate.p, self.candidate.q)
        return certificate_p_value(self.task.claim, above, below, failure_probability, expected)


# Tells `epsilometer.checker` how the test orders counts: results of earlier versions used the
# variance of rare events.
BINOMIAL_VARIANCE = {"variance": "binomial"}


def line_as_data(line: RefutedLine, claim: Claim) -> dict[str, Any]:
    """The details of a finding that `epsilometer.checker` needs besides the counts."""
    data: dict[str, Any] = {
        "line": [line.slope, line.shift],
        "fixed": line.fixed,
        "complement": line.complement,
    }
    if line.fixed == "shift" and line.shift > 0.0:
        data |= BINOMIAL_VARIANCE
    # A file holds the curve only at some points, so these ones are stored as well.
    if isinstance(claim, TradeOffDP) and callable(claim.curve):
        data["curve_near"] = claim.points_at(line.corners()[1])
    return data


class EventsMethod(Method):
    """Learns which outputs distinguish the two inputs, and counts them on fresh draws."""

    name = "events"
    summary = (
        "one event, chosen on training draws, certified on fresh ones; "
        "any kind of output, every notion"
    )
    guarantee = "exact"
    is_quick = True

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100} must be epsilometer.methods.events.Options")
        self.options = options or Options()

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal:
        """Proposes the event with the best predicted bound over all scores."""
        prepared = prepare(left, right, task.growing)
        scores = learn_scores(prepared.left, prepared.right)
        return self.propose_from(scores, task).of_raw_outputs(prepared)

    def propose_from(self, scores: Sequence[LearnedScore], task: Task) -> EventProposal:
        """Proposes the best event over the given scores.

        Args:
            scores: learned on training draws.
            task: what is to be certified.
        """
        return EventProposal(best_event(scores, task, self.options), task)
