"""What a result says, in sentences, and foreign values as short, harmless text. All reports take their words here."""

import decimal
import math
import re
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from epsilometer.claims import Claim
from epsilometer.errors import HIDDEN
from epsilometer.result import AuditResult, Finding, Verdict, Witness

# What a reader takes in at a glance; the whole input is in the JSON file.
MOST_VALUE = 240
MOST_EVENT = 600
MOST_NAME = 80
# Enough to distinguish values, few enough to read.
_DIGITS = 4
# A float holds no more.
_MOST_DIGITS = 15

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxfrozenset = _short.maxdeque = (
    _short.maxarray
) = 24
_short.maxdict = 12
_short.maxstring = _short.maxother = 200


def clean(text: str) -> str:
    """The text with unprintable characters spelled out, so that it cannot control a terminal or a page."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def plain(value: object, most: int = MOST_NAME) -> str:
    """Any text or number for one line: clean and cut, without quotation marks."""
    # Cleaning makes text longer, so it may have to be cut again afterwards.
    return cut(clean(str(value)[: most + 1]), most)


def shown(value: object, most: int = MOST_VALUE) -> str:
    """A dataset as Python would write it, clean and cut; safe against a hostile `__repr__`."""
    # imports NumPy, which an error message does not need
    from epsilometer.inputs.pairs import StoredDigest

    if isinstance(value, StoredDigest):
        return (
            cut(f"{plain(value.kind)} {clean(value.text)}", most - 40)
            + f" (stored as digest {value.digest[:12]}…)"
        )
    try:
        text = _short.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    if "..." in text and isinstance(value, list | tuple | set | frozenset | dict):
        return f"{cut(clean(text), most)} ({len(value):,} items)"
    return cut(clean(text), most)


def figure(value: float, digits: int = _DIGITS) -> str:
    """A number for people."""
    return f"{value:.{digits}g}"


def figure_down(value: float, digits: int = _DIGITS) -> str:
    """A lower bound: rounded down, so that the printed figure holds as well."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def figure_up(value: float, digits: int = _DIGITS) -> str:
    """An upper bound: rounded up."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def bound_against(bound: float, claimed: float) -> str:
    """A lower bound with enough digits to show that it is above the claimed value, if it is."""
    for digits in range(_DIGITS, _MOST_DIGITS):
        text = figure_down(bound, digits)
        if bound <= claimed or float(text) > claimed:
            return text
    return repr(bound)


def percent(share: float) -> str:
    """A share for people: 39.4%. Only what is certain is shown as 100%, and only what never happened as 0%."""
    for digits in range(3, _MOST_DIGITS + 2):
        text = f"{100.0 * share:.{digits}g}%"
        if share >= 1.0 or float(text[:-1]) < 100.0:
            return text
    return "more than 99.9999999999999%"


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _rounded(value: float, digits: int, rounding: str) -> str:
    # From the float's shortest text, or 0.7 would be rounded down to 0.6999.
    number = decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(number):.{digits}g}"


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
    "exact": "exact: it holds for any number of draws and distribution of outputs, as long as draws are independent",
    "asymptotic": "asymptotic: it holds approximately, the better the more draws",
}


def headline(result: AuditResult) -> str:
    """The verdict in capitals."""
    return "MEASURED" if result.verdict is None else result.verdict.name.replace("_", " ")


def mechanism_name(result: AuditResult) -> str:
    """What was audited."""
    if is_recorded(result):
        return "the recorded mechanism"
    return plain(
        result.settings.get("target") or result.settings.get("mechanism") or "the mechanism"
    )


def is_recorded(result: AuditResult) -> bool:
    """Whether two recordings were compared, so that nothing can be run again."""
    return result.settings.get("mechanism") == RECORDED


def is_unproved(result: AuditResult) -> bool:
    """Whether the deciding figure is an estimate that nothing guarantees."""
    return result.guarantee.startswith("none")


def promise(claim: Claim) -> str:
    """The claim in words, e.g. "ε-differential privacy with ε = 1"."""
    fixed = {name: figure(value) for name, value in claim.fixed().items()}
    return _PROMISES.get(claim.notion, plain(claim.describe())).format_map(
        {"value": figure(claim.value), **fixed}
    )


def parameter(claim: Claim) -> str:
    """What is bounded, e.g. "ε at δ = 1e-05"."""
    names = {"delta": "δ = ", "epsilon": "ε = ", "order": "order "}
    fixed = " and ".join(
        f"{names.get(name, name + ' = ')}{figure(value)}" for name, value in claim.fixed().items()
    )
    return f"{claim.symbol} at {fixed}" if fixed else claim.symbol


def verdict_sentence(result: AuditResult) -> str:
    """One sentence that needs no statistics to be understood."""
    name = mechanism_name(result)
    promised = promise(result.claim)
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
    claim = result.claim
    bound = result.lower_bound
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
    return (
        f"{bound}{claimed}, {plain(finding.guarantee, 200)}, {percent(finding.confidence)}{what}."
    )


def confidence_sentence(result: AuditResult) -> str:
    """With which confidence the bound holds, and what kind of guarantee that is."""
    kind = _GUARANTEES.get(result.guarantee, plain(result.guarantee, 300))
    p_value = result.p_value if result.is_refuted else None
    also = "" if p_value is None else f", p-value {figure_up(p_value, 2)}"
    return f"{percent(result.confidence)}{also}. The guarantee is {kind}."


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
    """What a run that did not refute would have refuted, if that is known."""
    if result.verdict is not Verdict.NOT_REFUTED or result.detectable is None:
        return None
    if math.isinf(result.detectable):
        return "this run could hardly have refuted anything: take more draws"
    least = f"a true {parameter(result.claim)} of {figure_up(result.detectable)} or more"
    return f"{least} would have been refuted with 90% power on this pair, by rehearsals on outputs like these"


def event_text(witness: Witness) -> str:
    """The event in words, cut."""
    return cut(clean(witness.event.describe()[: MOST_EVENT + 1]), MOST_EVENT)


def count_sentence(witness: Witness, side: int) -> str:
    """How often the event happened on one side."""
    counts = witness.counts[side]
    return f"{counts.hits:,} of {counts.trials:,} draws ({percent(counts.share)})"


def certified_sentence(witness: Witness, side: int) -> str:
    """What the counts of one side alone prove."""
    if side == int(witness.flipped):
        return f"probability at least {figure_down(witness.p_lower)}"
    return f"probability at most {figure_up(witness.q_upper)}"


def input_text(result: AuditResult, witness: Witness, side: int) -> str:
    """The input of one side, cut; of a recording the file, if it is known."""
    file = result.settings.get(("left", "right")[side]) if is_recorded(result) else None
    return f"recorded in {plain(file, 200)}" if file else shown(witness.pair.side(side))


def difference_text(result: AuditResult, witness: Witness) -> str | None:
    """What distinguishes the two inputs; None where they are short enough for everybody to see it."""
    if is_recorded(result):
        return None
    text = plain(witness.pair.difference, MOST_EVENT)
    return (
        text
        if text and text != " → ".join(shown(witness.pair.side(side)) for side in (0, 1))
        else None
    )


def search_rows(result: AuditResult) -> list[tuple[str, str]]:
    """What a search of a domain tried and what it did not, each with a label; empty if there was none."""
    tried = result.findings[0].details.get("tried")
    if not isinstance(tried, dict) or not isinstance(families := tried.get("families"), dict):
        return []
    rows = [
        (
            "searched",
            f"{plain(tried.get('looks'))} pairs, neighbours by {plain(tried.get('relation'))!r}",
        )
    ]
    counted = {}
    for name, each in families.items():
        if isinstance(each, dict):
            refused = f", refused {plain(each['refused'])}" if each.get("refused") else ""
            counted[plain(name)] = f" ({plain(each.get('tried'))}{refused})"
    own, beyond = (
        [name for name in counted if name.startswith("beyond: ") is far] for far in (False, True)
    )
    if own:
        rows.append(("tried", cut(", ".join(name + counted[name] for name in own), 4 * MOST_VALUE)))
    if beyond:
        text = cut(
            ", ".join(name.removeprefix("beyond: ") + counted[name] for name in beyond),
            4 * MOST_VALUE,
        )
        rows.append(
            (
                "beyond domain",
                text if tried.get("beyond") else f"{text}; in passing, they do not decide",
            )
        )
    if result.witness is not None and (note := result.witness.pair.note):
        where = {True: "; within the domain", False: "; outside of the domain", None: ""}[
            result.witness.pair.within
        ]
        rows.append(("this pair", plain(note, MOST_VALUE) + where))
    if result.verdict is Verdict.NOT_REFUTED:
        rows.append(
            ("not tried", "anything else: a leak at a few isolated values would not have been seen")
        )
    return rows


def reservations(settings: Mapping[str, Any]) -> str | None:
    """What weakens a reading, as it continues "the claim is refuted, with …"; None if nothing does.

    Args:
        settings: of a result or a profile. They may come from a file that anybody wrote.
    """
    parts = [
        _switched_off(settings),
        _failures(settings),
        _counted("requests sent again", settings.get("retried")),
        _counted("draws that were begun, lost and drawn again", settings.get("redrawn")),
    ]
    if statuses := _names(settings.get("statuses")):
        parts.append(f"the exit statuses {_listed(statuses)} taken for success")
    if columns := _names(settings.get("columns")):
        parts.append(f"no look at columns other than {_listed(columns)}")
    if settings.get("representation") == "bits":
        parts.append("no look at anything but the bits of floating-point numbers")
    if features := settings.get("features"):
        name = features.get("name") if isinstance(features, Mapping) else features
        parts.append(f"features of the outputs ({plain(name)})")
    if settings.get("distance", 1) != 1:
        parts.append(f"inputs that are {plain(settings['distance'])} neighbouring steps apart")
    return "; ".join(part for part in parts if part) or None


def reservation_sentence(result: AuditResult) -> str | None:
    """What weakens a reading, as a sentence; None if nothing does."""
    found = reservations(result.settings)
    return f"With {found}." if found else None


def _switched_off(settings: Mapping[str, Any]) -> str | None:
    names = _names(settings.get("suppress"))
    if not names:
        return None
    what = f"the {names[0]} check" if len(names) == 1 else f"the checks {_listed(names)}"
    silenced = _names(settings.get("silenced"))
    would = f" ({_listed(silenced)} would have remarked on these draws)" if silenced else ""
    return f"{what} switched off{would}"


def _failures(settings: Mapping[str, Any]) -> str | None:
    text = "failed runs counted as outcomes"
    counted = _counted(text, settings.get("failed"))
    return counted or (text if settings.get("on_error") == "outcome" else None)


def _counted(what: str, sides: Any) -> str | None:
    """Something with its numbers for both inputs."""
    if sides is None:
        return None
    if (
        isinstance(sides, list | tuple)
        and len(sides) == 2
        and all(isinstance(each, int) for each in sides)
    ):
        left, right = sides
        return f"{what} ({left:,} left, {right:,} right)"
    return f"{what} ({plain(sides)})"


def _names(given: Any) -> list[str]:
    if given is None:
        return []
    return [plain(each) for each in given] if isinstance(given, list | tuple) else [plain(given)]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def recorded_rows(settings: Mapping[str, Any]) -> str | None:
    """Which rows of a recording chose and which proved; None if none did, or nobody can tell."""
    noted = settings.get("recording")
    try:
        draws = [] if not isinstance(noted, Mapping) else noted.get("draws", [])
        said = [_rows_of(entry) for entry in draws[:_MOST_INPUTS]]
        inputs = [plain(entry.get("input"), 16) for entry in draws[:_MOST_INPUTS]]
        n_more = len(draws) - len(said)
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):
        return None
    if not said:
        return None
    if len(said) > 1 and len(set(said)) == 1:
        text = said[0].format(of="of each input")
    else:
        text = "; ".join(
            rows.format(of=f"of {name}") for rows, name in zip(said, inputs, strict=True)
        )
    return f"{text}; and {n_more} more inputs" if n_more else text


# Inputs of a recording whose rows are told.
_MOST_INPUTS = 4


def _rows_of(entry: Mapping[str, Any]) -> str:
    """The rows of one input, with a place for its name. People count rows from 1."""
    chose = entry["chose"]
    proved = entry["proved"]
    if entry.get("shuffled"):
        n_chose, n_proved = (
            sum(int(stop) - int(start) for start, stop in rows) for rows in (chose, proved)
        )
        return f"all {n_chose + n_proved:,} rows {{of}}, shuffled: {n_chose:,} chose, {n_proved:,} proved"
    parts: list[str] = []
    for rows, did in ((chose, "chose"), (proved, "proved")):
        if rows:
            ranges = _listed([f"{int(start) + 1} to {int(stop)}" for start, stop in rows])
            parts.append(f"rows {ranges}{'' if parts else ' {of}'} {did}")
    return ", ".join(parts)


def unusual_sentence(result: AuditResult) -> str:
    """That the health checks are satisfied, those that were asked."""
    which = "the other" if _names(result.settings.get("suppress")) else "the"
    return f"{which} health checks saw nothing unusual"


def effort_sentence(result: AuditResult) -> str:
    """What it cost."""
    left, right = result.samples_used
    pairs = result.settings.get("pairs", 1)
    over = f" over {plain(pairs)} pairs of inputs" if pairs != 1 else ""
    return f"{left:,} left, {right:,} right{over}, in {duration(result.seconds)}"


def health_lines(result: AuditResult) -> list[str]:
    """The remarks of the health checks."""
    return [f"{plain(report.name)}: {plain(report.message, 300)}" for report in result.health]


def replay_hint(result: AuditResult) -> str | None:
    """How to certify the same event again on fresh draws: a command, or Python where the command is not known."""
    if result.witness is None or is_recorded(result):  # nothing to count again, or nothing to run
        return None
    target = result.settings.get("target")
    if not target:
        return f"epsilometer.replay(result, mechanism{', features=…' if result.settings.get('features') else ''})"
    batch = " --batch" if result.settings.get("batch") else ""
    place = (result.settings.get("features") or {}).get("place")
    batch += f" --features {shlex.quote(plain(place, 200))}" if place else ""
    secrets: list[str] = []

    def named(found: re.Match[str]) -> str:
        secrets.append(re.sub(r"\W", "_", found["name"] or "secret").strip("_").upper())
        return f"{found['name'] or ''}{found['mark'] or ''}${secrets[-1]}"

    text = _SECRET.sub(named, plain(target, 200))
    line = (
        f"epsilometer replay {stored_name(result)} "
        + (f'"{text}"' if secrets else shlex.quote(text))
        + batch
    )
    line = " ".join([*(f"{name}=…" for name in dict.fromkeys(secrets)), line])
    notes = [f"set {', '.join(dict.fromkeys(secrets))} first"] if secrets else []
    notes += (
        ["rows that this audit used are left out"] if str(target).startswith("recording:") else []
    )
    notes += (
        [] if result.settings.get("json") else ["result.json is what --json result.json writes"]
    )
    return f"{line}   # {'; '.join(notes)}" if notes else line


# Where a secret was hidden, with its name if it has one.
_SECRET = re.compile(r"(?:(?P<name>[\w-]+)(?P<mark>[=: ]+))?" + re.escape(HIDDEN))


def stored_name(result: AuditResult) -> str:
    """The file that holds the result, as a word of a command."""
    return shlex.quote(plain(result.settings.get("json") or "result.json", 200))


def identity_text(result: AuditResult) -> str | None:
    """Which code was audited: file, commit, digest."""
    found = result.identity
    parts = [plain(found["file"], 200)] if found.get("file") else []
    if found.get("commit"):
        changed = ", with changes that are not committed" if found.get("dirty") else ""
        parts.append(f"commit {plain(found['commit'])[:12]}{changed}")
    if found.get("code_digest"):
        parts.append(f"digest {plain(found['code_digest'])[:16]}")
    return "; ".join(parts) or None


def date_text(result: AuditResult) -> str | None:
    """When it ran, and who ran it, if that is told."""
    who = (
        f", run by {plain(result.identity['run_by'], 200)}" if result.identity.get("run_by") else ""
    )
    return (
        f"{plain(result.date.replace('T', ' ').replace('+00:00', ' UTC'))}{who}"
        if result.date
        else None
    )


def versions_text(result: AuditResult) -> str:
    """The versions behind the figures."""
    versions = [
        f"{plain(name)} {plain(value)}"
        for name, value in result.environment.items()
        if name != "cores"
    ]
    return ", ".join(versions).replace("machine ", "")


def repeat_sentence(result: AuditResult) -> str:
    """Whether the same seed gives the same numbers."""
    seed = plain(result.settings.get("seed"))
    if recorded_rows(result.settings) and "recorded_to" not in result.settings:
        return f"seed {seed} gives the same figures again, on the same recorded rows"
    if result.settings.get("seeded_mechanism") is False:
        return f"seed {seed}; the mechanism draws its own randomness, so the figures will vary"
    return f"seed {seed} gives the same figures again"
