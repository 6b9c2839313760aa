"""`epsilometer history`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epsilometer.suites import History


def history(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's TOML file, or its history.")],
    audit: Annotated[
        str | None, typer.Option("--audit", metavar="NAME", help="Only this audit, run by run.", show_default=False)
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="NUMBER", help="Only this run, audit by audit.", show_default=False)
    ] = None,
) -> int:
    """Show the earlier runs of a suite.

    Examples:
      epsilometer history suite.toml
      epsilometer history suite.toml --audit svt5
      epsilometer history suite.toml --run 3
    """
    from epsilometer.cli.run import history_path
    from epsilometer.errors import InputError
    from epsilometer.suites import History

    if audit is not None and run is not None:
        raise InputError("give either --audit or --run, not both")
    path = history_path(suite) if suite.endswith(".toml") else Path(suite)
    with History(path, must_exist=True) as past:
        if audit is not None:
            _print_audit(past, audit)
        elif run is not None:
            _print_run(past, run)
        else:
            _print_runs(past)
    return 0


def _print_runs(past: History) -> None:
    from epsilometer.cli.listing import print_rows
    from epsilometer.suites.index import counted

    rows = [(str(run.number), run.began, run.ended or "interrupted", counted(run.words)) for run in past.runs()]
    if not rows:
        sys.stdout.write("no runs yet\n")
        return
    print_rows(("run", "began (UTC)", "ended", "verdicts"), rows)


def _print_audit(past: History, name: str) -> None:
    from epsilometer.cli.listing import print_rows
    from epsilometer.errors import InputError
    from epsilometer.report.wording import figure, figure_down, plain

    found = past.bounds(name)
    if not found:
        raise InputError(f"no run has an audit called {plain(name)!r}")
    rows = [
        (str(run), at, verdict, "" if bound is None else figure_down(bound), "" if claimed is None else figure(claimed))
        for run, at, verdict, bound, claimed in found
    ]
    print_rows(("run", "finished (UTC)", "verdict", "bound", "claimed"), rows)


def _print_run(past: History, number: int) -> None:
    from epsilometer.cli.listing import print_rows
    from epsilometer.cli.run import bound_text
    from epsilometer.errors import InputError
    from epsilometer.report.wording import plain
    from epsilometer.suites import Entry, find_changes

    outcomes = past.outcomes(number)
    if not outcomes:
        raise InputError(f"there is nothing about run {number}")
    before = past.run_before(number)
    entries = [Entry(name, {}, outcome.digest) for name, outcome in outcomes.items()]
    changes = find_changes(entries, outcomes, {} if before is None else past.outcomes(before))
    rows = [
        (
            plain(name, 40),
            outcome.word,
            plain(outcome.error, 90) if outcome.result is None else bound_text(outcome.result),
            plain(changes[name].text, 60),
        )
        for name, outcome in outcomes.items()
    ]
    print_rows(("audit", "verdict", "bound", "change"), rows)
