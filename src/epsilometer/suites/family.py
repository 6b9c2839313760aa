"""Many audits judged together, so that a true claim is rarely called refuted by any of them.

Each audit of a suite has a failure probability of its own. Twenty true claims at 95 % each are all spared with a
probability of only 36 %. A family has one failure probability for all of its claims: Holm's procedure decides which
refutations are strong enough to survive.

Guarantee: with probability at least the family's confidence, no true claim of the family is called refuted: in one
    run, or over all nights if the runs are numbered nights. Exact if each p-value is super-uniform under its true
    claim; the audits may depend on each other in any way, for example through a common seed.

Reference: S. Holm, "A simple sequentially rejective multiple test procedure" (1979).
"""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epsilometer.report.wording import figure, figure_up, percent, plain
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:  # the history stores terms of families, so it imports this module
    from epsilometer.suites.history import Entry, Outcome

# The failure probability of a single audit whose file names none, as in `epsilometer.audit`.
_DEFAULT_CONFIDENCE = 0.95
# The p-value of an audit that gives no evidence against its claim.
_NO_EVIDENCE = 1.0
# An audit that stops early aims at this part of its equal share, so that no rounding keeps it from surviving.
_SAFE_PART = 0.99


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number: an adjusted one of at most α may be rejected at the level α.

    The smallest of m p-values is multiplied by m, the next by m − 1, and so on; none may be smaller than one before.

    Args:
        p_values: in any order, each between 0 and 1.

    Returns:
        The adjusted p-values in the same order.

    Guarantee: rejecting every hypothesis whose adjusted p-value is at most α rejects some true hypothesis with
        probability at most α, if each p-value of a true hypothesis is super-uniform. No independence is needed.
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
    """The share of the failure probability that a night may spend; over all nights, however many, they sum to 1."""
    return 6.0 / (math.pi * night) ** 2


@dataclass(frozen=True, slots=True)
class Terms:
    """What is agreed about a family before anything is drawn.

    Attributes:
        confidence: the probability with which no true claim of the family is called refuted.
        night: the number of the night, counted from 1; None if the confidence is about this run alone.
        seed: from which the audits without a seed of their own take theirs.
    """

    confidence: float
    night: int | None
    seed: int

    @property
    def failure_probability(self) -> float:
        """What this run may spend of the family's failure probability."""
        whole = 1.0 - self.confidence
        return whole if self.night is None else whole * night_share(self.night)

    def settings_for(self, entry: "Entry", size: int) -> dict[str, Any]:
        """The settings with which an entry is audited in this run.

        An audit without a seed takes one that belongs to the run, so that a run that was interrupted resumes with the
        same draws. An audit that stops early goes on until its evidence suffices for an equal share of the failure
        probability. Otherwise it would stop as soon as it is refuted alone, and hardly ever survive.

        Args:
            entry: one audit of the suite.
            size: how many audits may join the family.
        """
        settings = dict(entry.settings)
        if "seed" not in settings and "checkpoint" not in settings:  # a checkpoint keeps a seed of its own
            settings["seed"] = _seed_of(entry.name, self.seed)
        stops_early = settings.get("stop_early") is True or settings.get("method") == "sequential"
        own_confidence = settings.get("confidence", _DEFAULT_CONFIDENCE)
        if may_join(entry) and stops_early and isinstance(own_confidence, int | float):
            equal_share = self.failure_probability / size
            settings["confidence"] = max(own_confidence, 1.0 - _SAFE_PART * equal_share)
        return settings


