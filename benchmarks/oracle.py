"""What no learner can beat: the best event, known in advance, certified on all draws."""

from __future__ import annotations

import math

import numpy as np

from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.zoo.laws.exact import PairLaw

FAILURE_PROBABILITY = 0.05
# Log-ratios at which events are tried, and how far they go where the loss is infinite.
_EVENTS, _FAR = 120, 30.0
# Step of the difference that gives the slope of δ(ε).
_STEP = 1e-6


def best_events(law: PairLaw) -> list[tuple[float, float]] | None:
    """(P(E), Q(E)) of the events {P/Q above a level}; None where the law is not known exactly.

    δ(t) = P(E) − e^t·Q(E) is greatest for that event at the level e^t, and its slope there is −e^t·Q(E).
    """
    loss = law.pure_epsilon()
    if loss is None or law.delta(0.5) is None:
        return None
    found = []
    for t in np.linspace(_STEP, min(loss, _FAR), _EVENTS, endpoint=False):
        low, high = (float(law.delta(float(level)) or 0.0) for level in (t - _STEP, t + _STEP))
        q = max((low - high) / (2.0 * _STEP) * math.exp(-t), 0.0)
        p = 0.5 * (low + high) + math.exp(t) * q
        if 0.0 < p <= 1.0 + 1e-6 and q <= p:
            found.append((min(p, 1.0), q))
    return found


def oracle_bounds(law: PairLaw, n: int, runs: int, seed: int = 0) -> list[float] | None:
    """Certified bounds on ε from n draws per side of the best event, one per run.

    The event is the best for counts as expected; then counts are drawn for each run.
    """
    events = best_events(law)
    if not events:
        return None
    p, q = max(events, key=lambda event: _promise(*event, n))
    rng = np.random.default_rng([seed, n])
    return [
        epsilon_lower(Counts(int(rng.binomial(n, p)), n), Counts(int(rng.binomial(n, q)), n), FAILURE_PROBABILITY)
        for _ in range(runs)
    ]


def _promise(p: float, q: float, n: int) -> float:
    """The bound to expect, by the normal law of log(p/q); an event never seen on the right counts as three hits."""
    q = max(q, 3.0 / n)
    if n * p < 5.0 or q >= p:
        return -math.inf
    return math.log(p / q) - 1.645 * math.sqrt((1.0 - p) / (n * p) + (1.0 - q) / (n * q))
