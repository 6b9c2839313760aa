"""A result as one page of HTML that needs nothing else: no network, no script."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from epsilometer.environment import package_version
from epsilometer.guarantees import parse_guarantee
from epsilometer.outputs.events import LogRatio
from epsilometer.report import figures, wording
from epsilometer.report.bars import ClaimScale, ShareBars, claim_scale, share_bars
from epsilometer.report.formatting import bound_against, figure, figure_down, percent, plain
from epsilometer.report.loss_panel import loss_panel
from epsilometer.report.outputs_svg import outputs_svg
from epsilometer.report.panels import Panel, outputs_panels, panels
from epsilometer.report.reservations import recorded_rows
from epsilometer.report.wording import ReportRow
from epsilometer.result import AuditResult, Finding, Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
# Characters of JSON up to which a result is embedded in the page, so that it alone is enough for a
# replay.
_MAX_JSON_CHARACTERS = 100_000
# Characters of a guarantee, a setting and an error message.
_MAX_VALUE_CHARACTERS = 200
# The class of a verdict in the style sheet.
TONES: dict[Verdict | None, str] = {
    None: "measured",
    Verdict.REFUTED: "refuted",
    Verdict.NOT_REFUTED: "not-refuted",
    Verdict.INCONCLUSIVE: "inconclusive",
}


class Picture(NamedTuple):
    """A picture of the report; the SVG is already escaped, and empty if it could not be drawn."""

    title: str
    caption: str
    svg: str


class FindingRow(NamedTuple):
    """A row of the table of findings."""

    method: str
    bound: str
    guarantee: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the templates print of a result besides its sentences, which they take from `wording`.

    Attributes:
        number: of the result on the page, from 1.
        result: what was found.
        tone: the class of the verdict in the style sheet.
        verdict: in words.
        tiles: the most important figures.
        scale: the bound against the claim.
        is_score: whether the witness is a score of all outputs instead of an event.
        bars: how often the event happened; None without a witness.
        outputs: the distributions of outputs.
        pictures: everything else that is drawn.
        findings: all of them.
        settings: of the audit.
        environment: versions and machine.
        json: the whole result; None if it is too long.
    """

    number: int
    result: AuditResult
    tone: str
    verdict: str
    tiles: list[ReportRow]
    scale: ClaimScale
    is_score: bool
    bars: ShareBars | None
    outputs: list[Picture]
    pictures: list[Picture]
    findings: list[FindingRow]
    settings: list[ReportRow]
    environment: list[ReportRow]
    json: str | None


def render_html(result: AuditResult) -> str:
    """Returns the report of one result."""
    verdict = wording.page_headline(result)
    return render_page([result], f"{verdict}: {wording.mechanism_name(result)}")


def render_page(results: Sequence[AuditResult], title: str) -> str:
    """Returns the reports of some results on one page; several have a table of contents."""
    views = [_view(result, number) for number, result in enumerate(results, start=1)]
    page = page_environment().get_template("page.html.j2")
    return page.render(title=title, views=views, say=wording)


def page_environment() -> "Environment":
    """Returns the templates, with everything escaped: a result may come from a stranger.

    What all templates may use need not be given to each: the functions that write figures and
    foreign texts, the classes of verdicts, and our version.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        plain=plain,
        bound_against=bound_against,
        percent=percent,
        tones=TONES,
        version=package_version(),
    )
    return environment


def shown_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings with the rows of a recording in words; the JSON holds all of them."""
    shown = dict(settings)
    rows = recorded_rows(settings)
    if rows is not None:
        shown["recording"] = rows
    return shown


def _view(result: AuditResult, number: int) -> View:
    # Only ASCII: no character that reverses the direction of text, no lone surrogate that cannot be
    # saved.
    stored = json.dumps(json.loads(result.to_json()), indent=1)
    witness = None if wording.is_blind(result) else result.witness
    return View(
        number=number,
        result=result,
        tone=TONES[wording.coloured_as(result)],
        verdict=wording.page_headline(result),
        tiles=_tiles(result),
        scale=claim_scale(result),
        is_score=witness is not None and isinstance(witness.event, LogRatio),
        bars=None if witness is None else share_bars(witness, result),
        # A picture of noise looks like evidence.
        outputs=[] if wording.is_blind(result) else _output_pictures(result),
        pictures=[] if wording.is_blind(result) else _pictures(result),
        findings=[_finding_row(finding) for finding in result.findings],
        settings=_table(shown_settings(result.settings)),
        environment=_table(result.environment),
        json=stored if len(stored) <= _MAX_JSON_CHARACTERS else None,
    )


def _tiles(result: AuditResult) -> list[ReportRow]:
    claim = result.claim
    bound = bound_against(result.lower_bound, claim.value)
    tiles = [ReportRow(f"{wording.parameter(claim)} is at least", bound)]
    if result.verdict is not None:
        tiles.append(ReportRow("claimed", figure(claim.value)))
    tiles.append(ReportRow("confidence", percent(result.confidence)))
    tiles.append(ReportRow("guarantee", str(parse_guarantee(result.guarantee).kind)))
    return tiles


def _finding_row(finding: Finding) -> FindingRow:
    return FindingRow(
        method=plain(finding.method),
        bound=f"{wording.parameter(finding.claim)} ≥ {figure_down(finding.lower_bound)}",
        guarantee=plain(finding.guarantee, _MAX_VALUE_CHARACTERS),
    )


def _output_pictures(result: AuditResult) -> list[Picture]:
    from markupsafe import Markup

    return [
        Picture(title=panel.title, caption=panel.caption, svg=Markup(outputs_svg(panel)))
        for panel in outputs_panels(result)
    ]


def _pictures(result: AuditResult) -> list[Picture]:
    """The pictures for which the result has data."""
    loss = loss_panel(result)
    drawable: list[Panel] = [] if loss is None else [loss]
    drawable += panels(result)
    return [_picture(panel, result.verdict) for panel in drawable]


def _picture(panel: Panel, verdict: Verdict | None) -> Picture:
    """One picture; it must not cost the report, so one that cannot be drawn is a sentence."""
    from markupsafe import Markup

    try:
        svg = Markup(figures.panel_svg(panel, verdict))
    except Exception as error:
        reason = f"{type(error).__name__}: {plain(error, _MAX_VALUE_CHARACTERS)}"
        return Picture(panel.title, f"This picture could not be drawn ({reason}).", "")
    return Picture(panel.title, panel.caption, svg)


def _table(entries: Mapping[str, Any]) -> list[ReportRow]:
    return [
        ReportRow(plain(name).replace("_", " "), plain(value, _MAX_VALUE_CHARACTERS))
        for name, value in entries.items()
    ]
