"""A result in plain text: no colour, no markup, no control characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from epsilometer.report import wording
from epsilometer.report.showing import plain
from epsilometer.result import AuditResult, Finding, Verdict, Witness

_WIDTH = 100
_INDENT = 2
# The longest label, "would be seen", and a gap.
LABEL = 15

Row = tuple[str, str]


def render_text(result: AuditResult) -> str:
    """The result in plain words, ready to be printed or logged."""
    lines = [f"{wording.headline(result)}: {wording.verdict_sentence(result)}", ""]
    for title, rows in sections(result):
        if title:
            lines += ["", " " * _INDENT + title]
        for label, text in rows:
            lines += _lay_out(label, text)
    return "\n".join(lines)


def sections(result: AuditResult) -> Iterator[tuple[str, list[Row]]]:
    """Titles with rows of a label and a text; the first title is empty."""
    yield "", list(_bound_rows(result))
    if result.witness is not None:
        title = "Counterexample" if result.verdict is Verdict.REFUTED else "Strongest evidence"
        yield title, _witness_rows(result, result.witness)
    if len(result.findings) > 1:
        yield "Beside it", [row for finding in result.findings[1:] for row in _beside_rows(finding)]
    yield "This run", list(_run_rows(result))


def _beside_rows(finding: Finding) -> list[Row]:
    """A finding that did not decide: its bound, its guarantee, and its event."""
    rows = [(plain(finding.method)[: LABEL - 1], wording.beside_sentence(finding))]
    return rows if finding.witness is None else [*rows, ("event", wording.event_text(finding.witness))]


def _bound_rows(result: AuditResult) -> Iterator[Row]:
    yield "bound", wording.bound_sentence(result)
    yield "confidence", wording.confidence_sentence(result)
    detectable = wording.detectable_sentence(result)
    if detectable:
        yield "would be seen", detectable
    yield "meaning", wording.meaning_sentence(result)


def _witness_rows(result: AuditResult, witness: Witness) -> list[Row]:
    counts = [", ".join([wording.count_sentence(witness, i), wording.certified_sentence(witness, i)]) for i in (0, 1)]
    return [
        ("left input", wording.input_text(result, witness, 0)),
        ("right input", wording.input_text(result, witness, 1)),
        ("event", wording.event_text(witness)),
        ("under left", counts[0]),
        ("under right", counts[1]),
    ]


def _run_rows(result: AuditResult) -> Iterator[Row]:
    yield "samples", wording.effort_sentence(result)
    for line in wording.health_lines(result) or ["the health checks saw nothing unusual"]:
        yield "draws", line
    yield "repeat", wording.repeat_sentence(result)
    hint = wording.replay_hint(result)
    if hint:
        yield "replay", hint


def _lay_out(label: str, text: str) -> list[str]:
    first = " " * (2 * _INDENT) + label.ljust(LABEL)
    rest = " " * len(first)
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [
        first.rstrip()
    ]
