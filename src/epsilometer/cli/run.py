"""`epsilometer run`: many audits of one file, with their progress, history, pages and exit status."""

import contextlib
import dataclasses
import json
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
from epsilometer.cli.listing import history_path, print_outcomes
from epsilometer.cli.output import Answers, writable, write_all
from epsilometer.cli.suite_file import Suite, check_family_confidence, read_suite
from epsilometer.cli.targets import public_target
from epsilometer.errors import EpsilometerError, InputError, public
from epsilometer.report import ci
from epsilometer.report.text import COLOURS
from epsilometer.report.wording import duration, figure_down, plain
from epsilometer.result import AuditResult
from epsilometer.storage.writing import write_whole
from epsilometer.suites import (
    Entry,
    Family,
    History,
    Outcome,
    Terms,
    family_digest,
    find_changes,
    judge_family,
    may_join,
    run_tasks,
    status_over_all,
)
from epsilometer.suites.index import SuiteRun, counted, render_index
from epsilometer.suites.workers import Job

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


# Rows of the table on a terminal: what runs now, and what ended last.
_MOST_ROWS = 16


@contextlib.contextmanager
def open_progress(total: int, answers: Answers) -> "Iterator[_Lines]":
    """The progress of `total` audits, as it suits standard output."""
    if not answers.stream.isatty() or not total:
        yield _Lines(total, answers)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=answers.stream), refresh_per_second=4, transient=True) as live:
        yield _LiveTable(live, total, answers)


class _Lines:
    def __init__(self, total: int, answers: Answers) -> None:
        self._total = total
        self._done = 0
        self._answers = answers

    def started(self, name: str) -> None:
        pass  # not worth a line

    def finished(self, outcome: Outcome) -> None:
        self._done += 1
        width = len(str(self._total))
        line = f"[{self._done:{width}}/{self._total}] {outcome.word:12} {plain(outcome.name)}  {_figures(outcome)}"
        self._answers.write(line.rstrip() + "\n")
        self._answers.flush()


class _LiveTable(_Lines):
    def __init__(self, live: "Live", total: int, answers: Answers) -> None:
        super().__init__(total, answers)
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
        table = Table(
            title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
        )
        for header in ("audit", "verdict", "bound", "time"):
            table.add_column(header)
        for outcome in self._ended[-max(_MOST_ROWS - len(self._running), 1) :]:
            result = outcome.result
            colour, seconds = (
                ("magenta", "")
                if result is None
                else (COLOURS[result.verdict], duration(result.seconds))
            )
            verdict = Text(outcome.word, style=colour)
            table.add_row(Text(plain(outcome.name, 40)), verdict, Text(_figures(outcome)), seconds)
        for name, began in self._running.items():
            table.add_row(
                Text(plain(name, 40)), Text("running", style="dim"), "", duration(now - began)
            )
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
    path = Path(payload[0])
    settings = payload[1]
    page = Path(payload[2])
    home = os.getcwd()
    # What a mechanism prints must not get between the lines of our progress.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = _audit(path, settings)
            write_page(
                result, page
            )  # here and not in the parent: pictures often take longer than the audit
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
    from epsilometer.cli.request import find_notion, request_from_settings
    from epsilometer.cli.settings_file import resolve_inputs

    resolved = resolve_inputs(settings, path)
    notion = resolved.pop("notion", None)
    plan = request_from_settings(
        str(settings["mechanism"]), resolved, Answers(), (path.parent.resolve(),)
    )
    if notion is None:
        result = audit(plan.subject, plan.inputs, plan.claim(), **plan.keywords)
    else:
        keywords: dict[str, Any] = {**plan.keywords, **plan.parameters}
        result = measure(plan.subject, plan.inputs, find_notion(str(notion)), **keywords)
    return dataclasses.replace(result, settings={**result.settings, **plan.record})


# Earlier runs that the small line of an index row shows.
_MOST_BOUNDS = 12


# Above the number of nights that anyone will run; also the largest that the history can store
# exactly.
_MOST_NIGHTS = 1_000_000


