"""What a result says, in sentences; every way of showing it takes them from here.

No sentence calls a mechanism private: an audit can only fail to show the opposite.
"""

from __future__ import annotations

import math
import shlex

from epsilometer.claims import Claim
from epsilometer.report.showing import (
    MOST_EVENT,
    bound_against,
    clean,
    cut,
    duration,
    figure,
    figure_down,
    figure_up,
    percent,
    plain,
    shown,
)
from epsilometer.result import AuditResult, Finding, Verdict, Witness

# How `compare` names what it audits.
RECORDED = "two recorded samples"
_PROMISES = {
    "pure": "ε-differential privacy with ε = {value}",
    "approx": "(ε, δ)-differential privacy with ε = {value} and δ = {delta}",
    "approx-delta": "(ε, δ)-differential privacy with ε = {epsilon} and δ = {value}",
    "renyi": "Rényi differential privacy of order {order} with ε = {value}",
    "zcdp": "zero-concentrated differential privacy with ρ = {value}",
    "gaussian": "Gaussian differential privacy with μ = {value}",
    "tradeoff": "f-differential privacy with the given trade-off curve",
}
_GUARANTEES = {
    "exact": "exact: it holds for any number of draws and any law of the outputs, as long as draws are independent",
    "asymptotic": "asymptotic: it holds approximately, the better the more draws",
}


def headline(result: AuditResult) -> str:
    """The verdict in capitals."""
    return "MEASURED" if result.verdict is None else result.verdict.name.replace("_", " ")


def mechanism_name(result: AuditResult) -> str:
    """What was audited."""
    if is_recorded(result):
        return "the recorded mechanism"
    return plain(result.settings.get("target") or result.settings.get("mechanism") or "the mechanism")


def is_recorded(result: AuditResult) -> bool:
    """Whether two recordings were compared, so that there is nothing to be run again."""
    return result.settings.get("mechanism") == RECORDED


def is_unproved(result: AuditResult) -> bool:
    """Whether the deciding figure is an estimate that nothing guarantees."""
    return result.guarantee.startswith("none")


def promise(claim: Claim) -> str:
    """The claim in words, e.g. "ε-differential privacy with ε = 1"."""
    fixed = {name: figure(value) for name, value in claim.fixed().items()}
    text = _PROMISES.get(claim.notion, plain(claim.describe()))
    return text.format_map({"value": figure(claim.value), **fixed})


def parameter(claim: Claim) -> str:
    """What is bounded, e.g. "ε at δ = 1e-05"."""
    names = {"delta": "δ = ", "epsilon": "ε = ", "order": "order "}
    fixed = " and ".join(f"{names.get(name, name + ' = ')}{figure(value)}" for name, value in claim.fixed().items())
    return f"{claim.symbol} at {fixed}" if fixed else claim.symbol


def verdict_sentence(result: AuditResult) -> str:
    """One sentence that needs no statistics to be understood."""
    name, promised = mechanism_name(result), promise(result.claim)
    if is_unproved(result):
        return f"Nothing is proved about {name}: the figures come without a guarantee."
    if result.verdict is Verdict.REFUTED:
        return f"{name} violates {promised}."
    if result.verdict is Verdict.NOT_REFUTED:
        return f"No violation of {promised} was found in {name}."
    if result.verdict is Verdict.INCONCLUSIVE:
        return f"The draws of {name} cannot be trusted, so nothing is said about {promised}."
    return f"{name} loses at least this much: {parameter(result.claim)} is {figure_down(result.lower_bound)} or more."


def bound_sentence(result: AuditResult) -> str:
    """The certified bound against the claim."""
    claim, bound = result.claim, result.lower_bound
    start = f"{parameter(claim)} is at least {bound_against(bound, claim.value)}"
    if is_unproved(result):
        return f"none; {parameter(claim)} is estimated at {figure_down(bound)} or more."
    if result.verdict is None:
        return f"{start}."
    if claim.notion == "tradeoff":
        return f"{start} above what the claimed curve allows."
    if bound <= claim.value:
        return f"{start}; the claim allows up to {figure(claim.value)}."
    return f"{start}, but the claim allows only {figure(claim.value)}."


