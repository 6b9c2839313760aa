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
    """

    claim: Claim
    lower_bound: float
    verdict: Verdict

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


def too_few_to_refute(
    claim: Claim, greatest_bound: float, *, what: str, best_case: str
) -> str | None:
    """One sentence, if so few data could not have refuted a claim at all; None if they could.

    Args:
        claim: the claim.
        greatest_bound: what the data would show of it in the best case.
        what: the data, in the plural, e.g. "scores".
        best_case: the best case, as the sentence goes on after "even", e.g. "perfectly separated
            ones".
    """
    if greatest_bound > claim.value:
        return None
    # This import points upwards, and is therefore made late.
    from epsilometer.report.formatting import figure_down

    return (
        f"So few {what} could not have refuted it: even {best_case} would show {claim.symbol} ≥ "
        f"{figure_down(greatest_bound)}, and no more."
    )
