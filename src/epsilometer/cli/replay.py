"""`epsilometer replay` proves a witness again on fresh draws; `epsilometer verify` checks a stored certificate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from epsilometer.cli import options


def replay(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="What --json wrote.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=options.TARGET_HELP)],
    left: options.Left = None,
    right: options.Right = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    batch: options.Batch = None,
    json: options.JsonFile = None,
    html: options.HtmlFile = None,
    junit: options.JunitFile = None,
    markdown: options.MarkdownFile = None,
) -> int:
    """Certify a stored counterexample again, on fresh draws.

    Nothing is searched: the stored event is counted on new outputs of the mechanism for the stored inputs. Inputs that
    were too large to be stored are given again with --left and --right.

    Example:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer replay result.json zoo:svt5
    """
    flags = dict(locals())
    return run_replay(result, target, {name: flags[name] for name in flags if name not in ("result", "target")})


def run_replay(stored_file: str, target: str, flags: dict[str, Any]) -> int:
    """Counts the stored event again, shows the result and gives the exit status."""
    from pathlib import Path

    from epsilometer.auditing.public import replay as replay_witness
    from epsilometer.cli.files import read_result, read_value
    from epsilometer.cli.options import deliver, files_of, run
    from epsilometer.cli.request import open_target, public_target

    files = files_of(flags)
    stored = read_result(Path(stored_file))
    mechanism = open_target(target, bool(flags["batch"]))
    sides = [None if flags[side] is None else read_value(flags[side], f"--{side}") for side in ("left", "right")]
    names = ("samples", "confidence", "seed", "jobs", "engine")
    keywords = {name: flags[name] for name in names if flags[name] is not None}
    if flags["left"] is not None or flags["right"] is not None:
        keywords["pair"] = _pair(flags, sides)
    result = run(
        lambda progress: replay_witness(stored, mechanism, progress=progress, **keywords),
        {"target": public_target(target), **({"batch": True} if flags["batch"] else {})},
    )
    return deliver(result, files)


def _pair(flags: dict[str, Any], sides: list[Any]) -> Any:
    from epsilometer.errors import InputError
    from epsilometer.inputs import Pair

    if flags["left"] is None or flags["right"] is None:
        raise InputError("--left and --right are given together or not at all")
    return Pair(*sides)


def verify(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="What --json wrote.")],
    recording: Annotated[
        str | None,
        typer.Option(
            "--recording",
            metavar="FILE",
            help="The draws of the audit, as record='FILE.jsonl' kept them.",
            show_default=False,
        ),
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
