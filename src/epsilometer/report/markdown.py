"""Results in Markdown, for the summary of a job or a comment."""

import re
from collections.abc import Sequence

from epsilometer.report import wording
from epsilometer.report.formatting import bound_against, figure, percent, plain
from epsilometer.report.reservations import reservations
from epsilometer.report.text import render_text
from epsilometer.result import AuditResult, Verdict

_MARKS = {
    Verdict.REFUTED: "❌",
    Verdict.NOT_REFUTED: "✅",
    Verdict.INCONCLUSIVE: "⚠️",
    None: "📏",
}
_NOTHING_FOUND_MARK = "⚪"
_ERROR_MARK = "💥"
# Characters of what weakens a reading, in a cell of a table.
_MAX_RESERVATIONS_CHARACTERS = 400
# Characters of a title and of an error message.
_MAX_MESSAGE_CHARACTERS = 200
# Everything that Markdown, or HTML in it, could read as more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&@:$])")
# Everything that HTML, or Markdown around it, cannot misread.
_HARMLESS = r"\w .,;/=+()…≥≤ε-"


def render_markdown(results: Sequence[AuditResult], title: str = "Privacy audit") -> str:
    """Returns a table with a row per result, and the whole text of each behind a fold."""
    lines = [f"## {escape(plain(title, _MAX_MESSAGE_CHARACTERS))}", ""]
    lines += table_head()
    lines += [table_row(result) for result in results]
    for result in results:
        lines += ["", *folded(result)]
    return "\n".join(lines) + "\n"


def table_head(more: Sequence[str] = ()) -> list[str]:
    """Returns the first two lines of a table of results.

    Args:
        more: names of further columns.
    """
    names = ["", "audit", "verdict", "certified", "claimed", "confidence", *more]
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def table_row(
    result: AuditResult,
    name: str | None = None,
    more: Sequence[str] = (),
    is_expected: bool = False,
    is_alone: bool = False,
) -> str:
    """Returns a result as a row of a table.

    Args:
        result: what was found.
        name: of the audit.
        more: further cells.
        is_expected: whether a refutation is expected.
        is_alone: whether it is a refutation that does not count among many audits.
    """
    mark = _MARKS[wording.coloured_as(result)]
    if wording.is_nothing_found(result):
        mark = _NOTHING_FOUND_MARK
    verdict = wording.headline(result).lower()
    if wording.is_blind(result):
        verdict += f": {plain(result.blind, _MAX_RESERVATIONS_CHARACTERS)}"
    if is_expected:
        mark = _MARKS[Verdict.NOT_REFUTED]
        verdict += " (as expected)"
    elif is_alone:
        mark = _MARKS[Verdict.INCONCLUSIVE]
        verdict += " alone"
    weakened = reservations(result.settings)
    if weakened:
        verdict += f", with {plain(weakened, _MAX_RESERVATIONS_CHARACTERS)}"
    claim = result.claim
    bound = bound_against(result.lower_bound, claim.value)
    cells = [
        plain(name or wording.mechanism_name(result)),
        verdict,
        f"{wording.parameter(claim)} ≥ {bound}",
        "" if result.verdict is None else f"≤ {figure(claim.value)}",
        percent(result.confidence),
        *more,
    ]
    return _row(mark, cells)


def error_row(name: str, message: str, more: Sequence[str] = ()) -> str:
    """Returns a row for an audit that could not be done."""
    cells = [plain(name), "error", plain(message, _MAX_MESSAGE_CHARACTERS), "", "", *more]
    return _row(_ERROR_MARK, cells)


def _row(mark: str, cells: Sequence[str]) -> str:
    escaped = [escape(cell) for cell in cells]
    return f"| {mark} | {' | '.join(escaped)} |"


def folded(result: AuditResult, name: str | None = None) -> list[str]:
    """Returns the whole text of a result, behind a fold."""
    title = plain(name or wording.mechanism_name(result))
    summary = escape_html(f"{title}: {wording.headline(result).lower()}")
    # A block of HTML, not a fenced one: no run of backticks in an output can end it. An empty line
    # would end it; one with an invisible character does not.
    lines = [escape_html(line) or "&#8203;" for line in render_text(result).splitlines()]
    text = "\n".join(lines)
    return [f"<details><summary>{summary}</summary>", "", f"<pre>{text}</pre>", "</details>"]


def escape(text: str) -> str:
    """Returns foreign text so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))


def escape_html(text: str) -> str:
    """Returns foreign text for HTML inside Markdown."""
    return re.sub(f"[^{_HARMLESS}]", lambda match: f"&#{ord(match.group())};", text)
