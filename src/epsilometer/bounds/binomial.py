"""Exact bounds on one probability from a count, the bound on a bounded mean, and the budget that pays for them.

At the end, audits from one training run: m canaries, each put in or left out by a fair coin, and
guesses about the coins.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem
5.2 with the form of Corollary 5.4: P(at least v of r guesses right) ≤ f(v) + 2mδ·max_i (f(v − i) −
f(v))/i, where f(v) is the upper tail P(Binomial(r, e^ε/(e^ε + 1)) ≥ v).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv, gammaln, xlog1py, xlogy

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.claims import GaussianDP
from epsilometer.errors import BudgetError, InputError

# Halvings of the fallback bisection; 2^-200 of an interval on the log scale is far below a float's
# spacing.
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event was seen. Counts stay integers all the way to the bound."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials:
            raise InputError(
                f"hits={self.hits} of trials={self.trials}: hits must lie between 0 and trials"
            )

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.hits + other.hits, self.trials + other.trials)

    @property
    def share(self) -> float:
        """The observed frequency (a guess, not a bound); 0 without trials."""
        return self.hits / self.trials if self.trials else 0.0


def lower(counts: Counts, failure_probability: float) -> float:
    """The exact lower confidence bound on the event's probability.

    Guarantee: for independent draws it exceeds the true probability with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == 0:
        return 0.0
    a = float(counts.hits)
    b = float(counts.trials - counts.hits + 1)
    guess = float(betaincinv(a, b, failure_probability))
    # betaincinv gives nan for extreme arguments (a=3, b=1e8, 1e-300): solve those by bisection
    # instead.
    is_right = 0.0 <= guess <= 1.0 and betainc(a, b, guess) <= failure_probability * (1.0 + 1e-9)
    if not is_right:
        return _bisect_lower(a, b, failure_probability)
    return guess


def upper(counts: Counts, failure_probability: float) -> float:
    """The exact upper confidence bound on the event's probability.

    Guarantee: for independent draws it is below the true probability with at most
        `failure_probability`. Exact.
    """
    check_failure_probability(failure_probability)
    if counts.hits == counts.trials:
        return 1.0
    a = float(counts.hits + 1)
    b = float(counts.trials - counts.hits)
    guess = float(betainccinv(a, b, failure_probability))
    is_right = 0.0 <= guess <= 1.0 and betaincc(a, b, guess) <= failure_probability * (1.0 + 1e-9)
    if not is_right:
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
    least = -745.0  # exp(-745) is the smallest positive float
    found = rejected_end(
        lambda x: bool(betainc(a, b, np.exp(x)) <= failure_probability), least, 0.0, _HALVINGS
    )
    return float(np.exp(found)) if found > least else 0.0


