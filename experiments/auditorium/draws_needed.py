"""How many draws show a violation, from the exact distributions of a zoo entry.

The best event at a level t has P(E) - e^t Q(E) = δ(t), so that the slope of the entry's own exact curve δ(t) tells both
of its probabilities. Of all those events the planner tells which needs the fewest draws.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

import epsilometer as em
from epsilometer.zoo import ZooEntry

_LEVELS = 200
# Events with a ratio beyond e^20 need no more draws than those at it.
_MOST_RATIO = 20.0
# Truths are exact to rounding; no audit shows less than this.
_ROUNDING = 1e-9


def draws_needed(entry: ZooEntry, confidence: float, power: float = 0.99) -> int | None:
    """Draws per side of an audit that refutes the claim on the worst pair; None if it cannot be refuted there.

    Guarantee: none; the planner's normal approximation, for an event that training would have to find.
    """
    claim = entry.claim
    if not isinstance(claim, em.PureDP | em.ApproxDP):
        return None
    delta = claim.delta if isinstance(claim, em.ApproxDP) else 0.0
    events = _best_events(entry, claim.epsilon)
    events = events[events[:, 0] - delta - math.exp(claim.epsilon) * events[:, 1] > _ROUNDING]
    if not len(events):
        return None
    rough = [
        _rough_draws(claim.epsilon, delta, event[0], event[1], confidence, power)
        for event in events
    ]
    p, q = (float(chance) for chance in events[int(np.argmin(rough))])
    ratio = math.log((p - delta) / max(q, (p - delta) * math.exp(-_MOST_RATIO)))
    made = em.plan(
        claim=claim, truth=ratio, power=power, confidence=confidence, event_probability=p
    )
    return int(made.samples)


def _best_events(entry: ZooEntry, epsilon: float) -> np.ndarray:
    """(P, Q) of the best events at levels from ε on, shape (levels - 1, 2)."""
    truth = entry.truth(em.PureDP)
    top = min(_MOST_RATIO, math.inf if truth is None else truth)
    if top <= epsilon + _ROUNDING:
        return np.empty((0, 2))
    levels = np.linspace(epsilon, top, _LEVELS)
    deltas = np.array([entry.truth(em.ApproxDP, epsilon=float(level)) for level in levels])
    grown = np.exp(levels)
    q = np.maximum(-np.diff(deltas) / np.diff(grown), 0.0)
    return np.column_stack([np.clip(deltas[:-1] + grown[:-1] * q, 0.0, 1.0 - 1e-12), q])


def _rough_draws(
    epsilon: float, delta: float, p: float, q: float, confidence: float, power: float
) -> float:
    """The normal approximation, good enough to compare events; at least ten hits, without which it means nothing."""
    grow = math.exp(epsilon)
    bar = ndtri(confidence) * math.sqrt(grow * (p - delta + q) + delta)
    spread = ndtri(power) * math.sqrt(p * (1 - p) + grow**2 * q * (1 - q))
    return max(float((bar + spread) / (p - delta - grow * q)) ** 2, 10 / p)
