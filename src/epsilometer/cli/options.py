"""Options that several commands share, and how a command runs an audit and delivers its result."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.errors import MechanismError

if TYPE_CHECKING:
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult


NOT_REFUTED = 0
REFUTED = 1
BAD_INPUT = 2
INCONCLUSIVE = 3
# What shells give a program that was ended by the signals SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141


def status_of(result: AuditResult) -> int:
    """The exit status that tells the verdict; a measurement is 0."""
    statuses = {"REFUTED": REFUTED, "NOT_REFUTED": NOT_REFUTED, "INCONCLUSIVE": INCONCLUSIVE}
    return NOT_REFUTED if result.verdict is None else statuses[result.verdict.name]


TARGET_HELP = (
    "What to run: package.module:function (the current folder is searched), 'command:./program {dataset}', "
    "an http(s) address, recording:FILE, or zoo:NAME for a reference mechanism, zoo:NAME?epsilon=.7 to calibrate it."
)
_INPUT = "JSON|@FILE"

Left = Annotated[
    str | None,
    typer.Option("--left", metavar=_INPUT, help="One input, as JSON or @file (json, npy, csv).", show_default=False),
]
Right = Annotated[str | None, typer.Option("--right", metavar=_INPUT, help="Its neighbour.", show_default=False)]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="Claimed ε.", show_default=False)]
Delta = Annotated[float | None, typer.Option("--delta", help="With --epsilon: (ε, δ).", show_default=False)]
Order = Annotated[
    float | None, typer.Option("--order", help="With --epsilon: Rényi of this order.", show_default=False)
]
Mu = Annotated[float | None, typer.Option("--mu", help="Claimed μ: Gaussian.", show_default=False)]
Rho = Annotated[float | None, typer.Option("--rho", help="Claimed ρ: zero-concentrated.", show_default=False)]
FixedEpsilon = Annotated[
    float | None, typer.Option("--epsilon", help="Fixed ε of approx: bounds δ.", show_default=False)
]
FixedDelta = Annotated[float | None, typer.Option("--delta", help="Fixed δ of approx: bounds ε.", show_default=False)]
FixedOrder = Annotated[float | None, typer.Option("--order", help="Fixed order of renyi.", show_default=False)]
Notion = Annotated[
    str | None,
    typer.Option(
        "--notion", metavar="NAME", help="pure, approx, renyi, zcdp or gaussian: what to measure.", show_default=False
    ),
]
Samples = Annotated[int | None, typer.Option("--samples", help="Draws per input.  [default: 100000]")]
Confidence = Annotated[float | None, typer.Option("--confidence", help="Of the bound.  [default: 0.95]")]
Seed = Annotated[int | None, typer.Option("--seed", help="Makes the run repeatable.  [default: fresh]")]
MethodName = Annotated[str | None, typer.Option("--method", help="See: epsilometer methods.  [default: auto]")]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the method; may be repeated. The value is JSON, or a word.",
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Worker processes of the local engine.  [default: 1]")]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="WHERE",
        help="local, dask://host:port, ray://host:port or ray://auto; the result is the same.  [default: local]",
    ),
]
Batch = Annotated[
    bool | None, typer.Option("--batch", help="The target draws many outputs at once: f(dataset, n, rng).")
]
Suppress = Annotated[
    list[str] | None, typer.Option("--suppress", metavar="CHECK", help="Switch off a health check; may be repeated.")
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is standard output.")
]
HtmlFile = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML page.")]
JunitFile = Annotated[str | None, typer.Option("--junit", metavar="FILE", help="Write the result as JUnit XML.")]
MarkdownFile = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE", help="Write a summary in Markdown, for the page of a job."),
]
StopEarly = Annotated[
    bool | None,
    typer.Option("--stop-early/--no-stop-early", help="Stop as soon as the claim is refuted; --samples is the most."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds", help="End after so long, also if a call hangs; see --stop-early.", show_default=False
    ),
]
CheckpointFile = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="FILE", help="Go on from this file if interrupted.", show_default=False),
]
Representation = Annotated[
    str | None, typer.Option("--representation", metavar="VIEW", help="value, bits or all.  [default: value]")
]
AllViews = Annotated[
    bool | None, typer.Option("--all", help="Add a finding about floating-point bits; it does not decide.")
]
Distance = Annotated[
    int | None, typer.Option("--distance", help="The inputs are this many steps apart: group privacy.  [default: 1]")
]
Finder = Annotated[
    str | None,
    typer.Option(
        "--finder", metavar="NAME", help="Search for inputs: random, grid, bayesian or patterns.", show_default=False
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        "--domain", metavar="TEXT", help="What to search: vector:4:0:1, queries:5, number:0:1, …", show_default=False
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation", metavar="NAME", help="Which are neighbours: replace, add-remove, l1, linf.", show_default=False
    ),
]
Trials = Annotated[int | None, typer.Option("--trials", help="Pairs that a search tries.  [default: 50]")]
TrialSamples = Annotated[
    int | None, typer.Option("--trial-samples", help="Draws per input and trial.  [default: 20000]")
]
SearchOn = Annotated[
    bool | None, typer.Option("--search-on", help="Try every pair for the largest bound, also after a refutation.")
]


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
        from epsilometer.report.text import show_result

        show_result(result)
    if json_file not in (None, "-"):
        Path(str(json_file)).write_text(stored, encoding="utf-8")
    if html_file is not None:
        result.save_html(html_file)
    if junit_file is not None:
        from epsilometer.report.ci import render_junit

        Path(junit_file).write_text(render_junit([result]), encoding="utf-8")
    if markdown_file is not None:
        from epsilometer.report.ci import render_markdown

        Path(markdown_file).write_text(render_markdown([result]), encoding="utf-8")
    return status_of(result)
