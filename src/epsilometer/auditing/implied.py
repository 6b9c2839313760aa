"""What a finding means in other words, under an assumption that the words name."""

from __future__ import annotations

from epsilometer.claims import ApproxDP, GaussianDP
from epsilometer.result import Finding

GAUSSIAN = "conditional: if the noise is Gaussian"


def implied_findings(finding: Finding) -> tuple[Finding, ...]:
    """The ε at the user's δ that a bound on μ means along the Gaussian curve; nothing for other claims.

    A bound on μ alone says nothing about ε at a small δ. If the noise is Gaussian, the curve is known up to μ.
    """
    claim = finding.claim
    if not isinstance(claim, GaussianDP) or claim.at_delta is None:
        return ()
    claimed = ApproxDP(claim.epsilon(claim.at_delta), claim.at_delta)
    bound = GaussianDP(finding.lower_bound).epsilon(claim.at_delta)
    return (Finding(finding.method, bound, GAUSSIAN, finding.confidence, None, claimed),)
