"""How many draws a question takes, before anything is drawn for it."""

import dataclasses
import math
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from epsilometer.auditing.settings import FEWEST, training_size
from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts, lower, upper
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP, RenyiDP, as_claim, as_number
from epsilometer.claims.base import check_confidence
from epsilometer.errors import InputError
from epsilometer.inputs import as_pairs
from epsilometer.mechanisms import as_subject
from epsilometer.methods.published.ldp.estimating import find_smoothness
from epsilometer.methods.published.ldp.plans import MOST_DRAWS, HistogramPlan, plan_overall

# A mechanism is timed for at most about this long.
_PILOT_SECONDS = 0.2
# 2^-80 of a probability is negligible even for rare events.
_HALVINGS = 80
# No plan with more draws per side than this is looked for.
_MOST_SAMPLES = 10**15


@dataclass(frozen=True, slots=True)
class EventsPlan:
    """What it takes to refute a false claim with the method `events`.

    Attributes:
        claim: what is claimed.
        truth: the true value of the claim's own parameter.
        power: the probability with which the claim is refuted.
        confidence: the confidence of the audit.
        event: (p, q), the probabilities of the event that the audit is assumed to find.
        samples: draws per side for the whole audit, training included.
        draws: both sides together.
        seconds: how long drawing will take; None if no mechanism was timed.
    """

    claim: Claim
    truth: float
    power: float
    confidence: float
    event: tuple[float, float]
    samples: int
    draws: int
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        data["claim"] = self.claim.to_dict()
        data["event"] = list(self.event)
        return data

    def check_affordable(self, most_draws: float = MOST_DRAWS) -> "EventsPlan":
        """Returns the plan itself; raises an InputError if it takes too many draws."""
        if self.draws > most_draws:
            raise InputError(
                f"refuting {self.claim.describe()} when the truth is {self.truth:g} takes "
                f"{self.draws:,} draws, above most_draws={most_draws:,.0f}"
            )
        return self


def plan(
    notion: type[Claim] | str | None = None,
    *,
    precision: float | None = None,
    confidence: float = 0.95,
    lipschitz: float | None = None,
    domain: tuple[float, float] | None = None,
    input_lipschitz: float | None = None,
    input_domain: tuple[float, float] | None = None,
    order: float | None = None,
    as_published: bool = False,
    claim: Claim | str | None = None,
    truth: float | None = None,
    power: float = 0.9,
    event_probability: float = 0.5,
    mechanism: object = None,
    dataset: Any = None,
    most_draws: float | None = None,
) -> HistogramPlan | EventsPlan:
    """Plans a two-sided estimate, or an audit that should refute a false claim.

    An estimate needs `precision`, an audit `claim` and `truth`.

    Args:
        notion: of an estimate: `PureDP` or `RenyiDP`, or their names; by default what `order` says.
        precision: γ; the estimate should be within ± γ.
        confidence: of the estimate or of the audit.
        lipschitz: C of the outputs, see `epsilometer.ldp.estimate`.
        domain: (a, b) of the outputs.
        input_lipschitz: D of the inputs, for the level over a whole interval of inputs.
        input_domain: (c, d) of the inputs; without it the plan is for one pair.
        order: of a Rényi divergence.
        as_published: the paper's number of samples; the default adds the union bounds that its
            proof leaves out.
        claim: what an audit should refute.
        truth: the true value of the claim's own parameter on the pair that is audited.
        power: the probability with which the claim should be refuted.
        event_probability: how likely the event that separates the inputs best is, on its likelier
            side: ½ for Laplace noise; small for a rare leak, which takes more draws.
        mechanism: timed briefly, if given. A zoo entry also brings what is known about its domain.
        dataset: the input to time it on; by default the left one of a zoo entry's worst pair.
        most_draws: refuses a plan with more draws.

    Guarantee: of a histogram plan, that of `epsilometer.ldp.estimate`. A plan for `events` is
        approximate (normal approximation of the power), and assumes that training finds an event as
        good as the one described.

    Example:
        >>> em.plan(claim="eps=1", truth=1.2).samples > 1000
        True
    """
    planned: HistogramPlan | EventsPlan
    if claim is not None:
        planned = _plan_events(
            claim=as_claim(claim),
            truth=truth,
            power=power,
            confidence=check_confidence(confidence),
            event_probability=event_probability,
        )
    elif precision is None:
        raise InputError(
            "give precision= for an estimate with an interval, or claim= and truth= for an audit"
        )
    else:
        smoothness = find_smoothness(mechanism, domain, lipschitz)
        if (input_domain is None) is not (input_lipschitz is None):
            raise InputError("input_domain= and input_lipschitz= are needed together")
        planned = plan_overall(
            smoothness,
            input_domain,
            input_lipschitz,
            precision,
            confidence,
            _checked_order(notion, order),
            as_published,
        )
    if most_draws is not None:
        planned.check_affordable(most_draws)
    if mechanism is None:
        return planned
    seconds = planned.draws * seconds_per_draw(mechanism, dataset)
    return dataclasses.replace(planned, seconds=seconds)


