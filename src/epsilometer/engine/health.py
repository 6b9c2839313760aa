"""Named checks that the draws can be trusted.

Every bound assumes that draws are independent and identically distributed. Each check is a test
with a false alarm of about 1e-9, so a healthy mechanism practically never trips one.
"""

from collections.abc import Collection, Sequence

import numpy as np

from epsilometer.bounds import Counts
from epsilometer.engine.health_statistics import (
    EVIDENCE_THRESHOLD,
    FALSE_ALARM,
    USUAL_DEVIATIONS,
    clustering_evidence,
    hypergeometric_tails,
)
from epsilometer.errors import InputError, meant_or_known
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.outputs.text_reading import DIFFERENT, GROWING, Identifier
from epsilometer.result import HealthReport

__all__ = [
    "CHECKS",
    "check_drift",
    "check_identifiers",
    "check_retries",
    "check_suppressed",
]

CHECKS = {
    "constant": "all outputs of an input are one and the same value",
    "shared-input": "an input holds something that cannot be copied, so that all calls share it",
    "repeated-chunks": (
        "runs of outputs repeat: a frozen seed inside the mechanism, or copies of one generator"
    ),
    "serial-correlation": "an output depends on those before it",
    "drift": "the distribution of the outputs changes while they are drawn",
    "identifier-columns": (
        "columns have a different value in every output, or grow from one to the next; they were "
        "left out unless they tell the inputs apart"
    ),
    "retried-requests": (
        "requests to a service were sent again; not trusted if one side's were more often"
    ),
    "redrawn": "draws were cut off by an interruption and drawn again",
    "own-generator": (
        "workers had nothing to do: the mechanism draws from a generator that must not be copied"
    ),
}
_SIDES = ("left", "right")
# How an identifier is told, by why it is one.
_IDENTIFIER_WORDS = {
    DIFFERENT: "a different value in every output",
    GROWING: "a value that grows from output to output",
}
# Columns of one kind that a remark names.
_MOST_NAMES = 5


def check_suppressed(names: object) -> frozenset[str]:
    """Returns the names of switched-off checks.

    Raises:
        InputError: if there is no check of one of these names.
    """
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"suppress={names!r:.60} must be a list of names of health checks, such as ['drift']"
        )
    suppressed = frozenset(names)
    unknown = sorted(suppressed - CHECKS.keys())
    if unknown:
        raise InputError(
            f"suppress={unknown[0]!r} is not a health check{meant_or_known(unknown[0], CHECKS)}"
        )
    return suppressed


def check_identifiers(identifiers: Sequence[Identifier]) -> list[HealthReport]:
    """Reports the columns that identify rows, by name: one report per reason.

    Args:
        identifiers: which learning noticed.
    """
    reports = []
    for is_used in (False, True):
        for why, words in _IDENTIFIER_WORDS.items():
            names = [
                identifier.name
                for identifier in identifiers
                if identifier.why == why and identifier.is_used == is_used
            ]
            if not names:
                continue
            shown = ", ".join(names[:_MOST_NAMES])
            if len(names) > _MOST_NAMES:
                shown += f" and {len(names) - _MOST_NAMES} more"
            verb, were = ("has", "was") if len(names) == 1 else ("have", "were")
            text = (
                f"{shown} {verb} {words} and {were} left out: what never comes again tells nothing"
            )
            if is_used:
                text = (
                    f"{shown} {verb} {words}, and even so tells the two inputs apart; if it only "
                    "names the output, leave it out of what is audited"
                )
            reports.append(HealthReport("identifier-columns", text, untrusted=False))
    return reports


def check_retries(incidents: Sequence[Incidents]) -> list[HealthReport]:
    """Reports that requests were sent again, and checks whether more often on one side.

    If whether a request is turned away does not depend on the input, then given all requests that
    were sent again, those of the left are a draw without replacement (Fisher's exact test).

    Args:
        incidents: of the left and of the right draws.
    """
    left, right = incidents
    n_retried = left.retried + right.retried
    if not n_retried:
        return []
    text = (
        f"{left.retried} of {left.requests} left and {right.retried} of {right.requests} right "
        "requests were sent again"
    )
    n_requests = left.requests + right.requests
    tails = hypergeometric_tails(left.retried, n_requests, n_retried, left.requests)
    is_uneven = tails < FALSE_ALARM
    if is_uneven:
        text += (
            ", more often on one side than chance allows: what the service turns away depends on "
            "the input, and may depend on the output"
        )
    else:
        text += ", after the service had turned them away"
    return [HealthReport("retried-requests", text, untrusted=is_uneven)]


def check_drift(tallies: Sequence[Sequence[Counts]]) -> list[HealthReport]:
    """Checks whether the event's frequency differs between chunks more than chance allows.

    Args:
        tallies: per side, the counts of each chunk, in order.
    """
    reports = []
    for side, chunks in enumerate(tallies):
        change = _describe_drift(chunks)
        if change is not None:
            text = f"the event's share among {_SIDES[side]} outputs {change}"
            reports.append(HealthReport("drift", text, untrusted=True))
    return reports


def _describe_drift(chunks: Sequence[Counts]) -> str | None:
    """Describes how the event's frequency changes; None if it does not."""
    middle = _middle_of(chunks)
    first_half = chunks[:middle]
    second_half = chunks[middle:]
    first_hits = sum(chunk.hits for chunk in first_half)
    first_trials = sum(chunk.trials for chunk in first_half)
    second_hits = sum(chunk.hits for chunk in second_half)
    second_trials = sum(chunk.trials for chunk in second_half)
    if first_trials and second_trials:
        # Given all hits, those of the first half are a draw without replacement.
        tails = hypergeometric_tails(
            first_hits,
            population=first_trials + second_trials,
            marked=first_hits + second_hits,
            drawn=first_trials,
            usual=USUAL_DEVIATIONS,
        )
        if tails < FALSE_ALARM:
            before = f"{first_hits / first_trials:.4g}"
            after = f"{second_hits / second_trials:.4g}"
            return f"moved from {before} in the first half of the draws to {after} in the second"
    hits_and_misses = [(chunk.hits, chunk.trials - chunk.hits) for chunk in chunks]
    if clustering_evidence(np.array(hits_and_misses).reshape(-1, 2)) > EVIDENCE_THRESHOLD:
        return "varies between chunks more than chance allows"
    return None


def _middle_of(chunks: Sequence[Counts]) -> int:
    """Returns how many chunks have half of the draws, as nearly as possible: the first are small.

    It depends on the sizes of the chunks alone, so that the hits have no influence.
    """
    if len(chunks) < 2:
        return len(chunks)
    ends = np.cumsum([chunk.trials for chunk in chunks])
    return int(np.argmin(np.abs(2 * ends[:-1] - ends[-1]))) + 1
