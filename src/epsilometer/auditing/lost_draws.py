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
from typing import Any

from epsilometer.bounds import Counts
from epsilometer.engine import health
from epsilometer.engine.folding import TwoTallies
from epsilometer.engine.sampler import Sampler
from epsilometer.inputs import Pair
from epsilometer.methods import Proposal
from epsilometer.result import HealthReport

# Of the left and of the right.
Tallies = tuple[Any, Any]


def fewer_hits(counts: Counts, lost: int) -> Counts:
    """Returns the counts if every lost draw missed the event and was replaced by a hit."""
    return Counts(max(0, counts.hits - lost), counts.trials)


def more_hits(counts: Counts, lost: int) -> Counts:
    """Returns the counts if every lost draw hit the event and was replaced by a miss."""
    return Counts(min(counts.trials, counts.hits + lost), counts.trials)


def _has_counts(tally: Any) -> bool:
    """Whether a tally counts an event, so that it is known what a lost draw may do to it."""
    if isinstance(tally, TwoTallies):
        return isinstance(tally.deciding, Counts) and isinstance(tally.secondary, Counts)
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


def counted_against(
    proposal: Proposal, tallies: Tallies, pair: Pair, lost: Sequence[int], failure: float
) -> Tallies | None:
    """Returns the tallies with lost draws counted against what they are to certify.

    The proposal knows which side the event is to be likelier on; the smaller of the two bounds is
    the valid one. The result is None for tallies that are not counts.

    Args:
        tallies: of the left and of the right.
        lost: draws of the left and of the right that were lost.
        failure: the failure probability at which the two are compared.
    """
    if not any(lost):
        return tallies
    if not all(_has_counts(tally) for tally in tallies):
        return None

    def bound_from(candidate: Tallies) -> float:
        left, right = candidate
        return proposal.certify(left, right, pair, failure).lower_bound

    candidates = []
    for likelier in (0, 1):
        left = _with_lost_draws(tallies[0], lost[0], is_likelier=likelier == 0)
        right = _with_lost_draws(tallies[1], lost[1], is_likelier=likelier == 1)
        candidates.append((left, right))
    return min(candidates, key=bound_from)


def facts_of(sampler: Sampler, number: int, lost: Sequence[int]) -> dict[str, Any]:
    """Facts about the draws of a pair for the settings of a result; only what happened is there.

    Args:
        number: the number of the pair.
        lost: draws of the left and of the right that were lost and drawn again.
    """
    incidents = sampler.incidents_of(number)
    facts: dict[str, Any] = {
        "failed": [side.failed for side in incidents],
        "retried": [side.retried for side in incidents],
        "redrawn": list(lost),
    }
    facts = {name: counts for name, counts in facts.items() if any(counts)}
    if _on_error(sampler.mechanism) == "outcome":
        facts["on_error"] = "outcome"
    return facts


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
    reports = health.check_retries(sampler.incidents_of(number))
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
