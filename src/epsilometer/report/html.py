"""A result as one page of HTML that needs nothing else: no network, no script."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.environment import package_version
from epsilometer.outputs.events import LogRatio
from epsilometer.report import figures, plot_data, wording
from epsilometer.report.panels import Panel, outputs_panels, panels
from epsilometer.report.wording import bound_against, figure, figure_down, percent, plain
from epsilometer.result import AuditResult, Finding, Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
# Results up to this size are embedded in the page, so that it alone is enough for a replay.
_MOST_JSON = 100_000
TONES: dict[Verdict | None, str] = {
    None: "measured",
    **{each: each.value.replace(" ", "-") for each in Verdict},
}


def render_html(result: AuditResult) -> str:
    """The report of one result."""
    return render_page(
        [result], f"{wording.headline(result).capitalize()}: {wording.mechanism_name(result)}"
    )


def render_page(results: Sequence[AuditResult], title: str) -> str:
    """The reports of some results on one page, with a table of contents if there are several."""
    views = [_view(result, number) for number, result in enumerate(results, start=1)]
    page = page_environment().get_template("page.html.j2")
    return page.render(title=title, views=views, say=wording, version=package_version())


def page_environment() -> "Environment":
    """The templates, with everything escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(_TEMPLATES)
    # Escaped because everything in a result may come from a stranger.
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _view(result: AuditResult, number: int) -> dict[str, Any]:
    """What the templates print of a result besides its sentences, which they take from `wording`."""
    from markupsafe import Markup

    # Only ASCII: no character that reverses the direction of text, no lone surrogate that cannot be
    # saved.
    stored = json.dumps(json.loads(result.to_json()), indent=1)
    claim = result.claim
    witness = result.witness
    view: dict[str, Any] = {"number": number, "result": result, "tone": TONES[result.verdict]}
    settings = dict(result.settings)
    if (rows := wording.recorded_rows(settings)) is not None:  # the whole is in the JSON below
        settings["recording"] = rows
    view |= {"settings": _table(settings), "environment": _table(result.environment)}
    return view | {
        "verdict": wording.headline(result).capitalize(),
        "tiles": [
            (
                f"{wording.parameter(claim)} is at least",
                bound_against(result.lower_bound, claim.value),
            ),
            *([] if result.verdict is None else [("claimed", figure(claim.value))]),
            ("confidence", percent(result.confidence)),
            ("guarantee", plain(result.guarantee.partition(":")[0])),
        ],
        "scale": plot_data.claim_scale(result),
        "is_score": witness is not None and isinstance(witness.event, LogRatio),
        "bars": None if witness is None else plot_data.share_bars(witness, result),
        "outputs": [
            (panel.title, Markup(figures.outputs_svg(panel))) for panel in outputs_panels(result)
        ],
        "figures": _figures(result),
        "json": stored if len(stored) <= _MOST_JSON else None,
        "findings": list(map(_finding, result.findings)),
    }


def _finding(finding: Finding) -> tuple[str, str, str]:
    bound = f"{wording.parameter(finding.claim)} ≥ {figure_down(finding.lower_bound)}"
    return plain(finding.method), bound, plain(finding.guarantee, 200)


def _figures(result: AuditResult) -> list[tuple[str, str, Any]]:
    """Title, caption and SVG of every picture; the SVG is already escaped."""
    every = plot_data.loss_panel(result), *panels(result)
    return [_drawn(panel, result.verdict) for panel in every if panel is not None]


def _drawn(panel: Panel, verdict: Verdict | None) -> tuple[str, str, Any]:
    """A picture; one that cannot be drawn is reported as missing, because it must not cost the report."""
    from markupsafe import Markup

    try:
        return panel.title, panel.caption, Markup(figures.panel_svg(panel, verdict))
    except Exception as error:
        return (
            panel.title,
            f"This picture could not be drawn ({type(error).__name__}: {plain(error, 200)}).",
            "",
        )


def _table(entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(plain(name).replace("_", " "), plain(value, 200)) for name, value in entries.items()]
