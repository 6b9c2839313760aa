"""What a result says, in sentences. All reports take their words here."""

import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from epsilometer.claims import ApproxDP, Claim, GaussianDP
from epsilometer.guarantees import Guarantee, GuaranteeKind, parse_guarantee
from epsilometer.one_line import clean, cut
from epsilometer.outputs import Event
from epsilometer.redaction import HIDDEN
from epsilometer.report.formatting import (
    MAX_EVENT_CHARACTERS,
    MAX_VALUE_CHARACTERS,
    bound_against,
    display_value,
    duration,
    figure,
    figure_down,
    figure_up,
    percent,
    plain,
)
from epsilometer.report.reservations import names_in, recorded_rows, reservations
from epsilometer.result import AuditResult, Finding, Verdict, Witness

SIDES = ("left", "right")
# What results of `compare` call their mechanism: the mark of those that do not record their kind.
COMPARED_SAMPLES = "two recorded samples"
_PROMISES = {
    "pure": "ε-differential privacy with ε = {value}",
    "approx": "(ε, δ)-differential privacy with ε = {value} and δ = {delta}",
    "approx-delta": "(ε, δ)-differential privacy with ε = {epsilon} and δ = {value}",
    "renyi": "Rényi differential privacy of order {order} with ε = {value}",
    "zcdp": "zero-concentrated differential privacy with ρ = {value}",
    "gaussian": "Gaussian differential privacy with μ = {value}",
    "tradeoff": "f-differential privacy with the given trade-off curve",
}
_FIXED_PARAMETERS = {
    "delta": "δ = ",
    "epsilon": "ε = ",
    "order": "order ",
}
# Of guarantees that need no detail.
_GUARANTEES = {
    GuaranteeKind.EXACT: (
        "exact: it holds for any number of draws and distribution of outputs, "
        "as long as draws are independent"
    ),
    GuaranteeKind.ASYMPTOTIC: "asymptotic: it holds approximately, the better the more draws",
}
_NO_EVENT = "no set of outputs was found that distinguishes the inputs"
# Characters of a guarantee, a file name and a remark, at whose end stands what to do.
_MAX_GUARANTEE_CHARACTERS = 300
_MAX_FILE_CHARACTERS = 200
_MAX_REMARK_CHARACTERS = 600
# Characters of a list of all families of inputs that a search tried.
_MAX_FAMILIES_CHARACTERS = 4 * MAX_VALUE_CHARACTERS
# The families of inputs outside of the domain are called "beyond: …".
_BEYOND = "beyond: "
# Where a secret was hidden, with its name if it has one.
_SECRET = re.compile(r"(?:(?P<name>[\w-]+)(?P<mark>[=: ]+))?" + re.escape(HIDDEN))


class ReportRow(NamedTuple):
    """A line of a report: what it is about, and what there is to say."""

    label: str
    text: str


def known_rows(*rows: tuple[str, str | None]) -> list[ReportRow]:
    """Returns the rows that have a text; None and "" mean that there is nothing to say."""
    return [ReportRow(label, text) for label, text in rows if text]


def headline(result: AuditResult) -> str:
    """Returns the verdict in capitals, and first of all whether it could have been another."""
    if result.verdict is None:
        return "MEASURED, but not to be trusted" if is_untrusted_measurement(result) else "MEASURED"
    verdict = result.verdict.name.replace("_", " ")
    return f"{verdict}, and could not have been" if is_blind(result) else verdict


def page_headline(result: AuditResult) -> str:
    """Returns the same in small letters, for a page."""
    text = headline(result)
    return text[0] + text[1:].lower()


def is_blind(result: AuditResult) -> bool:
    """Returns whether the first thing to say is that nothing could have been refuted."""
    return result.verdict is Verdict.NOT_REFUTED and result.blind is not None


def is_untrusted_measurement(result: AuditResult) -> bool:
    """Returns whether the first thing to say of a bound without a claim is that it means nothing.

    An audit whose draws cannot be trusted is inconclusive; a measurement has no verdict to be that.
    """
    return result.verdict is None and any(report.untrusted for report in result.health)


def is_nothing_found(result: AuditResult) -> bool:
    """Returns whether nothing at all distinguishes the inputs, though something could have."""
    if result.verdict is not Verdict.NOT_REFUTED or is_blind(result):
        return False
    return result.witness is not None and not has_event(result.witness)


