"""From a proof and the health of its draws to a result."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from epsilometer.auditing.picture import binned_densities, pictured_outputs
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.claims import ApproxDP, Claim, GaussianDP
from epsilometer.engine import health
from epsilometer.environment import CodeIdentity, describe_environment
from epsilometer.errors import EpsilometerError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Method, Proposal, Task
from epsilometer.outputs import Outputs, concatenate
from epsilometer.result import AuditResult, Finding, HealthReport, OnRequest, Verdict

GAUSSIAN = "conditional: if the noise is Gaussian"


def _implied(finding: Finding) -> tuple[Finding, ...]:
    """The ε at the user's δ that follows from a bound on μ along the Gaussian curve; nothing without such a δ.

    A bound on μ alone says nothing about ε at a small δ. If the noise is Gaussian, the curve is
    known up to μ.
    """
    claim = finding.claim
    if not isinstance(claim, GaussianDP) or claim.at_delta is None:
        return ()
    claimed = ApproxDP(claim.epsilon(claim.at_delta), claim.at_delta)
    bound = GaussianDP(finding.lower_bound).epsilon(claim.at_delta)
    return (Finding(finding.method, bound, GAUSSIAN, finding.confidence, None, claimed),)


# Draws that were kept in order are cut into this many pieces to look for drift.
_PIECES = 8


# Added to a claim before a bound is divided by it: a bound of nearly 0 against a claim of 0 shows
# nothing.
_LEAST_CLAIM = 0.1


def share_of_claim(bound: float, claim: Claim) -> float:
    """How much a bound says against its claim, to be compared with bounds against other claims."""
    return bound / (claim.value + _LEAST_CLAIM)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a mechanism.

    Attributes:
        claim: the claim; for a measurement the strictest one of its notion.
        judged: whether a verdict is requested.
    """

    claim: Claim
    judged: bool

    def about(self, pair: Pair) -> "Question":
        """The question about one pair: the same as about any other."""
        return self

    def score(self, pair: Pair, bound: float) -> float:
        """How much a bound says against the claim, to be compared among pairs."""
        return bound


@dataclass(frozen=True, slots=True)
class PairwiseQuestion:
    """Whether a mechanism keeps its own promise, which is another one for every pair of inputs.

    Attributes:
        promise: the claim about a pair. Raises an InputError where it is not known.
        judged: whether a verdict is requested.
    """

    promise: Callable[[Pair], Claim]
    judged: bool = True

    def about(self, pair: Pair) -> Question:
        """The question about one pair, with the claim about it."""
        return Question(self.promise(pair), self.judged)

    def score(self, pair: Pair, bound: float) -> float:
        """A bound as a share of what is claimed about its own pair: a larger one may be allowed."""
        return share_of_claim(bound, self.promise(pair))


AnyQuestion = Question | PairwiseQuestion


def pay_and_prove(
    budget: ErrorBudget, proposal: Proposal, tallies: tuple[Any, Any], pair: Pair
) -> tuple[Finding, ...]:
    """Spends a whole budget on the proof of a proposal: the one place where a deciding bound is paid for.

    A method is given a price, not the budget, and its findings must not cost more. The deciding
    finding comes first.
    """
    price = budget.spend(budget.total, "certificate")
    findings = (
        proposal.certify(*tallies, pair, price),
        *proposal.certify_beside(*tallies, pair, price),
    )
    for each in findings:
        bound = each.lower_bound
        if not (
            math.isfinite(bound)
            and bound >= 0.0
            and 1.0 - price * (1.0 + 1e-9) <= each.confidence < 1.0
        ):
            wanted = (
                f"a finite bound of at least 0 with a confidence of {1.0 - price!r} was asked for"
            )
            gave = f"the method {each.method!r} gave lower_bound={bound!r} with confidence={each.confidence!r}"
            raise EpsilometerError(f"{gave}, where {wanted}; see epsilometer.testing")
    return findings


# A claim that is not refuted has a p-value above the failure probability, if only by this part of
# it.
_JUST_ABOVE = 1e-12


def p_value_of_audit(
    certificate_p_value: Callable[[], float | None], failure: float, price: float, is_refuted: bool
) -> float | None:
    """The p-value of an audit: at most t with probability at most t for every t, if the claim holds.

    A certificate that has a share of the audit's failure probability has p-values that are larger
    by that share: if the least of several is taken, each divided by its share, that is still a
    p-value. It is made to agree with the
    verdict, which may differ from it by the coarseness of the bound: raising a p-value is always
    sound, and where the claim is refuted, it is refuted by a test that errs with at most `failure`.

    Args:
        certificate_p_value: that of the deciding certificate, valid at every threshold; may return
            None.
        failure: the failure probability of the audit.
        price: what the certificate was given of it.
        is_refuted: the verdict.
    """
    found = certificate_p_value()
    if found is None:
        return None
    p_value = min(found * failure / price, 1.0)
    return min(p_value, failure) if is_refuted else max(p_value, failure * (1.0 + _JUST_ABOVE))


