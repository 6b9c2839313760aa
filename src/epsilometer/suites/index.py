"""The index page of a suite: a row and a small picture for each audit, and what changed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.report import wording
from epsilometer.report.formatting import bound_against, duration, figure, figure_up, plain
from epsilometer.report.html import TONES, page_environment
from epsilometer.result import AuditResult, Verdict
from epsilometer.suites.changes import Change
from epsilometer.suites.family import Family
from epsilometer.suites.outcomes import Entry, Outcome

# The claim stands at this fraction of the width of every bar, so that rows can be compared at a
# glance.
_CLAIM_POSITION = 0.5
# The size of the line of earlier bounds, in pixels; the template has the same figures.
_SPARK_WIDTH = 96.0
_SPARK_HEIGHT = 26.0
# Its margins in pixels, which leave room for the dot at the last bound.
_SPARK_MARGIN_X = 3.0
_SPARK_MARGIN_Y = 4.0
# The greatest number of characters of a title or of a change, and of an error.
_MAX_TEXT_LENGTH = 200
_MAX_ERROR_LENGTH = 300
# The order in which verdicts are counted, the most serious first but for errors.
_VERDICT_ORDER = (
    "refuted",
    "refuted alone",
    "not refuted",
    "inconclusive",
    "measured",
    "error",
)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """Everything that the page shows.

    Attributes:
        title: of the suite.
        number: of the run.
        began: the time at which it began, in UTC.
        entries: the audits.
        outcomes: by name.
        changes: by name; also of audits that are gone.
        before: the number of the run with which this one is compared; None for the first run.
        bounds: by name, the bounds of earlier runs and of this one, the oldest first.
        pages: by name, the file of the report in the folder of the index.
        family: the claims that are judged together; None if each is judged alone.
    """

    title: str
    number: int
    began: str
    entries: Sequence[Entry]
    outcomes: Mapping[str, Outcome]
    changes: Mapping[str, Change]
    before: int | None
    bounds: Mapping[str, Sequence[float]]
    pages: Mapping[str, str]
    family: Family | None = None

    def word(self, entry: Entry) -> str:
        """Returns the verdict on an entry: the audit's own, unless the family overrides it."""
        outcome = self.outcomes[entry.name]
        if self.family is None:
            return outcome.word
        return self.family.word(outcome)

    def counts(self) -> str:
        """Returns how many audits have each verdict, and how many could have had no other."""
        entries = [entry for entry in self.entries if entry.name in self.outcomes]
        results = [self.outcomes[entry.name].result for entry in entries]
        n_blind = sum(result is not None and wording.is_blind(result) for result in results)
        text = counted(self.word(entry) for entry in entries)
        return f"{text}; {n_blind} of them could not have been refuted" if n_blind else text

    def status(self, entry: Entry) -> int:
        """Returns the exit status of an entry, see `Outcome.status`."""
        outcome = self.outcomes[entry.name]
        if self.family is None:
            return outcome.status(entry.expected, fail_blind=entry.fail_blind)
        return self.family.status(entry, outcome)

    def family_properties(self, entry: Entry | None = None) -> dict[str, str]:
        """Returns the properties that a JUnit file states about the family, or about one entry.

        Args:
            entry: None for the family.
        """
        if self.family is None:
            return {}
        if entry is None:
            return _properties_of_family(self.family)
        member = self.family.members.get(entry.name)
        if member is None:
            return {"family": self.family.remark(entry.name)}
        properties = {
            "family": "survives" if member.survives else self.word(entry),
            "p_value": repr(member.p_value),
            "adjusted_p_value": repr(member.adjusted),
        }
        if member.note:
            properties["p_value_note"] = member.note
        return properties


def _properties_of_family(family: Family) -> dict[str, str]:
    properties = {
        "family_confidence": figure(family.terms.confidence),
        "family_failure_probability": figure_up(family.terms.failure_probability),
        "family_size": str(family.size),
    }
    if family.terms.night is not None:
        properties["family_night"] = str(family.terms.night)
    properties["family_survivors"] = ", ".join(map(plain, family.survivors))
    properties["family_refuted_alone"] = ", ".join(map(plain, family.refuted_alone))
    return properties


def render_index(run: SuiteRun) -> str:
    """Returns the page as HTML."""
    entries = [entry for entry in run.entries if entry.name in run.outcomes]
    news = [
        (plain(change.name), plain(change.text, _MAX_TEXT_LENGTH))
        for change in run.changes.values()
        if change.is_news
    ]
    template = page_environment().get_template("index.html.j2")
    return template.render(
        title=plain(run.title, _MAX_TEXT_LENGTH),
        counts=run.counts(),
        news=news,
        run=run,
        rows=[_row(run, entry) for entry in entries],
        family=[] if run.family is None else run.family.sentences(),
    )


