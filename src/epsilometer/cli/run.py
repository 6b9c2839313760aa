"""`epsilometer run`."""

from __future__ import annotations

from typing import Annotated

import typer

from epsilometer.cli import options


def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="A TOML file with one [[audit]] per audit.")],
    jobs: Annotated[int | None, typer.Option("--jobs", help="Audits at a time.  [default: one per core]")] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FOLDER", help="For index.html and a page per audit.")
    ] = "epsilometer-report",
    history: Annotated[
        str | None, typer.Option("--history", metavar="FILE", help="[default: SUITE.history.sqlite beside the suite]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with a run that was broken off.")] = False,
    junit: options.JunitFile = None,
    markdown: options.MarkdownFile = None,
) -> int:
    """Run many audits from one file, and show what changed since the last run.

    Every result is stored as soon as it is there: a run that was interrupted or killed goes on where it was. Keys
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
    from epsilometer.cli.suite_run import run_suite

    return run_suite(suite, jobs, out, history, fresh, junit, markdown)
