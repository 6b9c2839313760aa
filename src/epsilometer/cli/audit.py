"""`epsilometer audit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from epsilometer.cli import options

_HELP = options.TARGET_HELP + " Or a TOML file with the same settings."


def audit(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_HELP)],
    left: options.Left = None,
    right: options.Right = None,
    finder: options.Finder = None,
    domain: options.Domain = None,
    around: options.Around = None,
    relation: options.Relation = None,
    user: options.User = None,
    beyond: options.Beyond = None,
    trials: options.Trials = None,
    trial_samples: options.TrialSamples = None,
    search_on: options.SearchOn = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    method: options.MethodName = None,
    option: options.MethodOptions = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    batch: options.Batch = None,
    suppress: options.Suppress = None,
    json: options.JsonFile = None,
    html: options.HtmlFile = None,
    junit: options.JunitFile = None,
    markdown: options.MarkdownFile = None,
    write_test: options.TestFile = None,
    stop_early: options.StopEarly = None,
    max_seconds: options.MaxSeconds = None,
    checkpoint: options.CheckpointFile = None,
    representation: options.Representation = None,
    all: options.AllViews = None,
    distance: options.Distance = None,
) -> int:
    """Try to refute a claim of privacy.

    A function gets one input, and a numpy generator if it has a parameter named rng; it returns one output, of any
    kind. A zoo mechanism brings its worst pair of inputs, and its own claim unless one is given.

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
    """
    flags = dict(locals())
    return run_audit(target, {**flags, "representation": _representation(flags.pop("all"), representation)})


def run_audit(target: str, flags: dict[str, Any]) -> int:
    """Audits what the flags describe, shows the result and gives the exit status."""
    from epsilometer.cli.options import deliver, run
    from epsilometer.cli.request import make_plan

    plan = make_plan(target, {name: value for name, value in flags.items() if name not in ("target", "all")})
    claim = _claim(plan.parameters, plan.mechanism)

    from epsilometer.auditing.public import audit as audit_mechanism

    result = run(
        lambda progress: audit_mechanism(plan.mechanism, plan.inputs, claim, progress=progress, **plan.keywords),
        plan.record,
    )
    return deliver(result, plan.files)


def _representation(all_views: bool | None, representation: str | None) -> str | None:
    if not all_views:
        return representation
    if representation not in (None, "all"):
        from epsilometer.errors import InputError

        raise InputError(f"--all and --representation {representation} contradict each other; give one of them")
    return "all"


def _claim(parameters: dict[str, float], mechanism: Any) -> Any:
    from epsilometer.claims import from_parameters
    from epsilometer.mechanisms import as_subject

    brings_claim = not parameters and as_subject(mechanism).makes_a_promise
    return None if brings_claim else from_parameters(**parameters)
