"""One audit of a suite, as a worker process runs it."""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from epsilometer.cli.output import Answers
from epsilometer.errors import EpsilometerError, InputError
from epsilometer.result import AuditResult


class SuiteTask(NamedTuple):
    """What a worker needs for one audit.

    Attributes:
        suite: the suite's file.
        settings: of the audit.
        page: the file of its report.
    """

    suite: str
    settings: Mapping[str, Any]
    page: str


class SuiteError(EpsilometerError):
    """Its text is already meant for people: the name of the exception adds nothing."""


def run_entry(task: SuiteTask) -> str:
    """Audits what the settings describe, writes its page, and returns the result as JSON."""
    home = os.getcwd()
    # What a mechanism prints must not get between the lines of our progress.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = _audit(Path(task.suite), task.settings)
            # Here and not in the parent: pictures often take longer than the audit.
            write_page(result, Path(task.page))
            return result.to_json(None)
        except EpsilometerError as error:
            raise SuiteError(str(error)) from error
        except OSError as error:
            raise SuiteError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
        finally:
            os.chdir(home)  # the next audit of this process begins where this one did


def write_page(result: AuditResult, page: Path) -> None:
    """Writes the report, and the result as JSON beside it."""
    result.save_html(page)
    result.save_json(page.with_suffix(".json"))


def _audit(suite: Path, settings: Mapping[str, Any]) -> AuditResult:
    from epsilometer.auditing.api import audit, measure
    from epsilometer.cli.request import find_notion, request_from_settings
    from epsilometer.cli.settings_file import resolve_inputs

    resolved = resolve_inputs(settings, suite)
    notion = resolved.pop("notion", None)
    folders = (suite.parent.resolve(),)
    request = request_from_settings(str(settings["mechanism"]), resolved, Answers(), folders)
    result: AuditResult
    if notion is None:
        result = audit(request.audit_target, request.inputs, request.claim(), **request.keywords)
    else:
        if request.accountant_claim is not None:
            raise InputError("accountant is a claim, and notion measures without one")
        keywords: dict[str, Any] = {**request.keywords, **request.parameters}
        result = measure(request.audit_target, request.inputs, find_notion(str(notion)), **keywords)
    return dataclasses.replace(result, settings={**result.settings, **request.record})