def coloured_as(result: AuditResult) -> Verdict | None:
    """Returns the verdict whose colour a result has.

    A blind audit, and a measurement whose draws cannot be trusted, are as amber as an inconclusive
    audit, and where nothing was found the colour says nothing.
    """
    if is_blind(result) or is_untrusted_measurement(result):
        return Verdict.INCONCLUSIVE
    return None if is_nothing_found(result) else result.verdict


def is_recorded(result: AuditResult) -> bool:
    """Returns whether two recordings were compared, so that nothing can be run again."""
    settings = result.settings
    return settings.get("kind") == "recorded" or settings.get("mechanism") == COMPARED_SAMPLES


def guarantee_of(result: AuditResult) -> Guarantee:
    """Returns the guarantee of the deciding figure."""
    return parse_guarantee(result.guarantee)


def mechanism_name(result: AuditResult) -> str:
    """Returns the name of what was audited."""
    if is_recorded(result):
        return "the recorded mechanism"
    settings = result.settings
    name = plain(settings.get("target") or settings.get("mechanism") or "the mechanism")
    params = settings.get("params")
    if not isinstance(params, Mapping) or not settings.get("target"):
        return name
    values = ", ".join(f"{plain(key)}={plain(value)}" for key, value in params.items())
    return f"{name}({values})"


def promise(claim: Claim) -> str:
    """Returns the claim in words, e.g. "ε-differential privacy with ε = 1"."""
    template = _PROMISES.get(claim.notion)
    if template is None:
        return plain(claim.describe())
    values = {name: figure(value) for name, value in claim.fixed().items()}
    return template.format_map({"value": figure(claim.value), **values})


def parameter(claim: Claim) -> str:
    """Returns what is bounded, e.g. "ε at δ = 1e-05"."""
    fixed = []
    for name, value in claim.fixed().items():
        introduction = _FIXED_PARAMETERS.get(name, f"{name} = ")
        fixed.append(f"{introduction}{figure(value)}")
    return f"{claim.symbol} at {' and '.join(fixed)}" if fixed else claim.symbol


def verdict_sentence(result: AuditResult) -> str:
    """Returns one sentence that needs no statistics to be understood."""
    name = mechanism_name(result)
    promised = promise(result.claim)
    if not guarantee_of(result).is_proved:
        return f"Nothing is proved about {name}: the figures come without a guarantee."
    if result.verdict is Verdict.REFUTED:
        return f"{name} violates {promised}."
    if is_blind(result):
        return f"{plain(result.blind, _MAX_REMARK_CHARACTERS)}."
    if is_nothing_found(result):
        return f"Nothing was found in {name}: {_NO_EVENT}, so {promised} is not refuted."
    if result.verdict is Verdict.NOT_REFUTED:
        return f"No violation of {promised} was found in {name}."
    if result.verdict is Verdict.INCONCLUSIVE:
        return f"The draws of {name} cannot be trusted, so nothing is said about {promised}."
    if is_untrusted_measurement(result):
        return f"The draws of {name} cannot be trusted, so nothing is said about what it loses."
    bound = figure_down(result.lower_bound)
    return f"{name} loses at least this much: {parameter(result.claim)} is {bound} or more."


def too_few_to_refute(
    claim: Claim, greatest_bound: float, *, what: str, best_case: str
) -> str | None:
    """Returns one sentence, if so few data could not have refuted a claim at all; else None.

    Args:
        claim: the claim.
        greatest_bound: what the data would show of it in the best case.
        what: the data, in the plural, e.g. "scores".
        best_case: the best case, as the sentence goes on after "even", e.g. "perfectly separated
            ones".
    """
    if greatest_bound > claim.value:
        return None
    return (
        f"So few {what} could not have refuted it: even {best_case} would show {claim.symbol} ≥ "
        f"{figure_down(greatest_bound)}, and no more."
    )


def bound_sentence(result: AuditResult) -> str:
    """Returns the certified bound against the claim."""
    claim = result.claim
    bound = result.lower_bound
    if not guarantee_of(result).is_proved:
        return f"none; {parameter(claim)} is estimated at {figure_down(bound)} or more."
    start = f"{parameter(claim)} is at least {bound_against(bound, claim.value)}"
    if result.verdict is None:
        return f"{start}."
    if claim.notion == "tradeoff":
        return f"{start} above what the claimed curve allows."
    if bound <= claim.value:
        return f"{start}; the claim allows up to {figure(claim.value)}."
    return f"{start}, but the claim allows only {figure(claim.value)}."


