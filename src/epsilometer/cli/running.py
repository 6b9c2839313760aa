"""Runs an audit on behalf of a command: progress, the mechanism's own prints, and where the answer goes."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.cli.status import status_of
from epsilometer.errors import MechanismError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from epsilometer.result import AuditResult

# Work that is over sooner needs no progress bar.
_PATIENCE = 1.0


class TerminalProgress:
    """Counts drawn outputs and shows a bar once the work has taken a second."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._drawn = 0
        self._began = time.monotonic()
        self._bar: RichProgress | None = None

    def advance(self, n: int) -> None:
        """n more outputs were drawn."""
        self._drawn += n
        if self._bar is None:
            if time.monotonic() - self._began < _PATIENCE:
                return
            self._bar = _open_bar(self._total)
        self._bar.update(self._bar.task_ids[0], completed=self._drawn)

    def tell(self, text: str) -> None:
        """Something about the state of the work, shown beside the bar."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()


def run(work: Callable[[TerminalProgress | None], AuditResult], samples: int, record: Mapping[str, Any]) -> AuditResult:
    """Does the work and adds to the result's settings what the command line knows.

    Args:
        work: gets a progress or None.
        samples: draws per side, for the progress.
        record: what is added.
    """
    # What a mechanism prints must not get between the lines of our answer.
    with contextlib.redirect_stdout(sys.stderr), _shown_progress(samples) as progress:
        try:
            result = work(progress)
        except SystemExit as error:
            # Its status would pass for our verdict.
            raise MechanismError(f"the mechanism tried to end the program: SystemExit({error.code!r})") from error
    return dataclasses.replace(result, settings={**result.settings, **record})


def default_samples(keywords: Mapping[str, Any]) -> int:
    """Draws per side if none are given."""
    import inspect

    from epsilometer.auditing.public import audit

    default: int = inspect.signature(audit).parameters["samples"].default
    return int(keywords.get("samples", default))


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


@contextlib.contextmanager
def _shown_progress(samples: int) -> Iterator[TerminalProgress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    progress = TerminalProgress(2 * samples)
    try:
        yield progress
    finally:
        progress.close()


def _open_bar(total: int) -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("drawing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("drawing", total=total)
    bar.start()
    return bar
