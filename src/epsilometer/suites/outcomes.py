"""What is to be audited, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from epsilometer.result import AuditResult, Verdict

# In this order: an audit that could not be done outweighs a refutation, that an audit without an answer.
_STATUSES = (2, 1, 3, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit of a suite.

    Attributes:
        name: unique in the suite.
        settings: as they were written, with the suite's defaults.
        digest: of the settings and of the files they name: an outcome with another digest is out of date.
        expected: the verdict that is not news, for mechanisms that are known to be broken; None if any refutation is.
        seconds: after which the audit is given up; None for never.
    """

    name: str
    settings: Mapping[str, Any]
    digest: str
    expected: Verdict | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one audit.

    Attributes:
        name: of the entry.
        digest: of the entry.
        result: None if there was an error.
        error: what went wrong, None if nothing did.
        finished: when, in UTC.
    """

    name: str
    digest: str
    result: AuditResult | None
    error: str | None
    finished: str

    @property
    def word(self) -> str:
        """The verdict, "measured", or "error"."""
        if self.result is None:
            return "error"
        return "measured" if self.result.verdict is None else str(self.result.verdict)

    def status(self, expected: Verdict | None = None) -> int:
        """The exit status: 0 as expected, 1 refuted (or not, though it was expected), 2 error, 3 inconclusive."""
        if self.result is None:
            return 2
        verdict = self.result.verdict
        if verdict is None:
            return 0
        if expected is not None:
            return 0 if verdict is expected else 3 if verdict is Verdict.INCONCLUSIVE else 1
        return {Verdict.REFUTED: 1, Verdict.NOT_REFUTED: 0, Verdict.INCONCLUSIVE: 3}[verdict]


def status_over_all(statuses: Iterable[int]) -> int:
    """The exit status of a suite: the weightiest of its audits."""
    found = set(statuses)
    return next((status for status in _STATUSES if status in found), 0)