def secondary_sentence(finding: Finding) -> str:
    """Returns a finding that did not decide, in one sentence."""
    claim = finding.claim
    bound = f"{parameter(claim)} is at least {figure_down(finding.lower_bound)}"
    claimed = f" (claimed {figure(claim.value)})" if claim.value > 0.0 else ""
    guarantee = plain(finding.guarantee, 200)
    remark = "; it does not decide the verdict" if finding.method == "bits" else ""
    return f"{bound}{claimed}, {guarantee}, {percent(finding.confidence)}{remark}."


def confidence_sentence(result: AuditResult) -> str:
    """Returns with which confidence the bound holds, and what kind of guarantee that is."""
    guarantee = guarantee_of(result)
    if guarantee.kind in _GUARANTEES and not guarantee.detail:
        explained = _GUARANTEES[guarantee.kind]
    else:
        explained = plain(result.guarantee, _MAX_GUARANTEE_CHARACTERS)
    p_value = result.p_value if result.is_refuted else None
    p_value_text = "" if p_value is None else f", p-value {p_value_words(p_value)}"
    return f"{percent(result.confidence)}{p_value_text}. The guarantee is {explained}."


def meaning_sentence(result: AuditResult) -> str:
    """Returns what may be concluded, and what not."""
    if result.verdict is Verdict.REFUTED:
        return _rarity_sentence(result)
    if is_blind(result):
        name = mechanism_name(result)
        return f"This audit says nothing about {promise(result.claim)} in {name}."
    if result.verdict is Verdict.NOT_REFUTED:
        return "This does not prove the claim: other inputs or rarer events may reveal more."
    if not guarantee_of(result).is_proved:
        return "An estimate decides nothing. Its guarantee, above, says what is missing."
    if result.verdict is Verdict.INCONCLUSIVE or is_untrusted_measurement(result):
        return "Look at the remarks on the draws first; the figures assume independent draws."
    return "The true value may be larger: on other inputs, or through rarer events."


# p-values below this were not worked out: the certificates stop at 1e-290 or e^-660.
_LEAST_P_VALUE = 1e-286
# A number of audits that is written out; larger ones are powers of ten.
_MAX_WRITTEN_OUT = 1e6


def p_value_words(p_value: float) -> str:
    """Returns a p-value rounded up, or that it is below the smallest one that is worked out."""
    if p_value <= _LEAST_P_VALUE:
        return f"below {_LEAST_P_VALUE:.0e}"
    return figure_up(p_value, 2)


def _rarity_sentence(result: AuditResult) -> str:
    """How rarely a true claim gives counts like these; never how likely the claim is."""
    failure_probability = percent(1.0 - result.confidence)
    if result.p_value is None:
        return (
            "If the claim were true, an audit would say this "
            f"with a probability of at most {failure_probability}."
        )
    p_value = max(result.p_value, _LEAST_P_VALUE)
    if 1.0 / p_value < _MAX_WRITTEN_OUT:
        audits = f"{float(figure_down(1.0 / p_value, 2)):,.0f}"
    else:
        audits = f"10^{math.floor(-math.log10(p_value) + 1e-9)}"
    return (
        "If the claim were true, evidence as strong as this would come at most once in "
        f"{audits} audits like this one."
    )


def power_rows(result: AuditResult) -> list[ReportRow]:
    """Returns what a run that did not refute would have refuted; empty if that is not known."""
    return known_rows(
        ("would be seen", detectable_sentence(result)),
        ("rare outputs", detectable_mass_sentence(result)),
        ("instead", remedy_sentence(result)),
    )


def detectable_sentence(result: AuditResult) -> str | None:
    """Returns which spread leaks would have been refuted; None if that is not known."""
    if result.verdict is not Verdict.NOT_REFUTED or result.blind is not None:
        return None
    if result.detectable is None:
        return None
    if math.isinf(result.detectable):
        return (
            "of leaks that are spread over the usual outputs, not even the largest planted one "
            f"would have been refuted with 90% power{_draws_that_a_leak_takes(result)}"
        )
    least = f"a true {parameter(result.claim)} of {figure_up(result.detectable)} or more"
    return (
        f"leaks that are spread over the usual outputs: {least} would have been refuted with 90% "
        "power on this pair, estimated with planted leaks"
    )


