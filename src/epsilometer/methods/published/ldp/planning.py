"""The planner of histogram estimates (`epsilometer.ldp.plan`)."""

from dataclasses import replace
from typing import Any

from epsilometer.claims import Claim, PureDP, RenyiDP
from epsilometer.errors import InputError
from epsilometer.mechanisms.timing import seconds_per_draw
from epsilometer.methods.published.ldp.estimating import find_smoothness
from epsilometer.methods.published.ldp.plans import HistogramPlan, plan_overall


def plan(
    notion: type[Claim] | str | None = None,
    *,
    precision: float,
    confidence: float = 0.95,
    lipschitz: float | None = None,
    domain: tuple[float, float] | None = None,
    input_lipschitz: float | None = None,
    input_domain: tuple[float, float] | None = None,
    order: float | None = None,
    as_published: bool = False,
    mechanism: object = None,
    dataset: Any = None,
    most_draws: float | None = None,
) -> HistogramPlan:
    """Plans a two-sided estimate of local privacy: how many cells, inputs and draws it needs.

    The planner of audits is `epsilometer.plan`.

    Args:
        notion: `PureDP` or `RenyiDP`, or their names; by default what `order` says.
        precision: γ; the estimate should be within ± γ.
        confidence: the probability with which it is.
        lipschitz: C of the outputs, see `epsilometer.ldp.estimate`.
        domain: (a, b) of the outputs.
        input_lipschitz: D of the inputs, for the level over a whole interval of inputs.
        input_domain: (c, d) of the inputs; without it the plan is for one pair.
        order: of a Rényi divergence.
        as_published: the paper's number of samples; the default adds union bounds over all counts
            that may deviate.
        mechanism: timed briefly, if given. A zoo entry also brings its domain and its Lipschitz
            constant.
        dataset: the input to time it on; by default the left one of a zoo entry's worst pair.
        most_draws: refuses a plan with more draws.

    Guarantee: that of `epsilometer.ldp.estimate`.

    Example:
        >>> plan = em.ldp.plan(precision=0.5, confidence=0.9, lipschitz=0.667, domain=(0, 1))
        >>> plan.cells, plan.samples
        (13, 158179)
    """
    if (input_domain is None) is not (input_lipschitz is None):
        raise InputError("input_domain= and input_lipschitz= are needed together")
    planned = plan_overall(
        find_smoothness(mechanism, domain, lipschitz),
        input_domain=input_domain,
        input_lipschitz=input_lipschitz,
        precision=precision,
        confidence=confidence,
        order=_checked_order(notion, order),
        as_published=as_published,
    )
    if most_draws is not None:
        planned.check_affordable(most_draws)
    if mechanism is None:
        return planned
    return replace(planned, seconds=planned.draws * seconds_per_draw(mechanism, dataset))


def _checked_order(notion: type[Claim] | str | None, order: float | None) -> float | None:
    """Returns the order, or raises an InputError if it does not fit the notion."""
    name = notion if isinstance(notion, str | None) else getattr(notion, "notion", repr(notion))
    if name not in (None, PureDP.notion, RenyiDP.notion):
        raise InputError(
            f"notion={name!r}: histograms estimate pure and renyi; "
            "plan an audit with epsilometer.plan"
        )
    if name == RenyiDP.notion and order is None:
        raise InputError("notion=renyi needs order=, e.g. 2")
    if name == PureDP.notion and order is not None:
        raise InputError(f"notion=pure has no order; leave out order={order!r}, or ask for renyi")
    return order