# Sums of shares such as 0.1 + 0.2 may exceed their total by rounding, never by more than this.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The failure probability of one audit. Overspending raises `BudgetError`.

    Spending cannot be undone: the total is fixed, the ledger is read-only, and a budget cannot be
    copied.

    Attributes:
        total: the probability with which the whole audit may err.
    """

    total: float
    _paid: list[tuple[str, float]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_failure_probability(self.total)

    def __copy__(self, *_: object) -> NoReturn:
        """A copy would spend the same failure probability again; nor can it be sent to another process."""
        raise BudgetError(
            "an ErrorBudget cannot be copied: what is spent on one would be left in the other"
        )

    __deepcopy__ = __reduce_ex__ = __copy__

    @property
    def ledger(self) -> tuple[tuple[str, float], ...]:
        """What was spent on what, in order."""
        return tuple(self._paid)

    @property
    def spent(self) -> float:
        """The sum of what was spent."""
        return sum(amount for _, amount in self._paid)

    @property
    def remaining(self) -> float:
        """What is left."""
        return max(self.total - self.spent, 0.0)

    def spend(self, amount: float, purpose: str) -> float:
        """Pays for one look and returns what it paid."""
        if not amount > 0.0 or self.spent + amount > self.total * (1.0 + _ROUNDING):
            raise BudgetError(
                f"cannot spend {amount:g} on {purpose}: {self.remaining:g} of {self.total:g} is left"
            )
        self._paid.append((purpose, amount))
        return amount


def bernstein_lower(values: Floats, low: float, high: float, failure_probability: float) -> float:
    """A lower bound on the mean of independent, identically distributed values in [low, high].

    Args:
        values: shape (n,); with fewer than two the bound is `low`.
        low: the least value.
        high: the greatest.
        failure_probability: what may be spent.

    Guarantee: above the true mean with at most `failure_probability`. Exact for every n. (The
        theorem bounds the mean of values in [0, 1] from above; applied to (high − value)/(high −
        low) it bounds this mean from below.)
    """
    check_failure_probability(failure_probability)
    if not low < high or (len(values) and not (low <= values.min() and values.max() <= high)):
        raise InputError(f"low={low!r}, high={high!r}: all values must lie between them")
    n = len(values)
    if n < 2:
        return low
    needed = math.log(2.0 / failure_probability)
    # The theorem is about the unbiased variance, divided by n − 1.
    chance = math.sqrt(2.0 * float(values.var(ddof=1)) * needed / n)
    return max(float(values.mean()) - chance - 7.0 * (high - low) * needed / (3.0 * (n - 1)), low)


# No feasible number of guesses proves anything beyond these; 2^-60 of such brackets is below 1e-15.
_MOST_EPSILON = 60.0
_MOST_MU = 20.0


def one_run_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """The greatest probability of v or more right guesses that (ε, δ)-privacy allows (an upper bound on it).

    Args:
        m: canaries, each included with probability ½ by itself.
        r: guesses; the auditor may abstain on the others.
        v: right guesses.

    Guarantee: exact.
    """
    check_guesses(m, r, v)
    if v == 0:
        return 1.0
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(betainc(v, r - v + 1, chance))
    fewer = np.arange(v - 1, -1, -1, dtype=np.float64)  # v − 1, v − 2, …, 0 right guesses
    log_mass = gammaln(r + 1.0) - gammaln(fewer + 1.0) - gammaln(r - fewer + 1.0)
    mass = np.exp(log_mass + xlogy(fewer, chance) + xlog1py(r - fewer, -chance))
    return min(tail + 2.0 * m * delta * float(np.max(np.cumsum(mass) / np.arange(1, v + 1))), 1.0)


def one_run_epsilon(m: int, r: int, v: int, delta: float, failure_probability: float) -> float:
    """The largest ε that v right guesses refute at this δ, 0 if none.

    Guarantee: exact: above the true ε with at most `failure_probability`.
    """
    return _largest_rejected(
        lambda each: one_run_p_value(m, r, v, each, delta), failure_probability, _MOST_EPSILON
    )


def one_run_mu(m: int, r: int, v: int, failure_probability: float) -> float:
    """The largest μ that v right guesses refute, 0 if none.

    μ-Gaussian privacy implies (ε, δ) for every ε with its own δ, and each of them bounds the
    probability of one
    and the same event: the least of these bounds is a p-value.

    Guarantee: exact.
    """
    candidates = np.linspace(0.0, 16.0, 81)

    def p_value(mu: float) -> float:
        claim = GaussianDP(mu)
        return min(
            one_run_p_value(m, r, v, float(epsilon), claim.delta(float(epsilon)))
            for epsilon in candidates
        )

    return _largest_rejected(p_value, failure_probability, _MOST_MU, halvings=30)


def check_guesses(m: int, r: int, v: int) -> None:
    """0 ≤ v ≤ r ≤ m, whole numbers, at least one canary."""
    for name, value in (("m", m), ("r", r), ("v", v)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"{name}={value!r} must be a whole number")
    if not 0 <= v <= r <= m or m < 1:
        meant = "r of m canaries (at least 1) are guessed, v of them rightly, so 0 ≤ v ≤ r ≤ m"
        raise InputError(f"m={m}, r={r}, v={v}: {meant}")


def _largest_rejected(
    p_value: Callable[[float], float], level: float, top: float, halvings: int = 60
) -> float:
    """The largest value below `top` with a p-value below the level; p-values grow with the value."""
    if not p_value(0.0) < level:
        return 0.0
    return rejected_end(lambda value: p_value(value) < level, 0.0, top, halvings)
