"""`epsilometer run`: many audits of one file, with their progress, history, pages and exit status."""

import contextlib
import dataclasses
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli import options
from epsilometer.cli.files import own_output, writable, write_all
from epsilometer.cli.listing import history_path, print_outcomes
from epsilometer.cli.request import public_target
from epsilometer.cli.suite_file import read_suite
from epsilometer.errors import EpsilometerError, InputError, public
from epsilometer.report import ci
from epsilometer.report.text import COLOURS
from epsilometer.report.wording import duration, figure_down, plain
from epsilometer.result import AuditResult
from epsilometer.storage.writing import write_whole
from epsilometer.suites import Entry, History, Outcome, find_changes, run_tasks, status_over_all
from epsilometer.suites.index import SuiteRun, counted, render_index
from epsilometer.suites.workers import Job

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


# Rows of the table on a terminal: what runs now, and what ended last.
_MOST_ROWS = 16


@contextlib.contextmanager
def open_progress(total: int) -> "Iterator[_Lines]":
    """The progress of `total` audits, as it suits standard output."""
    if not own_output().isatty() or not total:
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=own_output()), refresh_per_second=4, transient=True) as live:
        yield _LiveTable(live, total)


class _Lines:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def started(self, name: str) -> None:
        pass  # not worth a line

    def finished(self, outcome: Outcome) -> None:
        self._done += 1
        width = len(str(self._total))
        line = f"[{self._done:{width}}/{self._total}] {outcome.word:12} {plain(outcome.name)}  {_figures(outcome)}"
        own_output().write(line.rstrip() + "\n")
        own_output().flush()


class _LiveTable(_Lines):
    def __init__(self, live: "Live", total: int) -> None:
        super().__init__(total)
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._ended: list[Outcome] = []
        live.get_renderable = self._table  # type: ignore[method-assign]  # drawn anew at every refresh, for the clock

    def started(self, name: str) -> None:
        self._running[name] = time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        self._running.pop(outcome.name, None)
        self._ended.append(outcome)
        self._done += 1

    def _table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        title = f"{self._done} of {self._total} audits, {duration(now - self._began)}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for header in ("audit", "verdict", "bound", "time"):
            table.add_column(header)
        for outcome in self._ended[-max(_MOST_ROWS - len(self._running), 1) :]:
            result = outcome.result
            colour, seconds = ("magenta", "") if result is None else (COLOURS[result.verdict], duration(result.seconds))
            verdict = Text(outcome.word, style=colour)
            table.add_row(Text(plain(outcome.name, 40)), verdict, Text(_figures(outcome)), seconds)
        for name, began in self._running.items():
            table.add_row(Text(plain(name, 40)), Text("running", style="dim"), "", duration(now - began))
        return table


def _figures(outcome: Outcome) -> str:
    if outcome.result is None:
        return plain(outcome.error, 120)
    return f"{outcome.result.claim.symbol} ≥ {figure_down(outcome.result.lower_bound)}"


def run_entry(payload: tuple[str, Mapping[str, Any], str]) -> str:
    """Audits what the settings describe, writes its page, and returns the result as JSON.

    Args:
        payload: the suite's file, the settings of one audit, and the file of its page.
    """
    path, settings, page = Path(payload[0]), payload[1], Path(payload[2])
    home = os.getcwd()
    # What a mechanism prints must not get between the lines of our progress.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = _audit(path, settings)
            write_page(result, page)  # here and not in the parent: pictures often take longer than the audit
            return result.to_json(None)
        except EpsilometerError as error:
            raise SuiteError(str(error)) from error
        except OSError as error:
            raise SuiteError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
        finally:
            os.chdir(home)  # the next audit of this process begins where this one did


class SuiteError(EpsilometerError):
    """Its text is already meant for people: the name of the exception adds nothing."""


def write_page(result: AuditResult, page: Path) -> None:
    """The report, and the result as JSON beside it."""
    result.save_html(page)
    result.save_json(page.with_suffix(".json"))


