"""From tallies to a result: the certificate, the verdict, and what readers may ask for later."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from epsilometer.auditing.blindness import blind_by_outputs
from epsilometer.auditing.plot_summaries import binned_densities, pictured_outputs
from epsilometer.auditing.questions import Question
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.claims import ApproxDP, Claim, GaussianDP
from epsilometer.engine import health
from epsilometer.engine.correlation_checks import check_correlation, check_order
from epsilometer.environment import describe_environment
from epsilometer.errors import EpsilometerError
from epsilometer.guarantees import parse_guarantee
from epsilometer.identity import CodeIdentity
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Method, Proposal, Task
from epsilometer.outputs import Outputs, Partition, concatenate
from epsilometer.outputs.text_reading import TextReading
from epsilometer.result import AuditResult, Finding, HealthReport, OnRequest, Verdict

GAUSSIAN = "conditional: if the noise is Gaussian"
# How far the confidence of a finding may fall short of what was asked for, through rounding.
_ROUNDING = 1e-9
# A claim that is not refuted has a p-value above the failure probability, if only by this part of
# it.
_JUST_ABOVE = 1e-12
# Draws that were kept in order are cut into this many pieces to look for drift.
_PIECES = 8
# Rows per side that are kept for a rehearsal, at most and at least.
_MAX_REHEARSAL_ROWS = 4096
_MIN_REHEARSAL_ROWS = 64
# Entries of all their columns together, about half a megabyte on both sides.
_MAX_REHEARSAL_ENTRIES = 32_768


def certify_with_budget(
    budget: ErrorBudget, proposal: Proposal, tallies: tuple[Any, Any], pair: Pair
) -> tuple[Finding, ...]:
    """Spends a whole budget on the certificate of a proposal.

    This is the one place where a deciding bound is paid for. A method is given an error share, not
    the budget, and all of its findings together must not spend more. The deciding finding comes
    first.
    """
    error_share = budget.spend(budget.total, "certificate")
    left, right = tallies
    findings = (
        proposal.certify(left, right, pair, error_share),
        *proposal.certify_secondary(left, right, pair, error_share),
    )
    least_confidence = 1.0 - error_share * (1.0 + _ROUNDING)
    for finding in findings:
        is_bound = math.isfinite(finding.lower_bound) and finding.lower_bound >= 0.0
        is_confident = least_confidence <= finding.confidence < 1.0
        if not (is_bound and is_confident):
            raise EpsilometerError(
                f"the method {finding.method!r} gave lower_bound={finding.lower_bound!r} with "
                f"confidence={finding.confidence!r}, where a finite bound of at least 0 with a "
                f"confidence of {1.0 - error_share!r} was asked for; see epsilometer.testing"
            )
    return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """What a finished run hands to `conclude`.

    Attributes:
        question: what was asked about the certified pair.
        settings: how it was run, with the metadata that the run recorded.
        proposal: what was certified.
        findings: the certified bounds, the deciding one first.
        reports: what the health checks saw.
        samples_used: draws of left and right, everything included.
        began: when it began, by `time.perf_counter`.
        training: training draws of left and right; None if they were not kept.
        certificate_p_value: computes the p-value of the deciding certificate; None if it has none.
        certificate_share: the part of the failure probability that this certificate was given; None
            for all of it.
        mechanism: what was run; None for recorded samples.
        rehearsed_task: what was to be certified, if the audit can be rehearsed: repeated on outputs
            with a planted leak, to find out what it could have refuted. None if it cannot.
        is_only_pair: whether no other pair was a candidate. With several, the power also depends on
            which of them would have been certified, and is unknown.
        too_few_draws: the sentence which says that not even a perfect event would have refuted the
            claim, or None if one would; computed for results that are not refuted.
    """

    question: Question
    settings: Settings
    proposal: Proposal
    findings: Sequence[Finding]
    reports: Sequence[HealthReport]
    samples_used: Sequence[int]
    began: float
    training: tuple[Outputs, Outputs] | None = None
    certificate_p_value: Callable[[], float | None] | None = None
    certificate_share: float | None = None
    mechanism: Mechanism | None = None
    rehearsed_task: Task | None = None
    is_only_pair: bool = True
    too_few_draws: Callable[[], str | None] | None = None


def conclude(run: FinishedRun) -> AuditResult:
    """The result of a finished run."""
    settings = run.settings
    silenced = {report.name for report in run.reports if report.name in settings.suppressed}
    if silenced:
        settings = settings.noting(silenced=sorted(silenced))
    # Each report once, without those of the checks that are switched off.
    reports = [
        report for report in dict.fromkeys(run.reports) if report.name not in settings.suppressed
    ]
    finding, *secondary = run.findings
    finding = replace(finding, details={**finding.details, **_pictures(finding, run.training)})
    findings = (finding, *secondary, *_implied_along_gaussian_curve(finding))
    verdict = None
    if run.question.judged:
        verdict = judge(run.question.claim, finding, reports)
    blind = _blind(run, verdict)
    left_used, right_used = run.samples_used
    return AuditResult(
        verdict=verdict,
        claim=run.question.claim,
        confidence=settings.confidence,
        findings=findings,
        samples_used=(left_used, right_used),
        health=tuple(reports),
        settings=settings.metadata.to_dict(),
        environment=describe_environment(),
        seconds=time.perf_counter() - run.began,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        blind=blind,
        on_request=OnRequest(
            detectable=math.inf if blind else _detectable(run, finding, verdict),
            detectable_mass=math.inf if blind else _detectable_mass(run, finding, verdict),
            p_value=_p_value(run, finding, verdict),
            identity=None if run.mechanism is None else CodeIdentity.of(run.mechanism),
        ),
    )


def judge(claim: Claim, finding: Finding, reports: Sequence[HealthReport]) -> Verdict:
    """Refuted when the bound is above the claim and the draws can be trusted."""
    # A bound without any guarantee decides nothing.
    is_proved = parse_guarantee(finding.guarantee).is_proved
    if not is_proved or any(report.untrusted for report in reports):
        return Verdict.INCONCLUSIVE
    return Verdict.REFUTED if finding.lower_bound > claim.value else Verdict.NOT_REFUTED


def _implied_along_gaussian_curve(finding: Finding) -> tuple[Finding, ...]:
    """The ε at the user's δ that follows from a bound on μ; nothing without such a δ.

    A bound on μ alone says nothing about ε at a small δ. If the noise is Gaussian, the whole curve
    is known up to μ.
    """
    claim = finding.claim
    if not isinstance(claim, GaussianDP) or claim.at_delta is None:
        return ()
    implied = Finding(
        method=finding.method,
        lower_bound=GaussianDP(finding.lower_bound).epsilon(claim.at_delta),
        guarantee=GAUSSIAN,
        confidence=finding.confidence,
        witness=None,
        claim=ApproxDP(claim.epsilon(claim.at_delta), claim.at_delta),
    )
    return (implied,)


def _blind(run: FinishedRun, verdict: Verdict | None) -> str | None:
    """Why nothing could have been refuted; None if something could, and for other verdicts."""
    if verdict is not Verdict.NOT_REFUTED:
        return None
    unread = blind_by_outputs(run.training, _reading_of(run.proposal))
    if unread is not None or run.too_few_draws is None:
        return unread
    return run.too_few_draws()


def _pictures(finding: Finding, training: tuple[Outputs, Outputs] | None) -> dict[str, Any]:
    """The shapes of both output distributions, for the pictures of the report."""
    pictures: dict[str, Any] = {}
    if training is None:
        return pictures
    # A picture that cannot be drawn must never cost a finished answer.
    with suppress(Exception):
        densities = binned_densities(*training)
        if densities:
            pictures["densities"] = densities
    with suppress(Exception):
        if finding.witness is not None:
            pictures["outputs"] = pictured_outputs(finding.witness.event, *training)
    return pictures


# --- What is worked out on request ---


def _p_value(
    run: FinishedRun, finding: Finding, verdict: Verdict | None
) -> Callable[[], float | None] | None:
    """Computes the p-value of the audit on request; None where there is none."""
    is_decided = verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED)
    if run.certificate_p_value is None or not is_decided or finding.guarantee != "exact":
        return None
    failure = run.settings.failure_probability
    return partial(
        p_value_of_audit,
        run.certificate_p_value,
        failure=failure,
        error_share=run.certificate_share or failure,
        is_refuted=verdict is Verdict.REFUTED,
    )


def p_value_of_audit(
    certificate_p_value: Callable[[], float | None],
    failure: float,
    error_share: float,
    is_refuted: bool,
) -> float | None:
    """The p-value of an audit.

    If the claim holds, it is at most t with probability at most t, for every t.

    A certificate that got a fraction of the audit's failure probability has its p-value divided by
    that fraction: the least of several p-values, each divided so, is still a p-value.

    The bound is slightly coarser than the test, so the p-value might contradict the verdict. It is
    made to agree: raising a p-value is always sound, and a refuted claim is refuted by a test that
    errs with probability at most `failure`, so that its p-value may be lowered to that.

    Args:
        certificate_p_value: that of the deciding certificate, valid at every threshold; may return
            None.
        failure: the failure probability of the audit.
        error_share: the part of it that the certificate was given.
        is_refuted: the verdict.
    """
    unscaled = certificate_p_value()
    if unscaled is None:
        return None
    p_value = min(unscaled * failure / error_share, 1.0)
    return min(p_value, failure) if is_refuted else max(p_value, failure * (1.0 + _JUST_ABOVE))


def _detectable(
    run: FinishedRun, finding: Finding, verdict: Verdict | None
) -> float | Callable[[], float | None] | None:
    """What the audit could have refuted; simulated on request where the method does not know."""
    training = run.training
    task = run.rehearsed_task
    if training is not None and task is not None and verdict is Verdict.NOT_REFUTED:
        left, right = training
        rows = subsample_for_rehearsal(left, right)
        reading = _reading_of(run.proposal)
        if reading is not None:
            # A rehearsal draws the same outputs several times, so that identifiers would repeat and
            # not be noticed. They are left out here, as they were in the audit.
            rows = reading.read(rows)
        return partial(
            _rehearse,
            task=task,
            method=run.settings.method,
            sizes=(len(left), len(right)),
            rows=rows,
            event=None if finding.witness is None else finding.witness.event.contains,
            seed=run.settings.seed,
        )
    if run.question.judged and run.is_only_pair:
        return run.proposal.detectable
    return None


def _detectable_mass(
    run: FinishedRun, finding: Finding, verdict: Verdict | None
) -> Callable[[], float | None] | None:
    """How rare an output of one input alone may be and still be seen; found out on request."""
    training = run.training
    task = run.rehearsed_task
    if training is None or task is None or verdict is not Verdict.NOT_REFUTED:
        return None
    left, right = training
    return partial(
        _rehearse_rare_outputs,
        task=task,
        method=run.settings.method,
        sizes=(len(left), len(right)),
        rows=subsample_for_rehearsal(left, right),
        observed_value=_observed_value(run.question.claim, finding),
        seed=run.settings.seed,
    )


def _observed_value(claim: Claim, finding: Finding) -> float:
    """What the outputs seem to leak: an estimate, from the fresh draws of the deciding event."""
    witness = finding.witness
    if witness is None:
        return finding.lower_bound
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    if not 0 < below.hits <= above.hits < above.trials:
        return finding.lower_bound
    return max(finding.lower_bound, claim.least_value(above.share, below.share))


def subsample_for_rehearsal(left: Outputs, right: Outputs) -> Outputs:
    """A few thousand outputs of both sides, as many of the left as of the right, copied."""
    n_columns = max(
        (len(block.columns) for side in (left, right) for block in side.blocks), default=1
    )
    affordable = _MAX_REHEARSAL_ENTRIES // max(n_columns, 1)
    most = min(_MAX_REHEARSAL_ROWS, max(_MIN_REHEARSAL_ROWS, affordable))
    size = min(len(left), len(right), most)
    evenly_spaced = [
        side.take(np.linspace(0, len(side) - 1, size).astype(np.int64)) for side in (left, right)
    ]
    return concatenate(evenly_spaced)


def _rehearse(
    task: Task, method: Method, *, sizes: tuple[int, int], rows: Outputs, event: Any, seed: int
) -> float | None:
    """The smallest leak that the audit refutes with 90 % power."""
    from epsilometer.auditing.power import Rehearsal  # only needed by those who ask

    rehearsal = Rehearsal(
        task=task, method=method, n_train=sizes, rows=rows, event=event, seed=seed
    )
    return rehearsal.detectable()


def _rehearse_rare_outputs(
    task: Task,
    method: Method,
    *,
    sizes: tuple[int, int],
    rows: Outputs,
    observed_value: float,
    seed: int,
) -> float | None:
    """The least probability of an output of one input alone that is seen with 90 % power."""
    from epsilometer.auditing.rare_outputs import RareOutputs  # only needed by those who ask

    rare = RareOutputs(
        task=task,
        method=method,
        n_train=sizes,
        rows=rows,
        observed_value=observed_value,
        seed=seed,
    )
    return rare.detectable_mass()


# --- The health of the draws ---


def examine_draws(proposal: Proposal, left: Outputs, right: Outputs) -> list[HealthReport]:
    """The checks that need outputs in the order in which they were drawn."""
    reports: list[HealthReport] = []
    reading = _reading_of(proposal)
    if reading is None:
        reports += check_order(left, right)
    else:
        # What no event looks at, such as a row number, may depend on the draws before.
        looked_at = (reading.leave_out(left), reading.leave_out(right))
        reports += check_order(*looked_at)
        reports += health.check_identifiers(reading.identifiers)
    if proposal.event is not None:
        hits = [proposal.event.contains(side) for side in (left, right)]
        pieces = [
            [Counts(int(part.sum()), len(part)) for part in np.array_split(side, _PIECES)]
            for side in hits
        ]
        reports += check_correlation(0, hits[:1]) + check_correlation(1, hits[1:])
        reports += health.check_drift(pieces)
    return reports


def _reading_of(proposal: Proposal) -> TextReading | None:
    """How a proposal reads outputs; None if it takes them as they come, or does not say."""
    partition = getattr(proposal.event or proposal, "partition", None)
    return partition.reading if isinstance(partition, Partition) else None
