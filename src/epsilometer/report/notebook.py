"""What a notebook shows: results, profiles and audits of scores as fragments of HTML, and figures.

Nothing here has a style sheet or a script: everything stands in the elements themselves, and
everything foreign is escaped.
"""

import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from epsilometer.report import bars, wording
from epsilometer.report.formatting import figure, figure_down, figure_up, percent, plain
from epsilometer.report.reservations import reservations
from epsilometer.report.wording import SIDES, ReportRow, known_rows
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from epsilometer.auditing.one_run_audit import OneRunAudit
    from epsilometer.auditing.profile import Profile
    from epsilometer.auditing.score_audit import ScoreAudit
    from epsilometer.report.panels import OutputsPanel

# Readable on white and on dark grey alike: which one a notebook has is unknown.
_TONES = {
    Verdict.REFUTED: "#d64540",
    Verdict.NOT_REFUTED: "#1d8f8a",
    Verdict.INCONCLUSIVE: "#b8860b",
    None: "#5b6fd6",
}
_BADGE_STYLE = "color:#fff;padding:1px 8px;border-radius:9px;font-size:85%;font-weight:600"
_CELL_STYLE = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:none"
_LEGEND = (
    '<span style="color:#2c64c4">■</span> left '
    '<span style="color:#b4570f">■</span> right '
    '<span style="color:#8888">■</span> event'
)
# Dots per inch of a picture below a cell.
_RESOLUTION = 110
# The δ at which a fragment shows the ε of a profile.
_FRAGMENT_DELTAS = (0.0, 1e-6, 1e-4, 1e-2)
# Characters of a remark of a health check, at whose end stands what to do.
_MAX_REMARK_CHARACTERS = 600
# The false-positive rate at which the observed and the certified power of scores are shown.
_FALSE_POSITIVE_RATE = 0.01


def render_fragment(result: AuditResult) -> str:
    """Returns the verdict, bound against claim, both distributions of outputs, and the event."""
    from epsilometer.report.panels import outputs_panels

    tone = _TONES[wording.coloured_as(result)]
    parts = [_badge_line(wording.headline(result), wording.verdict_sentence(result), tone)]
    reservation = wording.reservation_sentence(result)
    if reservation is not None:
        parts.append(f"<div><i>{escape(reservation)}</i></div>")
    sentences = f"{wording.bound_sentence(result)} {wording.meaning_sentence(result)}"
    parts.append(f"<div>{escape(sentences)}</div>")
    parts.append(_claim_bar(result, tone))
    distributions = [] if wording.is_blind(result) else outputs_panels(result)
    if distributions:
        parts.append(_outputs_picture(distributions[0]))
    parts.append(_table(_result_rows(result)))
    return _framed(parts, tone)


def _result_rows(result: AuditResult) -> list[ReportRow]:
    rows: list[tuple[str, str | None]] = []
    witness = result.witness
    if witness is not None and not wording.is_blind(result):
        rows.append(("event", wording.event_text(witness)))
        for side, name in enumerate(SIDES):
            dataset = wording.input_text(result, witness, side)
            rows.append((name, f"{dataset}: {wording.count_sentence(witness, side)}"))
        rows.append(("difference", wording.difference_text(result, witness)))
    rows.append(("confidence", wording.confidence_sentence(result)))
    rows += wording.power_rows(result)
    rows += wording.search_rows(result)
    rows += [("draws", line) for line in wording.health_lines(result)]
    return known_rows(*rows)


def _claim_bar(result: AuditResult, tone: str) -> str:
    """The bar of the bound with a mark at the claim."""
    scale = bars.claim_scale(result)
    mark = ""
    if scale.claim is not None:
        x = scale.claim.x
        mark = f'<line x1="{x}" x2="{x}" y1="0" y2="18" stroke="currentColor" stroke-width="2"/>'
    label = escape(scale.description)
    return (
        f'<svg width="100%" height="18" role="img" aria-label="{label}" style="max-width:32em">'
        '<rect width="100%" y="4" height="10" rx="3" fill="currentColor" opacity=".12"/>'
        f'<rect width="{scale.bound.x}" y="4" height="10" rx="3" fill="{tone}"/>{mark}</svg>'
    )


def _outputs_picture(panel: "OutputsPanel") -> str:
    from epsilometer.report.outputs_svg import outputs_svg

    style = "max-width:32em;font-size:90%;fill:currentColor"
    return f'<div style="{style}">{_LEGEND}{outputs_svg(panel)}</div>'


def render_profile_fragment(profile: "Profile") -> str:
    """Returns the certified ε at some δ, and μ, of a profile."""
    tone = _TONES[Verdict.INCONCLUSIVE if profile.is_untrusted else None]
    return _framed(_profile_parts(profile, "Privacy profile"), tone)


