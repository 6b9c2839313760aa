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
        confidence: of the audit.
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
        """Plain data."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**own, "claim": self.claim.to_dict(), "event": list(self.event)}

    def check_affordable(self, most_draws: float = MOST_DRAWS) -> "EventsPlan":
        """Itself, or an InputError with the figure if it takes too many draws."""
        if self.draws > most_draws:
            what = f"refuting {self.claim.describe()} when the truth is {self.truth:g} takes {self.draws:,} draws"
            raise InputError(f"{what}, above most_draws={most_draws:,.0f}")
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
    """Plans a two-sided estimate (`precision`), or an audit that should refute a false claim (`claim` and `truth`).

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
    made: HistogramPlan | EventsPlan
    if claim is not None:
        made = _plan_events(
            as_claim(claim), truth, power, check_confidence(confidence), event_probability
        )
    elif precision is None:
        raise InputError(
            "give precision= for an estimate with an interval, or claim= and truth= for an audit"
        )
    else:
        smoothness = find_smoothness(mechanism, domain, lipschitz)
        if (input_domain is None) is not (input_lipschitz is None):
            raise InputError("input_domain= and input_lipschitz= are needed together")
        inputs = (input_domain, input_lipschitz)
        checked = _order(notion, order)
        made = plan_overall(smoothness, *inputs, precision, confidence, checked, as_published)
    if most_draws is not None:
        made.check_affordable(most_draws)
    if mechanism is None:
        return made
    return dataclasses.replace(made, seconds=made.draws * seconds_per_draw(mechanism, dataset))


def seconds_per_draw(mechanism: object, dataset: Any = None) -> float:
    """Times a few pilot draws, which are discarded."""
    subject = as_subject(mechanism)
    if dataset is None and subject.worst_pair is not None:
        dataset = as_pairs(subject.worst_pair)[0].left
    runs = subject.mechanism
    rng = np.random.default_rng()
    n = 1
    while True:
        began = time.perf_counter()
        runs.sample(dataset, n, rng)
        taken = time.perf_counter() - began
        if taken > _PILOT_SECONDS / 4 or n >= runs.chunk_size:
            return taken / n
        n = min(2 * n, runs.chunk_size)


def _order(notion: type[Claim] | str | None, order: float | None) -> float | None:
    name = notion if isinstance(notion, str | None) else getattr(notion, "notion", repr(notion))
    if name not in (None, PureDP.notion, RenyiDP.notion):
        raise InputError(
            f"notion={name!r}: histograms estimate pure and renyi; plan an audit with claim= and truth="
        )
    if name == RenyiDP.notion and order is None:
        raise InputError("notion=renyi needs order=, e.g. 2")
    if name == PureDP.notion and order is not None:
        raise InputError(f"notion=pure has no order; leave out order={order!r}, or ask for renyi")
    return order


def _plan_events(
    claim: Claim, truth: float | None, power: float, confidence: float, likely: float
) -> EventsPlan:
    value = -math.inf if truth is None else as_number("truth", truth)
    if not claim.value < value < math.inf:
        raise InputError(
            f"truth={truth!r} must be a finite number above the claimed {claim.value:g}"
        )
    for name, chance in (("power", power), ("event_probability", likely)):
        if not 0.0 < as_number(name, chance) < 1.0:
            raise InputError(f"{name}={chance!r} must lie strictly between 0 and 1")
    p = float(likely)
    true = claim.with_value(value)
    # the least on the other side
    q = rejected_end(lambda q: true.max_power(q) >= p, p, 0.0, _HALVINGS)
    if not p > claim.max_power(q):
        text = f"with {q:g} on the other side does not break {claim.describe()}: choose another"
        raise InputError(f"event_probability={p:g} {text}")
    n_fresh = _proving_samples(claim, p, q, power, 1.0 - confidence)
    # The least number of draws of an audit that leaves these for the proof.
    most = 2 * n_fresh + FEWEST
    samples = max(
        bisect_left(range(most), True, n_fresh + 1, key=lambda n: n - training_size(n) >= n_fresh),
        FEWEST,
    )
    return EventsPlan(claim, value, float(power), confidence, (p, q), samples, 2 * samples)


def _proving_samples(
    claim: Claim, p: float, q: float, power: float, failure_probability: float
) -> int:
    """Fresh draws per side for the certificate, by the normal approximation of its power."""
    wanted = float(ndtri(power))
    low = 0
    high = FEWEST
    while _power_score(claim, p, q, high, failure_probability) < wanted:
        low = high
        high = 2 * high
        if high > _MOST_SAMPLES:
            raise InputError(
                f"more than {_MOST_SAMPLES:,} draws would be needed: the event is too rare or too close"
            )
    return bisect_left(
        range(high),
        wanted,
        low + 1,
        key=lambda n: _power_score(claim, p, q, n, failure_probability),
    )


def _power_score(claim: Claim, p: float, q: float, n: int, failure_probability: float) -> float:
    """The normal quantile of the power."""
    if isinstance(claim, PureDP | ApproxDP) and not isinstance(claim, ApproxDeltaDP):
        # The score test: its spread under the claim sets the bar, the true spread decides how often
        # it is cleared.
        grow = math.exp(claim.epsilon)
        delta = claim.delta
        excess = p - delta - grow * q
        bar = float(-ndtri(failure_probability)) * math.sqrt((grow * (p - delta + q) + delta) / n)
        return (excess - bar) / math.sqrt((p * (1.0 - p) + grow**2 * q * (1.0 - q)) / n)
    # Two separate bounds, at the expected counts.
    p_lower = lower(Counts(int(n * p), n), failure_probability / 2.0)
    q_upper = upper(Counts(math.ceil(n * q), n), failure_probability / 2.0)
    allowed = claim.max_power(q_upper)
    slope = (allowed - claim.max_power(q)) / (q_upper - q) if q_upper > q else 0.0
    return (p_lower - allowed) / math.sqrt((p * (1.0 - p) + slope**2 * q * (1.0 - q)) / n)
