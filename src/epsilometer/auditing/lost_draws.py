"""What becomes of draws that were begun, lost and drawn again: they count against whatever is to be proved.

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
from epsilometer.engine.chunks import TwoTallies
from epsilometer.engine.sampler import Sampler
from epsilometer.inputs import Pair
from epsilometer.methods import Proposal
from epsilometer.result import HealthReport

Tallies = tuple[Any, Any]


def fewer_hits(counts: Counts, lost: int) -> Counts:
    """Counts if every lost draw had missed the event, and a hit had come in its place."""
    return Counts(max(0, counts.hits - lost), counts.trials)


def more_hits(counts: Counts, lost: int) -> Counts:
    """Counts if every lost draw had hit the event, and a miss had come in its place."""
    return Counts(min(counts.trials, counts.hits + lost), counts.trials)


def _counted(tally: Any) -> bool:
    """Whether a tally is made of counts of an event, of which it is known what a lost draw does to them."""
    if isinstance(tally, TwoTallies):
        return isinstance(tally.deciding, Counts) and isinstance(tally.beside, Counts)
    return isinstance(tally, Counts)


def _changed(tally: Any, lost: int, *, is_likelier: bool) -> Any:
    change = fewer_hits if is_likelier else more_hits
    if isinstance(tally, TwoTallies):
        return TwoTallies(change(tally.deciding, lost), change(tally.beside, lost))
    return change(tally, lost)


def counted_against(
    proposal: Proposal, tallies: Tallies, pair: Pair, lost: Sequence[int], failure: float
) -> Tallies | None:
    """The tallies with lost draws counted against what they are to prove; None for tallies that are no counts.

    The proposal knows which side the event is to be likelier on; the smaller of the two bounds is
    the valid one.

    Args:
        tallies: of the left and of the right.
        lost: draws of the left and of the right that were lost.
        failure: the failure probability at which the two are compared.
    """
    if not any(lost):
        return tallies
    if not all(map(_counted, tallies)):
        return None
    candidates = []
    for likelier in (0, 1):
        left = _changed(tallies[0], lost[0], is_likelier=likelier == 0)
        right = _changed(tallies[1], lost[1], is_likelier=likelier == 1)
        candidates.append((left, right))
    return min(
        candidates, key=lambda each: proposal.certify(each[0], each[1], pair, failure).lower_bound
    )


def facts_of(sampler: Sampler, number: int, lost: Sequence[int]) -> dict[str, Any]:
    """What the record of an audit says about the draws of a pair: only what happened.

    Args:
        number: of the pair.
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
    """What becomes of a failed run, also of a mechanism inside another one."""
    while not hasattr(mechanism, "on_error") and hasattr(mechanism, "mechanism"):
        mechanism = mechanism.mechanism
    return str(getattr(mechanism, "on_error", "raise"))


def reports_on(
    sampler: Sampler, number: int, lost: Sequence[int], *, is_counted: bool
) -> list[HealthReport]:
    """Remarks about requests that were sent again, and draws that were drawn again.

    Args:
        number: of the pair.
        lost: draws of the left and of the right that were lost and drawn again.
        is_counted: whether lost draws were counted against the finding; if some of those that prove
            could not be, no verdict is given.
    """
    reports = health.check_retries(sampler.incidents_of(number))
    if any(lost):
        text = (
            f"{lost[0]} left and {lost[1]} right draws were begun, cut off and drawn again, in an audit that was "
            "interrupted or lost workers, of a mechanism whose draws cannot be repeated; which ones are cut off may "
            "depend on their outputs, so "
        )
        if is_counted:
            text += "those among the draws that prove were counted against the finding"
        else:
            text += "the finding, which cannot count them against itself, is not trusted; audit in one go"
        reports.append(HealthReport("redrawn", text, untrusted=not is_counted))
    return reports
