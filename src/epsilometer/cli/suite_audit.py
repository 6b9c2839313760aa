"""One audit of a suite, in a worker process."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epsilometer.errors import EpsilometerError
from epsilometer.result import AuditResult


def run_entry(payload: tuple[str, Mapping[str, Any], str]) -> str:
    """Audits what the settings describe, writes its page, and returns the result as JSON.

    Args:
        payload: the suite's file, the settings of one audit, and the file of its page.
    """
    path, settings, page = Path(payload[0]), payload[1], Path(payload[2])
    # What a mechanism prints must not get between the lines of our progress.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = _audit(path, settings)
            write_page(result, page)  # here and not in the parent: pictures take longer than many an audit
            return result.to_json(None)
        except EpsilometerError as error:
            raise SuiteError(str(error)) from error


class SuiteError(EpsilometerError):
    """Already in words for people: the name of the exception adds nothing."""


def write_page(result: AuditResult, page: Path) -> None:
    """The report, and the result as JSON beside it."""
    result.save_html(page)
    page.with_suffix(".json").write_text(result.to_json() + "\n", encoding="utf-8")


def _audit(path: Path, settings: Mapping[str, Any]) -> AuditResult:
    from epsilometer.auditing.public import audit, measure
    from epsilometer.claims import from_parameters
    from epsilometer.cli.notions import find_notion
    from epsilometer.cli.plan import plan_from
    from epsilometer.cli.settings_file import resolve_inputs

    resolved = resolve_inputs(settings, path)
    notion = resolved.pop("notion", None)
    plan = plan_from(str(settings["mechanism"]), resolved, (path.parent.resolve(),))
    if notion is not None:
        kind = find_notion(str(notion), plan.parameters)
        keywords: dict[str, Any] = {**plan.keywords, **plan.parameters}
        result = measure(plan.mechanism, plan.inputs, kind, **keywords)
    else:
        brings_claim = not plan.parameters and getattr(plan.mechanism, "claim", None) is not None
        claim = None if brings_claim else from_parameters(**plan.parameters)
        result = audit(plan.mechanism, plan.inputs, claim, **plan.keywords)
    return dataclasses.replace(result, settings={**result.settings, **plan.record})
