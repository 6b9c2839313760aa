"""`epsilometer profile`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from epsilometer.cli.files import own_output, writable, write_all
from epsilometer.cli.options import INCONCLUSIVE, NOT_REFUTED, REFUTED, Target, run, takes


@takes(
    "left right claim samples confidence seed jobs engine batch features suppress json html plot checkpoint "
    "representation distance"
)
def profile(target: Target, **flags: Any) -> int:
    """Bound the whole privacy curve: ε at every δ, μ, and the trade-off curve.

    All figures hold together, so any number of claims of any notion may be checked against them. The exit status is 1
    when one of them is refuted.

    Examples:
      epsilometer profile zoo:gaussian --seed 0
      epsilometer profile zoo:gaussian --claim mu=1 --claim eps=1,delta=1e-3 --plot profile.svg
      epsilometer profile my_module:noisy_count --left 0 --right 1 --html profile.html --json profile.json
    """
    from epsilometer.auditing.profile import profile as profile_mechanism
    from epsilometer.claims import parse_claim
    from epsilometer.cli.request import make_plan
    from epsilometer.storage.writing import write_whole

    plot = writable(flags.pop("plot"), "--plot")
    claims = [parse_claim(each) for each in flags.pop("claim") or ()]
    plan = make_plan(target, flags)
    found = run(partial(profile_mechanism, plan.mechanism, plan.inputs, **plan.keywords), plan.record)
    checks = [found.check(claim) for claim in claims]
    writers: list[Callable[[], object]] = []
    json_file, html_file = plan.files["json"], plan.files["html"]
    if json_file not in (None, "-"):
        writers.append(partial(write_whole, str(json_file), found.to_json() + "\n"))
    if html_file is not None:
        writers.append(partial(found.save_html, html_file, claims))
    if plot is not None:
        writers.append(partial(found.plot, plot, claim=claims))
    problem = write_all(writers)
    lines = [found.to_json() if json_file == "-" else str(found)]
    if json_file != "-":
        for each in checks:
            words = f"{each.claim.symbol} is at least {each.lower_bound:.4g}"
            lines.append(f"  {each.claim.describe()}: {each.verdict}; {words}")
    own_output().write("\n".join(lines) + "\n")
    if problem is not None:
        raise problem
    verdicts = {check.verdict.name for check in checks}
    return REFUTED if "REFUTED" in verdicts else INCONCLUSIVE if "INCONCLUSIVE" in verdicts else NOT_REFUTED