def seconds_per_draw(mechanism: object, dataset: Any = None) -> float:
    """Times a few pilot draws, which are discarded."""
    subject = as_subject(mechanism)
    if dataset is None and subject.worst_pair is not None:
        dataset = as_pairs(subject.worst_pair)[0].left
    timed = subject.mechanism
    rng = np.random.default_rng()
    n = 1
    while True:
        began = time.perf_counter()
        timed.sample(dataset, n, rng)
        seconds = time.perf_counter() - began
        if seconds > _PILOT_SECONDS / 4 or n >= timed.chunk_size:
            return seconds / n
        n = min(2 * n, timed.chunk_size)


def _checked_order(notion: type[Claim] | str | None, order: float | None) -> float | None:
    """Returns the order, or raises an InputError if it does not fit the notion."""
    name = notion if isinstance(notion, str | None) else getattr(notion, "notion", repr(notion))
    if name not in (None, PureDP.notion, RenyiDP.notion):
        raise InputError(
            f"notion={name!r}: histograms estimate pure and renyi; "
            "plan an audit with claim= and truth="
        )
    if name == RenyiDP.notion and order is None:
        raise InputError("notion=renyi needs order=, e.g. 2")
    if name == PureDP.notion and order is not None:
        raise InputError(f"notion=pure has no order; leave out order={order!r}, or ask for renyi")
    return order


def _plan_events(
    *,
    claim: Claim,
    truth: float | None,
    power: float,
    confidence: float,
    event_probability: float,
) -> EventsPlan:
    """Plans an audit with the method `events`; the arguments are those of `plan`."""
    true_value = -math.inf if truth is None else as_number("truth", truth)
    if not claim.value < true_value < math.inf:
        raise InputError(
            f"truth={truth!r} must be a finite number above the claimed {claim.value:g}"
        )
    probabilities = {"power": power, "event_probability": event_probability}
    for name, probability in probabilities.items():
        if not 0.0 < as_number(name, probability) < 1.0:
            raise InputError(f"{name}={probability!r} must lie strictly between 0 and 1")
    p = float(event_probability)
    true_claim = claim.with_value(true_value)
    # The least probability on the other side that the true value allows.
    q = rejected_end(lambda q: true_claim.max_power(q) >= p, p, 0.0, _HALVINGS)
    if not p > claim.max_power(q):
        raise InputError(
            f"event_probability={p:g} with {q:g} on the other side does not break "
            f"{claim.describe()}: choose another"
        )
    n_fresh = _certifying_samples(claim, p, q, power, 1.0 - confidence)
    # The least number of draws of an audit that leaves these for the certificate.
    most = 2 * n_fresh + FEWEST
    samples = bisect_left(
        range(most), True, n_fresh + 1, key=lambda n: n - training_size(n) >= n_fresh
    )
    samples = max(samples, FEWEST)
    return EventsPlan(
        claim=claim,
        truth=true_value,
        power=float(power),
        confidence=confidence,
        event=(p, q),
        samples=samples,
        draws=2 * samples,
    )


def _certifying_samples(
    claim: Claim, p: float, q: float, power: float, failure_probability: float
) -> int:
    """Fresh draws per side for the certificate, by the normal approximation of its power."""

    def score(n: int) -> float:
        return _power_score(claim, p, q, n, failure_probability)

    wanted = float(ndtri(power))
    low = 0
    high = FEWEST
    while score(high) < wanted:
        low = high
        high = 2 * high
        if high > _MOST_SAMPLES:
            raise InputError(
                f"more than {_MOST_SAMPLES:,} draws would be needed: "
                "the event is too rare or too close"
            )
    return bisect_left(range(high), wanted, low + 1, key=score)


def _power_score(claim: Claim, p: float, q: float, n: int, failure_probability: float) -> float:
    """The normal quantile of the power."""
    if isinstance(claim, PureDP | ApproxDP) and not isinstance(claim, ApproxDeltaDP):
        # The score test: its standard error under the claim sets the critical value, the true
        # standard error decides how often it is exceeded.
        factor = math.exp(claim.epsilon)
        delta = claim.delta
        excess = p - delta - factor * q
        claimed_error = math.sqrt((factor * (p - delta + q) + delta) / n)
        critical_value = float(-ndtri(failure_probability)) * claimed_error
        true_error = math.sqrt((p * (1.0 - p) + factor**2 * q * (1.0 - q)) / n)
        return (excess - critical_value) / true_error
    # Two separate bounds, at the expected counts.
    p_lower = lower(Counts(int(n * p), n), failure_probability / 2.0)
    q_upper = upper(Counts(math.ceil(n * q), n), failure_probability / 2.0)
    allowed = claim.max_power(q_upper)
    slope = (allowed - claim.max_power(q)) / (q_upper - q) if q_upper > q else 0.0
    standard_error = math.sqrt((p * (1.0 - p) + slope**2 * q * (1.0 - q)) / n)
    return (p_lower - allowed) / standard_error