def render_scores_fragment(audit: "ScoreAudit") -> str:
    """Returns what canary scores certify, and what was observed."""
    rate = percent(_FALSE_POSITIVE_RATE)
    lower, upper = audit.auroc_interval
    observed = [
        ReportRow(
            "AUROC",
            f"{figure(audit.auroc)} observed, from {figure_down(lower)} to {figure_up(upper)}",
        ),
        ReportRow(
            f"power at {rate} FPR",
            f"at least {figure_down(audit.tpr_lower(_FALSE_POSITIVE_RATE))}, "
            f"observed {figure(audit.tpr(_FALSE_POSITIVE_RATE))}",
        ),
        ReportRow(
            "scores",
            f"{len(audit.in_scores):,} held in, {len(audit.out_scores):,} held out; perfectly "
            f"separated they would show ε = {figure_down(audit.greatest_epsilon(0.0))} at δ = 0, "
            "and no more",
        ),
    ]
    parts = _profile_parts(audit.profile, "Membership scores", observed)
    return _framed(parts, _TONES[None])


def render_one_run_fragment(audit: "OneRunAudit") -> str:
    """Returns what the canaries of one training run certify, and how many were guessed right."""
    confidence = percent(audit.confidence)
    sentence = f"Each bound holds by itself, with {confidence} confidence (exact)."
    rows = [
        ReportRow(f"ε at δ = {delta:g}", f"at least {figure_down(audit.epsilon(delta))}")
        for delta in _FRAGMENT_DELTAS
    ]
    clearest = audit.clearest_guesses
    rows += [
        ReportRow("μ", f"at least {figure_down(audit.mu)}"),
        ReportRow("canaries", f"{audit.canaries:,}, of which {audit.included:,} were included"),
        ReportRow("guesses", f"e.g. {clearest.v:,} of {clearest.r:,} right"),
    ]
    parts = [
        _badge_line("One training run", "", _TONES[None]),
        f"<div>{escape(sentence)}</div>",
        _table(rows),
    ]
    return _framed(parts, _TONES[None])


def _profile_parts(
    profile: "Profile", title: str, more_rows: Sequence[ReportRow] = ()
) -> list[str]:
    name = plain(profile.settings.get("target") or profile.settings.get("mechanism") or "")
    confidence = percent(profile.confidence)
    parts = [_badge_line(title, name, _TONES[None])]
    if profile.is_untrusted:
        tone = _TONES[Verdict.INCONCLUSIVE]
        sentence = "The draws cannot be trusted, so these figures say nothing."
        parts = [_badge_line(title, sentence, tone)]
    weakened = reservations(profile.settings)
    if weakened is not None:
        parts.append(f"<div><i>{escape(f'With {weakened}.')}</i></div>")
    guarantee = plain(profile.guarantee, 200)
    sentence = f"All bounds hold together, with {confidence} confidence (guarantee: {guarantee})."
    parts.append(f"<div>{escape(sentence)}</div>")
    rows = [
        ReportRow(f"ε at δ = {delta:g}", f"at least {figure_down(profile.epsilon(delta))}")
        for delta in _FRAGMENT_DELTAS
    ]
    rows.append(ReportRow("μ", f"at least {figure_down(profile.mu)}"))
    rows += more_rows
    left, right = profile.samples_used
    if not more_rows:
        rows.append(ReportRow("draws", f"{left:,} left, {right:,} right"))
    for report in profile.health:
        remark = plain(report.message, _MAX_REMARK_CHARACTERS)
        rows.append(ReportRow("draws", f"{plain(report.name)}: {remark}"))
    parts.append(_table(rows))
    return parts


def for_notebooks(picture: "Figure") -> "Figure":
    """Returns the figure, so that every notebook shows it as the last value of a cell.

    It does so whatever the notebook set up for matplotlib.
    """

    def as_png() -> bytes:
        file = io.BytesIO()
        picture.savefig(file, format="png", dpi=_RESOLUTION, facecolor="white")
        return file.getvalue()

    # IPython looks this name up; it is unknown to matplotlib's types.
    setattr(picture, "_repr_png_", as_png)  # noqa: B010
    return picture


def _framed(parts: Iterable[str], tone: str) -> str:
    style = f"border-left:4px solid {tone};padding:4px 0 4px 12px;max-width:52em"
    return "\n".join([f'<div style="{style}">', *parts, "</div>"])


def _badge_line(badge: str, sentence: str, tone: str) -> str:
    style = f"background:{tone};{_BADGE_STYLE}"
    return f'<div><span style="{style}">{escape(badge)}</span> <b>{escape(sentence)}</b></div>'


def _table(rows: Iterable[ReportRow]) -> str:
    lines = []
    for label, text in rows:
        label_cell = f'<td style="{_CELL_STYLE};opacity:.7">{escape(label)}</td>'
        text_cell = f'<td style="{_CELL_STYLE}">{escape(text)}</td>'
        lines.append(f"<tr>{label_cell}{text_cell}</tr>")
    return f'<table style="border:0;margin:4px 0">{"".join(lines)}</table>'
