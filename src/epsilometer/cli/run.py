"""`epsilometer run`: many audits of one file, with their history and exit status."""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from epsilometer.cli import options
from epsilometer.cli.listing import history_path
from epsilometer.cli.output import Answers, writable, write_all
from epsilometer.cli.run_progress import open_progress
from epsilometer.cli.run_reports import (
    print_summary,
    render_family,
    render_suite_junit,
    render_suite_markdown,
    write_index,
)
from epsilometer.cli.run_worker import SuiteTask, run_entry
from epsilometer.cli.suite_file import Suite, check_family_confidence, read_suite
from epsilometer.cli.targets import public_target
from epsilometer.errors import InputError
from epsilometer.redaction import public
from epsilometer.result import AuditResult
from epsilometer.storage.writing import write_atomically
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
from epsilometer.suites.index import SuiteRun
from epsilometer.suites.workers import Job

# Earlier runs that the small line of an index row shows.
_MAX_BOUNDS = 12
# Above the number of nights that anyone will run; also the largest that the history can store
# exactly.
_MAX_NIGHTS = 1_000_000
# Characters of an audit's name in the name of its page.
_MAX_FILE_NAME_CHARACTERS = 60


def run(
    context: typer.Context,
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A TOML file with one [[audit]] per audit.")
    ],
    *,
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
    """Run many audits from one file, and show what changed.

    Every result is stored as soon as it is there: a run that was interrupted or killed resumes
    where it was. Keys above the first [[audit]] are defaults; each audit takes the keys of
    audit.toml, and name, expect ("refuted" for a mechanism that is known to be broken), notion (to
    measure instead), time_limit (seconds), fail_blind (true: exit status 3 for an audit that could
    not have refuted anything).

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
    refuted, with probability at least C: a refutation must survive Holm's procedure, else it is
    "refuted alone" and does not count. With --nights (nights = true in the file) that holds for all
    nights together, which take fresh seeds.

    The exit status is 2 if an audit could not be done, else 1 if a claim is refuted (or is not,
    though "refuted" was expected), else 3 if an audit is inconclusive (or blind, with fail_blind),
    else 0.
    """
    read = read_suite(Path(suite))
    entries = read.entries
    request = _family_request(read, family_confidence, nights, night)
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs {jobs} must be at least 1")
    answers: Answers = context.obj
    junit_file = writable(junit, "--junit", answers)
    markdown_file = writable(markdown, "--markdown", answers)
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}") from error
    folder = Path(out).absolute()
    with History(history_path(suite, history)) as past:
        number, terms = _open_run(past, entries, request, fresh)
        outcomes = _still_valid(entries, past.outcomes(number), is_family=terms is not None)
        remaining = [entry for entry in entries if entry.name not in outcomes]
        if outcomes:
            progress = f"{len(outcomes)} of {len(entries)} audits are done"
            answers.write(f"resuming run {number}: {progress}\n")
        pages = _page_names(entries)
        settings = _settings_of_this_run(entries, terms)
        suite_file = os.path.abspath(suite)
        tasks = []
        for entry in remaining:
            page = str(folder / pages[entry.name])
            tasks.append(Job(SuiteTask(suite_file, settings[entry.name], page), entry.seconds))
        n_workers = _helpful_jobs(jobs, [settings[entry.name] for entry in remaining])
        outcomes |= _audit_all(
            remaining, tasks, n_workers=n_workers, past=past, number=number, answers=answers
        )
        past.close_run(number)
        family = None
        if terms is not None:
            family = judge_family(entries, outcomes, terms, past.begun_again(number))
        finished = _gather(
            read.title, entries, outcomes=outcomes, past=past, number=number, family=family
        )
    writers: list[Callable[[], object]] = [partial(write_index, finished, folder)]
    if family is not None:
        family_text = render_family(finished, family)
        writers.append(partial(write_atomically, folder / "family.json", family_text))
    if junit_file is not None:
        writers.append(partial(write_atomically, junit_file, render_suite_junit(finished)))
    if markdown_file is not None:
        writers.append(partial(write_atomically, markdown_file, render_suite_markdown(finished)))
    problem = write_all(writers)
    print_summary(finished, Path(out), answers)
    if problem is not None:
        raise problem
    return status_over_all(finished.status(entry) for entry in entries)


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
    if night is not None and not 1 <= night <= _MAX_NIGHTS:
        raise InputError(f"--night {night} must be between 1 and {_MAX_NIGHTS}")
    counts_nights = nights or suite.nights or night is not None
    if chosen is not None:
        return _FamilyRequest(confidence=chosen, counts_nights=counts_nights, night=night)
    if counts_nights:
        raise InputError("nights are those of a family: give --family-confidence, for example 0.95")
    return None


