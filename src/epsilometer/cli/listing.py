"""`epsilometer methods`, `zoo`, `doctor` and `history`: lists for people and for pipes."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from epsilometer.errors import InputError, install_command
from epsilometer.one_line import clean
from epsilometer.report.formatting import figure, figure_down, plain

if TYPE_CHECKING:
    from epsilometer.suites import Change, Entry, Family, History, Outcome
    from epsilometer.suites.history import Run


def print_rows(
    headers: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Prints rows under headers, on standard output unless another stream is given.

    Nothing in them can steer a terminal: what does not print is spelled out.
    """
    stream = sys.stdout if stream is None else stream
    rows = [[clean(cell) for cell in row] for row in rows]
    if not stream.isatty():
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        for row in (headers, *rows):
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            stream.write(line.rstrip() + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=stream).print(table)


def methods() -> int:
    """List the methods that --method takes, and their options.

    Installed packages may bring their own methods (entry points of the group epsilometer.methods).
    """
    from epsilometer.methods.registry import find_method, names, option_names, origin

    rows = []
    for name in names():
        source = "" if origin(name) == "epsilometer" else f" (from {origin(name)})"
        try:
            method = find_method(name)
        except InputError as error:  # another package's method; the list continues
            rows.append((name, "?", f"{error}{source}", ""))
            continue
        options = ", ".join(option_names(name))
        rows.append((name, method.guarantee, method.summary + source, options))
    print_rows(("name", "guarantee", "summary", "options"), rows)
    return 0


def zoo() -> int:
    """List the reference mechanisms.

    Audit one with: epsilometer audit zoo:NAME. Parameters follow a question mark:
    "zoo:laplace?epsilon=.7".
    Mechanisms of installed packages are listed below them: epsilometer audit plugin:NAME.
    """
    from epsilometer import zoo as mechanisms
    from epsilometer.mechanisms.libraries import installed_plugins

    rows = []
    for name in mechanisms.names():
        entry = mechanisms.find(name)
        truth = "kept" if entry.keeps_claim else "broken"
        rows.append((name, entry.claim.describe(), truth, entry.summary))
    print_rows(("name", "claim", "in truth", "summary"), rows)
    plugins = sorted(installed_plugins("mechanisms").values(), key=lambda plugin: plugin.name)
    if plugins:
        sys.stdout.write("\n")
        plugin_rows = [(f"plugin:{plugin.name}", plugin.value) for plugin in plugins]
        print_rows(("name", "defined in"), plugin_rows)
    return 0


# What each extra brings: its packages, and what they are for. The same as in pyproject.toml, which
# a test compares.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "parquet": (("pyarrow",), "recordings in .parquet files"),
    "search": (
        ("optuna",),
        "the tree-structured surrogate of finders.Bayesian (its Gaussian process needs nothing)",
    ),
    "neural": (("jax", "optax"), "a network as the variational function of renyi-variational"),
    "hypothesis": (("hypothesis",), "domains.from_strategy: inputs from a strategy of Hypothesis"),
    "pandas": (("pandas",), "data frames and series as containers of a domain"),
    "polars": (("polars",), "polars frames as containers of a domain"),
    "dask": (("distributed",), "engine dask://host:port: more than one machine"),
    "ray": (("ray",), "engine ray://host:port: more than one machine"),
    "accounting": (("dp-accounting",), "exact curves beside a measured profile"),
    "opendp": (("opendp",), "audit measurements of OpenDP"),
    "diffprivlib": (
        ("diffprivlib", "scikit-learn"),
        "audit mechanisms, tools and models of diffprivlib",
    ),
}