def _draws_that_a_leak_takes(result: AuditResult) -> str:
    """Returns how many draws even the plainest leak takes, and who knows more; may be empty."""
    needed = least_draws(result.claim, 1.0 - result.confidence)
    if needed is None:
        return ""
    return (
        f": an event that always tells the inputs apart takes {needed:,} draws per side, and this "
        f"audit had {min(result.samples_used):,}; 'epsilometer plan' says how many a leak of a "
        "given size takes"
    )


def detectable_mass_sentence(result: AuditResult) -> str | None:
    """Returns which rare outputs would have been seen; None if that is not known."""
    if result.verdict is not Verdict.NOT_REFUTED or result.blind is not None:
        return None
    mass = result.detectable_mass
    if mass is None:
        return None
    if math.isinf(mass):
        return "outputs that only one input gives would not have been seen, however likely they are"
    return (
        "an output that only one input gives would have been seen with 90% power if its "
        f"probability is {figure_up(mass, 2)} or more, estimated with planted outputs; rarer ones "
        "may stay unseen, however much they reveal"
    )


# A run that would take longer than this many seconds is worth another question.
_SLOW_SECONDS = 60.0


def remedy_sentence(result: AuditResult) -> str | None:
    """Returns what a blind audit of a slow mechanism could ask instead; None if there is nothing.

    Gaussian noise with this (ε, δ) has a μ, which needs far fewer draws than ε at a small δ.
    """
    if result.blind is None:
        return None
    sentences = []
    claim = result.claim
    if isinstance(claim, ApproxDP) and claim.parameter == "epsilon" and claim.delta > 0.0:
        gaussian = GaussianDP.from_approx(claim.epsilon, claim.delta)
        needed = least_draws(gaussian, 1.0 - result.confidence)
        if needed is not None:
            sentences.append(
                f"if the noise is Gaussian, this claim is μ = {figure(gaussian.mu)}, for which "
                f"{needed:,} draws per side can be enough: ask for μ (GaussianDP.from_approx, --mu)"
            )
    seconds_per_draw = result.seconds / max(sum(result.samples_used), 1)
    needed = least_draws(claim, 1.0 - result.confidence)
    is_slow = needed is not None and 2 * needed * seconds_per_draw > _SLOW_SECONDS
    if is_slow and result.settings.get("method") != "sequential":
        sentences.append("stop_early=True (--stop-early) ends as soon as the claim is refuted")
    return "; ".join(sentences) or None


def least_draws(claim: Claim, failure_probability: float) -> int | None:
    """Returns the draws per side with which an event that always tells the inputs apart refutes.

    Training included. None if no number is known.
    """
    from epsilometer.auditing.blindness import draws_of_an_audit

    if not 0.0 < failure_probability < 1.0:  # a stored file may hold any number
        return None
    return draws_of_an_audit(claim, failure_probability)


def has_event(witness: Witness) -> bool:
    """Returns whether the witness holds any outputs: an event of no cells distinguishes nothing."""
    return not isinstance(witness.event, Event) or bool(witness.event.chosen.any())


def event_text(witness: Witness) -> str:
    """Returns the event in words, cut."""
    if not has_event(witness):
        return _NO_EVENT
    beginning = witness.event.describe()[: MAX_EVENT_CHARACTERS + 1]
    return cut(clean(beginning), MAX_EVENT_CHARACTERS)


def count_sentence(witness: Witness, side: int) -> str:
    """Returns how often the event happened on one side."""
    counts = witness.counts[side]
    return f"{counts.hits:,} of {counts.trials:,} draws ({percent(counts.share)})"


def certified_sentence(witness: Witness, side: int) -> str:
    """Returns what the counts of one side alone prove."""
    likelier_side = int(witness.flipped)
    if side == likelier_side:
        return f"probability at least {figure_down(witness.p_lower)}"
    return f"probability at most {figure_up(witness.q_upper)}"


def input_text(result: AuditResult, witness: Witness, side: int) -> str:
    """Returns the input of one side, cut; of a recording the file, if it is known."""
    file = result.settings.get(SIDES[side]) if is_recorded(result) else None
    if file:
        return f"recorded in {plain(file, _MAX_FILE_CHARACTERS)}"
    return display_value(witness.pair.side(side))


