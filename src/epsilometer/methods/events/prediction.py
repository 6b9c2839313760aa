"""What bound to expect of an event, from its frequencies in training draws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.methods.base import Task

Floats = NDArray[np.float64]

# Splits of the failure probability between P(E) and Q(E) that are tried for notions without a joint test.
_SHARES = (0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9)

Predictor = Callable[[Floats, Floats], tuple[Floats, Floats]]


def predictor(task: Task, n_train: tuple[int, int], n_fresh: tuple[int, int], doubt: float = 1.0) -> Predictor:
    """A function from (p, q) to (predicted bound, its spread through the training draws), elementwise.

    The prediction subtracts the cost of the proof (on `n_fresh` draws of P's and Q's side) and the spread of the
    training draws times `doubt`: without the latter, tiny events win by chance.
    """
    claim = task.claim
    cost = float(ndtri(1.0 - task.failure_probability))
    if isinstance(claim, ApproxDeltaDP):
        return lambda p, q: _predict_delta(p, q, math.exp(min(claim.epsilon, 300.0)), cost, doubt, n_train, n_fresh)
    if isinstance(claim, PureDP | ApproxDP):
        delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
        return lambda p, q: _predict_epsilon(p, q, delta, cost, doubt, n_train, n_fresh)
    return lambda p, q: _predict_any(p, q, task, doubt, n_train, n_fresh)


def _predict_epsilon(
    p: Floats, q: Floats, delta: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        above = p - delta

        def spread(n: tuple[int, int]) -> Floats:
            return np.sqrt(p * (1.0 - p) / (n[0] * above**2) + (1.0 - q) / (n[1] * q))

        bound = np.log(above / q) - cost * spread(n_fresh) - doubt * spread(n_train)
        return np.where((above > 0.0) & ~np.isnan(bound), bound, -np.inf), spread(n_train)


def _predict_delta(
    p: Floats, q: Floats, grow: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    def spread(n: tuple[int, int]) -> Floats:
        return np.sqrt(p * (1.0 - p) / n[0] + grow**2 * q * (1.0 - q) / n[1])

    return p - grow * q - cost * spread(n_fresh) - doubt * spread(n_train), spread(n_train)


def _predict_any(
    p: Floats, q: Floats, task: Task, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    cost = float(ndtri(1.0 - task.failure_probability / 2.0))
    # The two errors of training are independent: each counts for about 1/√2 of its size.
    bounds, spreads = np.full(len(p), -np.inf), np.zeros(len(p))
    for place, (a, b) in enumerate(zip(p, q, strict=True)):
        bounds[place], spreads[place] = _predict_one(
            task.claim, float(a), float(b), cost, 0.7 * doubt, n_train, n_fresh
        )
    return bounds, spreads


def _predict_one(
    claim: Claim, p: float, q: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[float, float]:
    """Both probabilities are moved towards each other by what the proof and the training draws cost."""
    train = [math.sqrt(x * (1.0 - x) / n) for x, n in zip((p, q), n_train, strict=True)]
    fresh = [math.sqrt(x * (1.0 - x) / n) for x, n in zip((p, q), n_fresh, strict=True)]
    low = p - cost * fresh[0] - doubt * train[0]
    high = q + cost * fresh[1] + doubt * train[1]
    bound = claim.least_value(low, high) if high < low else low - high
    moved = claim.least_value(max(p - 0.7 * train[0], 0.0), min(q + 0.7 * train[1], 1.0)) if p > q else 0.0
    here = claim.least_value(p, q) if p > q else 0.0
    return bound, (here - moved if math.isfinite(here) else 0.0)


def best_share(task: Task, p: float, q: float, n_fresh: tuple[int, int]) -> float:
    """The split of the failure probability for the two-bound test, chosen on training frequencies."""
    if isinstance(task.claim, PureDP | ApproxDP):
        return 0.5  # the joint test does not split

    def bound(share: float) -> float:
        low = p - float(ndtri(1.0 - task.failure_probability * share)) * math.sqrt(p * (1.0 - p) / n_fresh[0])
        high = q + float(ndtri(1.0 - task.failure_probability * (1.0 - share))) * math.sqrt(q * (1.0 - q) / n_fresh[1])
        return task.claim.least_value(low, high) if 0.0 < high < low else -1.0

    return max(_SHARES, key=bound)
