"""`epsilometer compare`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from epsilometer.cli import options


def compare(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="Outputs for one input: a file as below.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="Outputs for its neighbour.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    notion: options.Notion = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Of csv files.  [default: a word above numbers is one]"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="The columns that are the output.  [default: all]"),
    ] = None,
    max_output_bytes: Annotated[
        float | None,
        typer.Option(
            "--max-output-bytes",
            metavar="BYTES",
            help="Memory for the outputs of a side.  [default: an eighth of the memory, at most 8e9]",
        ),
    ] = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    method: options.MethodName = None,
    option: options.MethodOptions = None,
    suppress: options.Suppress = None,
    representation: options.Representation = None,
    distance: options.Distance = None,
    json: options.JsonFile = None,
    html: options.HtmlFile = None,
    junit: options.JunitFile = None,
    markdown: options.MarkdownFile = None,
) -> int:
    """Audit two files of recorded outputs.

    One output per entry: of the first axis of an array (npy, npz; FILE.npz:NAME if it has several), per row of a csv
    or parquet file (an empty cell is the missing value), per line of a jsonl file, per entry of a json list. Without a
    claim, --notion measures.

    Examples:
      epsilometer compare left.npy right.npy --epsilon 1
      epsilometer compare runs.npz:left runs.npz:right --epsilon 1 --delta 1e-6
      epsilometer compare left.csv right.csv --columns count,city --epsilon 1
      epsilometer compare left.csv right.csv --notion pure --html report.html
    """
    from epsilometer.auditing.public import compare as compare_outputs
    from epsilometer.cli.files import read_options
    from epsilometer.cli.options import deliver, files_of, run
    from epsilometer.mechanisms import from_recording

    files = files_of({"json": json, "html": html, "junit": junit, "markdown": markdown})
    given = {"epsilon": epsilon, "delta": delta, "order": order, "mu": mu, "rho": rho}
    claim, fixed = _claim(notion, {name: value for name, value in given.items() if value is not None})
    settings: dict[str, Any] = {"confidence": confidence, "seed": seed, "method": method, "suppress": suppress}
    settings |= {"representation": representation, "distance": distance}
    settings["options"] = None if option is None else read_options(option)
    keywords = {name: value for name, value in settings.items() if value is not None} | fixed
    reading: dict[str, Any] = {"header": header, "max_output_bytes": max_output_bytes}
    if columns is not None:
        reading["columns"] = [name.strip() for name in columns.split(",")]
    outputs = from_recording(left, **reading), from_recording(right, **reading)
    result = run(lambda progress: compare_outputs(*outputs, claim, **keywords), {"left": left, "right": right})
    if "note" in result.settings:
        sys.stderr.write(f"epsilometer: {result.settings['note']}\n")
    return deliver(result, files)


def _claim(notion: str | None, given: dict[str, float]) -> tuple[Any, dict[str, float]]:
    """A claim; or a notion and its fixed parameters."""
    from epsilometer.claims import from_parameters
    from epsilometer.cli.request import find_notion
    from epsilometer.errors import InputError

    if notion is not None:
        return find_notion(notion, given), given
    if not given:
        raise InputError("nothing is claimed: give --epsilon (or --mu, --rho), or --notion to measure")
    return from_parameters(**given), {}
