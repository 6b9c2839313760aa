"""What no learner can beat: the best event, known in advance, certified on all draws."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom, norm

from epsilometer.arrays import Floats
from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    PairDistributions,
    ProductDistributions,
    independent_distributions,
    without_shifts,
)

# P(E) and Q(E) of many events, each of shape (k,).
Events = tuple[Floats, Floats]

FAILURE_PROBABILITY = 0.05
# Events that are tried, and how far their log ratios go where the loss is infinite.
_EVENTS, _FAR = 4000, 30.0
# Step of the difference that gives the slope of δ(ε).
_STEP = 1e-6
# Fewer expected hits than this are counted one by one, as far as they have this chance.
_RARE, _UNSEEN = 12, 1e-3
# Gauss-Hermite: exact means of polynomials up to degree 5 in a normal variable.
_NODES, _WEIGHTS = (-math.sqrt(3.0), 0.0, math.sqrt(3.0)), (1 / 6, 2 / 3, 1 / 6)


def best_events(distributions: PairDistributions) -> Events | None:
    """The events {P/Q above a level} and {Q/P above a level}; None where the distributions are unknown."""
    if isinstance(distributions, ProductDistributions) and isinstance(
        distributions.factor, CellDistributions
    ):
        distributions = independent_distributions([distributions.factor] * distributions.copies)
    if isinstance(distributions, CellDistributions):
        return _events_of_cells(
            without_shifts(distributions, slices=500)
            if distributions.shifts.any()
            else distributions
        )
    if distributions.pure_epsilon() is None or distributions.delta(0.5) is None:
        return None
    return _events_of_curve(distributions)


def _events_of_cells(distributions: CellDistributions) -> Events:
    """Cells in the order of their ratio, one more in each event."""
    found = []
    for p, q in (
        (distributions.left, distributions.right),
        (distributions.right, distributions.left),
    ):
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(q) - np.log(p), kind="stable")
        events = np.cumsum(p[order]), np.cumsum(q[order])
        # As many as needed, the rare ones included.
        kept = np.unique(
            np.searchsorted(events[0], np.geomspace(1e-9, events[0][-1], _EVENTS)).clip(
                max=p.size - 1
            )
        )
        found.append((events[0][kept], events[1][kept]))
    return np.concatenate([p for p, _ in found]), np.concatenate([q for _, q in found])


def _events_of_curve(distributions: PairDistributions) -> Events:
    """δ(t) = P(E) − e^t·Q(E) is greatest for the event at the level e^t, and its slope there is −e^t·Q(E)."""
    found = []
    for t in np.linspace(
        _STEP, min(distributions.pure_epsilon() or 0.0, _FAR), _EVENTS // 10, endpoint=False
    ):
        low, high = (
            float(distributions.delta(float(level)) or 0.0) for level in (t - _STEP, t + _STEP)
        )
        q = max((low - high) / (2.0 * _STEP) * math.exp(-t), 0.0)
        p = 0.5 * (low + high) + math.exp(t) * q
        # An event that is all rounding looks as if it were never seen on the right.
        if _STEP**2 < p <= 1.0 + 1e-6 and q <= p:
            found.append((min(p, 1.0), q))
    p, q = np.array(found).T
    return p, q


def best_event(
    distributions: PairDistributions, n: int, failure_probability: float = FAILURE_PROBABILITY
) -> tuple[float, float] | None:
    """(P(E), Q(E)) of the event that promises most with n draws per side; None where the distributions are unknown."""
    events = best_events(distributions)
    if events is None:
        return None
    best = int(np.argmax(promise(*events, n, failure_probability)))
    return float(events[0][best]), float(events[1][best])


def oracle_bound(
    distributions: PairDistributions, n: int, failure_probability: float = FAILURE_PROBABILITY
) -> float | None:
    """The mean certified bound on ε from n draws per side of the best event."""
    event = best_event(distributions, n, failure_probability)
    return None if event is None else expected_bound(event[0], event[1], n, failure_probability)


@lru_cache(maxsize=1024)
def expected_bound(
    p: float, q: float, n: int, failure_probability: float = FAILURE_PROBABILITY
) -> float:
    """The mean certified bound on ln(P(E)/Q(E)) from n draws per side.

    The bound is nearly linear in a standardised count, so three quantiles of each give its mean; rare counts are
    enumerated.
    """
    sides = [counts_with_weights(chance, n) for chance in (p, q)]
    return sum(
        a * b * epsilon_lower(Counts(x, n), Counts(y, n), failure_probability)
        for x, a in sides[0]
        for y, b in sides[1]
    )


def counts_with_weights(chance: float, n: int) -> list[tuple[int, float]]:
    """Hits with weights that sum to 1."""
    if n * chance > _RARE:
        quantiles = binom.ppf(norm.cdf(_NODES), n, min(chance, 1.0))
        return [(int(hits), weight) for hits, weight in zip(quantiles, _WEIGHTS, strict=True)]
    weights = binom.pmf(np.arange(4 * _RARE), n, chance)
    weights /= weights.sum()
    return [(hits, float(weight)) for hits, weight in enumerate(weights) if weight > _UNSEEN]


def promise(p: Floats, q: Floats, n: int, failure_probability: float) -> Floats:
    """Nearly the bound at the expected counts, smooth in them: of two Poisson counts, the left one's share is binomial.

    Counts are enlarged by 1/(1 − chance), which gives a common event the spread of its logarithm. Half a hit more on
    the right instead of a whole one: our test does not condition on the sum of the counts, which costs half a hit.
    """
    left, right = (n * chance / np.maximum(1.0 - chance, 1.0 / n) for chance in (p, q))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = betaincinv(left, right + 0.5, failure_probability)
        bound = np.log(share / (1.0 - share)) + np.log((1.0 - p) / (1.0 - q))
    return np.where((n * p >= 1.0) & (q < p) & (p < 1.0), bound, -np.inf)