def doctor() -> int:
    """Tell what is installed, and what is missing for which feature.

    Nothing is imported for it. Always ends with status 0: nothing that is missing is an error.

    Examples:
      epsilometer doctor
    """
    import os
    from importlib.metadata import distributions

    from epsilometer.environment import describe_environment
    from epsilometer.storage.formats import memory_share

    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    here = [(name, str(value)) for name, value in describe_environment().items()]
    here.append(("jobs", f"up to {cores} (--jobs {cores})"))
    here.append(("memory for outputs", f"{memory_share() / 1e9:.1f} GB per side"))
    print_rows(("here", ""), here)
    sys.stdout.write("\n")
    installed = {str(package.name).lower(): package.version for package in distributions()}
    rows = []
    for extra, (packages, purpose) in EXTRAS.items():
        if all(package in installed for package in packages):
            status = ", ".join(f"{package} {installed[package]}" for package in packages)
        else:
            status = f"missing: {install_command(extra, packages[0])}"
        rows.append((extra, purpose, status))
    print_rows(("extra", "for", "status"), rows)
    return 0


def history(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="The suite's TOML file, or its history.")
    ],
    audit: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this audit, run by run.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Only this run, audit by audit.")
    ] = None,
) -> int:
    """Show the earlier runs of a suite.

    Examples:
      epsilometer history suite.toml
      epsilometer history suite.toml --audit svt5
      epsilometer history suite.toml --run 3
    """
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
            _print_runs(past.runs())
    return 0


def history_path(suite: str, given: str | None = None) -> Path:
    """Returns where the history of a suite is, unless it is given."""
    path = Path(given) if given else Path(suite).with_suffix(".history.sqlite")
    return path.absolute()


def _print_runs(runs: "Sequence[Run]") -> None:
    from epsilometer.suites.index import counted

    if not runs:
        sys.stdout.write("no runs yet\n")
        return
    has_nights = any(run.night is not None for run in runs)
    rows = []
    for run in runs:
        night = [str(run.night or "")] if has_nights else []
        rows.append(
            [str(run.number), *night, run.began, run.ended or "interrupted", counted(run.words)]
        )
    night_head = ("night",) if has_nights else ()
    print_rows(("run", *night_head, "began (UTC)", "ended", "verdicts"), rows)


def _print_audit(past: "History", name: str) -> None:
    rows = []
    for run, finished, verdict, bound, claimed in past.bounds(name):
        bound_text = "" if bound is None else figure_down(bound)
        claimed_text = "" if claimed is None else figure(claimed)
        rows.append((str(run), finished, verdict, bound_text, claimed_text))
    if not rows:
        raise InputError(f"no run has an audit called {plain(name)!r}")
    print_rows(("run", "finished (UTC)", "verdict", "bound", "claimed"), rows)


def _print_run(past: "History", number: int) -> None:
    from epsilometer.suites import Entry, find_changes

    outcomes = past.outcomes(number)
    if not outcomes:
        raise InputError(f"there is nothing about run {number}")
    before = past.run_before(number)
    earlier = {} if before is None else past.outcomes(before)
    entries = [Entry(name, {}, outcome.digest) for name, outcome in outcomes.items()]
    print_outcomes(entries, outcomes, find_changes(entries, outcomes, earlier))


def print_outcomes(
    entries: "Sequence[Entry]",
    outcomes: "Mapping[str, Outcome]",
    changes: "Mapping[str, Change]",
    family: "Family | None" = None,
    stream: TextIO | None = None,
) -> None:
    """Prints a row per audit: what was found, whether that was expected, and what has changed.

    Args:
        entries: the audits.
        outcomes: by name.
        changes: by name.
        family: the claims that are judged together; None if each is judged alone.
        stream: where to print; None is standard output.
    """
    rows = []
    for entry in entries:
        outcome = outcomes[entry.name]
        is_alone = family is not None and entry.name in family.refuted_alone
        is_expected = (
            entry.expected is not None and not is_alone and outcome.status(entry.expected) == 0
        )
        word = outcome.word if family is None else family.word(outcome)
        verdict = f"{word} (as expected)" if is_expected else word
        cells = [plain(entry.name, 40), verdict, outcome.figures]
        if family is not None:
            cells.append(plain(family.remark(entry.name), 60))
        rows.append([*cells, plain(changes[entry.name].text, 60)])
    family_head = () if family is None else ("family",)
    print_rows(("audit", "verdict", "bound", *family_head, "change"), rows, stream)
