"""`epsilometer profile`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from epsilometer.cli import options
from epsilometer.cli.exit_status import ExitStatus
from epsilometer.cli.output import Answers, writable, write_all
from epsilometer.cli.request import (
    given_settings,
    make_request,
    read_accountant,
    run_with_progress,
)

if TYPE_CHECKING:
    from epsilometer.auditing.claim_check import ClaimCheck
    from epsilometer.auditing.profile import Profile
    from epsilometer.claims import Claim
    from epsilometer.report.progress import ProgressBar


def profile(
    context: typer.Context,
    target: options.Target,
    *,
    claim: options.Claims = None,
    accountant: options.Accountant = None,
    distance: options.Distance = None,
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
    suppress: options.Suppress = None,
    constant: options.Constant = None,
    checkpoint: options.Checkpoint = None,
    representation: options.Representation = None,
    json: options.Json = None,
    html: options.Html = None,
    plot: options.Plot = None,
    fail_blind: options.FailBlind = None,
) -> int:
    """Bound the whole privacy curve: ε at every δ, and μ.

    All figures hold together, so any number of claims of any notion may be checked against them.
    The exit status is 1 when one of them is refuted.

    Examples:
      epsilometer profile zoo:gaussian --seed 0
      epsilometer profile zoo:gaussian --claim mu=1 --claim eps=1,delta=1e-3 --plot profile.svg
      epsilometer profile my_module:noisy_count --left 0 --right 1 --html profile.html --json profile.json
    """  # noqa: E501  # lines to be copied
    from epsilometer.auditing.config import AuditConfig
    from epsilometer.auditing.profile import profile_with_config
    from epsilometer.result import Verdict
    from epsilometer.storage.writing import write_atomically

    answers: Answers = context.obj
    plot_file = writable(plot, "--plot", answers)
    claims = _read_claims(claim or (), accountant)
    given = given_settings(
        distance=distance,
        left=left,
        right=right,
        batch=batch,
        features=features,
        param=param,
        dataset_format=dataset_format,
        http_header=http_header,
        http_method=http_method,
        http_timeout=http_timeout,
        http_body=http_body,
        http_answer=http_answer,
        samples=samples,
        confidence=confidence,
        seed=seed,
        jobs=jobs,
        engine=engine,
        suppress=suppress,
        constant=constant,
        checkpoint=checkpoint,
        representation=representation,
        json=json,
        html=html,
    )
    request = make_request(target, given, answers)

    def work(progress: "ProgressBar") -> "Profile":
        return profile_with_config(
            request.audit_target,
            request.inputs,
            AuditConfig(progress=progress, **request.keywords),
            may_exit_process=answers.ends_process,
        )

    measured = run_with_progress(work, request.record)
    checks = [measured.check(promised) for promised in claims]

    writers: list[Callable[[], object]] = []
    if request.files.json not in (None, "-"):
        writers.append(partial(write_atomically, request.files.json, measured.to_json() + "\n"))
    if request.files.html is not None:
        writers.append(partial(measured.save_html, request.files.html, claims))
    if plot_file is not None:
        writers.append(partial(measured.plot, plot_file, claim=claims))
    problem = write_all(writers)

    if request.files.json == "-":
        answers.write(measured.to_json() + "\n")
    else:
        answers.write(f"{measured}\n")
        for check in checks:
            bound = f"{check.claim.symbol} is at least {check.lower_bound:.4g}"
            answers.write(f"  {check.claim.describe()}: {_verdict(check)}; {bound}\n")
    if problem is not None:
        raise problem

    verdicts = {check.verdict for check in checks}
    if Verdict.REFUTED in verdicts:
        return ExitStatus.REFUTED
    is_blind = any(check.blind is not None for check in checks)
    if measured.is_untrusted or (fail_blind and is_blind):
        return ExitStatus.INCONCLUSIVE
    return ExitStatus.NOT_REFUTED


def _verdict(check: "ClaimCheck") -> str:
    """The verdict on a claim, and first of all whether it could have been another."""
    if check.blind is None:
        return str(check.verdict)
    reason = check.blind.rstrip(".")
    return f"{check.verdict}, and could not have been. {reason}"


def _read_claims(texts: Sequence[str], accountant: str | None) -> "list[Claim]":
    """The claims that --claim and --accountant give."""
    from epsilometer.claims import parse_claim

    claims: list[Claim] = [parse_claim(text) for text in texts]
    accountant_claim = read_accountant(accountant, {})
    return claims if accountant_claim is None else [*claims, accountant_claim]