def _audit(path: Path, settings: Mapping[str, Any]) -> AuditResult:
    from epsilometer.auditing.public import audit, measure
    from epsilometer.cli.request import find_notion, plan_from
    from epsilometer.cli.settings_file import resolve_inputs

    resolved = resolve_inputs(settings, path)
    notion = resolved.pop("notion", None)
    plan = plan_from(str(settings["mechanism"]), resolved, (path.parent.resolve(),))
    if notion is None:
        result = audit(plan.mechanism, plan.inputs, plan.claim(), **plan.keywords)
    else:
        keywords: dict[str, Any] = {**plan.keywords, **plan.parameters}
        result = measure(plan.mechanism, plan.inputs, find_notion(str(notion)), **keywords)
    return dataclasses.replace(result, settings={**result.settings, **plan.record})


# Earlier runs that the small line of an index row shows.
_MOST_BOUNDS = 12


@options.takes("junit markdown")
def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="A TOML file with one [[audit]] per audit.")],
    jobs: Annotated[int | None, typer.Option(help="Audits at a time.  [default: one per core]")] = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="For index.html and a page per audit.")
    ] = "epsilometer-report",
    history: Annotated[
        str | None, typer.Option(metavar="FILE", help="[default: SUITE.history.sqlite beside the suite]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not resume an interrupted run.")] = False,
    **files: str | None,
) -> int:
    """Run many audits from one file, and show what changed since the last run.

    Every result is stored as soon as it is there: a run that was interrupted or killed resumes where it was. Keys
    above the first [[audit]] are defaults; each audit takes the keys of audit.toml, and name, expect ("refuted" for a
    mechanism that is known to be broken), notion (to measure instead), time_limit (seconds).

    suite.toml:
      samples = 50000
      seed = 0
      [[audit]]
      mechanism = "my_module:noisy_count"
      pairs = [[[0, 1], [1, 1]]]
      epsilon = 1.0
      [[audit]]
      mechanism = "zoo:svt5"
      expect = "refuted"

    The exit status is 2 if an audit could not be done, else 1 if a claim is refuted (or is not, though "refuted" was
    expected), else 3 if an audit is inconclusive, else 0.
    """
    title, entries = read_suite(Path(suite))
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs {jobs} must be at least 1")
    written = {name: writable(files[name], f"--{name}") for name in _RENDERED}
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}") from error
    folder = Path(out).absolute()
    with History(history_path(suite, history)) as past:
        number = past.open_run(fresh)
        known = past.outcomes(number)
        # Outcomes of an interrupted run are still valid if they are no errors, and nothing has changed since.
        done_before = {name: each.digest for name, each in known.items() if each.result is not None}
        rest = [entry for entry in entries if done_before.get(entry.name) != entry.digest]
        kept = {entry.name: known[entry.name] for entry in entries if entry not in rest}
        if kept:
            own_output().write(f"resuming run {number}: {len(kept)} of {len(entries)} audits are done\n")
        pages, file = _page_names(entries), os.path.abspath(suite)
        tasks = [Job((file, dict(entry.settings), str(folder / pages[entry.name])), entry.seconds) for entry in rest]
        outcomes = kept | _audit_all(rest, tasks, jobs or os.cpu_count() or 1, past, number)
        past.close_run(number)
        done = _gather(title, entries, outcomes, past, number)
    writers: list[Callable[[], object]] = [lambda: _write_index(done, folder)]
    writers += [partial(write_whole, path, _RENDERED[name](done)) for name, path in written.items() if path is not None]
    problem = write_all(writers)
    _print_summary(done, Path(out))
    if problem is not None:
        raise problem
    return status_over_all(outcomes[entry.name].status(entry.expected) for entry in entries)


