"""A result as one page of HTML that needs nothing else: no network, no script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.environment import package_version
from epsilometer.outputs.events import LogRatio
from epsilometer.report import figures, plot_data, wording
from epsilometer.report.figures import loss_svg
from epsilometer.report.panels import outputs_panels, panels
from epsilometer.report.plot_data import loss_panel
from epsilometer.report.wording import bound_against, figure, figure_down, percent, plain
from epsilometer.result import AuditResult, Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
# Results up to this size are embedded in the page, so that it alone is enough for a replay.
_MOST_JSON = 100_000
_SCORE_NOTE = "The bound comes from the whole score. The counts, of the outputs above its middle, only illustrate it."
TONES = {
    Verdict.REFUTED: "refuted",
    Verdict.NOT_REFUTED: "not-refuted",
    Verdict.INCONCLUSIVE: "inconclusive",
    None: "measured",
}


def render_html(result: AuditResult) -> str:
    """The report of one result."""
    return render_page([result], f"{wording.headline(result).capitalize()}: {wording.mechanism_name(result)}")


def render_page(results: Sequence[AuditResult], title: str) -> str:
    """The reports of some results on one page, with a table of contents if there are several."""
    views = [_view(result, number) for number, result in enumerate(results, start=1)]
    return page_environment().get_template("page.html.j2").render(title=title, views=views, version=package_version())


def page_environment() -> Environment:
    """The templates, with everything escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,  # everything in a result may come from a stranger
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _view(result: AuditResult, number: int) -> dict[str, Any]:
    """Everything that the templates print, as text and plot data."""
    from markupsafe import Markup

    # Only ASCII: no character that reverses the direction of text, no lone surrogate that cannot be saved.
    stored = json.dumps(json.loads(result.to_json()), indent=1)
    return {
        "number": number,
        "tone": TONES[result.verdict],
        "verdict": wording.headline(result).capitalize(),
        "name": wording.mechanism_name(result),
        "sentence": wording.verdict_sentence(result),
        "bound_sentence": wording.bound_sentence(result),
        "meaning": wording.meaning_sentence(result),
        "detectable": wording.detectable_sentence(result),
        "is_refuted": result.is_refuted,
        "is_measured": result.verdict is None,
        "promise": wording.promise(result.claim),
        "tiles": _tiles(result),
        "scale": plot_data.claim_scale(result),
        "witness": _witness_view(result),
        "outputs": [(panel.title, Markup(figures.outputs_svg(panel))) for panel in outputs_panels(result)],
        "figures": _figures(result),
        "confidence_sentence": wording.confidence_sentence(result),
        "effort": wording.effort_sentence(result),
        "health": wording.health_lines(result),
        "searched": wording.search_rows(result),
        "replay": wording.replay_hint(result),
        "date": wording.date_text(result),
        "identity": wording.identity_text(result),
        "versions": wording.versions_text(result),
        "stored": wording.stored_name(result),
        "repeat": wording.repeat_sentence(result),
        "json": stored if len(stored) <= _MOST_JSON else None,
        "findings": [_finding_row(result, index) for index in range(len(result.findings))],
        "settings": _table(result.settings),
        "environment": _table(result.environment),
    }


def _tiles(result: AuditResult) -> list[tuple[str, str]]:
    claim = result.claim
    tiles = [(f"{wording.parameter(claim)} is at least", bound_against(result.lower_bound, claim.value))]
    if result.verdict is not None:
        tiles.append(("claimed", figure(claim.value)))
    tiles.append(("confidence", percent(result.confidence)))
    tiles.append(("guarantee", plain(result.guarantee.partition(":")[0])))
    return tiles


def _witness_view(result: AuditResult) -> dict[str, Any] | None:
    witness = result.witness
    if witness is None:
        return None
    is_score = isinstance(witness.event, LogRatio)
    return {
        "label": "Score of all outputs:" if is_score else "Event: the outputs with",
        "note": _SCORE_NOTE if is_score else None,
        "event": wording.event_text(witness),
        "inputs": [wording.input_text(result, witness, side) for side in (0, 1)],
        "difference": wording.difference_text(result, witness),
        "counts": [wording.count_sentence(witness, side) for side in (0, 1)],
        "certified": [wording.certified_sentence(witness, side) for side in (0, 1)],
        "bars": plot_data.share_bars(witness, result),
    }


def _figures(result: AuditResult) -> list[tuple[str, str, Any]]:
    """Title, caption and SVG of every picture; the SVG is already escaped."""
    loss = loss_panel(result)
    shown = [] if loss is None else [_drawn(loss, loss_svg, result.verdict)]
    return shown + [_drawn(panel, figures.panel_svg, result.verdict) for panel in panels(result)]


def _drawn(panel: Any, draw: Callable[[Any, Verdict | None], str], verdict: Verdict | None) -> tuple[str, str, Any]:
    """A picture; one that cannot be drawn is reported as missing, because it must not cost the report."""
    from markupsafe import Markup

    try:
        return panel.title, panel.caption, Markup(draw(panel, verdict))
    except Exception as error:
        return panel.title, f"This picture could not be drawn ({type(error).__name__}: {plain(error, 200)}).", ""


def _finding_row(result: AuditResult, index: int) -> tuple[str, str, str]:
    finding = result.findings[index]
    bound = f"{wording.parameter(finding.claim)} ≥ {figure_down(finding.lower_bound)}"
    return plain(finding.method), bound, plain(finding.guarantee, 200)


def _table(entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(plain(name).replace("_", " "), plain(value, 200)) for name, value in entries.items()]
