"""From a proof and the health of its draws to a result, with a few kilobytes from which its loss can be drawn."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.claims import ApproxDP, Claim, GaussianDP
from epsilometer.engine import health
from epsilometer.environment import describe_environment
from epsilometer.errors import EpsilometerError
from epsilometer.inputs import Pair
from epsilometer.methods import Proposal
from epsilometer.outputs import Numbers, Outputs
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


def bound_of(proposal: Proposal, tallies: tuple[Any, Any], pair: Pair, share: float, failure: float) -> float:
    """The bound at another failure probability, of which the certificate gets a share."""
    return proposal.certify(*tallies, pair, share * failure).lower_bound


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


# A p-value is looked for between these normal quantiles: beyond a probability of 0.5 the score tests turn round, and
# below 1e-300 floats end. It is found to this distance, which is a percent or two of the probability.
_QUANTILES, _CLOSE = (-37.0, 0.0), 2e-3


def least_failure(bound_at: Callable[[float], float], claimed: float, failure: float, bound: float) -> float | None:
    """The p-value of a certificate: the least failure probability at which its bound is above the claim.

    The bound is nearly a straight line over the normal quantile of the failure probability, so that few steps
    find the crossing. What is returned was seen to refute, and is consistent with the verdict.

    Args:
        bound_at: the certified bound at a failure probability.
        claimed: the claimed value.
        failure: the failure probability of the audit.
        bound: the bound that it certified.

    Returns:
        1 if not even a failure probability of 0.5 refutes; None if the certificate has no other confidence.
    """
    from scipy.optimize import brentq  # slow to import, and only needed by those who ask

    start = float(ndtri(failure))
    far = _QUANTILES[0] if bound > claimed else max(_QUANTILES[1], start)
    seen = {start: bound - claimed}

    def height(quantile: float) -> float:
        if quantile not in seen:
            seen[quantile] = bound_at(float(ndtr(quantile))) - claimed
        # A bound of exactly the claim does not refute it, and a root finder would stop there.
        return seen[quantile] or -1e-300

    try:
        ends = sorted((start, far))
        if height(ends[0]) > 0.0:  # even at the lowest
            return float(ndtr(ends[0]))
        if height(ends[1]) < 0.0:
            return 1.0
        root = brentq(height, *ends, xtol=_CLOSE)
        height(min(root + 2.0 * _CLOSE, ends[1]))
    except EpsilometerError:
        return None
    return float(ndtr(min(quantile for quantile, above in seen.items() if above > 0.0)))


def conclude(
    question: Question,
    settings: Settings,
    proposal: Proposal,
    findings: Sequence[Finding],
    reports: Sequence[HealthReport],
    used: Sequence[int],
    began: float,
    training: tuple[Outputs, Outputs] | None = None,
    bound_at: Callable[[float], float] | None = None,
) -> AuditResult:
    """The result of an audit.

    Args:
        training: draws that leave their shape in it, for a picture.
        bound_at: the deciding bound at another failure probability, for a p-value.
    """
    finding, *beside = findings
    reports = without(reports, settings.suppressed)
    try:
        densities = None if training is None else binned_densities(*training)
    except Exception:  # a picture that cannot be drawn must never cost a finished answer
        densities = None
    if densities is not None:
        finding = replace(finding, details={**finding.details, "densities": densities})
    judged = question.judged
    verdict = judge(question.claim, finding, reports) if judged else None
    p_value: Any = None  # or a function that is called when it is asked for
    if bound_at is not None and verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED):
        p_value = partial(least_failure, bound_at, question.claim.value, 1.0 - settings.confidence, finding.lower_bound)
    return AuditResult(
        verdict=verdict,
        claim=question.claim,
        confidence=settings.confidence,
        findings=(finding, *beside, *(_implied(finding) if isinstance(question.claim, GaussianDP) else ())),
        samples_used=(used[0], used[1]),
        # Few methods know it themselves; the loops rehearse the others (`epsilometer.auditing.power`).
        detectable=proposal.detectable if judged and settings.record.get("pairs", 1) == 1 else None,
        health=tuple(reports),
        settings=settings.record,
        environment=describe_environment(),
        seconds=time.perf_counter() - began,
        p_value=p_value,
    )


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


# Enough for the eye; as JSON about 1 kB per side.
BINS = 96
# Outcomes beyond the most frequent ones are left out of the picture.
_MOST_ATOMS = 32
# Draws per side that are looked at: more would not change the picture.
_MOST_ROWS = 40_000
# A value seen at least this often is shown on its own.
_REPEATS = 5
# The bins cover all but this share of the draws at each end.
_TAIL = 0.002


def binned_densities(left: Outputs, right: Outputs) -> dict[str, Any] | None:
    """Counts of both sides in bins and of repeated values, for outputs that are one number or one name each.

    Returns:
        Plain data: `n` (draws of left and right), `atoms` (values or names that repeat) with `left_atoms` and
        `right_atoms`, and, where something varies, `low`, `high`, `left`, `right` (counts in even bins), `bandwidth`.
        None for outputs of several dimensions or shapes.
    """
    left, right = (side.take(slice(0, _MOST_ROWS)) for side in (left, right))
    shapes = {block.shape for side in (left, right) for block in side.blocks if block.size}
    if len(shapes) != 1 or not len(left) or not len(right) or len(left.blocks[0].columns) != 1:
        return None
    data: dict[str, Any] = {"n": [len(left), len(right)]}
    columns = [side.blocks[0].columns[0] for side in (left, right)]
    if not all(isinstance(column, Numbers) and column.values.dtype.kind == "f" for column in columns):
        return data | _atoms_of(left, right)
    values = [np.asarray(column.values, np.float64) for column in columns if isinstance(column, Numbers)]
    repeated = _repeated(np.concatenate(values))
    alone = [np.isin(side, repeated) for side in values] if len(repeated) else None
    data |= {"atoms": repeated.tolist()}
    for name, side in zip(("left_atoms", "right_atoms"), values, strict=True):
        data[name] = [int(np.count_nonzero(side == atom)) for atom in repeated]
    rest = values if alone is None else [side[~mask] for side, mask in zip(values, alone, strict=True)]
    return data | _bins_of([side[np.isfinite(side)] for side in rest])


def _atoms_of(left: Outputs, right: Outputs) -> dict[str, Any]:
    from epsilometer.methods.published.local.samples import count_outcomes  # not needed for numbers

    outcomes = count_outcomes(left, right)
    total = outcomes.left + outcomes.right
    kept = np.sort(np.argsort(-total, kind="stable")[:_MOST_ATOMS])
    if (numbers := outcomes.numbers()) is not None:
        kept = kept[np.argsort(numbers[kept], kind="stable")]
    return {
        "atoms": [outcomes.value(int(number)) for number in kept],
        "left_atoms": outcomes.left[kept].tolist(),
        "right_atoms": outcomes.right[kept].tolist(),
    }


def _repeated(values: Floats) -> Floats:
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_MOST_ATOMS]
    return np.sort(distinct[most[counts[most] >= _REPEATS]])


def _bins_of(sides: list[Floats]) -> dict[str, Any]:
    if min(len(side) for side in sides) < 2 * _REPEATS:
        return {}
    ends = [np.quantile(side, [_TAIL, 1.0 - _TAIL]) for side in sides]
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    if not np.finfo(np.float64).tiny < (high - low) / BINS < np.inf:  # equal, or beyond what floats can divide
        return {}
    counts, widths = [], []
    for side in sides:
        # Unlike numpy's histogram, this works even with fewer floats than bins between the ends.
        inside = side[(side >= low) & (side <= high)]
        places = np.minimum(((inside - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
        counts.append(np.bincount(places, minlength=BINS).tolist())
        # Silverman's rule of thumb, as `bw.nrd0` of R has it: 0.9 · spread · n^(−1/5).
        quartiles = np.quantile(side, [0.25, 0.75])
        with np.errstate(over="ignore", invalid="ignore"):  # a single 1e300 has an infinite variance
            deviation = float(side.std(ddof=1))
        spread = min(deviation, float(quartiles[1] - quartiles[0]) / 1.34) or deviation or abs(float(side[0])) or 1.0
        widths.append(float(0.9 * spread * len(side) ** -0.2))
    return {"low": low, "high": high, "left": counts[0], "right": counts[1], "bandwidth": min(widths)}
