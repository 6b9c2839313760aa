"""Exit statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epsilometer.result import AuditResult

NOT_REFUTED = 0
REFUTED = 1
BAD_INPUT = 2
INCONCLUSIVE = 3
# What shells give a program that was ended by the signals SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141


def status_of(result: AuditResult) -> int:
    """The exit status that tells the verdict; a measurement is 0."""
    statuses = {"REFUTED": REFUTED, "NOT_REFUTED": NOT_REFUTED, "INCONCLUSIVE": INCONCLUSIVE}
    return NOT_REFUTED if result.verdict is None else statuses[result.verdict.name]
