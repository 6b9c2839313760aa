"""The index page of a suite: a row and a small picture per audit, and what changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.environment import package_version
from epsilometer.report import wording
from epsilometer.report.html import TONES, page_environment
from epsilometer.report.wording import bound_against, duration, figure, figure_up, plain
from epsilometer.result import AuditResult, Verdict
from epsilometer.suites.family import Family
from epsilometer.suites.history import Change, Entry, Outcome

# The claim stands at this share of every small picture, so that rows can be compared at a glance.
_CLAIM_AT = 0.5
_WIDTH, _HEIGHT = 96.0, 26.0


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """Everything that the page shows.

    Attributes:
        title: of the suite.
        number: of the run.
        began: when it began, in UTC.
        entries: the audits.
        outcomes: by name.
        changes: by name; also of audits that are gone.
        before: the number of the run that it is compared with; None for the first.
        bounds: by name, the bounds of earlier runs and this one, oldest first.
        pages: by name, the file of the report beside the index.
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
        """The verdict on an entry: that of its audit, unless the family does not let it count."""
        outcome = self.outcomes[entry.name]
        return outcome.word if self.family is None else self.family.word(outcome)

    def status(self, entry: Entry) -> int:
        """The exit status of an entry, see `Outcome.status`."""
        outcome = self.outcomes[entry.name]
        return outcome.status(entry.expected) if self.family is None else self.family.status(entry, outcome)

    def family_properties(self, entry: Entry | None = None) -> dict[str, str]:
        """What a JUnit file says about the family, or about an entry in it."""
        if self.family is None:
            return {}
        if entry is None:
            terms = self.family.terms
            night = {} if terms.night is None else {"family_night": str(terms.night)}
            return {
                "family_confidence": figure(terms.confidence),
                "family_failure_probability": figure_up(terms.failure_probability),
                "family_size": str(self.family.size),
                **night,
                "family_survivors": ", ".join(map(plain, self.family.survivors)),
                "family_refuted_alone": ", ".join(map(plain, self.family.refuted_alone)),
            }
        member = self.family.members.get(entry.name)
        if member is None:
            return {"family": self.family.remark(entry.name)}
        return {
            "family": "survives" if member.survives else self.word(entry),
            "p_value": repr(member.p_value),
            "adjusted_p_value": repr(member.adjusted),
            **({"p_value_note": member.note} if member.note else {}),
        }


def render_index(run: SuiteRun) -> str:
    """The page."""
    rows = [_row(run, entry) for entry in run.entries if entry.name in run.outcomes]
    words = [run.word(entry) for entry in run.entries if entry.name in run.outcomes]
    shown = {"title": plain(run.title, 200), "counts": counted(words)}
    family = [] if run.family is None else run.family.sentences()
    news = [(plain(change.name), plain(change.text, 200)) for change in run.changes.values() if change.is_news]
    page = page_environment().get_template("index.html.j2")
    return page.render(shown, news=news, run=run, rows=rows, family=family, version=package_version())


def counted(words: Any) -> str:
    """How many of each verdict, e.g. "3 refuted, 17 not refuted"."""
    counts = Counter(words)
    order = ("refuted", "refuted alone", "not refuted", "inconclusive", "measured", "error")
    names = {"error": "with an error"}
    return ", ".join(f"{counts[word]} {names.get(word, word)}" for word in order if counts[word]) or "nothing"


def _row(run: SuiteRun, entry: Entry) -> dict[str, Any]:
    outcome = run.outcomes[entry.name]
    result = outcome.result
    change = run.changes.get(entry.name)
    is_alone = run.family is not None and entry.name in run.family.refuted_alone
    row = {"name": plain(entry.name), "page": run.pages.get(entry.name), "verdict": run.word(entry).capitalize()}
    news = {"change": plain(change.text, 200) if change else "", "is_news": bool(change and change.is_news)}
    return {
        **row,
        **news,
        "tone": _tone(result, is_alone),
        "expected": entry.expected is not None and not is_alone and run.status(entry) == 0,
        "family": "" if run.family is None else run.family.remark(entry.name),
        "target": plain(entry.settings.get("mechanism", "")),
        "words": plain(outcome.error, 300) if result is None else _sentences(result),
        "picture": None if result is None else bar(result),
        "line": spark_line(run.bounds.get(entry.name, ())),
        "seconds": "" if result is None else duration(result.seconds),
    }


def _tone(result: AuditResult | None, is_alone: bool) -> str:
    """The colour of a row; a refutation that does not count is shown like one that is in doubt."""
    if result is None:
        return "failed"
    return TONES[Verdict.INCONCLUSIVE if is_alone else result.verdict]


def _sentences(result: AuditResult) -> str:
    """The bound, and what weakens the reading."""
    sentences = wording.bound_sentence(result), wording.reservation_sentence(result)
    return " ".join(filter(None, sentences))


def bar(result: AuditResult) -> dict[str, str | None]:
    """The bound as a bar, with the claim always at the same place; a measurement fills it without a mark."""
    claim = result.claim
    bound = bound_against(result.lower_bound, claim.value)
    if result.verdict is None:
        return {"width": "100%", "claim": None, "words": f"{wording.parameter(claim)} is at least {bound}"}
    # A claim of 0 has no scale.
    share = min(1.0, _CLAIM_AT * result.lower_bound / claim.value) if claim.value > 0.0 else float(result.is_refuted)
    words = f"certified {bound}, claimed {figure(claim.value)}"
    return {"width": f"{100.0 * share:.1f}%", "claim": f"{100.0 * _CLAIM_AT:.0f}%", "words": words}


def spark_line(bounds: Sequence[float]) -> dict[str, str] | None:
    """The bounds of the last runs as a line; None if there are fewer than two."""
    if len(bounds) < 2:
        return None
    top = max(bounds) or 1.0
    step = (_WIDTH - 6.0) / (len(bounds) - 1)
    points = [(3.0 + at * step, _HEIGHT - 4.0 - (_HEIGHT - 8.0) * bound / top) for at, bound in enumerate(bounds)]
    line = [f"{x:.1f},{y:.1f}" for x, y in points]
    words = f"bounds of the last {len(bounds)} runs: {', '.join(map(figure, bounds))}"
    return {"points": " ".join(line), "x": f"{points[-1][0]:.1f}", "y": f"{points[-1][1]:.1f}", "words": words}
