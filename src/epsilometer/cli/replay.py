"""`epsilometer replay` certifies a witness again; `epsilometer verify` checks a stored result."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli import options
from epsilometer.cli.files import read_result, read_value
from epsilometer.cli.output import OutputFiles, write_and_print
from epsilometer.cli.request import (
    given_settings,
    read_call_options,
    run_with_progress,
    target_record,
)
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
    param: options.Params = None,
    dataset_format: options.DatasetFormat = None,
    http_header: options.HttpHeaders = None,
    http_method: options.HttpMethod = None,
    http_timeout: options.HttpTimeout = None,
    http_body: options.HttpBody = None,
    http_answer: options.HttpAnswer = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    constant: options.Constant = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    fail_blind: options.FailBlind = None,
) -> int:
    """Certify a stored counterexample again, on fresh draws.

    Nothing is searched: the stored event is counted on new outputs of the mechanism for the stored
    inputs. Of a recording only rows are counted that the audit has not used. Inputs that were too
    large to be stored are given again with --left and --right.

    Example:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer replay result.json zoo:svt5
    """
    from epsilometer.auditing.api import replay as replay_witness
    from epsilometer.inputs import Pair

    files = OutputFiles(json=json, html=html, junit=junit, markdown=markdown).checked(context.obj)
    stored = read_result(Path(result))
    call_settings = read_call_options(
        given_settings(
            param=param,
            dataset_format=dataset_format,
            http_header=http_header,
            http_method=http_method,
            http_timeout=http_timeout,
            http_body=http_body,
            http_answer=http_answer,
        )
    )
    audit_target = open_target(target, bool(batch), features=features, **call_settings)
    keywords = given_settings(
        samples=samples,
        confidence=confidence,
        seed=seed,
        jobs=jobs,
        engine=engine,
        constant=constant,
    )
    if (left is None) != (right is None):
        raise InputError("--left and --right are given together or not at all")
    if left is not None and right is not None:
        keywords["pair"] = Pair(read_value(left, "--left"), read_value(right, "--right"))
    work = partial(replay_witness, stored, audit_target, **keywords)
    replayed = run_with_progress(work, target_record(target, bool(batch), call_settings))
    return write_and_print(replayed, files, context.obj, fail_blind=bool(fail_blind))


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