def difference_text(result: AuditResult, witness: Witness) -> str | None:
    """Returns what distinguishes the two inputs; None where everybody sees it at once."""
    if is_recorded(result):
        return None
    text = plain(witness.pair.difference, MAX_EVENT_CHARACTERS)
    both_inputs = f"{display_value(witness.pair.side(0))} → {display_value(witness.pair.side(1))}"
    if not text or text == both_inputs:
        return None
    return text


def search_rows(result: AuditResult) -> list[ReportRow]:
    """Returns what a search of a domain tried and what it did not; empty if there was none."""
    tried = result.findings[0].details.get("tried")
    if not isinstance(tried, Mapping):
        return []
    families = tried.get("families")
    if not isinstance(families, Mapping):
        return []
    n_pairs = plain(tried.get("looks"))
    rows = [
        ReportRow("searched", f"{n_pairs} pairs, neighbours by {plain(tried.get('relation'))!r}")
    ]
    rows += _family_rows(families, decides_beyond=bool(tried.get("beyond")))
    if result.witness is not None and result.witness.pair.note:
        rows.append(ReportRow("this pair", _pair_note(result.witness)))
    if result.verdict is Verdict.NOT_REFUTED:
        not_tried = "anything else: a leak at a few isolated values would not have been seen"
        rows.append(ReportRow("not tried", not_tried))
    return rows


def _family_rows(families: Mapping[Any, Any], *, decides_beyond: bool) -> list[ReportRow]:
    """Returns how many pairs of each family were tried, within the domain and beyond it."""
    within_domain: list[str] = []
    beyond_domain: list[str] = []
    for name, counts in families.items():
        if not isinstance(counts, Mapping):
            continue
        family = plain(name)
        if family.startswith(_BEYOND):
            beyond_domain.append(family.removeprefix(_BEYOND) + _family_counts(counts))
        else:
            within_domain.append(family + _family_counts(counts))
    rows: list[ReportRow] = []
    if within_domain:
        rows.append(ReportRow("tried", cut(", ".join(within_domain), _MAX_FAMILIES_CHARACTERS)))
    if beyond_domain:
        text = cut(", ".join(beyond_domain), _MAX_FAMILIES_CHARACTERS)
        if not decides_beyond:
            text += "; in passing, they do not decide"
        rows.append(ReportRow("beyond domain", text))
    return rows


def _family_counts(counts: Mapping[str, Any]) -> str:
    refused = f", refused {plain(counts['refused'])}" if counts.get("refused") else ""
    return f" ({plain(counts.get('tried'))}{refused})"


def _pair_note(witness: Witness) -> str:
    """How the search came to this pair, and whether it lies in the domain."""
    note = plain(witness.pair.note, MAX_VALUE_CHARACTERS)
    if witness.pair.within is None:
        return note
    return note + ("; within the domain" if witness.pair.within else "; outside of the domain")


def reservation_sentence(result: AuditResult) -> str | None:
    """Returns what weakens a reading, as a sentence; None if nothing does."""
    text = reservations(result.settings)
    return f"With {text}." if text else None


def unusual_sentence(result: AuditResult) -> str:
    """Returns that the health checks are satisfied, those that were asked."""
    which = "the other" if names_in(result.settings.get("suppress")) else "the"
    return f"{which} health checks saw nothing unusual"


def effort_sentence(result: AuditResult) -> str:
    """Returns how many draws the audit took, and how long."""
    left, right = result.samples_used
    n_pairs = result.settings.get("pairs", 1)
    over = f" over {plain(n_pairs)} pairs of inputs" if n_pairs != 1 else ""
    return f"{left:,} left, {right:,} right{over}, in {duration(result.waited_seconds)}"


def health_lines(result: AuditResult) -> list[str]:
    """Returns the remarks of the health checks."""
    return [
        f"{plain(report.name)}: {plain(report.message, _MAX_REMARK_CHARACTERS)}"
        for report in result.health
    ]


