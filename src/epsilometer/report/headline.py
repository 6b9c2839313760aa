"""The one line that a failed test is known by."""

from epsilometer.report.formatting import bound_against, figure
from epsilometer.report.wording import mechanism_name, parameter
from epsilometer.result import AuditResult


def headline(result: AuditResult) -> str:
    """Returns what was audited and what came out, e.g. "dp_median: ε ≥ 1.54 > 1".

    Short, because pytest cuts the lines of its summary.
    """
    name = mechanism_name(result)
    claim = result.claim
    if result.is_refuted:
        bound = bound_against(result.lower_bound, claim.value)
        return f"{name}: {parameter(claim)} ≥ {bound} > {figure(claim.value)}"
    if result.blind is not None:
        most = max(result.samples_used)
        claimed = f"{parameter(claim)} = {figure(claim.value)}"
        return f"{name}: {most:,} draws cannot refute {claimed}"
    untrusted = dict.fromkeys(report.name for report in result.health if report.untrusted)
    reasons = f" ({', '.join(untrusted)})" if untrusted else ""
    return f"{name}: {result.verdict}{reasons}, {claim.symbol} = {figure(claim.value)}"