def _open_run(
    past: History, entries: Sequence[Entry], request: _FamilyRequest | None, fresh: bool
) -> tuple[int, Terms | None]:
    """The number of this run and, if it judges a family, its terms.

    Both are stored before anything is drawn.
    """
    if request is None:
        return past.open_run(fresh), None
    from epsilometer.engine import seeds

    return past.open_family_run(
        confidence=request.confidence,
        digest=family_digest(entries),
        fresh_seed=seeds.fresh_seed,
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
    that no error share pays for.
    """
    valid: dict[str, Outcome] = {}
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
    family_size = max(sum(may_join(entry) for entry in entries), 1)
    return {entry.name: terms.settings_for(entry, family_size) for entry in entries}


def _helpful_jobs(jobs: int | None, settings: Sequence[Mapping[str, Any]]) -> int:
    """How many audits to run at a time: as many as were asked for, unless more than can help.

    Args:
        jobs: as asked for; None for one per core.
        settings: of the audits.
    """
    from epsilometer.engine.runners import helpful_jobs

    if jobs is None:
        return os.cpu_count() or 1
    targets = [str(audit.get("mechanism", "")) for audit in settings]
    waits = any(target.startswith(("http:", "https:", "command:")) for target in targets)
    n_workers = helpful_jobs(jobs, waits=waits)
    if n_workers < jobs and len(settings) > n_workers:
        sys.stderr.write(
            f"epsilometer: --jobs {jobs} was lowered to {n_workers}: more audits at a time do not "
            "help on this machine\n"
        )
    return n_workers


def _audit_all(
    entries: Sequence[Entry],
    tasks: Sequence[Job],
    *,
    n_workers: int,
    past: History,
    number: int,
    answers: Answers,
) -> dict[str, Outcome]:
    """Runs the audits and stores every outcome as soon as it is there.

    Args:
        entries: the audits.
        tasks: what workers get for each of them.
        n_workers: audits at a time.
        past: where outcomes are stored.
        number: of this run.
        answers: where progress is shown.
    """
    outcomes: dict[str, Outcome] = {}
    with open_progress(len(entries), answers) as progress:
        for update in run_tasks(run_entry, tasks, n_workers):
            entry = entries[update.number]
            if update.state == "started":
                past.note_start(number, entry.name)
                progress.started(entry.name)
                continue
            result = None
            error = None
            if update.state == "done":
                result = AuditResult.from_json(update.answer)
            else:
                error = public(update.answer.removeprefix("SuiteError: "))
            outcome = past.record(number, entry.name, entry.digest, result, error)
            outcomes[entry.name] = outcome
            progress.finished(outcome)
    return outcomes


def _gather(
    title: str,
    entries: Sequence[Entry],
    *,
    outcomes: Mapping[str, Outcome],
    past: History,
    number: int,
    family: Family | None,
) -> SuiteRun:
    """Everything that reports show of a finished run."""
    before = past.run_before(number)
    earlier = {} if before is None else past.outcomes(before)
    began = next(run.began for run in past.runs() if run.number == number)
    bounds: dict[str, list[float]] = {}
    shown_entries = []
    for entry in entries:
        earlier_bounds = [bound for _, _, _, bound, _ in past.bounds(entry.name, _MAX_BOUNDS)]
        bounds[entry.name] = [bound for bound in earlier_bounds if bound is not None]
        # Without secrets: the index shows them.
        target = public_target(entry.settings.get("mechanism", ""))
        settings = {key: value for key, value in entry.settings.items() if key != "http"}
        settings["mechanism"] = target
        shown_entries.append(dataclasses.replace(entry, settings=settings))
    pages = {
        name: page
        for name, page in _page_names(entries).items()
        if outcomes[name].result is not None
    }
    return SuiteRun(
        title=title,
        number=number,
        began=began,
        entries=shown_entries,
        outcomes=outcomes,
        changes=find_changes(entries, outcomes, earlier),
        before=before,
        bounds=bounds,
        pages=pages,
        family=family,
    )


def _page_names(entries: Sequence[Entry]) -> dict[str, str]:
    """A file name per audit.

    It consists of the place in the suite, and the part of the audit's name that any file system
    accepts.
    """
    names = {}
    for place, entry in enumerate(entries, start=1):
        accepted = re.sub(r"[^A-Za-z0-9._-]+", "-", entry.name)
        stem = accepted[:_MAX_FILE_NAME_CHARACTERS].strip("-.")
        names[entry.name] = f"{place:03d}-{stem}.html"
    return names
