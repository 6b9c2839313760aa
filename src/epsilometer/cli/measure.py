"""`epsilometer measure`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from epsilometer.cli import options


def measure(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=options.TARGET_HELP)],
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
    notion: options.Notion = None,
    epsilon: options.FixedEpsilon = None,
    delta: options.FixedDelta = None,
    order: options.FixedOrder = None,
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
    stop_early: options.StopEarly = None,
    max_seconds: options.MaxSeconds = None,
    checkpoint: options.CheckpointFile = None,
    representation: options.Representation = None,
    distance: options.Distance = None,
) -> int:
    """Bound the privacy loss from below, without a claim.

    The notion is pure unless another is named or follows from a fixed parameter: --order is renyi, --delta and
    --epsilon are approx.

    Examples:
      epsilometer measure my_module:noisy_count --left 0 --right 1
      epsilometer measure my_module:noisy_mean --finder random --domain vector:4:0:1
      epsilometer measure zoo:gaussian --notion gaussian
      epsilometer measure zoo:gaussian --notion approx --delta 1e-5
      epsilometer measure zoo:laplace --notion renyi --order 2
    """
    flags = dict(locals())
    from epsilometer.cli.options import deliver, run
    from epsilometer.cli.request import find_notion, fixed_parameters, make_plan

    fixed: dict[str, Any] = fixed_parameters(epsilon, delta, order)
    kind = find_notion(notion, fixed)
    plan = make_plan(target, {name: flags[name] for name in flags if name not in ("target", "notion", *fixed)})

    def work(progress: Any) -> Any:
        from epsilometer.auditing.public import measure as measure_mechanism

        return measure_mechanism(plan.mechanism, plan.inputs, kind, progress=progress, **plan.keywords, **fixed)

    result = run(work, plan.record)
    return deliver(result, plan.files)
