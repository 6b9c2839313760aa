"""Many audits judged together, so that a true claim is rarely called refuted by any of them.

Each audit of a suite has a failure probability of its own. Twenty true claims at 95 % each are all
spared with a probability of only 36 %. A family has one failure probability for all of its claims:
Holm's procedure decides which refutations are strong enough to survive.

Guarantee: with probability at least the family's confidence, no true claim of the family is called
    refuted: in one run, or over all nights if the runs are numbered nights. Exact if each p-value
    is super-uniform under its true claim; the audits may depend on each other in any way, for
    example through a common seed.

Reference: S. Holm, "A simple sequentially rejective multiple test procedure" (1979).
"""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from epsilometer.report.formatting import figure, figure_up, percent, plain
from epsilometer.result import AuditResult, Verdict
from epsilometer.suites.outcomes import Entry, Outcome

# The confidence of a single audit whose settings name none, as in `epsilometer.audit`.
_DEFAULT_CONFIDENCE = 0.95
# The p-value of an audit that gives no evidence against its claim.
_NO_EVIDENCE = 1.0
# An audit that stops early aims at this fraction of its equal share of the failure probability, so
# that no rounding keeps its refutation from surviving.
_FRACTION_OF_EQUAL_SHARE = 0.99


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number, by Holm's procedure.

    A hypothesis may be rejected at the level α if its adjusted p-value is at most α. The smallest
    of m p-values is multiplied by m, the next by m − 1, and so on; no adjusted p-value may be
    smaller than the one before it.

    Args:
        p_values: in any order, each between 0 and 1.

    Returns:
        The adjusted p-values in the same order.

    Guarantee: rejecting every hypothesis whose adjusted p-value is at most α rejects some true
        hypothesis with probability at most α, if each p-value of a true hypothesis is
        super-uniform. No independence is needed.
    """
    adjusted = [0.0] * len(p_values)
    largest_so_far = 0.0
    ascending = sorted(range(len(p_values)), key=lambda position: p_values[position])
    for rank, position in enumerate(ascending):
        n_remaining = len(p_values) - rank
        largest_so_far = max(largest_so_far, n_remaining * p_values[position])
        adjusted[position] = min(1.0, largest_so_far)
    return adjusted


def night_share(night: int) -> float:
    """Returns the fraction of the failure probability that a night may spend.

    The fractions of all nights, however many there are, sum to 1.

    Args:
        night: counted from 1.
    """
    return 6.0 / (math.pi * night) ** 2


@dataclass(frozen=True, slots=True)
class Terms:
    """What is agreed about a family before anything is drawn.

    Attributes:
        confidence: the probability with which no true claim of the family is called refuted.
        night: the number of the night, counted from 1; None if the confidence is about this run
            alone.
        seed: the seed from which the seeds of all audits without a seed of their own are derived.
    """

    confidence: float
    night: int | None
    seed: int

    @property
    def failure_probability(self) -> float:
        """The part of the family's failure probability that this run may spend."""
        over_all_nights = 1.0 - self.confidence
        if self.night is None:
            return over_all_nights
        return over_all_nights * night_share(self.night)

    def settings_for(self, entry: Entry, size: int) -> dict[str, Any]:
        """Returns the settings with which an entry is audited in this run.

        An audit without a seed takes one that belongs to the run, so that a run that was
        interrupted resumes with the same draws. An audit that stops early goes on until its
        evidence suffices for an equal share of the failure probability. Otherwise it would stop as
        soon as it is refuted alone, and its refutation would hardly ever survive.

        Args:
            entry: one audit of the suite.
            size: how many audits may join the family.
        """
        settings = dict(entry.settings)
        # A checkpoint keeps a seed of its own.
        if "seed" not in settings and "checkpoint" not in settings:
            settings["seed"] = _seed_of(entry.name, self.seed)
        stops_early = settings.get("stop_early") is True or settings.get("method") == "sequential"
        confidence = settings.get("confidence", _DEFAULT_CONFIDENCE)
        is_number = isinstance(confidence, int | float)
        if may_join(entry) and stops_early and is_number:
            equal_share = self.failure_probability / size
            needed_confidence = 1.0 - _FRACTION_OF_EQUAL_SHARE * equal_share
            settings["confidence"] = max(confidence, needed_confidence)
        return settings


def _seed_of(name: str, run_seed: int) -> int:
    """Returns the seed of an audit in a run; different audits have different ones."""
    text = f"{run_seed}\0{name}"
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def may_join(entry: Entry) -> bool:
    """Whether an entry makes a claim that is not expected to be refuted.

    This is known before anything is drawn.
    """
    return entry.expected is not Verdict.REFUTED and "notion" not in entry.settings


