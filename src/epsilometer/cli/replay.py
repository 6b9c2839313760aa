"""`epsilometer replay` certifies a witness again; `epsilometer verify` checks a stored result."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli import options
from epsilometer.cli.files import read_result, read_value
from epsilometer.cli.output import OutputFiles, write_and_print
from epsilometer.cli.request import given_settings, run_with_progress, target_record
from epsilometer.cli.targets import open_target
from epsilometer.errors import InputError


def replay(
    context: typer.Context,
    result: options.StoredResult,
    target: options.Target,
    *,
    left: options.Left = None,
    right: options.Right = None,
    batch: options.Batch = None,
    features: options.Features = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
) -> int:
    """Certify a stored counterexample again, on fresh draws.

    Nothing is searched: the stored event is counted on new outputs of the mechanism for the stored
    inputs. Of a recording only rows are counted that the audit has not used. Inputs that were too
    large to be stored are given again with --left and --right.

    Example:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer replay result.json zoo:svt5
    """
    from epsilometer.auditing.public import replay as replay_witness
    from epsilometer.inputs import Pair

    files = OutputFiles(json=json, html=html, junit=junit, markdown=markdown).checked(context.obj)
    stored = read_result(Path(result))
    subject = open_target(target, bool(batch), features=features)
    keywords = given_settings(
        samples=samples,
        confidence=confidence,
        seed=seed,
        jobs=jobs,
        engine=engine,
    )
    if (left is None) != (right is None):
        raise InputError("--left and --right are given together or not at all")
    if left is not None and right is not None:
        keywords["pair"] = Pair(read_value(left, "--left"), read_value(right, "--right"))
    work = partial(replay_witness, stored, subject, **keywords)
    replayed = run_with_progress(work, target_record(target, bool(batch)))
    return write_and_print(replayed, files, context.obj)


def verify(
    result: options.StoredResult,
    recording: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The draws of the audit, as record='FILE.jsonl' kept them.",
        ),
    ] = None,
) -> int:
    """Check a stored result without trusting the code that made it.

    Recomputes from the stored counts whether the bound holds at its confidence, and whether
    everything in the file agrees. With --recording the event is counted again on the draws. The
    checker is one file that needs nothing but Python: epsilometer/checker.py.

    Exit status: 0 the result holds, 1 it does not, 2 it cannot be checked.

    Examples:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer verify result.json
      epsilometer verify result.json --recording draws.jsonl
    """
    from epsilometer.checker import main

    if recording is None:
        return main([result])
    return main([result, "--recording", recording])
