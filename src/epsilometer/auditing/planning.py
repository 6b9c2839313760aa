"""How many draws an audit takes, before anything is drawn for it."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

from scipy.special import ndtri

from epsilometer.auditing.settings import FEWEST, training_size
from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts, lower, upper
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP, as_claim, as_number
from epsilometer.claims.base import check_confidence
from epsilometer.errors import InputError
from epsilometer.mechanisms.timing import seconds_per_draw

# 2^-80 of a probability is negligible even for rare events.
_HALVINGS = 80
# No plan with more draws per side than this is looked for.
_MOST_SAMPLES = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """What it takes to refute a false claim with the method `events`.

    Attributes:
        claim: what is claimed.
        truth: the true value of the claim's own parameter.
        power: the probability with which the claim is refuted.
        confidence: the confidence of the audit.
        event_probability: p, the probability of the event that the audit is assumed to find, on
            the input that makes it likelier.
        other_probability: q, the least probability of that event on the other input that the
            truth allows.
        samples: draws per side for the whole audit, training included.
        seconds: how long drawing will take; None if no mechanism was timed.
    """

    claim: Claim
    truth: float
    power: float
    confidence: float
    event_probability: float
    other_probability: float
    samples: int
    seconds: float | None = None

    @property
    def draws(self) -> int:
        """The draws of both sides together."""
        return 2 * self.samples

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "claim": self.claim.to_dict(),
            "truth": self.truth,
            "power": self.power,
            "confidence": self.confidence,
            "event": [self.event_probability, self.other_probability],
            "samples": self.samples,
            "draws": self.draws,
            "seconds": self.seconds,
        }

    def check_affordable(self, most_draws: float) -> "AuditPlan":
        """Returns the plan itself; raises an InputError if it takes too many draws."""
        if self.draws > most_draws:
            raise InputError(
                f"refuting {self.claim.describe()} when the truth is {self.truth:g} takes "
                f"{self.draws:,} draws, above most_draws={most_draws:,.0f}"
            )
        return self


def plan(
    claim: Claim | str,
    *,
    truth: float,
    power: float = 0.9,
    confidence: float = 0.95,
    event_probability: float = 0.5,
    mechanism: object = None,
    dataset: Any = None,
    most_draws: float | None = None,
) -> AuditPlan:
    """Plans an audit that should refute a false claim: how many draws does it need?

    The planner of two-sided estimates of local privacy is `epsilometer.ldp.plan`.

    Args:
        claim: what the audit should refute.
        truth: the true value of the claim's own parameter on the pair that is audited.
        power: the probability with which the claim should be refuted.
        confidence: the confidence of the audit.
        event_probability: how likely the event that separates the inputs best is, on its likelier
            side: ½ for Laplace noise; small for a rare leak, which takes more draws.
        mechanism: timed briefly, if given.
        dataset: the input to time it on; by default the left one of a zoo entry's worst pair.
        most_draws: refuses a plan with more draws.

    Guarantee: none. The power is a normal approximation, and the plan assumes that training finds
        an event as good as the one described.

    Example:
        >>> em.plan("eps=1", truth=1.2).samples > 1000
        True
    """
    planned = _plan_events(
        claim=as_claim(claim),
        truth=as_number("truth", truth),
        power=power,
        confidence=check_confidence(confidence),
        event_probability=event_probability,
    )
    if most_draws is not None:
        planned.check_affordable(most_draws)
    if mechanism is None:
        return planned
    return replace(planned, seconds=planned.draws * seconds_per_draw(mechanism, dataset))


def _plan_events(
    *,
    claim: Claim,
    truth: float,
    power: float,
    confidence: float,
    event_probability: float,
) -> AuditPlan:
    """Plans an audit with the method `events`; the arguments are those of `plan`."""
    if not claim.value < truth < math.inf:
        raise InputError(
            f"truth={truth!r} must be a finite number above the claimed {claim.value:g}"
        )
    probabilities = {"power": power, "event_probability": event_probability}
    for name, probability in probabilities.items():
        if not 0.0 < as_number(name, probability) < 1.0:
            raise InputError(f"{name}={probability!r} must lie strictly between 0 and 1")
    p = float(event_probability)
    true_claim = claim.with_value(truth)
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
    return AuditPlan(
        claim=claim,
        truth=truth,
        power=float(power),
        confidence=confidence,
        event_probability=p,
        other_probability=q,
        samples=max(samples, FEWEST),
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
