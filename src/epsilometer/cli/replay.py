"""`epsilometer replay` proves a witness again on fresh draws; `epsilometer verify` checks a stored certificate."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from epsilometer.cli.files import read_result, read_value
from epsilometer.cli.options import FILES, Target, deliver, files_of, run, takes
from epsilometer.errors import InputError

_Stored = Annotated[str, typer.Argument(metavar="RESULT", help="What --json wrote.")]


@takes(f"left right samples confidence seed jobs engine batch features {FILES}")
def replay(result: _Stored, target: Target, **flags: Any) -> int:
    """Certify a stored counterexample again, on fresh draws.

    Nothing is searched: the stored event is counted on new outputs of the mechanism for the stored inputs. Inputs that
    were too large to be stored are given again with --left and --right.

    Example:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer replay result.json zoo:svt5
    """
    from epsilometer.auditing.public import replay as replay_witness
    from epsilometer.cli.request import open_target, record_of
    from epsilometer.inputs import Pair

    files = files_of(flags)
    stored = read_result(Path(result))
    mechanism = open_target(target, bool(flags["batch"]), features=flags["features"])
    names = ("samples", "confidence", "seed", "jobs", "engine")
    keywords = {name: flags[name] for name in names if flags[name] is not None}
    sides = [read_value(flags[side], f"--{side}") for side in ("left", "right") if flags[side] is not None]
    if len(sides) == 1:
        raise InputError("--left and --right are given together or not at all")
    if sides:
        keywords["pair"] = Pair(*sides)
    found = run(partial(replay_witness, stored, mechanism, **keywords), record_of(target, bool(flags["batch"])))
    return deliver(found, files)


def verify(
    result: _Stored,
    recording: Annotated[
        str | None, typer.Option(metavar="FILE", help="The draws of the audit, as record='FILE.jsonl' kept them.")
    ] = None,
) -> int:
    """Check a stored result without trusting the code that made it.

    Recomputes from the stored counts whether the bound holds at its confidence, and whether everything in the file
    agrees. With --recording the event is counted again on the draws. The checker is one file that needs nothing but
    Python: epsilometer/checker.py.

    Exit status: 0 the result holds, 1 it does not, 2 it cannot be checked.

    Examples:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer verify result.json
      epsilometer verify result.json --recording draws.jsonl
    """
    from epsilometer.checker import main

    return main([result] if recording is None else [result, "--recording", recording])
