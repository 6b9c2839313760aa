"""Exact bounds on one probability from a count (Clopper–Pearson)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from epsilometer.errors import InputError

# Halvings of the fallback bisection; 2^-200 of an interval on the log scale is far below a float's spacing.
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event was seen. Counts stay integers all the way to the bound."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials:
            raise InputError(f"hits={self.hits} of trials={self.trials}: hits must lie between 0 and trials")

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.hits + other.hits, self.trials + other.trials)

    @property
    def share(self) -> float:
        """The observed frequency (a guess, not a bound); 0 without trials."""
        return self.hits / self.trials if self.trials else 0.0


def lower(counts: Counts, failure_probability: float) -> float:
    """The exact lower confidence bound on the event's probability.

    Guarantee: for independent draws it exceeds the true probability with at most `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == 0:
        return 0.0
    a, b = float(counts.hits), float(counts.trials - counts.hits + 1)
    guess = float(betaincinv(a, b, failure_probability))
    # betaincinv gives nan for extreme arguments (a=3, b=1e8, 1e-300): solve those by bisection instead.
    if not 0.0 <= guess <= 1.0 or betainc(a, b, guess) > failure_probability * (1.0 + 1e-9):
        return _bisect_lower(a, b, failure_probability)
    return guess


def upper(counts: Counts, failure_probability: float) -> float:
    """The exact upper confidence bound on the event's probability.

    Guarantee: for independent draws it is below the true probability with at most `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == counts.trials:
        return 1.0
    a, b = float(counts.hits + 1), float(counts.trials - counts.hits)
    guess = float(betainccinv(a, b, failure_probability))
    if not 0.0 <= guess <= 1.0 or betaincc(a, b, guess) > failure_probability * (1.0 + 1e-9):
        # The upper bound is one minus the lower bound of the complement.
        return 1.0 - _bisect_lower(b, a, failure_probability)
    return guess


def check_failure_probability(value: float) -> float:
    """A failure probability strictly between 0 and 1, or an InputError."""
    if not 0.0 < value < 1.0:
        raise InputError(f"failure_probability={value!r} must lie strictly between 0 and 1")
    return value


def _bisect_lower(a: float, b: float, failure_probability: float) -> float:
    """The largest x found with betainc(a, b, x) ≤ failure_probability, on the log scale."""
    below, above = -745.0, 0.0  # exp(-745) is the smallest positive float
    for _ in range(_HALVINGS):
        middle = 0.5 * (below + above)
        if betainc(a, b, np.exp(middle)) <= failure_probability:
            below = middle
        else:
            above = middle
    return float(np.exp(below)) if below > -745.0 else 0.0
