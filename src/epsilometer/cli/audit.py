"""`epsilometer audit` and `epsilometer measure`."""

from typing import TYPE_CHECKING

import typer

from epsilometer.cli import options
from epsilometer.cli.output import write_and_print
from epsilometer.cli.request import (
    find_notion,
    given_settings,
    make_request,
    run_with_progress,
)
from epsilometer.errors import InputError

if TYPE_CHECKING:
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult


def audit(
    context: typer.Context,
    target: options.TargetOrFile,
    *,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
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
    finder: options.Finder = None,
    domain: options.Domain = None,
    around: options.Around = None,
    relation: options.Relation = None,
    user: options.User = None,
    beyond: options.Beyond = None,
    trials: options.Trials = None,
    trial_samples: options.TrialSamples = None,
    search_on: options.SearchOn = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    method: options.MethodName = None,
    option: options.MethodOptions = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    suppress: options.Suppress = None,
    constant: options.Constant = None,
    stop_early: options.StopEarly = None,
    max_seconds: options.MaxSeconds = None,
    checkpoint: options.Checkpoint = None,
    representation: options.Representation = None,
    all_representations: options.AllRepresentations = False,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    write_test: options.WriteTest = None,
    fail_blind: options.FailBlind = None,
) -> int:
    """Try to refute a claim of privacy.

    A function gets one input, and a numpy generator if it has a parameter named rng; it returns one
    output, of any kind. A zoo mechanism brings its worst pair of inputs, and its own claim unless
    one is given.

    Examples:
      epsilometer audit my_module:noisy_count --left 0 --right 1 --epsilon 1
      epsilometer audit my_module:noisy_mean --left @left.npy --right @right.npy --epsilon 1 --delta 1e-6
      epsilometer audit zoo:svt5 --epsilon 1 --seed 0 --json result.json --html report.html
      epsilometer audit "zoo:laplace?epsilon=.7" --mu 1
      epsilometer audit my_module:noisy_mean --domain records:number:0:1 --relation add-remove --epsilon 1
      epsilometer audit my_module:noisy_mean --around data.csv --beyond --epsilon 1 --write-test test_leak.py
      epsilometer audit audit.toml

    audit.toml:
      mechanism = "my_module:noisy_count"
      pairs = [[0, 1], [5, 6]]
      epsilon = 1.0
      samples = 200000
    """  # noqa: E501  # lines to be copied
    from epsilometer.auditing.api import audit_with_config
    from epsilometer.auditing.config import AuditConfig

    if all_representations:
        if representation not in (None, "all"):
            raise InputError(
                f"--all and --representation {representation} contradict each other; "
                "give one of them"
            )
        representation = "all"
    given = given_settings(
        epsilon=epsilon,
        delta=delta,
        order=order,
        mu=mu,
        rho=rho,
        accountant=accountant,
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
        finder=finder,
        domain=domain,
        around=around,
        relation=relation,
        user=user,
        beyond=beyond,
        trials=trials,
        trial_samples=trial_samples,
        search_on=search_on,
        samples=samples,
        confidence=confidence,
        seed=seed,
        method=method,
        option=option,
        jobs=jobs,
        engine=engine,
        suppress=suppress,
        constant=constant,
        stop_early=stop_early,
        max_seconds=max_seconds,
        checkpoint=checkpoint,
        representation=representation,
        json=json,
        html=html,
        junit=junit,
        markdown=markdown,
        write_test=write_test,
        fail_blind=fail_blind,
    )
    request = make_request(target, given, context.obj)
    claim = request.claim()

    def work(progress: "ProgressBar") -> "AuditResult":
        return audit_with_config(
            request.audit_target,
            request.inputs,
            claim,
            AuditConfig(progress=progress, **request.keywords),
            may_exit_process=context.obj.ends_process,
        )

    result = run_with_progress(work, request.record)
    return write_and_print(result, request.files, context.obj, fail_blind=request.fail_blind)


def measure(
    context: typer.Context,
    target: options.Target,
    *,
    notion: options.Notion = None,
    epsilon: options.FixedEpsilon = None,
    delta: options.FixedDelta = None,
    order: options.FixedOrder = None,
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
    finder: options.Finder = None,
    domain: options.Domain = None,
    around: options.Around = None,
    relation: options.Relation = None,
    user: options.User = None,
    beyond: options.Beyond = None,
    trials: options.Trials = None,
    trial_samples: options.TrialSamples = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    method: options.MethodName = None,
    option: options.MethodOptions = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    suppress: options.Suppress = None,
    constant: options.Constant = None,
    stop_early: options.StopEarly = None,
    max_seconds: options.MaxSeconds = None,
    checkpoint: options.Checkpoint = None,
    representation: options.Representation = None,
    json: options.Json = None,
    html: options.Html = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
) -> int:
    """Bound the privacy loss from below, without a claim.

    The notion is pure unless another is named or follows from a fixed parameter: --order is renyi,
    --delta and --epsilon are approx.

    Examples:
      epsilometer measure my_module:noisy_count --left 0 --right 1
      epsilometer measure my_module:noisy_mean --finder random --domain vector:4:0:1
      epsilometer measure zoo:gaussian --notion gaussian
      epsilometer measure zoo:gaussian --notion approx --delta 1e-5
      epsilometer measure zoo:laplace --notion renyi --order 2
    """
    from epsilometer.auditing.api import measure_with_config
    from epsilometer.auditing.config import AuditConfig

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
        finder=finder,
        domain=domain,
        around=around,
        relation=relation,
        user=user,
        beyond=beyond,
        trials=trials,
        trial_samples=trial_samples,
        samples=samples,
        confidence=confidence,
        seed=seed,
        method=method,
        option=option,
        jobs=jobs,
        engine=engine,
        suppress=suppress,
        constant=constant,
        stop_early=stop_early,
        max_seconds=max_seconds,
        checkpoint=checkpoint,
        representation=representation,
        json=json,
        html=html,
        junit=junit,
        markdown=markdown,
    )
    notion_class = None if notion is None else find_notion(notion)
    fixed_parameters = given_settings(epsilon=epsilon, delta=delta, order=order)
    request = make_request(target, given, context.obj)

    def work(progress: "ProgressBar") -> "AuditResult":
        return measure_with_config(
            request.audit_target,
            request.inputs,
            notion_class,
            fixed_parameters,
            AuditConfig(progress=progress, **request.keywords),
            may_exit_process=context.obj.ends_process,
        )

    result = run_with_progress(work, request.record)
    return write_and_print(result, request.files, context.obj)
