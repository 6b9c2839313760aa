"""From a proof and the health of its draws to a result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.auditing.picture import binned_densities, pictured_outputs
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.claims import ApproxDP, Claim, GaussianDP
from epsilometer.engine import health
from epsilometer.environment import describe_environment, identity_of, today
from epsilometer.errors import EpsilometerError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Proposal
from epsilometer.outputs import Outputs
from epsilometer.result import AuditResult, Finding, HealthReport, Verdict

GAUSSIAN = "conditional: if the noise is Gaussian"


def _implied(finding: Finding) -> tuple[Finding, ...]:
    """The ε at the user's δ that follows from a bound on μ along the Gaussian curve; nothing without such a δ.

    A bound on μ alone says nothing about ε at a small δ. If the noise is Gaussian, the curve is known up to μ.
    """
    claim = finding.claim
    if not isinstance(claim, GaussianDP) or claim.at_delta is None:
        return ()
    claimed = ApproxDP(claim.epsilon(claim.at_delta), claim.at_delta)
    bound = GaussianDP(finding.lower_bound).epsilon(claim.at_delta)
    return (Finding(finding.method, bound, GAUSSIAN, finding.confidence, None, claimed),)


# Draws that were kept in order are cut into this many pieces to look for drift.
_PIECES = 8


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a mechanism.

    Attributes:
        claim: the claim; for a measurement the strictest one of its notion.
        judged: whether a verdict is requested.
    """

    claim: Claim
    judged: bool


def pay_and_prove(budget: ErrorBudget, proposal: Proposal, tallies: tuple[Any, Any], pair: Pair) -> tuple[Finding, ...]:
    """Spends a whole budget on the proof of a proposal: the one place where a deciding bound is paid for.

    A method is given a price, not the budget, and its findings must not cost more. The deciding finding comes first.
    """
    price = budget.spend(budget.total, "certificate")
    findings = proposal.certify(*tallies, pair, price), *proposal.certify_beside(*tallies, pair, price)
    for each in findings:
        bound = each.lower_bound
        if not (math.isfinite(bound) and bound >= 0.0 and 1.0 - price * (1.0 + 1e-9) <= each.confidence < 1.0):
            raise EpsilometerError(
                f"the method {each.method!r} gave lower_bound={bound!r} with confidence={each.confidence!r}, where a "
                f"finite bound of at least 0 with a confidence of {1.0 - price!r} was asked for; see "
                "epsilometer.testing"
            )
    return findings


def conclude(
    question: Question,
    findings: Sequence[Finding],
    proposal: Proposal,
    reports: Sequence[HealthReport],
    *,
    used: tuple[int, int],
    confidence: float,
    settings: Mapping[str, Any],
    began: float,
    training: tuple[Outputs, Outputs] | None = None,
    mechanism: Mechanism | None = None,
) -> AuditResult:
    """The result of an audit; training draws, where there are some, leave their shape in it for a picture."""
    finding, *beside = findings
    finding = replace(finding, details={**finding.details, **_pictures(finding, training)})
    judged = question.judged
    return AuditResult(
        verdict=judge(question.claim, finding, reports) if judged else None,
        claim=question.claim,
        confidence=confidence,
        findings=(finding, *beside, *(_implied(finding) if isinstance(question.claim, GaussianDP) else ())),
        samples_used=used,
        # Few methods know it themselves; the loops rehearse the others (`epsilometer.auditing.power`).
        detectable=proposal.detectable if judged and settings.get("pairs", 1) == 1 else None,
        health=tuple(reports),
        settings=settings,
        environment=describe_environment(),
        seconds=time.perf_counter() - began,
        date=today(),
        identity=identity_of(getattr(mechanism, "function", mechanism), mechanism.digest) if mechanism else {},
    )


def _pictures(finding: Finding, training: tuple[Outputs, Outputs] | None) -> dict[str, Any]:
    """What reports draw of the training draws."""
    found: dict[str, Any] = {}
    if training is None:
        return found
    # A picture that cannot be drawn must never cost a finished answer.
    with suppress(Exception):
        found |= {"densities": densities} if (densities := binned_densities(*training)) else {}
    with suppress(Exception):
        found |= {"outputs": pictured_outputs(finding.witness.event, *training)} if finding.witness else {}
    return found


def judge(claim: Claim, finding: Finding, reports: Sequence[HealthReport]) -> Verdict:
    """Refuted when the bound is above the claim and the draws can be trusted."""
    # A bound without any guarantee decides nothing.
    if finding.guarantee.startswith("none") or any(report.untrusted for report in reports):
        return Verdict.INCONCLUSIVE
    return Verdict.REFUTED if finding.lower_bound > claim.value else Verdict.NOT_REFUTED


def examine_draws(proposal: Proposal, left: Outputs, right: Outputs) -> list[HealthReport]:
    """The checks that need outputs in the order in which they were drawn."""
    reports = health.check_constant(left, right) + health.check_order(left, right)
    if proposal.event is not None:
        hits = [proposal.event.contains(side) for side in (left, right)]
        pieces = [[Counts(int(part.sum()), len(part)) for part in np.array_split(side, _PIECES)] for side in hits]
        reports += health.check_correlation(hits) + health.check_drift(pieces)
    return reports


def without(reports: Sequence[HealthReport], suppressed: frozenset[str]) -> list[HealthReport]:
    """Each finding once, without those of switched-off checks."""
    kept: dict[tuple[str, str], HealthReport] = {}
    for report in reports:
        if report.name not in suppressed:
            kept.setdefault((report.name, report.message), report)
    return list(kept.values())
