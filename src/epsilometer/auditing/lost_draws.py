"""Draws that were begun, lost and drawn again count against whatever is to be certified.

A draw is lost when a call is cut off: by a time limit, Ctrl-C, an error, or the death of the
process. Which draws are lost may depend on what they are (a slow output is cut off more often than
a quick one), so those that replace them are not a fair sample. But the *first* attempts at all
places of a sample are: they are independent draws, whether their outputs are known or not. Their
number of hits differs from the one that was counted by at most the number of places whose first
attempt was lost. So with r lost draws, h hits are taken as h − r on the side where the event is to
be likelier, and as h + r on the other side.

**Guarantee:** a bound on these counts holds with the probability of a bound on uninterrupted draws,
whatever decides which calls are cut off, when, and how often; the number of draws stays what it was
fixed to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.bounds import Counts
from epsilometer.engine import health
from epsilometer.engine.folding import TwoTallies
from epsilometer.engine.sampler import Sampler
from epsilometer.inputs import Pair
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.methods import Proposal
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, HealthReport

# Of the left and of the right.
Tallies = tuple[Any, Any]


def fewer_hits(counts: Counts, lost: int) -> Counts:
    """Returns the counts if every lost draw missed the event and was replaced by a hit."""
    return Counts(max(0, counts.hits - lost), counts.trials)


def more_hits(counts: Counts, lost: int) -> Counts:
    """Returns the counts if every lost draw hit the event and was replaced by a miss."""
    return Counts(min(counts.trials, counts.hits + lost), counts.trials)


def are_counts(tallies: Tallies) -> bool:
    """Whether both tallies count events, so that it is known what a lost draw may do to them."""
    return all(_is_count(tally) for tally in tallies)


def _is_count(tally: Any) -> bool:
    if isinstance(tally, TwoTallies):
        return _is_count(tally.deciding) and _is_count(tally.secondary)
    return isinstance(tally, Counts)


def _with_lost_draws(tally: Any, lost: int, *, is_likelier: bool) -> Any:
    """The tally of one side with its lost draws counted against the event.

    Args:
        is_likelier: whether the event is to be likelier on this side.
    """
    change = fewer_hits if is_likelier else more_hits
    if isinstance(tally, TwoTallies):
        return TwoTallies(change(tally.deciding, lost), change(tally.secondary, lost))
    return change(tally, lost)


@dataclass(frozen=True, slots=True)
class CountedAgainst(Proposal):
    """A proposal that certifies what another one does, with lost draws counted against all of it.

    Only the proposal knows on which side an event is to be likelier, and it may count two events
    that differ in this. So everything is certified twice, for either side. The counts of one of
    them are valid, hence the smaller bound is, and the larger p-value.

    Attributes:
        proposal: what is certified; its tallies are counts.
        lost: draws of the left and of the right that were lost.
    """

    proposal: Proposal
    lost: tuple[int, int]

    @property
    def predicted(self) -> float:
        """The bound to expect without lost draws."""
        return self.proposal.predicted

    @property
    def event(self) -> Event | None:
        """The outputs that the proposal counts."""
        return self.proposal.event

    def tally(self, outputs: Outputs, side: int) -> Any:
        """Summarises fresh outputs as the proposal does."""
        return self.proposal.tally(outputs, side)

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """Certifies the smaller of the two bounds; of equal ones, that of the weaker evidence."""

        def strength(tallies: Tallies) -> tuple[float, float]:
            bound = self.proposal.certify(*tallies, pair, failure_probability).lower_bound
            p_value = self.proposal.p_value(*tallies, failure_probability)
            return bound, 0.0 if p_value is None else -p_value

        weakest = min(self._candidates(left, right), key=strength)
        return self.proposal.certify(*weakest, pair, failure_probability)

    def certify_secondary(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Certifies the smaller of the two bounds for each further finding."""
        candidates = [
            self.proposal.certify_secondary(*tallies, pair, failure_probability)
            for tallies in self._candidates(left, right)
        ]
        return tuple(
            min(findings, key=lambda finding: finding.lower_bound)
            for findings in zip(*candidates, strict=True)
        )

    def p_value(self, left: Any, right: Any, failure_probability: float) -> float | None:
        """The larger of the two p-values; None if the method has none."""
        p_values = [
            self.proposal.p_value(*tallies, failure_probability)
            for tallies in self._candidates(left, right)
        ]
        known = [p_value for p_value in p_values if p_value is not None]
        return max(known) if len(known) == len(p_values) else None

    def _candidates(self, left: Any, right: Any) -> list[Tallies]:
        """The tallies if the event is to be likelier on the left, and if it is on the right."""
        lost_left, lost_right = self.lost
        return [
            (
                _with_lost_draws(left, lost_left, is_likelier=left_is_likelier),
                _with_lost_draws(right, lost_right, is_likelier=not left_is_likelier),
            )
            for left_is_likelier in (True, False)
        ]


def facts_of(sampler: Sampler, number: int, lost: Sequence[int]) -> dict[str, Any]:
    """Facts about the draws of a pair for the settings of a result; only what happened is there.

    Args:
        number: the number of the pair.
        lost: draws of the left and of the right that were lost and drawn again.
    """
    facts = counted_facts(sampler.incidents_of(number), lost)
    if _on_error(sampler.mechanism) == "outcome":
        facts["on_error"] = "outcome"
    return facts


def counted_facts(incidents: Sequence[Incidents], lost: Sequence[int]) -> dict[str, Any]:
    """What happened while both sides were drawn; only what did happen is there.

    Args:
        incidents: of the left and of the right.
        lost: draws of the left and of the right that were lost and drawn again.
    """
    facts = {
        "failed": [side.failed for side in incidents],
        "retried": [side.retried for side in incidents],
        "redrawn": list(lost),
    }
    return {name: counts for name, counts in facts.items() if any(counts)}


def _on_error(mechanism: Any) -> str:
    """What a mechanism, or the innermost mechanism that it wraps, does about failed runs."""
    while not hasattr(mechanism, "on_error") and hasattr(mechanism, "mechanism"):
        mechanism = mechanism.mechanism
    return str(getattr(mechanism, "on_error", "raise"))


def reports_on(
    sampler: Sampler, number: int, lost: Sequence[int], *, is_counted: bool
) -> list[HealthReport]:
    """Health reports about requests that were sent again and draws that were drawn again.

    Args:
        number: the number of the pair.
        lost: draws of the left and of the right that were lost and drawn again.
        is_counted: whether lost draws were counted against the finding; if some of those that
            certify could not be, no verdict is given.
    """
    return incident_reports(sampler.incidents_of(number), lost, is_counted=is_counted)


def incident_reports(
    incidents: Sequence[Incidents], lost: Sequence[int], *, is_counted: bool
) -> list[HealthReport]:
    """The same about draws of which it is known what happened.

    Args:
        incidents: of the left and of the right.
        lost: draws of the left and of the right that were lost and drawn again.
        is_counted: whether lost draws were counted against the finding.
    """
    reports = health.check_retries(incidents)
    if any(lost):
        text = (
            f"{lost[0]} left and {lost[1]} right draws were begun, cut off and drawn again, "
            "in an audit that was interrupted or lost workers, of a mechanism whose draws cannot "
            "be repeated; which ones are cut off may depend on their outputs, so "
        )
        if is_counted:
            text += "those among the draws that prove were counted against the finding"
        else:
            text += (
                "the finding, which cannot count them against itself, is not trusted; "
                "audit in one go"
            )
        reports.append(HealthReport("redrawn", text, untrusted=not is_counted))
    return reports
