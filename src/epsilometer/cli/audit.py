"""`epsilometer audit` and `epsilometer measure`."""

from functools import partial
from typing import Any

from epsilometer.cli.options import CLAIM, ENDING, FILES, RUN, SEARCH, Target, TargetOrFile, deliver, run, takes
from epsilometer.errors import InputError


@takes(f"left right {SEARCH} search_on {CLAIM} {RUN} {FILES} write_test {ENDING} all distance")
def audit(target: TargetOrFile, **flags: Any) -> int:
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
    from epsilometer.auditing.public import audit as audit_mechanism
    from epsilometer.cli.request import make_plan

    if flags.pop("all"):
        if flags["representation"] not in (None, "all"):
            view = flags["representation"]
            raise InputError(f"--all and --representation {view} contradict each other; give one of them")
        flags["representation"] = "all"
    plan = make_plan(target, flags)
    result = run(partial(audit_mechanism, plan.mechanism, plan.inputs, plan.claim(), **plan.keywords), plan.record)
    return deliver(result, plan.files)


@takes(f"left right {SEARCH} notion fixed_epsilon fixed_delta fixed_order {RUN} {FILES} {ENDING} distance")
def measure(target: Target, **flags: Any) -> int:
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
    from epsilometer.auditing.public import measure as measure_mechanism
    from epsilometer.cli.request import find_notion, make_plan, parameters_of

    fixed: dict[str, Any] = parameters_of(flags)
    kind = None if (name := flags.pop("notion")) is None else find_notion(name)
    plan = make_plan(target, {name: value for name, value in flags.items() if name not in fixed})
    result = run(partial(measure_mechanism, plan.mechanism, plan.inputs, kind, **plan.keywords, **fixed), plan.record)
    return deliver(result, plan.files)