def run(
    context: typer.Context,
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A TOML file with one [[audit]] per audit.")
    ],
    jobs: Annotated[
        int | None, typer.Option(help="Audits at a time.  [default: one per core]")
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="For index.html and a page per audit.")
    ] = "epsilometer-report",
    history: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="[default: SUITE.history.sqlite beside the suite]"),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume an interrupted run.")
    ] = False,
    family_confidence: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="Judge all claims together: with probability C, call no true one refuted.",
        ),
    ] = None,
    nights: Annotated[
        bool,
        typer.Option(
            "--nights", help="The family's confidence is about all nights, counted in the history."
        ),
    ] = False,
    night: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="The number of this night, if the history has no night yet."
        ),
    ] = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
) -> int:
    """Run many audits from one file, and show what changed since the last run.

    Every result is stored as soon as it is there: a run that was interrupted or killed resumes
    where it was. Keys above the first [[audit]] are defaults; each audit takes the keys of
    audit.toml, and name, expect ("refuted" for a mechanism that is known to be broken), notion (to
    measure instead), time_limit (seconds).

    suite.toml:
      samples = 50000
      family_confidence = 0.95
      [[audit]]
      mechanism = "my_module:noisy_count"
      pairs = [[[0, 1], [1, 1]]]
      epsilon = 1.0
      [[audit]]
      mechanism = "zoo:svt5"
      expect = "refuted"

    With --family-confidence C, or family_confidence in the file, no true claim of the run is called
    refuted, with
    probability at least C: a refutation must survive Holm's procedure, else it is "refuted alone"
    and does not count. With --nights (nights = true in the file) that holds for all nights
    together, which take fresh seeds.

    The exit status is 2 if an audit could not be done, else 1 if a claim is refuted (or is not,
    though "refuted" was expected), else 3 if an audit is inconclusive, else 0.
    """
    read = read_suite(Path(suite))
    entries = read.entries
    request = _family_request(read, family_confidence, nights, night)
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs {jobs} must be at least 1")
    answers: Answers = context.obj
    written = {
        "junit": writable(junit, "--junit", answers),
        "markdown": writable(markdown, "--markdown", answers),
    }
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}") from error
    folder = Path(out).absolute()
    with History(history_path(suite, history)) as past:
        number, terms = _open_run(past, entries, request, fresh)
        known = past.outcomes(number)
        kept = _still_valid(entries, known, is_family=terms is not None)
        rest = [entry for entry in entries if entry.name not in kept]
        if kept:
            answers.write(f"resuming run {number}: {len(kept)} of {len(entries)} audits are done\n")
        pages = _page_names(entries)
        file = os.path.abspath(suite)
        settings = _settings_of_this_run(entries, terms)
        tasks = [
            Job((file, settings[entry.name], str(folder / pages[entry.name])), entry.seconds)
            for entry in rest
        ]
        outcomes = kept | _audit_all(
            rest, tasks, jobs or os.cpu_count() or 1, past, number, answers
        )
        past.close_run(number)
        family = (
            None
            if terms is None
            else judge_family(entries, outcomes, terms, past.begun_again(number))
        )
        done = _gather(read.title, entries, outcomes, past, number, family)
    writers: list[Callable[[], object]] = [lambda: _write_index(done, folder)]
    if family is not None:
        writers.append(partial(write_whole, folder / "family.json", _family_json(done, family)))
    writers += [
        partial(write_whole, path, _RENDERED[name](done))
        for name, path in written.items()
        if path is not None
    ]
    problem = write_all(writers)
    _print_summary(done, Path(out), answers)
    if problem is not None:
        raise problem
    return status_over_all(done.status(entry) for entry in entries)


@dataclasses.dataclass(frozen=True, slots=True)
class _FamilyRequest:
    """How the user wants the claims of a suite to be judged together.

    Attributes:
        confidence: of the family.
        counts_nights: whether the confidence is about all nights.
        night: the number of this night, if it was given.
    """

    confidence: float
    counts_nights: bool
    night: int | None


def _family_request(
    suite: Suite, confidence: float | None, nights: bool, night: int | None
) -> _FamilyRequest | None:
    """What the command line and the file say together; the command line wins."""
    if confidence is not None:
        confidence = check_family_confidence(confidence, "--family-confidence")
    chosen = suite.family_confidence if confidence is None else confidence
    if night is not None and not 1 <= night <= _MOST_NIGHTS:
        raise InputError(f"--night {night} must be between 1 and {_MOST_NIGHTS}")
    counts_nights = nights or suite.nights or night is not None
    if chosen is not None:
        return _FamilyRequest(chosen, counts_nights, night)
    if counts_nights:
        raise InputError("nights are those of a family: give --family-confidence, for example 0.95")
    return None


def _open_run(
    past: History, entries: Sequence[Entry], request: _FamilyRequest | None, fresh: bool
) -> tuple[int, Terms | None]:
    """The number of this run and, if it judges a family, its terms; stored before anything is drawn."""
    if request is None:
        return past.open_run(fresh), None
    from epsilometer.engine import chunks

    return past.open_family_run(
        confidence=request.confidence,
        digest=family_digest(entries),
        fresh_seed=chunks.fresh_seed,
        counts_nights=request.counts_nights,
        night=request.night,
        fresh=fresh,
    )


def _still_valid(
    entries: Sequence[Entry], known: Mapping[str, Outcome], is_family: bool
) -> dict[str, Outcome]:
    """The outcomes of an interrupted run that need not be repeated.

    They must be of the present settings and code. An audit that failed is repeated, but not in a
    family: whether it fails may depend on its draws, and a second attempt would be a second look
    that nobody paid for.
    """
    valid = {}
    for entry in entries:
        outcome = known.get(entry.name)
        if outcome is None:
            continue
        is_current = outcome.result is not None and outcome.digest == entry.digest
        if is_current or is_family:
            valid[entry.name] = outcome
    return valid