def replay_hint(result: AuditResult) -> str | None:
    """Returns how to certify the same event again on fresh draws.

    A command, or Python where the command is not known. None if there is nothing to count again, or
    nothing to run.
    """
    settings = result.settings
    if result.witness is None or is_recorded(result):
        return None
    target = settings.get("target")
    if not target:
        features = ", features=…" if settings.get("features") else ""
        return f"epsilometer.replay(result, mechanism{features})"
    word, secrets = _target_word(plain(target, _MAX_FILE_CHARACTERS))
    words = [f"{name}=…" for name in secrets]
    words += ["epsilometer", "replay", stored_name(result), word]
    if settings.get("batch"):
        words.append("--batch")
    features_place = (settings.get("features") or {}).get("place")
    if features_place:
        words += ["--features", shlex.quote(plain(features_place, _MAX_FILE_CHARACTERS))]
    words += _call_words(settings)
    notes = []
    if secrets:
        notes.append(f"set {', '.join(secrets)} first")
    headers = settings.get("http_headers")
    if isinstance(headers, list) and headers:
        notes.append(f"give {', '.join(map(plain, headers))} again with --http-header")
    if str(target).startswith("recording:"):
        notes.append("rows that this audit used are left out")
    if not settings.get("json"):
        notes.append("first add --json result.json to the audit")
    line = " ".join(words)
    return f"{line}   # {'; '.join(notes)}" if notes else line


def _call_words(settings: Mapping[str, Any]) -> list[str]:
    """The options of a command that say how its target was called."""
    words: list[str] = []
    params = settings.get("params")
    if isinstance(params, Mapping):
        for name, value in params.items():
            text = value if isinstance(value, str) else json.dumps(value)
            words += ["--param", shlex.quote(plain(f"{name}={text}"))]
    if settings.get("dataset_format"):
        words += ["--dataset-format", shlex.quote(plain(settings["dataset_format"]))]
    http = settings.get("http")
    if isinstance(http, Mapping):
        for name, value in http.items():
            flag = f"--http-{plain(name)}"
            words += [shlex.quote(flag), shlex.quote(plain(value, _MAX_FILE_CHARACTERS))]
    return words


def _target_word(target: str) -> tuple[str, list[str]]:
    """The target as a word of a command, and the variables that stand in it for hidden secrets."""
    secrets: list[str] = []

    def as_variable(hidden: re.Match[str]) -> str:
        name = hidden["name"] or ""
        variable = re.sub(r"\W", "_", name or "secret").strip("_").upper()
        secrets.append(variable)
        return f"{name}{hidden['mark'] or ''}${variable}"

    text = _SECRET.sub(as_variable, target)
    word = f'"{text}"' if secrets else shlex.quote(text)
    return word, list(dict.fromkeys(secrets))


def stored_name(result: AuditResult) -> str:
    """Returns the file that holds the result, as a word of a command."""
    return shlex.quote(plain(result.settings.get("json") or "result.json", _MAX_FILE_CHARACTERS))


def identity_text(result: AuditResult) -> str | None:
    """Returns which code was audited: file, commit, digest; None if nothing is known."""
    identity = result.identity
    parts = []
    if identity.get("file"):
        parts.append(plain(identity["file"], _MAX_FILE_CHARACTERS))
    if identity.get("commit"):
        changes = ", with changes that are not committed" if identity.get("dirty") else ""
        parts.append(f"commit {plain(identity['commit'])[:12]}{changes}")
    if identity.get("code_digest"):
        parts.append(f"digest {plain(identity['code_digest'])[:16]}")
    return "; ".join(parts) or None


def date_text(result: AuditResult) -> str | None:
    """Returns when it ran, and who ran it, if that is known."""
    if not result.date:
        return None
    date = plain(result.date.replace("T", " ").replace("+00:00", " UTC"))
    run_by = result.identity.get("run_by")
    return f"{date}, run by {plain(run_by, _MAX_FILE_CHARACTERS)}" if run_by else date


def versions_text(result: AuditResult) -> str:
    """Returns the versions behind the figures."""
    versions = [
        f"{plain(name)} {plain(value)}"
        for name, value in result.environment.items()
        if name != "cores"
    ]
    return ", ".join(versions).replace("machine ", "")


def repeat_sentence(result: AuditResult) -> str:
    """Returns whether the same seed gives the same numbers."""
    seed = plain(result.settings.get("seed"))
    if recorded_rows(result.settings) and "recorded_to" not in result.settings:
        return f"seed {seed} gives the same figures again, on the same recorded rows"
    if result.settings.get("seeded_mechanism") is False:
        return f"seed {seed}; the mechanism draws its own randomness, so the figures will vary"
    return f"seed {seed} gives the same figures again"