def _audit_all(entries: list[Entry], tasks: list[Job], jobs: int, past: History, number: int) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    with open_progress(len(entries)) as progress:
        for news in run_tasks(run_entry, tasks, jobs):
            entry = entries[news.number]
            if news.state == "started":
                progress.started(entry.name)
                continue
            is_done = news.state == "done"
            result = AuditResult.from_json(news.answer) if is_done else None
            error = None if is_done else public(news.answer.removeprefix("SuiteError: "))
            found[entry.name] = past.record(number, entry.name, entry.digest, result, error)
            progress.finished(found[entry.name])
    return found


def _gather(title: str, entries: list[Entry], outcomes: Mapping[str, Outcome], past: History, number: int) -> SuiteRun:
    before = past.run_before(number)
    began = next(run.began for run in past.runs() if run.number == number)
    rows = {entry.name: past.bounds(entry.name, _MOST_BOUNDS) for entry in entries}
    bounds = {name: [row[3] for row in found if row[3] is not None] for name, found in rows.items()}
    changes = find_changes(entries, outcomes, {} if before is None else past.outcomes(before))
    pages = {name: page for name, page in _page_names(entries).items() if outcomes[name].result is not None}
    shown = []
    for entry in entries:  # without secrets: the index shows them
        target = public_target(entry.settings.get("mechanism", ""))
        shown.append(dataclasses.replace(entry, settings={**entry.settings, "mechanism": target}))
    return SuiteRun(title, number, began, shown, outcomes, changes, before, bounds, pages)


def _page_names(entries: Sequence[Entry]) -> dict[str, str]:
    """A file name per audit: its place in the suite, and the part of its name that any file system accepts."""
    return {
        entry.name: f"{place:03d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', entry.name)[:60].strip('-.')}.html"
        for place, entry in enumerate(entries, start=1)
    }


def _write_index(run: SuiteRun, folder: Path) -> None:
    """The index, and missing pages of an interrupted earlier run."""
    for name, page in run.pages.items():
        result = run.outcomes[name].result
        if result is not None and not (folder / page).is_file():
            write_page(result, folder / page)
    write_whole(folder / "index.html", render_index(run))


def _junit(run: SuiteRun) -> str:
    cases = []
    for entry in run.entries:
        outcome = run.outcomes[entry.name]
        if outcome.result is None:
            cases.append(ci.junit_error(entry.name, outcome.error or ""))
        else:
            cases.append(ci.junit_case(outcome.result, entry.name, entry.expected))
    return ci.junit_document(run.title, cases)


def _markdown(run: SuiteRun) -> str:
    lines = [f"## {ci.escape(plain(run.title, 200))}: {_counts(run)}", "", *ci.table_head(["change"])]
    folds: list[str] = []
    for entry in run.entries:
        outcome, more = run.outcomes[entry.name], [run.changes[entry.name].text]
        if outcome.result is None:
            lines.append(ci.error_row(entry.name, outcome.error or "", more))
        else:
            is_expected = entry.expected is not None and outcome.status(entry.expected) == 0
            lines.append(ci.table_row(outcome.result, entry.name, more, is_expected))
            if outcome.status(entry.expected):
                folds += ["", *ci.folded(outcome.result, entry.name)]
    return "\n".join([*lines, *folds]) + "\n"


_RENDERED = {"junit": _junit, "markdown": _markdown}


def _counts(run: SuiteRun) -> str:
    return counted(outcome.word for outcome in run.outcomes.values())


def _print_summary(run: SuiteRun, folder: Path) -> None:
    own_output().write("\n")
    print_outcomes(run.entries, run.outcomes, run.changes)
    news = sum(change.is_news for change in run.changes.values())
    against = "" if run.before is None else f"; {news} changed since run {run.before}"
    own_output().write(f"\nrun {run.number}: {_counts(run)}{against}\n")
    for change in run.changes.values():
        if change.kind == "gone":
            own_output().write(f"{plain(change.name)}: {change.text}\n")
    own_output().write(f"report: {folder / 'index.html'}\n")
