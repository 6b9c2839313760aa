"""`epsilometer reproduce`."""

import importlib
import sys
from typing import Annotated, Any

import typer

from epsilometer.cli.files import named_texts
from epsilometer.errors import InputError


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An experiment, see --list.")
    ] = None,
    *,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Run every experiment: a table of what agreed, and why not."),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run it small.")] = False,
    runs: Annotated[
        int | None, typer.Option(help="Runs per case.  [default: the experiment's]")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where to write.  [default: results/NAME]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all runs.")] = 0,
    jobs: Annotated[
        int, typer.Option(help="Worker processes; they do not change the results.")
    ] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An option of the experiment; may be repeated."
        ),
    ] = None,
) -> int:
    """Regenerate the figures of the papers and of this project.

    Writes results.json and figures, names these files, and prints the table. A figure is compared
    with what was expected only after enough runs: all that the experiment makes, at most 20.

    Examples:
      epsilometer reproduce --list
      epsilometer reproduce self/power --runs 10 --out results/power
      epsilometer reproduce self/coverage --set samples=20000
      epsilometer reproduce --all --quick
    """
    try:
        experiments: Any = importlib.import_module("epsilometer_experiments")
    except ImportError as error:
        hint = "they come with the source: run this in a checkout, after make setup"
        raise InputError(f"the experiments cannot be imported ({error}); {hint}") from error
    if list_:
        from epsilometer.cli.listing import print_rows

        print_rows(("name", "paper", "there", "summary"), experiments.listing())
        return 0
    if all_ and (name is not None or set_):
        raise InputError(
            "--all runs every experiment with its own options: leave out NAME and --set"
        )
    if name is None and not all_:
        raise InputError("name an experiment, or see: epsilometer reproduce --list")
    if all_:
        results = experiments.run_all(quick=quick, runs=runs, out=out, seed=seed, jobs=jobs)
        sys.stdout.write(results.read_text(encoding="utf-8"))
        sys.stdout.write(f"written: {results.with_suffix('.json')}\n")
    else:
        settings = named_texts(set_ or [], "--set")
        results = experiments.run(name, runs, out, seed, jobs, settings, quick)
    sys.stdout.write(f"written: {results}\n")
    return 0