def beside_sentence(finding: Finding) -> str:
    """A finding that did not decide, in one sentence."""
    bound = f"{parameter(finding.claim)} is at least {figure_down(finding.lower_bound)}"
    claimed = f" (claimed {figure(finding.claim.value)})" if finding.claim.value > 0.0 else ""
    what = "; it does not decide the verdict" if finding.method == "bits" else ""
    return f"{bound}{claimed}, {plain(finding.guarantee, 200)}, {percent(finding.confidence)}{what}."


def confidence_sentence(result: AuditResult) -> str:
    """With which confidence the bound holds, and what kind of guarantee that is."""
    kind = _GUARANTEES.get(result.guarantee, plain(result.guarantee, 300))
    return f"{percent(result.confidence)}. The guarantee is {kind}."


def meaning_sentence(result: AuditResult) -> str:
    """What may be concluded, and what not."""
    failure = percent(1.0 - result.confidence)
    if result.verdict is Verdict.REFUTED:
        return f"If the claim were true, an audit would say this with a probability of at most {failure}."
    if result.verdict is Verdict.NOT_REFUTED:
        return "This does not prove the claim: other inputs or rarer events may reveal more."
    if is_unproved(result):
        return "An estimate decides nothing. Its guarantee, above, says what is missing."
    if result.verdict is Verdict.INCONCLUSIVE:
        return "Look at the remarks on the draws first; the figures assume independent draws."
    return "The true value may be larger: on other inputs, or through rarer events."


def detectable_sentence(result: AuditResult) -> str | None:
    """What a run that did not refute would have refuted, if that can be told."""
    if result.verdict is not Verdict.NOT_REFUTED or result.detectable is None:
        return None
    if math.isinf(result.detectable):
        return "this run could hardly have refuted anything: take more draws"
    least = figure_up(result.detectable)
    return (
        f"a true {parameter(result.claim)} of {least} or more would have been refuted with 90% power on this pair, "
        "by rehearsals on outputs like these"
    )


def event_text(witness: Witness) -> str:
    """The event in words, cut."""
    return cut(clean(witness.event.describe()[: MOST_EVENT + 1]), MOST_EVENT)


def count_sentence(witness: Witness, side: int) -> str:
    """How often the event happened on one side."""
    counts = witness.counts[side]
    return f"{counts.hits:,} of {counts.trials:,} draws ({percent(counts.share)})"


def certified_sentence(witness: Witness, side: int) -> str:
    """What the counts of one side prove by themselves."""
    likelier = int(witness.flipped)
    if side == likelier:
        return f"probability at least {figure_down(witness.p_lower)}"
    return f"probability at most {figure_up(witness.q_upper)}"


def input_text(result: AuditResult, witness: Witness, side: int) -> str:
    """The input of one side, cut; of a recording the file, if it is known."""
    file = result.settings.get(("left", "right")[side]) if is_recorded(result) else None
    return f"recorded in {plain(file, 200)}" if file else shown(witness.pair.side(side))


def effort_sentence(result: AuditResult) -> str:
    """What it cost."""
    left, right = result.samples_used
    pairs = result.settings.get("pairs", 1)
    over = f" over {plain(pairs)} pairs of inputs" if pairs != 1 else ""
    return f"{left:,} left, {right:,} right{over}, in {duration(result.seconds)}"


def health_lines(result: AuditResult) -> list[str]:
    """The remarks of the health checks."""
    return [f"{plain(report.name)}: {plain(report.message, 300)}" for report in result.health]


def can_replay(result: AuditResult) -> bool:
    """Whether there is an event to count again, and a mechanism that can be run again."""
    return result.witness is not None and not is_recorded(result)


def replay_hint(result: AuditResult) -> str | None:
    """How to certify the same event again on fresh draws: a command, or Python where the command is not known."""
    if not can_replay(result):
        return None
    target = result.settings.get("target")
    if not target:
        return "epsilometer.replay(result, mechanism)"
    batch = " --batch" if result.settings.get("batch") else ""
    return f"epsilometer replay result.json {shlex.quote(plain(target, 200))}{batch}"


def repeat_sentence(result: AuditResult) -> str:
    """Whether the same seed gives the same numbers."""
    seed = plain(result.settings.get("seed"))
    if result.settings.get("seeded_mechanism") is False:
        return f"seed {seed}; the mechanism draws its own randomness, so the figures will vary"
    return f"seed {seed} gives the same figures again"