def conclude(
    question: Question,
    settings: Settings,
    proposal: Proposal,
    findings: Sequence[Finding],
    reports: Sequence[HealthReport],
    used: Sequence[int],
    began: float,
    training: tuple[Outputs, Outputs] | None = None,
    certificate_p_value: Callable[[], float | None] | None = None,
    price: float | None = None,
    mechanism: Mechanism | None = None,
    task: Task | None = None,
) -> AuditResult:
    """The result of an audit.

    Args:
        training: draws that leave their shape in it, for a picture.
        certificate_p_value: works out the p-value of the deciding certificate.
        price: the part of the failure probability that this certificate was given; all of it by
            default.
        task: what was to be proved, if the audit can be rehearsed to say what it could have found.
    """
    finding, *beside = findings
    # Each report once, without those of switched-off checks, of which only the names are noted.
    silenced = {report.name for report in reports if report.name in settings.suppressed}
    if silenced:
        settings.note(silenced=sorted(silenced.union(settings.record.get("silenced", ()))))
    reports = [
        report for report in dict.fromkeys(reports) if report.name not in settings.suppressed
    ]
    pictures: dict[str, Any] = {}
    if training is not None:
        # A picture that cannot be drawn must never cost a finished answer.
        with suppress(Exception):
            pictures |= (
                {"densities": densities} if (densities := binned_densities(*training)) else {}
            )
        with suppress(Exception):
            pictures |= (
                {"outputs": pictured_outputs(finding.witness.event, *training)}
                if finding.witness
                else {}
            )
    finding = replace(finding, details={**finding.details, **pictures})
    claim = question.claim
    judged = question.judged
    verdict = judge(claim, finding, reports) if judged else None
    # What takes long is computed when it is first read; few methods know themselves what they could
    # have found.
    p_value: Any = None
    detectable: Any = None
    is_decided = verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED)
    if certificate_p_value is not None and is_decided and finding.guarantee == "exact":
        failure = settings.failure_probability
        is_refuted = verdict is Verdict.REFUTED
        p_value = partial(
            p_value_of_audit, certificate_p_value, failure, price or failure, is_refuted
        )
    if training is not None and task is not None and verdict is Verdict.NOT_REFUTED:
        sizes = (len(training[0]), len(training[1]))
        event = finding.witness.event.contains if finding.witness else None
        detectable = partial(
            _rehearse, task, settings.method, sizes, few_rows(*training), event, settings.seed
        )
    elif judged and settings.record.get("pairs", 1) == 1:
        detectable = proposal.detectable
    every = (finding, *beside, *(_implied(finding) if isinstance(claim, GaussianDP) else ()))
    return AuditResult(
        verdict=verdict,
        claim=claim,
        confidence=settings.confidence,
        findings=every,
        samples_used=(used[0], used[1]),
        health=tuple(reports),
        settings=settings.record,
        environment=describe_environment(),
        seconds=time.perf_counter() - began,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        on_request=OnRequest(
            detectable=detectable,
            p_value=p_value,
            identity=None if mechanism is None else CodeIdentity.of(mechanism),
        ),
    )


# Rows per side that are kept for a rehearsal: at most the first number, at least the second, and in
# between few enough that all their columns have the third number of entries, about half a megabyte
# on both sides.
_MOST_ROWS = 4096
_FEWEST_ROWS = 64
_MOST_NUMBERS = 32_768


def few_rows(left: Outputs, right: Outputs) -> Outputs:
    """A few thousand outputs of both sides, as many of the left as of the right, copied."""
    n_columns = max(
        (len(block.columns) for side in (left, right) for block in side.blocks), default=1
    )
    most = min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_NUMBERS // max(n_columns, 1)))
    size = min(len(left), len(right), most)
    return concatenate(
        [side.take(np.linspace(0, len(side) - 1, size).astype(np.int64)) for side in (left, right)]
    )


def _rehearse(
    task: Task, method: Method, sizes: tuple[int, int], rows: Outputs, event: Any, seed: int
) -> float | None:
    """The smallest leak that the audit refutes with 90 % power."""
    from epsilometer.auditing.power import Rehearsal  # only needed by those who ask

    return Rehearsal(task, method, sizes, rows, event, seed).detectable()


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
        pieces = [
            [Counts(int(part.sum()), len(part)) for part in np.array_split(side, _PIECES)]
            for side in hits
        ]
        reports += health.check_correlation(0, hits[:1]) + health.check_correlation(1, hits[1:])
        reports += health.check_drift(pieces)
    return reports
