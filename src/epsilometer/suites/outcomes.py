"""The audits of a suite, and their outcomes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from epsilometer.report.formatting import figure, figure_down, plain
from epsilometer.report.reservations import reservations
from epsilometer.report.wording import is_untrusted_measurement, parameter
from epsilometer.result import AuditResult, Verdict

# Exit statuses of an audit; those of the command line are the same.
_AS_EXPECTED = 0
_REFUTED = 1
_ERROR = 2
_INCONCLUSIVE = 3
# The most serious first: an audit that could not be done outweighs a refutation, which outweighs
# an inconclusive audit.
_STATUSES_BY_SEVERITY = (_ERROR, _REFUTED, _INCONCLUSIVE, _AS_EXPECTED)

# Characters of an error in the table of outcomes.
_MAX_ERROR_LENGTH = 90
# Characters of the reason why nothing could have been refuted, which names a number of draws.
_MAX_BLIND_LENGTH = 180


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit of a suite.

    Attributes:
        name: unique in the suite.
        settings: as they were written, with the suite's defaults.
        digest: of the settings and of the files that they name. An outcome with another digest is
            out of date.
        expected: the verdict to expect of a mechanism that is known to be broken; None if every
            refutation is a surprise.
        seconds: the time limit of the audit; None for no limit.
        fail_blind: whether an audit that could not have refuted anything is inconclusive.
    """

    name: str
    settings: Mapping[str, Any]
    digest: str
    expected: Verdict | None = None
    seconds: float | None = None
    fail_blind: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one audit.

    Attributes:
        name: of the entry.
        digest: of the entry.
        result: the audit's result; None if there was an error.
        error: the error message; None if there was no error.
        finished: the time at which the audit ended, in UTC.
    """

    name: str
    digest: str
    result: AuditResult | None
    error: str | None
    finished: str

    @property
    def word(self) -> str:
        """The verdict, "measured", or "error"; "inconclusive" also of a measurement."""
        if self.result is None:
            return "error"
        if is_untrusted_measurement(self.result):
            return str(Verdict.INCONCLUSIVE)
        if self.result.verdict is None:
            return "measured"
        return str(self.result.verdict)

    def status(self, expected: Verdict | None = None, *, fail_blind: bool = False) -> int:
        """Returns the exit status of the audit.

        Args:
            expected: the verdict to expect; None for not refuted.
            fail_blind: whether an audit that could not have refuted anything is inconclusive.

        Returns:
            0 as expected, 1 refuted (or not refuted although that was expected), 2 error,
            3 inconclusive, or blind where that is to fail.
        """
        if self.result is None:
            return _ERROR
        verdict = self.result.verdict
        if fail_blind and self.result.blind is not None and expected is None:
            return _INCONCLUSIVE
        if is_untrusted_measurement(self.result):
            verdict = Verdict.INCONCLUSIVE
        if verdict is None or verdict is (expected or Verdict.NOT_REFUTED):
            return _AS_EXPECTED
        if verdict is Verdict.INCONCLUSIVE:
            return _INCONCLUSIVE
        return _REFUTED

    @property
    def figures(self) -> str:
        """A short text with the bound and the claim, or with the error."""
        if self.result is None:
            return plain(self.error, _MAX_ERROR_LENGTH)
        claim = self.result.claim
        text = f"{parameter(claim)} ≥ {figure_down(self.result.lower_bound)}"
        if self.result.verdict is not None:
            text += f" (claim {figure(claim.value)})"
        if self.result.blind is not None:
            text = f"could not have been refuted: {plain(self.result.blind, _MAX_BLIND_LENGTH)}"
        weakened = reservations(self.result.settings)
        if weakened:
            text += f", with {plain(weakened, _MAX_ERROR_LENGTH)}"
        return text


def status_over_all(statuses: Iterable[int]) -> int:
    """Returns the exit status of a suite: the most serious one of its audits."""
    present = set(statuses)
    for status in _STATUSES_BY_SEVERITY:
        if status in present:
            return status
    return _AS_EXPECTED
