"""Results as Markdown, for the summary page of a job and for a comment on a change."""

from __future__ import annotations

import re
from collections.abc import Sequence

from epsilometer.report import wording
from epsilometer.report.showing import bound_against, figure, percent, plain
from epsilometer.report.text import render_text
from epsilometer.result import AuditResult, Verdict

_MARKS = {Verdict.REFUTED: "❌", Verdict.NOT_REFUTED: "✅", Verdict.INCONCLUSIVE: "⚠️", None: "📏"}
# Everything that Markdown or the HTML in it could take for more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&@:$])")


def render_markdown(results: Sequence[AuditResult], title: str = "Privacy audit") -> str:
    """A table with a row per result, and the whole text of each behind a fold."""
    lines = [f"## {escape(plain(title, 200))}", "", *table_head()]
    lines += [table_row(result) for result in results]
    for result in results:
        lines += ["", *folded(result)]
    return "\n".join(lines) + "\n"


def table_head(more: Sequence[str] = ()) -> list[str]:
    """The two first lines of a table of results."""
    names = ["", "audit", "verdict", "certified", "claimed", "confidence", *more]
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def table_row(result: AuditResult, name: str | None = None, more: Sequence[str] = (), is_expected: bool = False) -> str:
    """A result as a row of a table.

    Args:
        result: what was found.
        name: of the audit.
        more: further cells.
        is_expected: whether a refutation is no news.
    """
    claim = result.claim
    cells = [
        plain(name or wording.mechanism_name(result)),
        wording.headline(result).lower() + (" (as expected)" if is_expected else ""),
        f"{wording.parameter(claim)} ≥ {bound_against(result.lower_bound, claim.value)}",
        "" if result.verdict is None else f"≤ {figure(claim.value)}",
        percent(result.confidence),
        *more,
    ]
    mark = _MARKS[Verdict.NOT_REFUTED if is_expected else result.verdict]
    return f"| {mark} | " + " | ".join(escape(cell) for cell in cells) + " |"


def error_row(name: str, message: str, more: Sequence[str] = ()) -> str:
    """A row for an audit that could not be done."""
    cells = [plain(name), "error", plain(message, 200), "", "", *more]
    return "| 💥 | " + " | ".join(escape(cell) for cell in cells) + " |"


def folded(result: AuditResult, name: str | None = None) -> list[str]:
    """The whole text of a result, behind a fold."""
    summary = escape_html(f"{plain(name or wording.mechanism_name(result))}: {wording.headline(result).lower()}")
    # A block of HTML, not a fenced one: no run of backticks in an output can end it.
    return [f"<details><summary>{summary}</summary>", "", f"<pre>{_as_pre(render_text(result))}</pre>", "</details>"]


def escape(text: str) -> str:
    """Foreign text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))


def escape_html(text: str) -> str:
    """Foreign text inside HTML inside Markdown."""
    return re.sub(r"[^\w .,;/=+()…≥≤ε-]", lambda found: f"&#{ord(found.group())};", text)


def _as_pre(text: str) -> str:
    # An empty line would end the block of HTML; one with a character in it does not.
    return "\n".join(escape_html(line) or "&#8203;" for line in text.splitlines())