def family_digest(entries: Sequence[Entry]) -> str:
    """Returns a digest of all audits of a suite, their settings and their code."""
    digest = hashlib.sha256()
    for entry in entries:
        expected = "" if entry.expected is None else str(entry.expected)
        line = f"{entry.name}\0{entry.digest}\0{expected}\n"
        digest.update(line.encode(errors="surrogatepass"))
    return digest.hexdigest()


def repeated_draws(entries: Sequence[Entry]) -> dict[str, str]:
    """Returns the audits that see the same draws every night: the reason, by name."""
    reasons = {}
    for entry in entries:
        if not may_join(entry):
            continue
        if "seed" in entry.settings:
            reasons[entry.name] = f"seed = {plain(entry.settings['seed'], 30)} is fixed"
        elif "checkpoint" in entry.settings:
            reasons[entry.name] = "its checkpoint keeps the seed"
        elif str(entry.settings.get("mechanism", "")).startswith("recording:"):
            reasons[entry.name] = "it reads a recording"
    return reasons


@dataclass(frozen=True, slots=True)
class Member:
    """An audit of a family.

    Attributes:
        name: of the entry.
        p_value: of its claim; 1 if the audit gives no evidence.
        adjusted: the p-value after Holm's adjustment.
        survives: whether the claim is refuted and the refutation survives.
        note: a remark on the p-value, such as why it is 1; often empty.
    """

    name: str
    p_value: float
    adjusted: float
    survives: bool
    note: str