def _seed_of(name: str, seed: int) -> int:
    """The seed of an audit in a run; different audits have different ones."""
    digest = hashlib.blake2b(f"{seed}\0{name}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def may_join(entry: "Entry") -> bool:
    """Whether an entry makes a claim that is not expected to be refuted; known before anything is drawn."""
    return entry.expected is not Verdict.REFUTED and "notion" not in entry.settings


def family_digest(entries: Sequence["Entry"]) -> str:
    """A digest of all audits of a suite, their settings and their code."""
    digest = hashlib.sha256()
    for entry in entries:
        expected = "" if entry.expected is None else str(entry.expected)
        digest.update(f"{entry.name}\0{entry.digest}\0{expected}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()


def repeated_draws(entries: Sequence["Entry"]) -> dict[str, str]:
    """The audits that look at the same draws every night, by name, with the reason."""
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
        p_value: of its claim, 1 where the audit gives no evidence.
        adjusted: the p-value after Holm's adjustment.
        survives: whether the audit's refutation survives.
        note: what else there is to say about the p-value, such as why it is 1; often empty.
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
        apart: by name, why an audit is not in the family.
        refuted_alone: names of refuted claims, in the family or apart, whose refutation does not count.
        repeated: by name, why an audit saw the same draws as on other nights; empty unless nights are counted.
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

    def word(self, outcome: "Outcome") -> str:
        """The verdict in the family."""
        return "refuted alone" if outcome.name in self.refuted_alone else outcome.word

    def status(self, entry: "Entry", outcome: "Outcome") -> int:
        """The exit status of one audit: a refutation that does not survive is none."""
        return 0 if outcome.name in self.refuted_alone else outcome.status(entry.expected)

    def remark(self, name: str) -> str:
        """What the family says about one audit, short."""
        member = self.members.get(name)
        if member is None:
            return f"apart: {self.apart[name]}"
        note = f", {member.note}" if member.note else ""
        return f"adjusted p {_p_in_words(member.adjusted)}{note}"

    def sentences(self) -> list[str]:
        """The family in plain words: what is promised, what survives, and what stands apart."""
        terms = self.terms
        promise = (
            f"With probability at least {percent(terms.confidence)} no true claim of this family is called refuted"
        )
        if terms.night is None:
            scope = f"{promise} in this run."
        else:
            spent = figure_up(terms.failure_probability, 3)
            scope = f"{promise} over all nights; night {terms.night} may spend {spent} of the failure probability."
        lines = [scope, f"{_audits(self.size)} in the family, judged by Holm's procedure. {self._survivors_in_words()}"]
        if self.refuted_alone:
            names = ", ".join(map(plain, self.refuted_alone))
            lines.append(f"Refuted alone, which does not count: {names}.")
        lines += [f"Apart from the family: {plain(name)} ({why})." for name, why in self.apart.items()]
        lines += [
            f"Warning: {plain(name)} sees the same draws every night ({why}), which is no new evidence."
            for name, why in self.repeated.items()
        ]
        return lines

    def _survivors_in_words(self) -> str:
        if not self.survivors:
            return "No claim is refuted."
        return f"Refuted: {', '.join(map(plain, self.survivors))}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
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


def _audits(number: int) -> str:
    return "1 audit is" if number == 1 else f"{number} audits are"


def _p_in_words(p_value: float) -> str:
    return "1" if p_value >= 1.0 else figure_up(p_value, 2)


def judge_family(
    entries: Sequence["Entry"],
    outcomes: Mapping[str, "Outcome"],
    terms: Terms,
    begun_again: Collection[str] = (),
) -> Family:
    """Decides which refutations of a run survive.

    An audit that failed or whose draws cannot be trusted counts with a p-value of 1: if it were left out, the family
    would be smaller and the others would survive more easily, because of what was drawn. Left out is only what was
    known to be outside before anything was drawn: audits whose refutation is expected, measurements, and
    audits whose method gives no exact guarantee.

    Args:
        entries: the suite.
        outcomes: by name, one for every entry.
        terms: agreed before anything was drawn.
        begun_again: names of audits that were begun in this run, interrupted, and begun again.
    """
    apart: dict[str, str] = {}
    p_values: dict[str, float] = {}
    notes: dict[str, str] = {}
    for entry in entries:
        result = outcomes[entry.name].result
        reason = _reason_apart(entry, result)
        if reason:
            apart[entry.name] = reason
            continue
        p_value, note = _evidence(result, is_begun_again=entry.name in begun_again)
        p_values[entry.name] = p_value
        notes[entry.name] = note
    refuted = {entry.name for entry in entries if _is_refuted(outcomes[entry.name].result)}
    members: dict[str, Member] = {}
    for name, adjusted in zip(p_values, holm_adjusted(list(p_values.values())), strict=True):
        survives = name in refuted and adjusted <= terms.failure_probability
        members[name] = Member(name, p_values[name], adjusted, survives, notes[name])
    alone = []
    for entry in entries:
        survives = entry.name in members and members[entry.name].survives
        if entry.name in refuted and not survives and entry.expected is not Verdict.REFUTED:
            alone.append(entry.name)
    repeated = {} if terms.night is None else repeated_draws(entries)
    return Family(terms=terms, members=members, apart=apart, refuted_alone=tuple(alone), repeated=repeated)


def _is_refuted(result: AuditResult | None) -> bool:
    return result is not None and result.is_refuted


def _reason_apart(entry: "Entry", result: AuditResult | None) -> str:
    """Why an audit is not in the family; empty if it is."""
    if entry.expected is Verdict.REFUTED:
        return "its refutation is expected"
    if "notion" in entry.settings:
        return "it measures, and claims nothing"
    if result is not None and result.guarantee != "exact":
        return f"its guarantee is not exact but {plain(result.guarantee, 120)}"
    return ""


def _evidence(result: AuditResult | None, is_begun_again: bool) -> tuple[float, str]:
    """The p-value with which an audit counts, and what else there is to say about it.

    An audit that was begun again has had a second chance unless its draws were the same, which is only known if
    the mechanism takes its randomness from the seed.
    """
    if result is None:
        return _NO_EVIDENCE, "the audit could not be done"
    if result.verdict is Verdict.INCONCLUSIVE:
        return _NO_EVIDENCE, "its draws cannot be trusted"
    if is_begun_again and not result.settings.get("seeded_mechanism"):
        return _NO_EVIDENCE, "it was interrupted and drew anew; the next run judges it"
    if result.p_value is not None:
        return result.p_value, ""
    if result.is_refuted:  # a true claim is refuted with no more than this probability
        return 1.0 - result.confidence, f"refuted at {figure(1.0 - result.confidence)}, and no p-value is known"
    return _NO_EVIDENCE, "no p-value is known"
