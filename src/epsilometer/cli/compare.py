"""`epsilometer compare`."""

import sys
from typing import Annotated, Any

import typer

from epsilometer.cli import options
from epsilometer.cli.files import read_options
from epsilometer.cli.output import OutputFiles, write_and_print
from epsilometer.cli.request import (
    find_notion,
    given_settings,
    read_accountant,
    run_with_progress,
)
from epsilometer.cli.targets import open_features
from epsilometer.errors import InputError


def compare(
    context: typer.Context,
    left: Annotated[
        str, typer.Argument(metavar="LEFT", help="Outputs for one input: a file as below.")
    ],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="Outputs for its neighbour.")],
    *,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    accountant: options.Accountant = None,
    notion: options.Notion = None,
    distance: options.Distance = None,
    header: options.Header = None,
    columns: options.Columns = None,
    max_output_bytes: options.MaxOutputBytes = None,
    features: options.Features = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    method: options.MethodName = None,
    option: options.MethodOptions = None,
    suppress: options.Suppress = None,
    constant: options.Constant = None,
    representation: options.Representation = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    fail_blind: options.FailBlind = None,
) -> int:
    """Audit two files of recorded outputs.

    One output per entry: of the first axis of an array (npy, npz; FILE.npz:NAME if it has several),
    per row of a csv or parquet file (an empty cell is the missing value), per line of a jsonl file,
    per entry of a json list. Without a claim, --notion measures.

    Examples:
      epsilometer compare left.npy right.npy --epsilon 1
      epsilometer compare runs.npz:left runs.npz:right --epsilon 1 --delta 1e-6
      epsilometer compare left.csv right.csv --columns count,city --epsilon 1
      epsilometer compare left.csv right.csv --notion pure --html report.html
    """
    from epsilometer.auditing.api import compare as compare_outputs
    from epsilometer.claims import from_parameters
    from epsilometer.mechanisms.recordings import from_recording

    files = OutputFiles(json=json, html=html, junit=junit, markdown=markdown).checked(context.obj)
    parameters = given_settings(epsilon=epsilon, delta=delta, order=order, mu=mu, rho=rho)
    accountant_claim = read_accountant(accountant, parameters)
    if notion is None and not parameters and accountant_claim is None:
        raise InputError(
            "nothing is claimed: give --epsilon (or --mu, --rho, --accountant), "
            "or --notion to measure"
        )
    if notion is not None and accountant_claim is not None:
        raise InputError("--accountant is a claim, and --notion measures without one")
    keywords = given_settings(
        confidence=confidence,
        seed=seed,
        method=method,
        suppress=suppress,
        constant=constant,
        representation=representation,
        distance=distance,
        options=None if option is None else read_options(option),
        features=None if features is None else open_features(features),
    )
    claim: Any
    if accountant_claim is not None:
        claim = accountant_claim
    elif notion is None:
        claim = from_parameters(**parameters)
    else:
        claim = find_notion(notion)
        keywords.update(parameters)
    column_names = None
    if columns is not None:
        column_names = [name.strip() for name in columns.split(",")]
    reading: dict[str, Any] = {"header": header, "max_output_bytes": max_output_bytes}
    if column_names is not None:
        reading["columns"] = column_names
    left_outputs = from_recording(left, **reading)
    right_outputs = from_recording(right, **reading)
    result = run_with_progress(
        lambda progress: compare_outputs(left_outputs, right_outputs, claim, **keywords),
        {"left": left, "right": right, **given_settings(accountant=accountant)},
    )
    if "note" in result.settings:
        sys.stderr.write(f"epsilometer: {result.settings['note']}\n")
    return write_and_print(result, files, context.obj, fail_blind=bool(fail_blind))
