"""A result as a fragment of HTML for notebooks: styles are inline, so that nothing else on the page changes."""

from __future__ import annotations

from html import escape

from epsilometer.report import plot_data, wording
from epsilometer.result import AuditResult, Verdict

# Readable on white and on dark grey alike: a notebook does not tell which it is.
_TONES = {Verdict.REFUTED: "#d64540", Verdict.NOT_REFUTED: "#1d8f8a", Verdict.INCONCLUSIVE: "#b8860b", None: "#5b6fd6"}
_CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:none"


def render_fragment(result: AuditResult) -> str:
    """Verdict, bound against claim, and the counted event."""
    tone = _TONES[result.verdict]
    badge = f"background:{tone};color:#fff;padding:1px 8px;border-radius:9px;font-size:85%;font-weight:600"
    parts = [
        f'<div style="border-left:4px solid {tone};padding:4px 0 4px 12px;max-width:52em">',
        f'<div><span style="{badge}">{escape(wording.headline(result))}</span> '
        f"<b>{escape(wording.verdict_sentence(result))}</b></div>",
        f"<div>{escape(wording.bound_sentence(result))} {escape(wording.meaning_sentence(result))}</div>",
        _scale(result, tone),
        f'<table style="border:0;margin:4px 0">{"".join(map(_row, _rows(result)))}</table>',
        "</div>",
    ]
    return "\n".join(parts)


def _scale(result: AuditResult, tone: str) -> str:
    """The bar of the bound with a mark at the claim."""
    scale = plot_data.claim_scale(result)
    mark = ""
    if scale.claim is not None:
        mark = (
            f'<line x1="{scale.claim.x}" x2="{scale.claim.x}" y1="0" y2="18" stroke="currentColor" stroke-width="2"/>'
        )
    return (
        f'<svg width="100%" height="18" role="img" aria-label="{escape(scale.description)}" style="max-width:32em">'
        '<rect width="100%" y="4" height="10" rx="3" fill="currentColor" opacity=".12"/>'
        f'<rect width="{scale.bound.x}" y="4" height="10" rx="3" fill="{tone}"/>{mark}</svg>'
    )


def _rows(result: AuditResult) -> list[tuple[str, str]]:
    rows = []
    witness = result.witness
    if witness is not None:
        rows.append(("event", wording.event_text(witness)))
        for side, name in enumerate(("left", "right")):
            text = f"{wording.input_text(result, witness, side)}: {wording.count_sentence(witness, side)}"
            rows.append((name, text))
    rows.append(("confidence", wording.confidence_sentence(result)))
    detectable = wording.detectable_sentence(result)
    if detectable:
        rows.append(("would be seen", detectable))
    rows += [("draws", line) for line in wording.health_lines(result)]
    return rows


def _row(row: tuple[str, str]) -> str:
    label, text = row
    return f'<tr><td style="{_CELL};opacity:.7">{escape(label)}</td><td style="{_CELL}">{escape(text)}</td></tr>'
