"""`epsilometer compare`."""

import sys
from typing import Annotated, Any

import typer

from epsilometer.cli.options import CLAIM, FILES, READING, deliver, files_of, run, takes
from epsilometer.errors import InputError


@takes(f"{CLAIM} notion {READING} confidence seed method option features suppress representation distance {FILES}")
def compare(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="Outputs for one input: a file as below.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="Outputs for its neighbour.")],
    **flags: Any,
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
    from epsilometer.claims import from_parameters
    from epsilometer.cli.files import read_options
    from epsilometer.cli.request import find_notion, open_features, parameters_of
    from epsilometer.mechanisms.recordings import from_recording

    files = files_of(flags)
    given = parameters_of(flags)
    if flags["notion"] is None and not given:
        raise InputError("nothing is claimed: give --epsilon (or --mu, --rho), or --notion to measure")
    measured = flags["notion"] is not None
    claim: Any = find_notion(flags["notion"]) if measured else from_parameters(**given)
    names = ("confidence", "seed", "method", "suppress", "representation", "distance")
    keywords: dict[str, Any] = {name: flags[name] for name in names if flags[name] is not None}
    if flags["option"] is not None:
        keywords["options"] = read_options(flags["option"])
    if flags["features"] is not None:
        keywords["features"] = open_features(flags["features"])
    if measured:
        keywords |= given
    reading = {name: flags[name] for name in ("header", "max_output_bytes")}
    if flags["columns"] is not None:
        reading["columns"] = [name.strip() for name in flags["columns"].split(",")]
    outputs = from_recording(left, **reading), from_recording(right, **reading)
    result = run(lambda progress: compare_outputs(*outputs, claim, **keywords), {"left": left, "right": right})
    if "note" in result.settings:
        sys.stderr.write(f"epsilometer: {result.settings['note']}\n")
    return deliver(result, files)
