"""Options that several commands share, and how a command runs an audit and delivers its result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.files import own_output, writable, write_all
from epsilometer.errors import MechanismError

if TYPE_CHECKING:
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult


NOT_REFUTED = 0
REFUTED = 1
BAD_INPUT = 2
INCONCLUSIVE = 3
# The statuses by which shells report SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141
# What is larger is not even turned into a whole number: 1e999999999 has that many digits.
_BEYOND_COUNTING = Decimal(10) ** 30


def status_of(result: AuditResult) -> int:
    """The exit status for the verdict; 0 for a measurement."""
    statuses = {"REFUTED": REFUTED, "NOT_REFUTED": NOT_REFUTED, "INCONCLUSIVE": INCONCLUSIVE}
    return NOT_REFUTED if result.verdict is None else statuses[result.verdict.name]


def count(text: str) -> int:
    """A whole number as people write it: 100000, 100_000, 1e5, 100k, 2.5M."""
    plain = text.strip().replace("_", "")
    scale = {"k": 3, "m": 6, "g": 9}.get(plain[-1:].lower(), 0)
    try:
        value = Decimal(plain[:-1] if scale else plain).scaleb(scale)
        if abs(value) < _BEYOND_COUNTING and value == int(value):
            return int(value)
    except ArithmeticError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number such as 100000, 1e5 or 100k")


TARGET_HELP = (
    "What to run: package.module:function (the current folder is searched), 'command:./program {dataset}', "
    "an http(s) address, recording:FILE, plugin:NAME of an installed package, or zoo:NAME for a reference mechanism, "
    "zoo:NAME?epsilon=.7 to calibrate it."
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
Samples = Annotated[
    int | None,
    typer.Option("--samples", parser=count, metavar="N", help="Draws per input: 50000, 1e6, 100k.  [default: 100000]"),
]
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
    bool | None,
    typer.Option("--batch", help="The target draws many outputs at once: f(dataset, n, rng) or f(dataset, n)."),
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
TestFile = Annotated[
    str | None,
    typer.Option("--write-test", metavar="FILE", help="If refuted, write the counterexample as a test for pytest."),
]
StopEarly = Annotated[
    bool | None,
    typer.Option("--stop-early/--no-stop-early", help="Stop as soon as the claim is refuted; --samples is the most."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds", help="End after this time, also if a call hangs; see --stop-early.", show_default=False
    ),
]
CheckpointFile = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="FILE", help="Resume from this file if interrupted.", show_default=False),
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
        "--finder",
        metavar="NAME",
        help="How to search for inputs: search, random, grid, bayesian or patterns.  [default: search]",
        show_default=False,
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="TEXT",
        help="Search these inputs: records:number:0:1, vector:4:0:1, category:a,b, or JSON with a kind, …",
        show_default=False,
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="NAME",
        help="Which are neighbours: replace, add-remove, user, substitute-column, l1, linf.",
        show_default=False,
    ),
]
Trials = Annotated[
    int | None,
    typer.Option("--trials", parser=count, metavar="N", help="Pairs that a search tries.  [default: 50]"),
]
TrialSamples = Annotated[
    int | None,
    typer.Option("--trial-samples", parser=count, metavar="N", help="Draws per input and trial.  [default: 20000]"),
]
Around = Annotated[
    str | None,
    typer.Option(
        "--around", metavar="FILE", help="Search the neighbours of this data (csv, json, npy).", show_default=False
    ),
]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="COLUMN", help="With --around: the column that names the user.", show_default=False),
]
Beyond = Annotated[
    bool | None,
    typer.Option("--beyond", help="Also count what the type allows although the domain does not: NaN, None, …"),
]
SearchOn = Annotated[
    bool | None, typer.Option("--search-on", help="Try every pair for the largest bound, even after a refutation.")
]


def run(work: Callable[[ProgressBar], AuditResult], record: Mapping[str, Any]) -> AuditResult:
    """Does the work and adds to the result's settings what the command line knows.

    Args:
        work: gets a progress.
        record: what to add.

    Raises:
        KeyboardInterrupt: with a text that says how far the work came.
    """
    from epsilometer.report.progress import ProgressBar

    hint = "--stop-early usually needs fewer draws, --jobs uses more cores"
    progress = ProgressBar(hint=hint, waited=time.process_time())
    try:
        result = work(progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(progress.summary()) from None
    except Exception:
        raise
    except SystemExit as error:
        # Its status would pass for our verdict.
        raise MechanismError(f"the mechanism tried to end the program: SystemExit({error.code!r})") from error
    except BaseException as error:
        raise MechanismError(f"the mechanism raised {type(error).__name__}: {error}") from error
    return dataclasses.replace(result, settings={**result.settings, **record})


FILE_OPTIONS = ("json", "html", "junit", "markdown", "write_test")


def files_of(flags: Mapping[str, Any]) -> dict[str, str | None]:
    """Where a result goes, by the names of the options; checked before the work begins."""
    return {name: writable(flags.get(name), f"--{name.replace('_', '-')}") for name in FILE_OPTIONS}


def deliver(result: AuditResult, files: Mapping[str, str | None]) -> int:
    """Writes what was asked for, prints the result, and gives the exit status.

    Args:
        result: what was found.
        files: see `files_of`.

    Raises:
        EpsilometerError: a file could not be written. The others are, and the result is printed all the same.
    """
    if files.get("json") not in (None, "-"):  # for the line that tells how to replay it
        from epsilometer.result import changed

        result = changed(result, settings={**result.settings, "json": files["json"]})
    problem = write_all(
        [partial(_write, result, name, path) for name, path in files.items() if path not in (None, "-")]
    )
    if files.get("json") == "-":
        own_output().write(result.to_json() + "\n")
    else:
        from epsilometer.report.text import show_result

        show_result(result, file=own_output())
    if problem is not None:
        raise problem
    return status_of(result)


def _write(result: AuditResult, name: str, path: str) -> None:
    if name == "json":
        result.save_json(path)
    elif name == "html":
        result.save_html(path)
    elif name == "write_test":
        if result.is_refuted:
            from epsilometer.storage.writing import write_whole

            write_whole(path, result.to_test())
    else:
        from epsilometer.report.ci import render_junit, render_markdown
        from epsilometer.storage.writing import write_whole

        write_whole(path, (render_junit if name == "junit" else render_markdown)([result]))
