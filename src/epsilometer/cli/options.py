"""Options that several commands share, and how a command runs an audit and delivers its result."""

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from epsilometer.cli.files import own_output, writable, write_all
from epsilometer.errors import MechanismError

if TYPE_CHECKING:
    from epsilometer.auditing.profile import Profile
    from epsilometer.result import AuditResult

_Result = TypeVar("_Result", "AuditResult", "Profile")

NOT_REFUTED, REFUTED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3
# The statuses by which shells report SIGINT and SIGPIPE.
INTERRUPTED, BROKEN_PIPE = 130, 141
# What is larger is not even turned into a whole number: 1e999999999 has that many digits.
_BEYOND_COUNTING = Decimal(10) ** 30


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


_TARGET_HELP = (
    "What to run: package.module:function (the current folder is searched), 'command:./program {dataset}', "
    "an http(s) address, recording:FILE, plugin:NAME of an installed package, or zoo:NAME for a reference mechanism, "
    "zoo:NAME?epsilon=.7 to calibrate it."
)
Target = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET_HELP)]
TargetOrFile = Annotated[
    str, typer.Argument(metavar="TARGET", help=f"{_TARGET_HELP} Or a TOML file with the same settings.")
]
_ENGINES = "local, dask://host:port, ray://host:port or ray://auto"
_DOMAINS = "records:number:0:1, vector:4:0:1, category:a,b"
_FINDERS = "search, random, grid, bayesian or patterns"
_MEMORY = "an eighth of the memory, at most 8e9"
# By name: the type (bool for a switch that is on or not given), how the value is called, and the help.
_OPTIONS: dict[str, tuple[Any, str | None, str]] = {
    "left": (str, "JSON|@FILE", "One input, as JSON or @file (json, npy, csv)."),
    "right": (str, "JSON|@FILE", "Its neighbour."),
    "epsilon": (float, None, "Claimed ε."),
    "delta": (float, None, "With --epsilon: (ε, δ)."),
    "order": (float, None, "With --epsilon: Rényi of this order."),
    "mu": (float, None, "Claimed μ: Gaussian."),
    "rho": (float, None, "Claimed ρ: zero-concentrated."),
    "fixed_epsilon": (float, None, "Fixed ε of approx: bounds δ."),
    "fixed_delta": (float, None, "Fixed δ of approx: bounds ε."),
    "fixed_order": (float, None, "Fixed order of renyi."),
    "notion": (str, "NAME", "pure, approx, renyi, zcdp or gaussian: what to measure."),
    "header/no_header": (bool, None, "Of csv files.  [default: a word above numbers is one]"),
    "columns": (str, "A,B", "The columns that are the output.  [default: all]"),
    "max_output_bytes": (float, "BYTES", f"Memory for the outputs of a side.  [default: {_MEMORY}]"),
    "samples": (count, "N", "Draws per input: 50000, 1e6, 100k.  [default: 100000]"),
    "confidence": (float, None, "Of the bound.  [default: 0.95]"),
    "seed": (int, None, "Makes the run repeatable.  [default: fresh]"),
    "method": (str, None, "See: epsilometer methods.  [default: auto]"),
    "option": (list[str], "NAME=VALUE", "An option of the method; may be repeated. The value is JSON, or a word."),
    "jobs": (int, None, "Worker processes of the local engine.  [default: 1]"),
    "engine": (str, "WHERE", f"{_ENGINES}; the result is the same.  [default: local]"),
    "batch": (bool, None, "The target draws many outputs at once: f(dataset, n, rng) or f(dataset, n)."),
    "features": (str, "MODULE:FUNCTION", "A function of one output: further columns that the event may look at."),
    "suppress": (list[str], "CHECK", "Switch off a health check; may be repeated."),
    "json": (str, "FILE", "Write the result as JSON; - is standard output."),
    "html": (str, "FILE", "Write the report as one HTML page."),
    "junit": (str, "FILE", "Write the result as JUnit XML."),
    "markdown": (str, "FILE", "Write a summary in Markdown, for the page of a job."),
    "write_test": (str, "FILE", "If refuted, write the counterexample as a test for pytest."),
    "claim": (list[str], "CLAIM", "Check a claim such as eps=1,delta=1e-6; may be repeated."),
    "plot": (str, "FILE", "Draw the curves (.svg, .png, .pdf)."),
    "stop_early/no_stop_early": (bool, None, "Stop as soon as the claim is refuted; --samples is the most."),
    "max_seconds": (float, None, "End after this many seconds, even if a call hangs; see --stop-early."),
    "checkpoint": (str, "FILE", "Resume from this file if interrupted."),
    "representation": (str, "VIEW", "value, bits or all.  [default: value]"),
    "all": (bool, None, "Add a finding about floating-point bits; it does not decide."),
    "distance": (int, None, "The inputs are this many steps apart: group privacy.  [default: 1]"),
    "finder": (str, "NAME", f"How to search for inputs: {_FINDERS}.  [default: search]"),
    "domain": (str, "TEXT", f"Search these inputs: {_DOMAINS}, or JSON with a kind, …"),
    "relation": (str, "NAME", "Which are neighbours: replace, add-remove, user, substitute-column, l1, linf."),
    "trials": (count, "N", "Pairs that a search tries.  [default: 50]"),
    "trial_samples": (count, "N", "Draws per input and trial.  [default: 20000]"),
    "around": (str, "FILE", "Search the neighbours of this data (csv, json, npy)."),
    "user": (str, "COLUMN", "With --around: the column that names the user."),
    "beyond": (bool, None, "Also count what the type allows although the domain does not: NaN, None, …"),
    "search_on": (bool, None, "Try every pair for the largest bound, even after a refutation."),
}
SEARCH = "finder domain around relation user beyond trials trial_samples"
CLAIM = "epsilon delta order mu rho"
READING = "header/no_header columns max_output_bytes"
RUN = "samples confidence seed method option jobs engine batch features suppress"
FILE_KEYS = ("json", "html", "junit", "markdown", "write_test")
FILES = "json html junit markdown"
ENDING = "stop_early/no_stop_early max_seconds checkpoint representation"