def _settings_of_this_run(
    entries: Sequence[Entry], terms: Terms | None
) -> dict[str, dict[str, Any]]:
    """The settings of every audit, by its name."""
    if terms is None:
        return {entry.name: dict(entry.settings) for entry in entries}
    size = sum(may_join(entry) for entry in entries)
    return {entry.name: terms.settings_for(entry, max(size, 1)) for entry in entries}


def _audit_all(
    entries: list[Entry], tasks: list[Job], jobs: int, past: History, number: int, answers: Answers
) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    with open_progress(len(entries), answers) as progress:
        for news in run_tasks(run_entry, tasks, jobs):
            entry = entries[news.number]
            if news.state == "started":
                past.note_start(number, entry.name)
                progress.started(entry.name)
                continue
            is_done = news.state == "done"
            result = AuditResult.from_json(news.answer) if is_done else None
            error = None if is_done else public(news.answer.removeprefix("SuiteError: "))
            found[entry.name] = past.record(number, entry.name, entry.digest, result, error)
            progress.finished(found[entry.name])
    return found


def _gather(
    title: str,
    entries: list[Entry],
    outcomes: Mapping[str, Outcome],
    past: History,
    number: int,
    family: Family | None,
) -> SuiteRun:
    before = past.run_before(number)
    began = next(run.began for run in past.runs() if run.number == number)
    rows = {entry.name: past.bounds(entry.name, _MOST_BOUNDS) for entry in entries}
    bounds = {name: [row[3] for row in found if row[3] is not None] for name, found in rows.items()}
    changes = find_changes(entries, outcomes, {} if before is None else past.outcomes(before))
    pages = {
        name: page
        for name, page in _page_names(entries).items()
        if outcomes[name].result is not None
    }
    shown = []
    for entry in entries:  # without secrets: the index shows them
        target = public_target(entry.settings.get("mechanism", ""))
        shown.append(dataclasses.replace(entry, settings={**entry.settings, "mechanism": target}))
    return SuiteRun(title, number, began, shown, outcomes, changes, before, bounds, pages, family)


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
            case = ci.junit_error(entry.name, outcome.error or "")
        else:
            is_alone = run.family is not None and entry.name in run.family.refuted_alone
            case = ci.junit_case(
                outcome.result, entry.name, entry.expected, run.family_properties(entry), is_alone
            )
        cases.append(case)
    return ci.junit_document(run.title, cases, run.family_properties())


def _markdown(run: SuiteRun) -> str:
    more_names = ["change"] if run.family is None else ["family", "change"]
    lines = [f"## {ci.escape(plain(run.title, 200))}: {_counts(run)}", ""]
    if run.family is not None:
        lines += [f"- {ci.escape(sentence)}" for sentence in run.family.sentences()]
        lines.append("")
    lines += ci.table_head(more_names)
    folds: list[str] = []
    for entry in run.entries:
        outcome = run.outcomes[entry.name]
        more = [run.changes[entry.name].text]
        is_alone = False
        if run.family is not None:
            more.insert(0, run.family.remark(entry.name))
            is_alone = entry.name in run.family.refuted_alone
        if outcome.result is None:
            lines.append(ci.error_row(entry.name, outcome.error or "", more))
            continue
        is_expected = entry.expected is not None and not is_alone and run.status(entry) == 0
        lines.append(ci.table_row(outcome.result, entry.name, more, is_expected, is_alone))
        if outcome.status(entry.expected):  # what is refuted alone, too
            folds += ["", *ci.folded(outcome.result, entry.name)]
    return "\n".join([*lines, *folds]) + "\n"


def _family_json(run: SuiteRun, family: Family) -> str:
    about = {"title": run.title, "run": run.number, "began": run.began}
    return json.dumps({**about, **family.to_dict()}, indent=2, allow_nan=False) + "\n"


_RENDERED = {"junit": _junit, "markdown": _markdown}


def _counts(run: SuiteRun) -> str:
    return counted(run.word(entry) for entry in run.entries)


def _print_summary(run: SuiteRun, folder: Path, answers: Answers) -> None:
    answers.write("\n")
    print_outcomes(run.entries, run.outcomes, run.changes, run.family, answers.stream)
    news = sum(change.is_news for change in run.changes.values())
    against = "" if run.before is None else f"; {news} changed since run {run.before}"
    answers.write(f"\nrun {run.number}: {_counts(run)}{against}\n")
    for change in run.changes.values():
        if change.kind == "gone":
            answers.write(f"{plain(change.name)}: {change.text}\n")
    if run.family is not None:
        for sentence in run.family.sentences():
            answers.write(sentence + "\n")
    answers.write(f"report: {folder / 'index.html'}\n")
