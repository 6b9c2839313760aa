"""Exact confidence bounds on one probability from a count (Clopper and Pearson).

X ~ Binomial(n, p) counts the hits of an event in n independent draws. P(X ≥ k) grows with p, so the
values of p at which seeing k hits or more has a probability of at most f form an interval [0, L].
L is the lower bound: it exceeds the true p only when X is among the most extreme counts whose
probability under p is at most f. The tail is a regularised incomplete beta function,
P(X ≥ k) = I_p(k, n − k + 1), so L is its inverse.

Guarantee: exact at every sample size, for every p. No normal approximation is involved.

Reference: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of
the binomial" (1934).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from epsilometer.bisection import rejected_end
from epsilometer.bounds.budget import check_failure_probability
from epsilometer.errors import InputError

__all__ = [
    "Counts",
    "lower",
    "upper",
]

# Relative. How far the tail at SciPy's inverse may exceed the failure probability before the
# inverse is not trusted. Its usual error is near 1e-13.
_INVERSE_TOLERANCE = 1e-9
# Natural logarithm of a probability. exp(-745) is the smallest positive float.
_LEAST_LOG_PROBABILITY = -745.0
# Halvings of the bracket [-745, 0] of a log-probability; far more than a float can resolve.
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event occurred. Counts stay integers all the way to the bound.

    Attributes:
        hits: draws in which the event occurred.
        trials: all draws.
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials:
            raise InputError(
                f"hits={self.hits} of trials={self.trials}: hits must lie between 0 and trials"
            )

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of both samples together."""
        return Counts(hits=self.hits + other.hits, trials=self.trials + other.trials)

    @property
    def misses(self) -> int:
        """Draws in which the event did not occur."""
        return self.trials - self.hits

    @property
    def complement(self) -> "Counts":
        """The counts of the complement of the event, in the same draws."""
        return Counts(hits=self.misses, trials=self.trials)

    @property
    def share(self) -> float:
        """The observed frequency (an estimate, not a bound); 0 without trials."""
        return self.hits / self.trials if self.trials else 0.0


def lower(counts: Counts, failure_probability: float) -> float:
    """Returns the exact lower confidence bound on the event's probability.

    Guarantee: for independent draws it exceeds the true probability with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == 0:
        return 0.0
    # P(X ≥ hits) = betainc(a, b, p).
    a = float(counts.hits)
    b = float(counts.misses + 1)
    bound = float(betaincinv(a, b, failure_probability))
    # The inverse is checked against the tail itself: betaincinv returns nan for extreme arguments
    # (a=3, b=1e8, failure probability 1e-300).
    most = failure_probability * (1.0 + _INVERSE_TOLERANCE)
    if 0.0 <= bound <= 1.0 and betainc(a, b, bound) <= most:
        return bound
    return _bisect_lower(a, b, failure_probability)


def upper(counts: Counts, failure_probability: float) -> float:
    """Returns the exact upper confidence bound on the event's probability.

    Guarantee: for independent draws it is below the true probability with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == counts.trials:
        return 1.0
    # P(X ≤ hits) = betaincc(a, b, p).
    a = float(counts.hits + 1)
    b = float(counts.misses)
    bound = float(betainccinv(a, b, failure_probability))
    most = failure_probability * (1.0 + _INVERSE_TOLERANCE)
    if 0.0 <= bound <= 1.0 and betaincc(a, b, bound) <= most:
        return bound
    # The upper bound is one minus the lower bound on the complement.
    return 1.0 - _bisect_lower(b, a, failure_probability)


def _bisect_lower(a: float, b: float, failure_probability: float) -> float:
    """The largest x at which betainc(a, b, x) was seen to be at most the failure probability.

    The bisection runs on the logarithm of x. It ends at a value that was tested, so it errs
    downwards, which is the safe side of a lower bound.
    """

    def is_rejected(log_x: float) -> bool:
        return bool(betainc(a, b, np.exp(log_x)) <= failure_probability)

    log_bound = rejected_end(
        is_rejected, rejected=_LEAST_LOG_PROBABILITY, kept=0.0, halvings=_HALVINGS
    )
    # The lower end itself was never tested.
    if log_bound == _LEAST_LOG_PROBABILITY:
        return 0.0
    return float(np.exp(log_bound))
