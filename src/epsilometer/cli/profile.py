"""`epsilometer profile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import typer

from epsilometer.cli import options

_Claims = Annotated[
    list[str] | None,
    typer.Option("--claim", metavar="CLAIM", help="Check a claim such as eps=1,delta=1e-6; may be repeated."),
]
_Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw the curves (.svg, .png, .pdf).", show_default=False)
]


def profile(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=options.TARGET_HELP)],
    left: options.Left = None,
    right: options.Right = None,
    claim: _Claims = None,
    samples: options.Samples = None,
    confidence: options.Confidence = None,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    engine: options.Engine = None,
    batch: options.Batch = None,
    suppress: options.Suppress = None,
    json: options.JsonFile = None,
    html: options.HtmlFile = None,
    plot: _Plot = None,
    checkpoint: options.CheckpointFile = None,
    representation: options.Representation = None,
    distance: options.Distance = None,
) -> int:
    """Bound the whole privacy curve: ε at every δ, μ, and the trade-off curve.

    All figures hold together, so any number of claims of any notion may be checked against them. The exit status is 1
    when one of them is refuted.

    Examples:
      epsilometer profile zoo:gaussian --seed 0
      epsilometer profile zoo:gaussian --claim mu=1 --claim eps=1,delta=1e-3 --plot profile.svg
      epsilometer profile my_module:noisy_count --left 0 --right 1 --html profile.html --json profile.json
    """
    flags = dict(locals())
    from epsilometer.claims import parse_claim
    from epsilometer.cli.files import writable
    from epsilometer.cli.options import run
    from epsilometer.cli.request import make_plan

    picture = writable(plot, "--plot")
    claims = [parse_claim(each) for each in claim or ()]
    plan = make_plan(target, {name: flags[name] for name in flags if name not in ("target", "claim", "plot")})

    def work(progress: Any) -> Any:
        from epsilometer.auditing.profile import profile as profile_mechanism

        return profile_mechanism(plan.mechanism, plan.inputs, progress=progress, **plan.keywords)

    found = run(work, plan.record)
    return _deliver(found, claims, plan.files, picture)


def _deliver(found: Any, claims: list[Any], files: Mapping[str, str | None], plot: str | None) -> int:
    from epsilometer.cli.files import own_output, write_all
    from epsilometer.cli.options import INCONCLUSIVE, NOT_REFUTED, REFUTED
    from epsilometer.storage.writing import write_whole

    checks = [found.check(claim) for claim in claims]
    writers: list[Callable[[], object]] = []
    json_file = files["json"]
    if json_file not in (None, "-"):
        writers.append(partial(write_whole, str(json_file), found.to_json() + "\n"))
    if files["html"] is not None:
        writers.append(partial(found.save_html, files["html"], claims))
    if plot is not None:
        writers.append(partial(found.plot, plot, claim=[check.claim for check in checks]))
    problem = write_all(writers)
    lines = [found.to_json()] if json_file == "-" else [str(found), *(_check_line(check) for check in checks)]
    own_output().write("\n".join(lines) + "\n")
    if problem is not None:
        raise problem
    verdicts = {check.verdict.name for check in checks}
    return REFUTED if "REFUTED" in verdicts else INCONCLUSIVE if "INCONCLUSIVE" in verdicts else NOT_REFUTED


def _check_line(check: Any) -> str:
    return f"  {check.claim.describe()}: {check.verdict}; {check.claim.symbol} is at least {check.lower_bound:.4g}"