@dataclass(frozen=True, slots=True)
class Family:
    """The audits of a run that are judged together, and those apart from them.

    Attributes:
        terms: agreed before anything was drawn.
        members: by name, in the order of the suite.
        apart: by name, the reason why an audit is not in the family.
        refuted_alone: names of refuted claims, in the family or apart, whose refutation does not
            count.
        repeated: by name, the reason why an audit saw the same draws as on other nights; empty
            unless nights are counted.
    """

    terms: Terms
    members: Mapping[str, Member]
    apart: Mapping[str, str]
    refuted_alone: tuple[str, ...]
    repeated: Mapping[str, str]

    @property
    def size(self) -> int:
        """How many audits are judged together."""
        return len(self.members)

    @property
    def survivors(self) -> tuple[str, ...]:
        """The names of the claims that the family calls refuted."""
        return tuple(member.name for member in self.members.values() if member.survives)

    def word(self, outcome: Outcome) -> str:
        """Returns the verdict on an audit as the family sees it."""
        if outcome.name in self.refuted_alone:
            return "refuted alone"
        return outcome.word

    def status(self, entry: Entry, outcome: Outcome) -> int:
        """Returns the exit status of one audit; a refutation that does not survive has status 0."""
        if outcome.name in self.refuted_alone:
            return 0
        return outcome.status(entry.expected, fail_blind=entry.fail_blind)

    def remark(self, name: str) -> str:
        """Returns a short text about one audit in the family."""
        member = self.members.get(name)
        if member is None:
            return f"apart: {self.apart[name]}"
        note = f", {member.note}" if member.note else ""
        return f"adjusted p {_p_value_text(member.adjusted)}{note}"

    def sentences(self) -> list[str]:
        """Describes the family in sentences: the promise, what survives, and what stands apart."""
        terms = self.terms
        promise = (
            f"With probability at least {percent(terms.confidence)} no true claim of this family "
            "is called refuted"
        )
        if terms.night is None:
            scope = "in this run."
        else:
            spent = figure_up(terms.failure_probability, 3)
            scope = (
                f"over all nights; night {terms.night} may spend {spent} of the failure "
                "probability."
            )
        n_audits = "1 audit is" if self.size == 1 else f"{self.size} audits are"
        refuted = "No claim is refuted."
        if self.survivors:
            refuted = f"Refuted: {', '.join(map(plain, self.survivors))}."
        lines = [
            f"{promise} {scope}",
            f"{n_audits} in the family, judged by Holm's procedure. {refuted}",
        ]
        if self.refuted_alone:
            names = ", ".join(map(plain, self.refuted_alone))
            lines.append(f"Refuted alone, which does not count: {names}.")
        for name, reason in self.apart.items():
            lines.append(f"Apart from the family: {plain(name)} ({reason}).")
        for name, reason in self.repeated.items():
            lines.append(
                f"Warning: {plain(name)} sees the same draws every night ({reason}), "
                "which is no new evidence."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Returns the family as plain data."""
        members = [
            {
                "name": member.name,
                "p_value": member.p_value,
                "adjusted_p_value": member.adjusted,
                "survives": member.survives,
                "note": member.note,
            }
            for member in self.members.values()
        ]
        return {
            "confidence": self.terms.confidence,
            "failure_probability": self.terms.failure_probability,
            "night": self.terms.night,
            "seed": self.terms.seed,
            "size": self.size,
            "members": members,
            "survivors": list(self.survivors),
            "refuted_alone": list(self.refuted_alone),
            "apart": [{"name": name, "why": why} for name, why in self.apart.items()],
            "repeated_draws": [{"name": name, "why": why} for name, why in self.repeated.items()],
        }


def _p_value_text(p_value: float) -> str:
    return "1" if p_value >= 1.0 else figure_up(p_value, 2)


def judge_family(
    entries: Sequence[Entry],
    outcomes: Mapping[str, Outcome],
    terms: Terms,
    begun_again: Collection[str] = (),
) -> Family:
    """Decides which refutations of a run survive.

    Only what was known to be outside before anything was drawn is left out of the family: audits
    whose refutation is expected, measurements, and audits whose method gives no exact guarantee.
    An audit that failed or whose draws cannot be trusted counts with a p-value of 1. If it were
    left out, the family would be smaller and the other refutations would survive more easily,
    because of what was drawn.

    Args:
        entries: the suite.
        outcomes: by name, one for every entry.
        terms: agreed before anything was drawn.
        begun_again: names of the audits that were started in this run, interrupted, and started
            again.
    """
    apart: dict[str, str] = {}
    evidence: dict[str, _Evidence] = {}
    for entry in entries:
        result = outcomes[entry.name].result
        reason = _reason_apart(entry, result)
        if reason:
            apart[entry.name] = reason
        else:
            is_begun_again = entry.name in begun_again
            evidence[entry.name] = _evidence_of(result, is_begun_again=is_begun_again)

    refuted = {entry.name for entry in entries if _is_refuted(outcomes[entry.name].result)}
    adjusted_p_values = holm_adjusted([weighed.p_value for weighed in evidence.values()])
    members: dict[str, Member] = {}
    for name, adjusted in zip(evidence, adjusted_p_values, strict=True):
        members[name] = Member(
            name=name,
            p_value=evidence[name].p_value,
            adjusted=adjusted,
            survives=name in refuted and adjusted <= terms.failure_probability,
            note=evidence[name].note,
        )

    refuted_alone = []
    for entry in entries:
        survives = entry.name in members and members[entry.name].survives
        is_expected = entry.expected is Verdict.REFUTED
        if entry.name in refuted and not survives and not is_expected:
            refuted_alone.append(entry.name)

    return Family(
        terms=terms,
        members=members,
        apart=apart,
        refuted_alone=tuple(refuted_alone),
        repeated={} if terms.night is None else repeated_draws(entries),
    )


def _is_refuted(result: AuditResult | None) -> bool:
    return result is not None and result.is_refuted


def _reason_apart(entry: Entry, result: AuditResult | None) -> str:
    """Returns the reason why an audit is not in the family; empty if it is."""
    if entry.expected is Verdict.REFUTED:
        return "its refutation is expected"
    if "notion" in entry.settings:
        return "it measures, and claims nothing"
    if result is not None and result.guarantee != "exact":
        return f"its guarantee is not exact but {plain(result.guarantee, 120)}"
    return ""


class _Evidence(NamedTuple):
    """The p-value with which an audit counts, and a note about it, as in `Member`."""

    p_value: float
    note: str


def _evidence_of(result: AuditResult | None, *, is_begun_again: bool) -> _Evidence:
    """Returns the evidence of an audit against its claim.

    An audit that was started again has had a second chance unless its draws were the same, which
    is only known if the mechanism takes its randomness from the seed.
    """
    if result is None:
        return _Evidence(_NO_EVIDENCE, "the audit could not be done")
    if result.verdict is Verdict.INCONCLUSIVE:
        return _Evidence(_NO_EVIDENCE, "its draws cannot be trusted")
    if is_begun_again and not result.settings.get("seeded_mechanism"):
        return _Evidence(_NO_EVIDENCE, "it was interrupted and drew anew; the next run judges it")
    if result.p_value is not None:
        return _Evidence(result.p_value, "")
    if result.is_refuted:
        # A true claim is refuted with no more than this probability.
        level = 1.0 - result.confidence
        return _Evidence(level, f"refuted at {figure(level)}, and no p-value is known")
    return _Evidence(_NO_EVIDENCE, "no p-value is known")
