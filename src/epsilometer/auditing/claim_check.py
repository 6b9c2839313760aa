"""One claim, checked against a profile or against scores of canaries."""

import math
from dataclasses import dataclass

from epsilometer.claims import Claim
from epsilometer.result import Verdict


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """What a profile, or the scores of canaries, say about one claim.

    Attributes:
        claim: the claim.
        lower_bound: the certified bound in its own parameter.
        verdict: REFUTED when the bound is above the claim, INCONCLUSIVE when the draws cannot be
            trusted.
        blind: why the claim could not have been refuted, if it was not; None if it could.
    """

    claim: Claim
    lower_bound: float
    verdict: Verdict
    blind: str | None = None

    @classmethod
    def of_test(cls, claim: Claim, lower_bound: float, *, is_refuted: bool) -> "ClaimCheck":
        """The outcome of a test of the claim, with the bound of the same test.

        The bound is searched for, and may end on the wrong side of the claim by a little: the test
        decides.
        """
        if is_refuted:
            just_above = math.nextafter(claim.value, math.inf)
            return cls(claim, max(lower_bound, just_above), Verdict.REFUTED)
        return cls(claim, min(lower_bound, claim.value), Verdict.NOT_REFUTED)

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.REFUTED