def counted(words: Iterable[str]) -> str:
    """Returns how many there are of each verdict, e.g. "3 refuted, 17 not refuted"."""
    counts = Counter(words)
    parts = []
    for word in _VERDICT_ORDER:
        if counts[word]:
            name = "with an error" if word == "error" else word
            parts.append(f"{counts[word]} {name}")
    return ", ".join(parts) or "nothing"


def _row(run: SuiteRun, entry: Entry) -> dict[str, Any]:
    """Returns the row of one audit, as the template reads it."""
    outcome = run.outcomes[entry.name]
    result = outcome.result
    change = run.changes.get(entry.name)
    is_alone = run.family is not None and entry.name in run.family.refuted_alone
    is_expected = entry.expected is not None and not is_alone and run.status(entry) == 0
    return {
        "name": plain(entry.name),
        "page": run.pages.get(entry.name),
        "verdict": _verdict(run, entry),
        "change": "" if change is None else plain(change.text, _MAX_TEXT_LENGTH),
        "is_news": change is not None and change.is_news,
        "tone": _tone(result, is_alone),
        "expected": is_expected,
        "family": "" if run.family is None else run.family.remark(entry.name),
        "target": plain(entry.settings.get("mechanism", "")),
        "words": _bound_or_error(outcome),
        "picture": None if result is None else bar(result),
        "line": spark_line(run.bounds.get(entry.name, ())),
        "seconds": "" if result is None else duration(result.seconds),
    }


def _verdict(run: SuiteRun, entry: Entry) -> str:
    """The verdict of an audit, and whether it could have been another."""
    word = run.word(entry).capitalize()
    result = run.outcomes[entry.name].result
    is_blind = result is not None and wording.is_blind(result)
    return f"{word}, and could not have been" if is_blind else word


def _bound_or_error(outcome: Outcome) -> str:
    if outcome.result is None:
        return plain(outcome.error, _MAX_ERROR_LENGTH)
    return _sentences(outcome.result)


def _tone(result: AuditResult | None, is_alone: bool) -> str:
    """Returns the colour of a row; a refutation that does not count looks inconclusive."""
    if result is None:
        return "failed"
    return TONES[Verdict.INCONCLUSIVE if is_alone else wording.coloured_as(result)]


def _sentences(result: AuditResult) -> str:
    """Why nothing could have been refuted, or the bound; and what weakens the reading."""
    says = wording.verdict_sentence if wording.is_blind(result) else wording.bound_sentence
    sentences = says(result), wording.reservation_sentence(result)
    return " ".join(filter(None, sentences))


def bar(result: AuditResult) -> dict[str, str | None]:
    """Returns the bar of a bound, with the claim always at the same place.

    The bar of a measurement fills the whole width and has no mark for a claim.
    """
    claim = result.claim
    bound = bound_against(result.lower_bound, claim.value)
    if result.verdict is None:
        description = f"{wording.parameter(claim)} is at least {bound}"
        return {"width": "100%", "claim": None, "words": description}
    if claim.value > 0.0:
        fraction = min(1.0, _CLAIM_POSITION * result.lower_bound / claim.value)
    else:  # a claim of 0 has no scale
        fraction = 1.0 if result.is_refuted else 0.0
    return {
        "width": f"{100.0 * fraction:.1f}%",
        "claim": f"{100.0 * _CLAIM_POSITION:.0f}%",
        "words": f"certified {bound}, claimed {figure(claim.value)}",
    }


def spark_line(bounds: Sequence[float]) -> dict[str, str] | None:
    """Returns the bounds of the last runs as a line; None if there are fewer than two."""
    if len(bounds) < 2:
        return None
    largest = max(bounds) or 1.0
    step = (_SPARK_WIDTH - 2.0 * _SPARK_MARGIN_X) / (len(bounds) - 1)
    xs = []
    ys = []
    for position, bound in enumerate(bounds):
        x = _SPARK_MARGIN_X + position * step
        y = _SPARK_HEIGHT - _SPARK_MARGIN_Y
        y -= (_SPARK_HEIGHT - 2.0 * _SPARK_MARGIN_Y) * bound / largest
        xs.append(f"{x:.1f}")
        ys.append(f"{y:.1f}")
    return {
        "points": " ".join(f"{x},{y}" for x, y in zip(xs, ys, strict=True)),
        "x": xs[-1],
        "y": ys[-1],
        "words": f"bounds of the last {len(bounds)} runs: {', '.join(map(figure, bounds))}",
    }
