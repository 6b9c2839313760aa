"""The page of an audit of canary scores, from many training runs or from one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsilometer.claims import Claim
from epsilometer.report.formatting import figure_down, figure_up
from epsilometer.report.html import page_environment
from epsilometer.report.wording import ReportRow

if TYPE_CHECKING:
    from epsilometer.auditing.claim_check import ClaimCheck
    from epsilometer.auditing.one_run_audit import OneRunAudit
    from epsilometer.auditing.score_audit import ScoreAudit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the page says to the question that was asked, be it about a claim or about ε at a δ.

    Attributes:
        check: of the claim; None without one.
        p_value: of the claim, in figures; None without one.
        blind: one sentence, if so few scores could not have refuted the claim; else None.
        delta: the δ that was asked about; None if none was.
        epsilon: the bound at this δ, in figures; None if none was asked for.
    """

    check: "ClaimCheck | None" = None
    p_value: str | None = None
    blind: str | None = None
    delta: float | None = None
    epsilon: str | None = None


def render_canary_page(
    template: str,
    audit: "ScoreAudit | OneRunAudit",
    claim: Claim | None,
    delta: float | None,
    *,
    picture: str,
    readings: Sequence[ReportRow],
) -> str:
    """Returns a page that needs nothing else.

    Args:
        template: one that extends `canaries.html.j2`.
        audit: what the scores show.
        claim: judged on the page, if given.
        delta: the page says the bound on ε at this δ, if given.
        picture: an SVG element.
        readings: the figures below it.
    """
    from markupsafe import Markup

    page = page_environment().get_template(template)
    return page.render(
        audit=audit,
        answer=_answer(audit, claim, delta),
        picture=Markup(picture),
        readings=readings,
        json=json.dumps(audit.to_dict(), indent=1),
    )


def _answer(audit: "ScoreAudit | OneRunAudit", claim: Claim | None, delta: float | None) -> Answer:
    epsilon = None if delta is None else figure_down(audit.epsilon(delta))
    if claim is None:
        return Answer(delta=delta, epsilon=epsilon)
    return Answer(
        check=audit.check(claim),
        p_value=figure_up(audit.p_value(claim)),
        blind=audit.blind(claim),
        delta=delta,
        epsilon=epsilon,
    )
