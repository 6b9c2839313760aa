"""Runs an audit on behalf of a command: progress, the mechanism's own prints, and where the answer goes."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.cli.status import status_of
from epsilometer.errors import MechanismError

if TYPE_CHECKING:
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult


def run(work: Callable[[ProgressBar], AuditResult], record: Mapping[str, Any]) -> AuditResult:
    """Does the work and adds to the result's settings what the command line knows.

    Args:
        work: gets a progress.
        record: what is added.
    """
    from epsilometer.report.progress import ProgressBar

    # What a mechanism prints must not get between the lines of our answer.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = work(ProgressBar())
        except SystemExit as error:
            # Its status would pass for our verdict.
            raise MechanismError(f"the mechanism tried to end the program: SystemExit({error.code!r})") from error
    return dataclasses.replace(result, settings={**result.settings, **record})


def deliver(
    result: AuditResult,
    json_file: str | None,
    html_file: str | None,
    junit_file: str | None = None,
    markdown_file: str | None = None,
) -> int:
    """Prints the result, writes what was asked for, and gives the exit status."""
    stored = result.to_json() + "\n"
    if json_file == "-":
        sys.stdout.write(stored)
    else:
        from epsilometer.report.terminal import show_result

        show_result(result)
    if json_file not in (None, "-"):
        Path(str(json_file)).write_text(stored, encoding="utf-8")
    if html_file is not None:
        result.save_html(html_file)
    if junit_file is not None:
        from epsilometer.report.junit import render_junit

        Path(junit_file).write_text(render_junit([result]), encoding="utf-8")
    if markdown_file is not None:
        from epsilometer.report.markdown import render_markdown

        Path(markdown_file).write_text(render_markdown([result]), encoding="utf-8")
    return status_of(result)