def takes(names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Lets a command take these options, in this order. It gets them as keywords; None is "not given".

    Args:
        names: separated by spaces; "a/no_a" for a switch with two sides.
    """

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [each for each in own if each.kind is not each.VAR_KEYWORD]
        for name in names.split():
            kind, metavar, text = _OPTIONS[name]
            name = name.removeprefix("fixed_")
            parser, kind = (count, int) if kind is count else (None, kind)
            flags = "--" + name.replace("_", "-").replace("/", "/--")
            option = typer.Option(None, flags, metavar=metavar, help=text, parser=parser)
            keyword = inspect.Parameter(name.partition("/")[0], inspect.Parameter.KEYWORD_ONLY, default=option)
            parameters.append(keyword.replace(annotation=kind | None))
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
        return command

    return with_options


def run(work: Callable[..., _Result], record: Mapping[str, Any]) -> _Result:
    """Does the work and adds to the result's settings what the command line knows.

    Args:
        work: gets a progress, as a keyword.
        record: what to add.

    Raises:
        KeyboardInterrupt: with a text that says how far the work came.
    """
    from epsilometer.report.progress import ProgressBar

    hint = "--stop-early usually needs fewer draws, --jobs uses more cores"
    progress = ProgressBar(hint=hint, waited=time.process_time())
    try:
        result = work(progress=progress)
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


def files_of(flags: Mapping[str, Any]) -> dict[str, str | None]:
    """Where a result goes, by the names of the options; checked before the work begins."""
    return {name: writable(flags.get(name), f"--{name.replace('_', '-')}") for name in FILE_KEYS}


def deliver(result: "AuditResult", files: Mapping[str, str | None]) -> int:
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
    problem = write_all([partial(_write, result, name, to) for name, to in files.items() if to not in (None, "-")])
    if files.get("json") == "-":
        own_output().write(result.to_json() + "\n")
    else:
        from epsilometer.report.text import show_result

        show_result(result, file=own_output())
    if problem is not None:
        raise problem
    return {"refuted": REFUTED, "inconclusive": INCONCLUSIVE}.get(str(result.verdict), NOT_REFUTED)


def _write(result: "AuditResult", name: str, path: str) -> None:
    from epsilometer.report.ci import render_junit, render_markdown
    from epsilometer.storage.writing import write_whole

    if name == "json":
        result.save_json(path)
    elif name == "html":
        result.save_html(path)
    elif name != "write_test":
        write_whole(path, (render_junit if name == "junit" else render_markdown)([result]))
    elif result.is_refuted:
        write_whole(path, result.to_test())
